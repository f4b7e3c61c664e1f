"""The catalogue of settings, against the tables of releases, the capture model and the installed megatron-core."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re
from pathlib import Path

import jsonschema
import pytest

from cgmigrate.megatron import settings as model
from cgmigrate.megatron.catalogue import Setting, SettingKind, flag_of, load
from cgmigrate.megatron.releases import KNOWN, NEWEST, Release
from cgmigrate.megatron.rule_data import RuleError, load_yaml, rules_folder
from cgmigrate.megatron.tables import Accepted
from cgmigrate.megatron.tables import load as load_tables
from tests.support.release_tables import CLASSES, installed
from tests.support.tables import from_table
from tests.support.teams import ENTRY, write_entries

CATALOGUE = load()
TABLES = load_tables()
ALL = [setting for setting in CATALOGUE.settings.values() if setting.path]
OTHERS = ("branches.", "environment.", "megatron.bridge.", "nemo_rl.")
"""How the owners of settings begin that the wheels of megatron-core do not have."""
ENTRIES = [setting for setting in ALL if not setting.owner.startswith(OTHERS)]
FILES = sorted((rules_folder() / "settings").rglob("*.yaml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_entry_that_ships_fits_the_schema(path: Path) -> None:
    schema = json.loads((rules_folder() / "settings/schema.json").read_text())
    jsonschema.validate(load_yaml(path.read_text(), str(path)), schema)


def test_the_schema_is_one_itself() -> None:
    schema = json.loads((rules_folder() / "settings/schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)


def test_the_constants_of_the_capture_model_are_the_entries_that_capture() -> None:
    assert [name for name in CATALOGUE.settings if CATALOGUE[name].captures] == list(model.FIELDS)
    capture = [CATALOGUE[name] for name in model.FIELDS]
    assert {setting.name for setting in capture if setting.deprecated} == model.DEPRECATED
    assert {setting.name: setting.flag for setting in capture} == model.FLAGS
    assert CATALOGUE[model.INFERENCE].choices == model.INFERENCE_SCOPES


def _in(setting: Setting, release: Release) -> Accepted | None:
    if setting.owner == "training.Arguments":
        return TABLES.flags(release).get(setting.flag)
    return TABLES.field(setting.owner, setting.name, release)


@pytest.mark.parametrize("setting", [one for one in ALL if one not in ENTRIES], ids=lambda setting: setting.name)
def test_no_release_has_what_belongs_to_others(setting: Setting) -> None:
    for release in KNOWN:
        assert setting.flag not in TABLES.flags(release)
        assert not [owner for owner in TABLES.classes if TABLES.field(owner, setting.name, release)]


@pytest.mark.parametrize("setting", ENTRIES, ids=lambda setting: setting.name)
def test_the_tables_have_the_field_in_the_releases_of_the_entry(setting: Setting) -> None:
    has = [release for release in KNOWN if _in(setting, release) is not None]
    last = setting.until or NEWEST
    assert has == [release for release in KNOWN if setting.since <= release <= last]


@pytest.mark.parametrize("setting", ENTRIES, ids=lambda setting: setting.name)
def test_the_tables_have_the_default_and_the_choices_of_the_entry(setting: Setting) -> None:
    entry = _in(setting, setting.until or NEWEST)
    assert entry is not None
    assert (entry.default, type(entry.default)) == (setting.default, type(setting.default))
    if entry.choices:
        assert entry.choices == setting.choices
    if entry.type == "bool":
        assert setting.kind is SettingKind.FLAG
    if entry.type in ("int", "Optional[int]"):
        assert setting.kind is SettingKind.NUMBER


@pytest.mark.parametrize("setting", ENTRIES, ids=lambda setting: setting.name)
def test_the_tables_have_the_flags_of_the_entry(setting: Setting) -> None:
    flags = TABLES.flags(setting.until or NEWEST)
    if setting.no_flag:
        assert flags[setting.no_flag].action == "StoreFalse"
        return
    if not setting.flag:
        assert flag_of(setting.name) not in flags
        return
    entry = flags[setting.flag]
    assert (entry.action in ("StoreTrue", "BooleanOptional")) is setting.is_flag
    assert not entry.choices or entry.choices == setting.choices


@pytest.mark.parametrize("setting", ENTRIES, ids=lambda setting: setting.name)
def test_the_installed_class_has_the_field(setting: Setting) -> None:
    release = installed()
    if setting.owner not in CLASSES:
        pytest.skip("the class needs packages that are not installed")
    owner = getattr(importlib.import_module(CLASSES[setting.owner]), setting.owner)
    fields = {field.name for field in dataclasses.fields(owner)}
    assert (setting.name in fields) is (setting.since <= release <= (setting.until or release))


def test_a_replacement_exists_in_the_release_that_deprecates() -> None:
    for setting in ENTRIES:
        for name in setting.replaced_by:
            new = CATALOGUE[name]
            assert setting.deprecated_in is not None
            assert new.since >= setting.deprecated_in
            assert TABLES.field(new.owner, name, NEWEST) is not None


def test_a_team_adds_a_setting_and_its_replacement(tmp_path: Path) -> None:
    catalogue = load([write_entries(tmp_path, shuffle_kernels=ENTRY)])
    old, new = catalogue["shuffle_kernels"], catalogue["shuffle_backend"]
    assert (old.flag, old.subject, old.deprecated) == ("--shuffle-kernels", True, True)
    assert (new.flag, new.subject, new.kind) == ("--shuffle-backend", False, SettingKind.TEXT)
    assert old.values == (("fast", "fused"), ("slow", "plain"))
    assert catalogue.older_names("shuffle_backend") == ("shuffle_kernels",)
    assert catalogue.names[: len(model.FIELDS)] == model.FIELDS
    assert {"shuffle_kernels", "shuffle_backend"} <= catalogue.name_set
    assert "shuffle_kernels" in catalogue.deprecated and "shuffle_backend" not in catalogue.deprecated


def test_a_folder_is_read_again_where_it_is_another_or_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, kind in (("one", "choice"), ("two", "text")):
        write_entries(tmp_path / name / "rules", shuffle_kernels=ENTRY.replace("kind: choice", f"kind: {kind}"))
        monkeypatch.chdir(tmp_path / name)
        assert load(["rules"])["shuffle_kernels"].kind == kind
    write_entries(Path("rules"), shuffle_kernels=ENTRY.replace("kind: choice", "kind: list"))
    assert load(["rules"])["shuffle_kernels"].kind is SettingKind.LIST
    assert load(["rules"]) is load(["rules"])


def test_a_name_is_matched_whole_where_another_begins_with_it(tmp_path: Path) -> None:
    catalogue = load([write_entries(tmp_path, cuda_graph_scope_of_ours=ENTRY)])
    name = re.match(catalogue.alternatives(), "cuda_graph_scope_of_ours")
    assert name is not None and name[0] == "cuda_graph_scope_of_ours"


def test_older_names_are_those_of_older_names_too(tmp_path: Path) -> None:
    backend = ENTRY.replace("shuffle_backend", "shuffle_engine").replace('"0.18"', '"0.19"')
    engine = "summary: The engine that shuffles tokens\nkind: text\nowner: our_package.OurConfig\nsources: [ours]\n"
    folder = write_entries(tmp_path, shuffle_kernels=ENTRY, shuffle_backend=backend, shuffle_engine=engine)
    assert load([folder]).all_older_names("shuffle_engine") == ("shuffle_backend", "shuffle_kernels")


def test_names_that_only_newer_releases_have(tmp_path: Path) -> None:
    """The split brought those of the capture model; a team's replacement is one in any release."""
    folder = write_entries(tmp_path, shuffle_kernels=ENTRY.replace('"0.18"', '"0.15"'))
    expected = {"cuda_graph_modules", "inference_cuda_graph_scope", "shuffle_backend"}
    assert load([folder]).newer_names == expected


@pytest.mark.parametrize(("new", "kind"), [("4", SettingKind.NUMBER), ("true", SettingKind.FLAG)])
@pytest.mark.parametrize("other", ["absent", "null"])
def test_a_replacement_is_of_the_kind_of_its_values(tmp_path: Path, new: str, kind: SettingKind, other: str) -> None:
    """A value whose replacement is not written says nothing of its kind, nor does null."""
    entry = ENTRY.replace("new: fused", f"new: {new}").replace("new: plain", f"new: {other}")
    folder = write_entries(tmp_path, shuffle_kernels=entry)
    assert load([folder])["shuffle_backend"].kind is kind


@from_table
def test_an_entry_that_is_wrong_is_reported_with_its_line(tmp_path: Path, change: tuple[str, str], error: str) -> None:
    folder = write_entries(tmp_path, shuffle_kernels=ENTRY.replace(*change))
    with pytest.raises(RuleError) as caught:
        load([folder])
    assert f"shuffle_kernels.yaml{error}" in str(caught.value)


def test_an_entry_that_exists_already_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="cuda_graph_impl is already defined in"):
        load([write_entries(tmp_path, cuda_graph_impl=ENTRY)])


def test_an_entry_is_named_by_its_file(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="the name of the file is the name of the setting"):
        load([write_entries(tmp_path, **{"shuffle-kernels": ENTRY})])
