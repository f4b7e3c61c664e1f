"""Files that have a part in a command line of another file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import run

import pytest
from click.testing import Result

from tests.support.tables import table_of

Run = Callable[..., Result]


MEET = table_of(__name__, "MEET")

APART = table_of(__name__, "APART")


def written(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)
    run(["git", "init", "-q"], cwd=folder, check=True)
    run(["git", "add", "-A"], cwd=folder, check=True)


@pytest.mark.parametrize("name", MEET)
def test_a_command_line_that_another_file_has_a_part_in_is_left(project: Path, cgmigrate: Run, name: str) -> None:
    written(project, MEET[name])
    assert cgmigrate("check", ".").exit_code == 1
    cgmigrate("fix", ".")
    assert {one: (project / one).read_text() for one in MEET[name]} == MEET[name]


@pytest.mark.parametrize("name", APART)
def test_a_command_line_that_others_cannot_meet_is_rewritten(project: Path, cgmigrate: Run, name: str) -> None:
    written(project, APART[name])
    cgmigrate("fix", ".")
    after = APART[name] | {"train.sh": APART[name]["train.sh"].replace("-scope attn", "-modules attn")}
    assert {one: (project / one).read_text() for one in after} == after
