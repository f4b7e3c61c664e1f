"""Lists of keys and classes with keys as fields: they change with the YAML files, and the code is run before and after.

Each package has them in one file or in several; the code that uses them may be in another one.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import LAST_OLD, NEWEST
from cgmigrate.megatron.types import Reader, Rejected
from tests.linking.test_key_interfaces import applied, checkout
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
TESTED = """
def copy(options: Options, model_cfg):
    if options.external_cuda_graph is not None:
        model_cfg.external_cuda_graph = options.external_cuda_graph
    if options.cuda_graph_scope is not None:
        model_cfg.cuda_graph_scope = options.cuda_graph_scope
def apply(config, model_cfg):
    copy(Options(**config["megatron_cfg"]), model_cfg)
"""
ASSIGNED = """
def apply(config, model_cfg):
    options = Options(**config["megatron_cfg"])
    model_cfg.external_cuda_graph = options.external_cuda_graph
    model_cfg.cuda_graph_scope = options.cuda_graph_scope
"""
FOLLOWED = {
    "an imported list": {"keys": LIST, "setup": "from pkg.keys import KEYS as NAMES\n" + LOOP.format("NAMES")},
    "a list of a module": {"keys": LIST, "setup": "from pkg import keys\n" + LOOP.format("keys.KEYS")},
    "an exported list": {
        "keys": "__all__ = ['KEYS']\n" + LIST,
        "setup": "import pkg.keys\n" + LOOP.format("pkg.keys.KEYS"),
    },
    "a list that is used in its file, too": {
        "setup": LIST + LOOP.format("KEYS"),
        "other": "from pkg.setup import KEYS\n" + LOOP.format("KEYS"),
    },
    "a list of all that is admitted": {
        "keys": LIST.replace("[", "{").replace("]", "}"),
        "setup": "from pkg.keys import KEYS\n\ndef apply(config, model_cfg):\n"
        "    assert not set(config['megatron_cfg']) - KEYS\n    vars(model_cfg).update(config['megatron_cfg'])\n",
    },
    "fields": {"setup": FIELDS + ALL},
    "fields in another file": {"options": FIELDS, "setup": "from pkg.options import Options\n" + ALL},
    "fields that are tested": {"options": FIELDS, "setup": "from pkg.options import Options\n" + TESTED},
    "fields that are assigned": {"setup": FIELDS + ASSIGNED},
    "fields with a default that the new names exclude": {
        "setup": FIELDS.replace("[str] = None", "[str] = 'full'") + ALL
    },
    "known keys only": {
        "setup": FIELDS
        + ALL.replace("**config", "**{k: v for k, v in config").replace(
            '"]))', '"].items() if k in Options.__annotations__}))'
        ),
    },
    "a model": {"setup": MODEL + ALL},
    "a model that is validated": {"setup": MODEL + ALL.replace("(**config", ".model_validate(config")},
}
NOT_FOLLOWED = {
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
    "a default that turns graphs on": (
        {"setup": FIELDS.replace("False", "True") + ALL},
        "something else would be captured (pkg/setup.py:8)",
    ),
    "a required field": (
        {"setup": FIELDS.replace("bool = False", "bool")[:-1].replace("int = 2", "int") + "\n" + ALL},
        ":8",
    ),
    "some values only": (
        {"setup": "from typing import Literal\n" + FIELDS.replace("[str]", "[Literal['attn']]") + ALL},
        "pkg/setup.py:10",
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
    "positions": ({"setup": FIELDS + "DEFAULT = Options(2, True)\n" + ALL}, "pkg/setup.py:8"),
    "an object that is changed": (
        {
            "setup": FIELDS
            + "from dataclasses import replace\n"
            + ALL.replace("vars(", "vars(replace(").replace('"]))', '"]), external_cuda_graph=False))')
        },
        "code sets such a setting by itself (pkg/setup.py:",
    ),
    "a key that is set beside the mapping": (
        {"setup": FIELDS + ALL.replace("(**config", "(cuda_graph_scope='mlp', **config")},
        "pkg/setup.py:8",
    ),
    "a scope that is lost": (
        {"setup": FIELDS + ASSIGNED.replace("    model_cfg.cuda_graph_scope = options.cuda_graph_scope\n", "")},
        "but not `cuda_graph_scope` (pkg/setup.py:",
    ),
    "a validator": (
        {
            "setup": MODEL
            + "    @field_validator('cuda_graph_scope')\n    def check(cls, value):\n        return value\n"
            + ALL
        },
        "pkg/setup.py:8",
    ),
    "another name": ({"setup": MODEL.replace("= False", "= Field(False, alias='te_graphs')") + ALL}, "pkg/setup.py:7"),
}


class Model:
    """Refuses keys that are no fields, as a model of pydantic does."""

    def __init_subclass__(cls, **options: str) -> None: ...

    def __init__(self, **values: object) -> None:
        names = type(self).__annotations__
        assert values.keys() <= names.keys()
        vars(self).update({name: getattr(type(self), name) for name in names} | values)

    @classmethod
    def model_validate(cls, values: dict[str, object]) -> Model:
        return cls(**values)


def package(project: Path, files: dict[str, str], recipe: str = RECIPE) -> Path:
    """Write a package and its recipe; return the recipe."""
    write(project / "pkg/__init__.py", "")
    for name, code in files.items():
        write(project / f"pkg/{name}.py", code)
    filled = write(project / "conf/recipe.yaml", recipe)
    checkout(project)
    return filled


@pytest.mark.parametrize("files", FOLLOWED.values(), ids=FOLLOWED)
def test_lists_and_classes_change_with_the_files_that_fill_them(
    project: Path, cgmigrate, monkeypatch: pytest.MonkeyPatch, files: dict[str, str]
) -> None:
    monkeypatch.syspath_prepend(project)
    monkeypatch.setitem(sys.modules, "pydantic", SimpleNamespace(BaseModel=Model))
    filled = package(project, files)
    old = capture_of(applied(project), LAST_OLD, Reader.CONFIG)
    result = cgmigrate("fix", ".")
    assert (result.exit_code, isinstance(old, Rejected)) == (0, False), result.stdout
    assert "cuda_graph_impl: transformer_engine" in filled.read_text() and "external" not in filled.read_text()
    assert capture_of(applied(project), NEWEST, Reader.CONFIG) == old
    assert cgmigrate("check", ".").exit_code == 0
    filled.write_text(RECIPE)
    # An old file of a user captures as before.
    assert capture_of(applied(project), NEWEST, Reader.CONFIG) == old


@pytest.mark.parametrize(("files", "reason"), NOT_FOLLOWED.values(), ids=NOT_FOLLOWED)
def test_lists_and_classes_that_are_not_followed_leave_the_files_as_they_are(
    project: Path, cgmigrate, files: dict[str, str], reason: str
) -> None:
    filled = package(project, files)
    result = cgmigrate("fix", ".")
    assert (result.exit_code, filled.read_text()) == (1, RECIPE)
    assert all((project / f"pkg/{name}.py").read_text() == code for name, code in files.items())
    assert reason in " ".join(result.stdout.split())


def test_the_new_fields_have_the_types_and_defaults_of_the_old_ones(project: Path, cgmigrate) -> None:
    package(project, {"setup": FIELDS + ALL})
    shown = cgmigrate("fix", "--diff", ".").stdout
    for line in (
        '+    cuda_graph_impl: str = "none"',
        "+    cuda_graph_modules: Optional[str] = None",
        "+    inference_cuda_graph_scope: Optional[str] = None",
    ):
        assert line in shown.splitlines()
    assert "-    external_cuda_graph" not in "".join(shown.split("pkg/setup.py")[1:])
