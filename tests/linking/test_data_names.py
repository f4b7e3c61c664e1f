"""Names of settings as data: where code may use attributes by such names, no object of the project is proved."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import pytest

from cgmigrate.linking.python.data_names import DataNames
from cgmigrate.proof.flow.modules import Modules
from cgmigrate.linking.python.references import References
from cgmigrate.proof.flow.words import Words
from tests.support.files import write

TABLE = 'OVERRIDES = {"cuda_graph_scope": ["attn"]}\n'
SETS = "def apply(model, values):\n    for name, value in values.items():\n        setattr(model, name, value)\n"

USED = {
    "a setter beside it": {"job.py": TABLE + SETS},
    "a setter in a file that imports it": {"table.py": TABLE, "job.py": "from table import OVERRIDES\n" + SETS},
    "a setter that it calls": {
        "table.py": TABLE + "from setter import apply\napply(None, OVERRIDES)\n",
        "setter.py": SETS,
    },
    "a setter that a file calls which imports it": {
        "table.py": TABLE,
        "job.py": "from setter import apply\nfrom table import OVERRIDES\n\ndef run(one):\n    apply(one, OVERRIDES)\n",
        "setter.py": SETS,
    },
    "replace": {"job.py": TABLE + "def new(model):\n    return replace(model, **OVERRIDES)\n"},
    "a constructor": {"job.py": TABLE + "def new():\n    return GPTModelProvider(**OVERRIDES)\n"},
    "the dictionary of an object": {"job.py": TABLE + "def new(model):\n    model.__dict__.update(OVERRIDES)\n"},
    "a path": {
        "job.py": 'PATH = "model.cuda_graph_scope"\n\ndef read(cfg):\n    return reduce(getattr, PATH.split("."))\n'
    },
    "another spelling": {"job.py": TABLE.replace("cuda_graph_scope", "cuda-graph-scope") + SETS},
    "keywords of dict": {"job.py": 'OVERRIDES = dict(cuda_graph_scope=["attn"])\n' + SETS},
    "attributes of a class": {"job.py": 'class Wide:\n    model_cuda_graph_scope = ["mlp"]\n' + SETS},
}
"""Projects in which code may get a name as a text, by the way to it."""

NOT_USED = {
    "no setter": {"job.py": TABLE},
    "a setter that has nothing to do with it": {"job.py": TABLE, "other.py": SETS},
    "a name that is written where it is used": {
        "job.py": SETS + 'def read(model):\n    return getattr(model, "cuda_graph_scope", None)\n'
    },
    "a loop over names that are written there": {
        "job.py": SETS
        + 'def reset(model):\n    for name in ("enable_cuda_graph", "external_cuda_graph"):\n'
        + "        if hasattr(model, name):\n            setattr(model, name, False)\n"
    },
    "a message": {"job.py": SETS + 'def check():\n    raise ValueError("cuda_graph_scope is not set")\n'},
    "a comparison": {"job.py": SETS + 'def keeps(name):\n    return name == "cuda_graph_scope"\n'},
    "an option": {"job.py": SETS + 'parser.add_argument("--cuda_graph_scope", help="the cuda_graph_scope to use")\n'},
    "a function of a module": {
        "job.py": TABLE + "import recipes\n\ndef find(name):\n    return getattr(recipes, name)\n"
    },
    "a test": {"tests/test_job.py": TABLE + SETS},
}
"""Projects in which none may."""


def place(top: Path, files: Mapping[str, str]) -> str:
    paths = [str(write(top / name, text)) for name, text in files.items()]

    def files_with(words: Collection[str]) -> Iterable[str]:
        return Words(lambda: paths).files_with(words)

    return DataNames(References(Modules({}, list_files=lambda: paths)), files_with).find()


@pytest.mark.parametrize("files", USED.values(), ids=USED)
def test_code_may_get_the_name(files: Mapping[str, str], tmp_path: Path) -> None:
    assert place(tmp_path.resolve(), files).startswith(str(tmp_path.resolve()))


@pytest.mark.parametrize("files", NOT_USED.values(), ids=NOT_USED)
def test_no_code_gets_the_name(files: Mapping[str, str], tmp_path: Path) -> None:
    assert not place(tmp_path.resolve(), files)
