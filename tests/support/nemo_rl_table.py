"""What NeMo-RL's own source made of random configurations, as ``scripts/nemo_rl_table.py`` recorded it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.paths import ROOT

TABLE = ROOT / "tests" / "fixtures" / "nemo-rl" / "judged.jsonl"


@dataclass(frozen=True)
class Judged:
    """One configuration in one release of NeMo-RL."""

    policy: Mapping[str, Any]
    refused: tuple[str, ...]
    """The error for each model that the checkpoint may have, empty texts included; nothing if none is refused."""
    refused_without_graphs: bool
    fields: Mapping[str, Any]
    """The fields that differ from those of NeMo-RL's example, if the configuration is accepted with the first model."""

    @property
    def is_refused(self) -> bool | None:
        """Whether its graphs are refused, None if that depends on the model, or if it is refused without graphs."""
        if self.refused_without_graphs or 0 < sum(map(bool, self.refused)) < len(self.refused):
            return None
        return bool(self.refused)


def judged(release: str) -> list[Judged]:
    """Return the table of a release."""
    rows = [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()]
    return [
        Judged(
            row["policy"],
            tuple(row[release].get("refused", ())),
            row[release].get("refused without graphs", False),
            row[release].get("fields", {}),
        )
        for row in rows
    ]
