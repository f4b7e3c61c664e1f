"""Version constraints of Poetry (https://python-poetry.org/docs/dependency-specification/)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet


def specifiers(constraint: str) -> list[SpecifierSet]:
    """Return the alternatives of a Poetry constraint, none for ``*``. Raises ValueError if it is not a constraint."""
    from packaging.specifiers import SpecifierSet

    alternatives: list[SpecifierSet] = []
    for alternative in re.split(r"\|\|?", constraint):
        if alternative.strip() == "*":
            return []
        clause = r"(\^|~=|~|===?|!=|>=|<=|>|<|=|)\s*(v?[0-9][\w.*+!]*)"
        if not re.fullmatch(rf"\s*{clause}(?:[\s,]+{clause})*\s*", alternative):
            raise ValueError(f"{constraint!r} is not a version constraint")
        clauses = (_pep440_clause(operator, version) for operator, version in re.findall(clause, alternative))
        alternatives.append(SpecifierSet(",".join(clauses)))
    return alternatives


def _pep440_clause(operator: str, version: str) -> str:
    """Return a clause of a Poetry constraint in the syntax of PEP 440."""
    from packaging.version import Version

    if operator in ("", "="):
        return f"=={version}"
    if operator not in ("^", "~"):
        return operator + version
    parts = Version(version).release
    if operator == "^":
        fixed = next((i for i, part in enumerate(parts) if part), len(parts) - 1)
    else:
        fixed = min(1, len(parts) - 1)
    limit = ".".join(map(str, (*parts[:fixed], parts[fixed] + 1)))
    return f">={version},<{limit}"
