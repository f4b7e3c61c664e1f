"""Megatron-LM's own GPT test cases as hybrid models: how many are rewritten, and what the release says to them.

    python bench/gpt_test_cases.py MEGATRON_LM.git TAG > docs/verification/gpt-models.md

The arguments of a case are the words that ``_run_training.sh`` passes on. Both forms go through the parser and
validation of the installed megatron-core, whose functions give the layers of each stage
(``tests/megatron/test_hybrid_models.py``).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import yaml

from tests.megatron.test_hybrid_models import JUDGE
from tests.support.release_judges import printed

MODELS = ("gpt", "moe", "mixtral")
CASES = "tests/functional_tests/test_cases"
UPGRADE = ("upgrade", "--from", "0.18", "--to", "0.19", "--hybrid")


def main(repository: str, tag: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "-C", repository, "archive", tag, "tests"], capture_output=True, check=True)
        subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
        subprocess.run(["git", "init", "-q", folder], check=True)
        print(f"# Megatron-LM's GPT test cases as hybrid models\n\nOf {tag}, by `bench/gpt_test_cases.py`.")
        for model in MODELS:
            print("\n".join(section(Path(folder), model)))


def section(top: Path, model: str) -> list[str]:
    """The table of the cases of one model."""
    files = sorted((top / CASES / model).glob("*/model_config.yaml"))
    reported = json.loads(run(top, *UPGRADE, "--output-format", "json", f"{CASES}/{model}").stdout)["findings"]
    by_file = defaultdict(list)
    for one in reported:
        if one["rule"] == "UPG501":
            by_file[top / one["path"]].append(one)
    before = {path: path.read_text() for path in files}
    run(top, *UPGRADE, "--fix", "--unsafe-fixes", f"{CASES}/{model}")
    outcomes = {path: outcome(by_file[path], before[path]) for path in files}
    changed = [path for path in files if outcomes[path] == "rewritten"]
    assert changed == [path for path in files if "--hybrid-layer-pattern" in path.read_text() != before[path]]
    verdicts = judged([before[path] for path in changed], [path.read_text() for path in changed])
    counts = Counter(outcomes.values())
    rows = [f"| {text} | {count} |" for text, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    said = [f"- {text}: {count}" for text, count in verdicts.most_common()]
    header = [f"\n## {model}: {len(files)} cases\n", "| outcome | cases |", "|---|---:|"]
    return [*header, *rows, *(["\nThe rewritten ones, read by megatron-core in both forms:\n", *said] if said else [])]


def outcome(diagnostics: list[dict[str, Any]], text: str) -> str:
    """What happens to a case."""
    if not diagnostics:
        return "NOT REPORTED" if "--num-layers:" in text else "no model: the case has no `--num-layers`"
    if all(one["fix"] for one in diagnostics):
        return "rewritten"
    one = next(one for one in diagnostics if not one["fix"])
    is_known = not any("no hybrid form is known" in note for note in one["notes"])
    return f"{'refused' if is_known else 'not understood'}: {one['blocked_by'] or one['help']}"


def judged(before: list[str], after: list[str]) -> Counter[str]:
    """What the release makes of both forms of each case."""
    pairs = [pair for old, new in zip(before, after, strict=True) for pair in zip(lines(old), lines(new), strict=True)]
    # A test has eight GPUs.
    judge = JUDGE.replace("8 * args.pipeline_model_parallel_size", "8")
    built = [[json.loads(row) for row in printed(judge, some, "")] for some in zip(*pairs, strict=True)]
    return Counter(verdict(gpt, hybrid) for gpt, hybrid in zip(*built, strict=True))


def verdict(gpt: Any, hybrid: Any) -> str:
    if isinstance(gpt, str):
        what = "the same for both" if gpt == hybrid else f"and for the hybrid form {hybrid}"
        return f"refused as GPT, {what}: {gpt[-160:]}"
    return "the same layers in each stage" if gpt == hybrid else f"DIFFERENT: {gpt} {hybrid}"


def lines(text: str) -> list[list[str]]:
    """The command lines of a case, in the order of their keys."""
    data = yaml.safe_load(text)
    return [words(data[key]) for key in sorted(data) if key.startswith("MODEL_ARGS") and isinstance(data[key], dict)]


def words(arguments: dict[str, Any]) -> list[str]:
    # Its kernel is one of Transformer Engine, which this machine need not have.
    result = ["--no-rope-fusion"]
    for flag, value in arguments.items():
        text = "" if value is None else str(value)
        is_list = isinstance(value, str) and value.startswith("[") and value.endswith("]") and "," not in value
        text = text.replace("${REPEAT}", "1")
        result += [flag, *([] if value is True or not text else text[1:-1].split() if is_list else [text])]
    return result


def run(top: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = "import sys; from cgmigrate.__main__ import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", program, *arguments], cwd=top, capture_output=True, text=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
