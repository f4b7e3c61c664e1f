"""Documents report kinds of problems; which rule explains one is decided in ``lint/``."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import cgmigrate

PACKAGE = Path(cgmigrate.__file__).parent
CODE = re.compile(r"\bCG[0-9](?:[0-9]{2})?\b")


def codes_in(package: str) -> list[str]:
    """The strings and comments of a package that hold the code of a rule, or the beginning of codes."""
    return [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in sorted((PACKAGE / package).rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if CODE.search(line)
    ]


def test_no_module_below_lint_knows_the_code_of_a_rule() -> None:
    assert [
        line for package in ("text", "megatron", "documents", "project", "linking") for line in codes_in(package)
    ] == []


def test_no_code_outside_documentation_compares_with_the_code_of_a_rule() -> None:
    strings = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value)
    ]
    assert strings == []
