"""The cases of every rule, and of every form in scripts and pages: what `check` reports and what `fix` writes.

A case is a folder ``tests/fixtures/rules/CGnnn/<case>/``, or ``tests/fixtures/forms/S0/<case>/`` with the form's name:

- ``before.yaml`` or ``before.py`` is checked and fixed. Other files of the folder lie beside it and do not change.
- ``expected.txt`` has one line ``line:column code severity applicability`` for each diagnostic of this file, with
  ``-`` as applicability if there is no fix. A first line that begins with ``#`` gives options of the command, and
  ``--padded-to=BYTES``, which fills the file up with ``#``.
- ``after.yaml`` or ``after.py`` is what ``fix`` writes; without it, ``fix`` leaves every byte.

The cases that a rule does not report have names that begin with ``00-no-op-``; those of a form have no diagnostic.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cgmigrate.lint.rules import load
from cgmigrate.megatron.settings import FIELDS
from tests.support.paths import FIXTURES
from tests.support.quotes import assert_quoted

RULES = FIXTURES / "rules"
FORMS = FIXTURES / "forms"
CASES = sorted(path.parent for folder in (RULES, FORMS) for path in folder.glob("*/*/expected.txt"))
NO_OP = "00-no-op-"
SETTING = re.compile("|".join([*FIELDS, *(name.replace("_", "-") for name in FIELDS), "CudaGraph(Scope|Module)"]))
PADDED = "--padded-to="


@dataclass(frozen=True)
class Expected:
    """One ``expected.txt``: the options of `check` and `fix`, and the diagnostics as lines of text."""

    options: tuple[str, ...]
    diagnostics: tuple[str, ...]

    @classmethod
    def of(cls, case: Path) -> Expected:
        lines = (case / "expected.txt").read_text(encoding="utf-8").splitlines()
        options = shlex.split(lines.pop(0)[1:]) if lines and lines[0].startswith("#") else []
        return cls(tuple(options), tuple(lines))

    @property
    def codes(self) -> set[str]:
        return {line.split()[1] for line in self.diagnostics}


def before_of(case: Path) -> Path:
    (path,) = case.glob("before.*")
    return path


def padded(content: bytes, options: tuple[str, ...]) -> bytes:
    sizes = [int(option.removeprefix(PADDED)) for option in options if option.startswith(PADDED)]
    return content.ljust(*sizes, b"#") if sizes else content


def shown(one: dict[str, Any]) -> str:
    """A diagnostic in JSON output, in the form of ``expected.txt``."""
    fix = one["fix"]
    return f"{one['line']}:{one['column']} {one['rule']} {one['severity']} {fix['safety'] if fix else '-'}"


def written(case: Path, project: Path, options: tuple[str, ...]) -> dict[str, bytes]:
    """Write the files of a case that a command sees into the project, and return their contents by name."""
    files = {
        str(path.relative_to(case)): path.read_bytes()
        for path in case.rglob("*")
        if path.is_file() and path.stem not in ("expected", "after")
    }
    name = before_of(case).name
    files[name] = padded(files[name], options)
    for path, content in files.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_bytes(content)
    return files


@pytest.mark.parametrize("case", CASES, ids=[f"{case.parent.name}-{case.name}" for case in CASES])
def test_check_reports_and_fix_writes_what_the_case_says(
    case: Path, project: Path, cgmigrate: Callable[..., Result]
) -> None:
    expected, name = Expected.of(case), before_of(case).name
    files = written(case, project, expected.options)
    paths = [name] if len(files) == 1 else ["."]
    fixing = [option for option in expected.options if not option.startswith(PADDED)]
    checking = [option for option in fixing if option not in ("--unsafe-fixes", "--docs")]
    findings = json.loads(cgmigrate("check", "--format", "json", *checking, *paths).stdout)["findings"]
    assert tuple(shown(one) for one in findings if one["path"] == name) == expected.diagnostics
    assert all(one["help"] for one in findings if not one["fix"]), "what has no fix says what to write"
    assert_quoted(findings, project)
    assert {path: (project / path).read_bytes() for path in files} == files, "`check` writes"

    after = case / f"after{Path(name).suffix}"
    fixed = files | ({name: after.read_bytes()} if after.exists() else {})
    for run in ("the first", "a second"):
        cgmigrate("fix", *fixing, *paths)
        assert {path: (project / path).read_bytes() for path in files} == fixed, f"after {run} `fix`"


def test_every_rule_has_cases_that_it_reports_and_before_them_cases_that_it_does_not() -> None:
    assert {path.name for path in RULES.iterdir()} == set(load())
    for rule in load():
        cases = sorted((RULES / rule).iterdir())
        reported = [rule in Expected.of(case).codes for case in cases]
        assert reported == sorted(reported) and set(reported) == {False, True}, f"{rule}: {reported}"
        assert reported == [not case.name.startswith(NO_OP) for case in cases], rule


IN_SCRIPTS = {
    "S0": "a flag without a value",
    "S1": "a flag on a line of its own",
    "S2": "a flag in a string, or one of several on a line",
    "S3": "an option of another program, with underscores",
    "S4": "a flag with a computed value",
    "S5": "an override",
    "S6": "a flag with a written boolean",
    "S7": "a variable",
}
IN_PAGES = {
    "M0": "text",
    "M1": "a flag in a block",
    "M2": "a cell of a table",
    "M3": "an assignment in a block",
    "M4": "an override in a block",
    "M5": "a key in a block",
    "M6": "a block in another language",
}


def test_every_form_has_a_case_that_is_reported_and_one_that_is_left_alone() -> None:
    assert {path.name for path in FORMS.iterdir()} == IN_SCRIPTS.keys() | IN_PAGES.keys()
    for form in FORMS.iterdir():
        reported = {case.name.startswith(NO_OP): bool(Expected.of(case).diagnostics) for case in form.iterdir()}
        assert reported == {True: False, False: True}, form.name


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name.startswith(NO_OP)], ids=lambda case: f"{case.parent.name}-{case.name}"
)
def test_what_a_rule_does_not_report_is_close_to_what_it_reports(case: Path) -> None:
    assert SETTING.search(before_of(case).read_text(encoding="utf-8")), "the case names no setting"


def test_a_case_has_no_file_that_is_not_judged() -> None:
    for case in CASES:
        names = {path.name for path in case.iterdir()}
        suffix = before_of(case).suffix
        assert not {name for name in names if name.startswith("after") and name != f"after{suffix}"}, case
    files = (path for folder in (RULES, FORMS) for path in folder.glob("*/*/*"))
    assert {path.parent for path in files} == set(CASES), "a case without expected.txt"
