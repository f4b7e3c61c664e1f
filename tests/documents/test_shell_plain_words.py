"""Words of a script that are counted, picked, cut or compared: the fix is not safe, and has one reason."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.shell_judges import recorded
from tests.support.tables import table_of

Run = Callable[..., Result]

FLAGS = "--cuda-graph-impl local --cuda-graph-scope full_iteration"
NEW = "--cuda-graph-impl full_iteration"
ARRAY, STRING = f"A=({FLAGS} --lr 1)\n", f'A="{FLAGS} --lr 1"\n'

NOT_PLAIN = table_of(__name__, "NOT_PLAIN")


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_a_script_that_does_more_with_words_than_pass_them_on_is_left(project: Path, cgmigrate: Run, name: str) -> None:
    path, text = project / "train.sh", NOT_PLAIN[name]
    path.write_text(text)
    old, new = (" ".join(" ".join(words) for words in recorded(one)) for one in (text, text.replace(FLAGS, NEW)))
    assert old.replace(FLAGS, NEW) != new, "the case does not show what it is about"
    assert cgmigrate("check", ".").exit_code == 1
    cgmigrate("fix", ".")
    assert path.read_text() == text


PLAIN = table_of(__name__, "PLAIN")


@pytest.mark.parametrize("name", PLAIN)
def test_a_script_that_passes_words_on_is_rewritten(project: Path, cgmigrate: Run, name: str) -> None:
    path = project / "train.sh"
    path.write_text(PLAIN[name])
    cgmigrate("fix", ".")
    assert path.read_text() == PLAIN[name].replace(FLAGS, NEW)
