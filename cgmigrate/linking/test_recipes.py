"""The program that Megatron-LM's functional tests start with the arguments of a test case.

``tests/functional_tests/test_cases/MODEL/CASE/model_config.yaml`` has the arguments, and recipes in
``tests/test_utils/recipes`` name the script for some cases of a model. Forks have both, too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

_TEST_CASE = re.compile(r"(?P<top>.*)/tests/functional_tests/test_cases/(?P<model>[^/]+)/(?P<case>[^/]+)/[^/]+\.ya?ml")
_RECIPES = "tests/test_utils/recipes"
_MODEL = re.compile(r"^\s*model:\s*([\w.-]+)", re.MULTILINE)
_CASES = re.compile(r"test_case:\s*\[([^\]]*)\]")
UNKNOWN = "unknown"
"""What stands for the program where recipes do not decide it: a test case need not have one."""
_SCRIPT = re.compile(r"TRAINING_SCRIPT_PATH=(?:[^\"'\s]*/)?([\w.-]+\.py)")


def programs_of_test_case(path: str) -> tuple[str, ...]:
    """Return the one program that gets the arguments in a file, ``UNKNOWN`` for a test case without one.

    A test case that no recipe names has the program that all recipes of its model start.
    """
    match = _TEST_CASE.fullmatch(path.replace("\\", "/")) if "functional_tests" in path else None
    if match is None:
        return ()
    every = _programs(match["top"])
    of_model = frozenset().union(*(some for (model, _), some in every.items() if model == match["model"]))
    programs = every.get((match["model"], match["case"]), of_model)
    return tuple(programs) if len(programs) == 1 else (UNKNOWN,)


@lru_cache(maxsize=8)
def _programs(top: str) -> dict[tuple[str, str], frozenset[str]]:
    """Return the programs that the recipes of a checkout start, by model and case."""
    result: dict[tuple[str, str], frozenset[str]] = {}
    for recipe in sorted(Path(top, _RECIPES).rglob("*.yaml")):
        try:
            text = recipe.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        model, scripts = _MODEL.search(text), frozenset(_SCRIPT.findall(text))
        for names in _CASES.findall(text) if model else ():
            for case in filter(None, re.split(r"[\s,]+", names)):
                key = (model[1] if model else "", case.strip("\"'"))
                result[key] = result.get(key, frozenset()) | scripts
    return result
