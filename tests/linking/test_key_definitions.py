"""Lists of keys that several files use, and classes with keys as fields: a key of YAML files that they name stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.checkouts import staged
from tests.support.files import write

RECIPE = "policy:\n  megatron_cfg:\n    num_layers: 2\n    external_cuda_graph: true\n    cuda_graph_scope: attn\n"
LIST = "KEYS = ['num_layers', 'external_cuda_graph', 'cuda_graph_scope']\n"
LOOP = """
def apply(config, model_cfg):
    for k in {}:
        if k in config["megatron_cfg"]:
            setattr(model_cfg, k, config["megatron_cfg"][k])
"""
FIELDS = """from dataclasses import dataclass
from typing import Optional


@dataclass
class Options:
    num_layers: int = 2
    external_cuda_graph: bool = False
    cuda_graph_scope: Optional[str] = None
"""
MODEL = """from typing import Optional
from pydantic import BaseModel


class Options(BaseModel, extra="forbid"):
    num_layers: int = 2
    external_cuda_graph: bool = False
    cuda_graph_scope: Optional[str] = None
"""
ALL = """
def apply(config, model_cfg):
    for name, value in vars(Options(**config["megatron_cfg"])).items():
        setattr(model_cfg, name, value)
"""
ASSIGNED = """
def apply(config, model_cfg):
    options = Options(**config["megatron_cfg"])
    model_cfg.external_cuda_graph = options.external_cuda_graph
    model_cfg.cuda_graph_scope = options.cuda_graph_scope
"""
NOT_FOLLOWED = {
    "an imported list": (
        {"keys": LIST, "setup": "from pkg.keys import KEYS as NAMES\n" + LOOP.format("NAMES")},
        "pkg/keys.py:1",
    ),
    "a list of a module": (
        {"keys": LIST, "setup": "from pkg import keys\n" + LOOP.format("keys.KEYS")},
        "pkg/keys.py:1",
    ),
    "a list that is used in its file, too": (
        {"setup": LIST + LOOP.format("KEYS"), "other": "from pkg.setup import KEYS\n" + LOOP.format("KEYS")},
        "pkg/setup.py:1",
    ),
    "fields": ({"setup": FIELDS + ALL}, "pkg/setup.py:8"),
    "fields that are assigned": ({"setup": FIELDS + ASSIGNED}, "pkg/setup.py:8"),
    "fields of a model": ({"setup": MODEL + ALL}, "pkg/setup.py:7"),
    "a list that is counted": (
        {"keys": LIST, "setup": "from pkg.keys import KEYS\nassert len(KEYS) == 3\n" + LOOP.format("KEYS")},
        "pkg/keys.py:1",
    ),
    "all names of a module": (
        {"keys": LIST, "setup": "from pkg.keys import *\n" + LOOP.format("KEYS")},
        "pkg/keys.py:1",
    ),
    "keys that are excluded": (
        {
            "keys": LIST,
            "setup": "from pkg.keys import KEYS\n\ndef apply(config, model_cfg):\n"
            "    vars(model_cfg).update({k: v for k, v in config['megatron_cfg'].items() if k not in KEYS})\n",
        },
        "pkg/keys.py:1",
    ),
    "a required field": (
        {"setup": FIELDS.replace("bool = False", "bool")[:-1].replace("int = 2", "int") + "\n" + ALL},
        ":8",
    ),
    "some values only": (
        {"setup": "from typing import Literal\n" + FIELDS.replace("[str]", "[Literal['attn']]") + ALL},
        "pkg/setup.py:9",
    ),
    "a field that the class reads": (
        {"setup": FIELDS + "\n    def on(self):\n        return self.external_cuda_graph\n" + ALL},
        "pkg/setup.py:",
    ),
    "a field that other code reads": (
        {"setup": FIELDS + ALL, "on": "def on(o):\n    return o.external_cuda_graph\n"},
        "pkg/on.py:2",
    ),
    "a subclass": (
        {"setup": FIELDS + "\n@dataclass\nclass More(Options):\n    x: int = 1\n" + ALL.replace("Options(", "More(")},
        "pkg/setup.py:8",
    ),
}


def package(project: Path, files: dict[str, str], recipe: str = RECIPE) -> Path:
    """Write a package and its recipe; return the recipe."""
    write(project / "pkg/__init__.py", "")
    for name, code in files.items():
        write(project / f"pkg/{name}.py", code)
    filled = write(project / "conf/recipe.yaml", recipe)
    staged(project)
    return filled


@pytest.mark.parametrize(("files", "reason"), NOT_FOLLOWED.values(), ids=NOT_FOLLOWED)
def test_lists_and_classes_that_are_not_followed_leave_the_files_as_they_are(
    project: Path, cgmigrate, files: dict[str, str], reason: str
) -> None:
    filled = package(project, files)
    result = cgmigrate("fix", ".")
    assert (result.exit_code, filled.read_text()) == (1, RECIPE)
    assert all((project / f"pkg/{name}.py").read_text() == code for name, code in files.items())
    assert reason in " ".join(result.stdout.split())
