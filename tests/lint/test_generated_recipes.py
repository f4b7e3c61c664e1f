"""Generated packages of recipes run before and after a plain ``fix``: all functions have to do the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, note, settings

from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.megatron.releases import LAST_OLD, NEWEST
from cgmigrate.megatron.settings import DEPRECATED
from cgmigrate.megatron.types import Capture, Reader, Rejected
from cgmigrate.project.options import RunOptions
from tests.support.capture_judges import captured_before, captured_by_newest
from tests.support.generated_recipes import Outcome, Package, outcomes, packages
from tests.support.nightly import generated


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout whose recipes each example writes again."""
    folder = tmp_path_factory.mktemp("checkout")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def _written(package: Package, folder: Path) -> Path:
    recipes = folder / "megatron/bridge/recipes"
    shutil.rmtree(recipes, ignore_errors=True)
    recipes.mkdir(parents=True)
    for name, text in {"__init__": "", **package.modules}.items():
        (recipes / f"{name}.py").write_text(text)
    return recipes


def _fixed(package: Package, folder: Path) -> Package:
    """The package after a ``fix`` of its checkout that writes what only a proof makes safe, too."""
    recipes = _written(package, folder)
    for item in Run([str(folder)], RunOptions(source=LAST_OLD, target=NEWEST)):
        assert isinstance(item, FileResult), item
        if item.after is not None:
            Path(item.path).write_text(item.after)
    return Package({name: (recipes / f"{name}.py").read_text() for name in package.modules})


def _captures(outcome: Outcome, captured: Any) -> list[tuple[str, Capture | Rejected | str]]:
    return [(name, _captured(own, captured)) for name, own in outcome.settings]


def _captured(own: Mapping[str, Any], captured: Any) -> Capture | Rejected | str:
    try:
        result: Capture | Rejected = captured(own, Reader.BRIDGE)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return f"{type(error).__name__} {own}"
    return result


_ASKS_FOR_NEW = re.compile(r'hasattr\([^"\n]*"(?:cuda_graph_modules|inference_cuda_graph_scope)"')


def _difference(was: Outcome, will: Outcome, same_release: Outcome, unedited: Outcome, *, reads_old: bool) -> str:
    """What is different after the fix, empty if nothing is.

    What the new release does with the unedited text, too, is no difference of the fix, as long as the object keeps an
    old setting, or the code reads one: it is still reported. It is none either if the object never had one, or if the
    new release refuses both for the same reason, which may name more; an object that it refuses with both texts is
    reported, by whatever names.
    """
    by_release = _is_alike(unedited, will) and (_keeps_old_names(will) or reads_old or not _keeps_old_names(was))
    if same_release == was or by_release or _are_refused(unedited, will):
        return ""
    first, second = _captures(was, captured_before), _captures(will, captured_by_newest)
    reported = _refused_as_before(unedited, will)
    pairs = [
        (one, two)
        for number, (one, two) in enumerate(zip(first, second, strict=False))
        if not isinstance(one[1], Rejected) and number not in reported
    ]
    if was.error != will.error or len(first) != len(second) or any(one != two for one, two in pairs):
        return f"{was} with {first} became {will} with {second}"
    return "" if was.others == will.others else f"{was.others} became {will.others}"


def _reads_old(module: str, package: Package) -> bool:
    """Return whether a module notes a deprecated setting, or asks for a new one, which depends on the release."""
    text = package.modules[module]
    return any(f".{name}}}" in text for name in DEPRECATED) or _ASKS_FOR_NEW.search(text) is not None


def _is_alike(unedited: Outcome, will: Outcome) -> bool:
    """Return whether the new release captures the same with both, whatever names a part of their settings has."""
    if unedited == will:
        return True
    captures = [_captures(one, captured_by_newest) for one in (unedited, will)]
    return captures[0] == captures[1] and (unedited.error, unedited.others) == (will.error, will.others)


def _keeps_old_names(outcome: Outcome) -> bool:
    return any(own.get(name) for _, own in outcome.settings for name in DEPRECATED)


def _refused_as_before(unedited: Outcome, will: Outcome) -> set[int]:
    """Return which objects the new release refuses by the same rule with both texts."""
    both = [_captures(one, captured_by_newest) for one in (unedited, will)]
    if len(both[0]) != len(both[1]):
        return set()
    codes = [[getattr(one, "code", "") for _, one in captures] for captures in both]
    return {number for number, (one, two) in enumerate(zip(*codes, strict=True)) if one == two != ""}


def _are_refused(unedited: Outcome, will: Outcome) -> bool:
    """Return whether the new release refuses the objects of both, all with old settings, by the same rules.

    What else such objects have, no job sees.
    """
    pairs = list(zip(_captures(unedited, captured_by_newest), _captures(will, captured_by_newest), strict=False))
    codes = [[getattr(one, "code", "") for _, one in pair] for pair in pairs]
    is_same = all(first == second != "" for first, second in codes) and len(unedited.settings) == len(will.settings)
    return is_same and _keeps_old_names(unedited) and _keeps_old_names(will)


@given(package=packages())
@settings(max_examples=generated(25, 1_000), suppress_health_check=list(HealthCheck))
def test_functions_do_the_same_after_fix(package: Package, checkout: Path) -> None:
    fixed = _fixed(package, checkout)
    event("changed" if fixed != package else "left as it is")
    if fixed == package:
        return
    note(str(package))
    note(str(fixed))
    for is_big in (False, True):
        before, after = outcomes(package, LAST_OLD, is_big), outcomes(fixed, NEWEST, is_big)
        again, unedited = outcomes(fixed, LAST_OLD, is_big), outcomes(package, NEWEST, is_big)
        wrong = {
            name: _difference(
                was, after[name], again[name], unedited[name], reads_old=_reads_old(name.partition(".")[0], fixed)
            )
            for name, was in before.items()
        }
        assert not any(wrong.values()), {name: why for name, why in wrong.items() if why}
