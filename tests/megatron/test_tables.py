"""The tables of releases against the installed megatron-core, and how the generator reads a small wheel."""

from __future__ import annotations

import dataclasses
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from cgmigrate.megatron.releases import KNOWN, LAST_OLD, NEWEST, SPLIT_IN, Release
from cgmigrate.megatron.tables import Tables, at, load, release_of
from tests.support.paths import ROOT
from tests.support.release_tables import CLASSES, GENERATOR, SCRIPT, installed


@pytest.mark.parametrize("name", CLASSES)
def test_the_fields_are_those_of_the_installed_class(name: str) -> None:
    release = installed()
    real = dataclasses.fields(getattr(importlib.import_module(CLASSES[name]), name))
    table = load().fields(name, release)
    assert set(table) == {field.name for field in real}
    for field in real:
        entry = table[field.name]
        assert entry.init == field.init, field.name
        if field.default is dataclasses.MISSING:
            factory = field.default_factory
            assert entry.required == (factory is dataclasses.MISSING), field.name
            if factory in (list, dict):
                assert entry.default == factory(), field.name
        elif not entry.expression:
            assert (entry.default, type(entry.default)) == (_plain(field.default), type(_plain(field.default))), (
                field.name
            )


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def test_the_flags_are_those_of_the_installed_parser() -> None:
    release = installed()
    parser_of = pytest.importorskip("megatron.training.arguments").add_megatron_arguments
    import argparse

    parser = parser_of(argparse.ArgumentParser(allow_abbrev=False))
    real = {action.option_strings[0]: action for action in parser._actions if action.dest != "help"}
    table = load().flags(release)
    assert set(table) == {name for name in real if name.startswith("-")}
    for name, entry in table.items():
        action = real[name]
        assert (entry.dest, entry.nargs or None) == (action.dest, action.nargs or None), name
        assert len(entry.choices) == len(action.choices or ()), name
        if not entry.expression:
            assert entry.default == _plain(action.default), name


def test_every_release_whose_settings_are_known_has_a_table() -> None:
    tables = load()
    assert [release_of(name) for name in tables.releases] == list(KNOWN)
    assert all(tables.fields("TransformerConfig", release) for release in KNOWN)
    assert tables.flags(tables.flags_since) and not tables.flags(Release(0, 11))


def test_the_split_of_the_settings_is_in_the_tables() -> None:
    tables = load()
    assert tables.field("TransformerConfig", "cuda_graph_modules", LAST_OLD) is None
    new = tables.field("TransformerConfig", "inference_cuda_graph_scope", SPLIT_IN)
    assert new is not None and new.default is None
    old = tables.field("TransformerConfig", "cuda_graph_impl", LAST_OLD)
    assert old is not None and old.choices == ("none", "local", "transformer_engine")
    assert tables.field("bridge.GPTModelProvider", "cuda_graph_impl", NEWEST) is not None, "through its base"


def test_an_entry_is_what_the_last_release_before_made_it() -> None:
    history = {"0.13": {"type": "int"}, "0.15": None, "0.18": {"type": "str"}}
    forms = [at(history, Release(0, minor)) for minor in (12, 13, 14, 15, 17, 18, 19)]
    assert forms == [None, {"type": "int"}, {"type": "int"}, None, None, {"type": "str"}, {"type": "str"}]


def test_a_class_that_a_release_lacks_has_no_fields() -> None:
    entry = {"bases": {"0.18": {"names": []}}, "fields": {"a": {"0.18": {"type": "int"}}}}
    tables = Tables({}, {"New": entry}, {}, LAST_OLD)
    assert tables.fields("New", LAST_OLD) == {} and list(tables.fields("New", SPLIT_IN)) == ["a"]


def test_the_tables_are_small_enough_to_ship() -> None:
    assert (ROOT / "rules/releases.json").stat().st_size <= 500_000


def test_what_a_release_changed_is_printed() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--diff", "0.17", "0.18"], capture_output=True, text=True, check=True, timeout=60
    )
    lines = done.stdout.splitlines()
    assert any(line.startswith("new      TransformerConfig.cuda_graph_modules: ") for line in lines)
    assert any(line.startswith("changed  TransformerConfig.cuda_graph_impl: ") for line in lines)
    assert "gone     --inference-dynamic-batching-cuda-graph-max-tokens" in lines


def test_a_release_without_a_table_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--diff", "0.17", "0.99"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1 and "0.99 is none of the releases" in done.stderr


class TestReadingSource:
    """The generator on the source of a small package."""

    def test_fields_bases_and_imports(self, tmp_path: Path) -> None:
        package = tmp_path / "megatron/core"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("from .base import Base as Renamed\n")
        (package / "base.py").write_text(
            "@dataclass\nclass Base:\n    a: int\n    b: List[str] = field(default_factory=list)\n"
            "    K: ClassVar[int] = 1\n"
        )
        (package / "config.py").write_text(
            "from megatron.core import Renamed\n@dataclass(kw_only=True)\nclass Config(Renamed):\n"
            "    c: Optional[Literal['x', 'y']] = None\n    d: Kind = Kind.one\n"
            "    e: int = field(init=False, default=3)\n"
            "    not_a_field = 4\n"
        )
        classes: dict[str, object] = {}
        GENERATOR.add_class(GENERATOR.Wheels([tmp_path]), "Config", "megatron.core.config", classes)
        assert classes == {
            "Base": {"bases": [], "fields": {"a": {"type": "int"}, "b": {"type": "List[str]", "default": []}}},
            "Config": {
                "bases": ["Base"],
                "fields": {
                    "c": {"type": "Optional[Literal['x', 'y']]", "choices": ["x", "y"], "default": None},
                    "d": {"type": "Kind", "expression": "Kind.one"},
                    "e": {"type": "int", "init": False},
                },
            },
        }

    def test_tables_of_all_releases_come_apart_again(self) -> None:
        tables = {
            "0.8": {"classes": {"A": {"bases": [], "fields": {"x": {"type": "int"}}}}, "flags": {}},
            "0.9": {"classes": {"A": {"bases": ["B"], "fields": {}}, "B": {"bases": [], "fields": {}}}, "flags": {}},
            "0.10": {
                "classes": {"A": {"bases": ["B"], "fields": {"x": {"type": "str"}}}},
                "flags": {"--x": {"dest": "x"}},
            },
        }
        document = GENERATOR.joined(tables)
        assert {minor: GENERATOR.split(document, minor) for minor in tables} == tables
