"""``setup.py``: the requirements in its text, which is not run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from cgmigrate.project.pins.pep508 import read_requirement
from cgmigrate.project.pins.requirement import NAME, Requirement

_WITH_RELEASES = re.compile(rf"\s*{NAME}\s*(?:\[[^\]]*\]\s*)?(?:[<>=!~(]|@)", re.IGNORECASE)


def read_setup_py(text: str) -> Iterator[Requirement]:
    """Yield the requirements on megatron-core that are strings of the file. Raises ValueError."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(error.msg) from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _WITH_RELEASES.match(node.value):
            yield from read_requirement(node.lineno, node.value.strip())
