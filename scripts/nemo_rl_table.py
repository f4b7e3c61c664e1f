"""Record what NeMo-RL's own source makes of random configurations, for machines that do not have it.

Needs NEMO_RL_SOURCE and NEMO_RL_PYTHON (see tests/support/nemo_rl_judge.py):

    python -m scripts.nemo_rl_table

writes tests/fixtures/nemo-rl/judged.jsonl, one configuration a line.
"""

from __future__ import annotations

import json
import sys
from random import Random

from tests.support.nemo_rl_configs import FIELDS, MODELS, random_policy, without_graphs
from tests.support.nemo_rl_judge import COMMITS, answers, missing
from tests.support.nemo_rl_table import TABLE

NUMBER = 200


def main() -> None:
    """Write the table."""
    if reason := missing():
        sys.exit(f"Error: {reason}")
    chance = Random(20260822)
    policies = [random_policy(chance) for _ in range(NUMBER)]
    rows: list[dict[str, object]] = [{"policy": policy} for policy in policies]
    for release in COMMITS:
        (base,) = answers([{"policy": {}, "fields": FIELDS}], release)
        for row, policy in zip(rows, policies, strict=True):
            requests = [
                {"policy": one, "model": model, "fields": FIELDS}
                for one in (policy, without_graphs(policy))
                for model in MODELS.values()
            ]
            *answered, first, second = answers(requests, release)
            changed = ((name, value) for name, value in answered[0].get("fields", {}).items())
            recorded = {
                "fields": {name: value for name, value in changed if value != base["fields"][name]},
                "refused": [(one["refused"] or "")[:64] for one in answered]
                if any(one["refused"] for one in answered)
                else [],
                "refused without graphs": bool(first["refused"] or second["refused"]),
            }
            row[release] = {name: value for name, value in recorded.items() if value}
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    TABLE.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
