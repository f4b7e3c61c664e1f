"""Readers that get objects of other kinds: their changes are withheld, and those of other readers are not."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import pytest

from cgmigrate.proof.flow.modules import Modules
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.rounds import Change
from cgmigrate.linking.python.stand_ins import StandIns
from cgmigrate.proof.flow.words import Words
from tests.support.files import write

READER = "def captures(model):\n    return list(model.cuda_graph_scope)\n"
PLANNED = "class Planned:\n    cuda_graph_impl: str\n    cuda_graph_scope: list\n"
TESTS = "from checks import captures\n\n"

WITH_OTHERS = {
    "an object of a class of a script": {"run.py": TESTS + PLANNED + "\nprint(captures(Planned()))\n"},
    "a variable": {"run.py": TESTS + PLANNED + "\nplan = Planned()\nprint(captures(model=plan))\n"},
    "a loop over a list": {
        "run.py": TESTS
        + PLANNED
        + "\nPLANS = [Planned()]\n\ndef main():\n    for one in PLANS:\n        captures(one)\n"
    },
    "a class of another file": {
        "plans.py": PLANNED,
        "run.py": TESTS + "from plans import Planned\n\ncaptures(Planned())\n",
    },
    "options": {
        "run.py": TESTS
        + 'parser.add_argument("--cuda-graph-scope")\nargs = parser.parse_args()\nprint(captures(args))\n'
    },
    "options of a function": {
        "options.py": 'def options():\n    parser.add_argument("--cuda-graph-scope")\n    return parser.parse_args()\n',
        "run.py": TESTS + "from options import options\n\ncaptures(options())\n",
    },
    "what a file has": {"run.py": TESTS + "def load(saved):\n    return captures(Namespace(**saved))\n"},
    "through another function": {
        "finish.py": TESTS + "def finish(model):\n    return captures(model)\n",
        "run.py": "from finish import finish\n\n" + PLANNED + "\nfinish(Planned())\n",
    },
    "a stub of a test": {"test_a.py": TESTS + PLANNED + "\ndef test_it():\n    assert captures(Planned())\n"},
    "a named tuple of a test": {
        "test_a.py": TESTS + 'Stub = namedtuple("Stub", "cuda_graph_scope")\n\ndef test_it():\n    captures(Stub([]))\n'
    },
    "a parameter of a test": {"test_a.py": TESTS + PLANNED + "\ndef test_it(model):\n    assert captures(model)\n"},
    "a fixture": {
        "conftest.py": "@fixture\ndef stub():\n    return SimpleNamespace(cuda_graph_scope=[])\n",
        "test_a.py": TESTS + "def test_it(stub):\n    assert captures(stub)\n",
    },
}
"""Projects in which a reader gets something else than a configuration, by what that is."""

WITHOUT = {
    "a configuration": {"run.py": TESTS + "captures(recipe().model)\n"},
    "a class that nothing passes on": {"run.py": TESTS + PLANNED + "\nplan = Planned()\ncaptures(recipe().model)\n"},
    "a class of Megatron": {
        "run.py": TESTS + "class Own(GPTModelProvider):\n    cuda_graph_scope: str = 'full'\n\ncaptures(Own())\n"
    },
    "another function": {"run.py": PLANNED + "\nprint(Planned())\n"},
    "options with other names": {
        "run.py": TESTS + 'parser.add_argument("--steps")\nargs = parser.parse_args()\nprint(captures(args))\n'
    },
}
"""Projects in which it gets configurations only."""


def withheld(top: Path, files: Mapping[str, str]) -> Collection[object]:
    paths = [str(write(top / name, text)) for name, text in {**files, "checks.py": READER}.items()]
    reader = str(top / "checks.py")

    def files_with(words: Collection[str]) -> Iterable[str]:
        return Words(lambda: paths).files_with(words)

    change = Change((reader, 0), reader, frozenset([(reader, 2)]), reads=True)
    return StandIns(References(Modules({}, list_files=lambda: paths)), files_with, [change]).seen()


@pytest.mark.parametrize("files", WITH_OTHERS.values(), ids=WITH_OTHERS)
def test_the_reader_stays(files: Mapping[str, str], tmp_path: Path) -> None:
    assert withheld(tmp_path.resolve(), files)


@pytest.mark.parametrize("files", WITHOUT.values(), ids=WITHOUT)
def test_the_reader_may_change(files: Mapping[str, str], tmp_path: Path) -> None:
    assert not withheld(tmp_path.resolve(), files)
