"""The golden outputs are those of this commit; see tests/golden.py."""

from __future__ import annotations

import json

import pytest

from tests import golden
from tests.support.paths import FETCHED

NAMES = sorted(path.name for path in golden.GOLDEN.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_output_is_the_golden_one(name: str) -> None:
    tree = next((one for one in golden.WHOLE if name.startswith(f"{one}.")), "")
    package = FETCHED / name.removesuffix(".json")
    folder, part = golden.WHOLE[tree] if tree else (package, ".")
    if not (folder / part).is_dir():
        pytest.skip(f"{folder / part} is not present here")
    if tree:
        actual = golden.output_of(folder, *golden.OUTPUTS[name.removeprefix(f"{tree}.")], part)
    else:
        actual = json.dumps(golden.package_summary(package), indent=1) + "\n"
    assert not golden.differences(name, actual), "run `python tests/golden.py --update` and say why in the commit"


def test_every_tree_has_golden_files() -> None:
    expected = {f"{tree}.{suffix}" for tree in golden.WHOLE for suffix in golden.OUTPUTS}
    assert set(NAMES) == expected | {f"{package}.json" for package in golden.PACKAGES}
