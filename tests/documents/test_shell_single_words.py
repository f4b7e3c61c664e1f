"""A flag that becomes two words: scripts in which the number of words counts, judged by a real bash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest
from click.testing import Result

from cgmigrate.documents.shell import ShellDocument
from tests.support.shell_judges import recorded
from tests.support.tables import table_of

Run = Callable[..., Result]

FLAG = "--external-cuda-graph"
NEW = ["--cuda-graph-impl", "transformer_engine"]
RUN = "torchrun pretrain_gpt.py"

STAY = table_of(__name__, "STAY")


@pytest.mark.parametrize("name", STAY)
def test_a_script_in_which_the_number_of_words_counts_stays(project: Path, cgmigrate: Run, name: str) -> None:
    path = project / "train.sh"
    path.write_text(STAY[name])
    cgmigrate("fix", ".")
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == STAY[name]
    assert cgmigrate("check", ".").exit_code == 1
    replaced = STAY[name].replace(FLAG, " ".join(NEW))
    words = [[word if word != FLAG else NEW for word in command] for command in recorded(STAY[name])]
    flat = [[part for word in command for part in (word if isinstance(word, list) else [word])] for command in words]
    assert recorded(replaced) != flat, "the case does not show what it is about"


CHANGE = table_of(__name__, "CHANGE")


@pytest.mark.parametrize("name", CHANGE)
def test_other_scripts_are_rewritten(project: Path, cgmigrate: Run, name: str) -> None:
    path = project / "train.sh"
    path.write_text(CHANGE[name])
    cgmigrate("fix", ".")
    assert path.read_text() == CHANGE[name].replace(FLAG, " ".join(NEW))
    before = [" ".join(command).replace(FLAG, " ".join(NEW)) for command in recorded(CHANGE[name])]
    assert [" ".join(command) for command in recorded(path.read_text())] == before


def test_many_variables_take_time_linear_in_their_number() -> None:
    def seconds(count: int) -> float:
        names = "".join(
            f'A{at}="{FLAG} $A{at - 1}"\nB{at}=({FLAG})\nrun $A{at} "${{B{at}[@]}}"\n' for at in range(count)
        )
        start = process_time()
        ShellDocument(f"run() {{ {RUN} $1; }}\n{names}")
        return process_time() - start

    seconds(10)
    assert seconds(400) < 5 * seconds(200) + 0.2
