"""Compositions are those of the loaders: Hydra and NeMo-RL's, which read the same files in these tests."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgmigrate.linking.compositions import CompositionError, compositions_of
from tests.support.compositions import composed_by_hydra, merged, yaml_files
from tests.support.files import write
from tests.support.nightly import examples
from tests.support.tables import from_table, table_of

pytest.importorskip("hydra")

PACKAGES = ["", "@pkg", "@_here_", "@_global_", "@a.b", "@_group_"]
GROUPS = ["m", "o", "m/n", "/m", "/o"]
NAMES = ["x", "y", "x", "y", "n/x", "n/y", "k/x", "k/y"]
"""Hydra reads a defaults list from the folder of the group, also that of an option in a folder below it."""
HEADERS = ["", "# @package _global_\n", "# @package q\n", "# a comment\n"]


@st.composite
def entries(draw: st.DrawFn, groups: list[str]) -> Any:
    kind = draw(st.sampled_from(["group", "group", "group", "options", "plain", "null", "choice"]))
    group = draw(st.sampled_from(groups)) + draw(st.sampled_from(PACKAGES))
    name = draw(st.sampled_from(NAMES))
    if kind == "plain":
        return draw(
            st.sampled_from(
                ["base", "base@pkg", "m/x", "/o/y", "/o/x@_here_", "o/x@p", "m/n/x", "optional m/none"]
                if "m" in groups
                else [
                    "k/x",
                    "common",
                    "../common",
                    "../common@pkg",
                    "/common",
                    "n/common",
                    "../n/common",
                    "common@_here_",
                ]
            )
        )
    if kind == "options":
        return {group: draw(st.sampled_from([[name, "y"], [name]]))}
    if kind == "null":
        return {group: None}
    prefix = draw(st.sampled_from(["", "", "", "optional ", "override "]))
    return {prefix + group: "${m}" if kind == "choice" else name}


@st.composite
def texts(draw: st.DrawFn, mark: str, groups: list[str]) -> str:
    nested = mark != "config"
    chosen = draw(st.lists(entries(groups), max_size=1 if nested else 4)) if groups else []
    if draw(st.booleans()):
        chosen.insert(draw(st.integers(0, len(chosen))), "_self_")
    body: dict[str, Any] = {"v": mark, f"own_{mark}": 1, "m": {"v": mark}, "pkg": {"v": mark}}
    head = draw(st.sampled_from(HEADERS)) if nested else ""
    return head + yaml.safe_dump({"defaults": chosen, **body} if chosen else body, sort_keys=False)


OF_M, OF_O = ["n", "k", "/o"], ["n", "k"]
NESTED: dict[str, list[str]] = table_of(__name__, "NESTED")
"""The files, each with the groups that its defaults list may choose of; no file includes itself."""


def write_experiment(folder: Path) -> Path:
    """Write a group and a configuration beside it that names the group from the root; return the configuration."""
    write(folder / "policy/base.yaml", "v: base\n")
    return write(folder / "experiments/run.yaml", "defaults:\n- /policy: base\n- _self_\npolicy:\n  lr: 1\n")


def test_groups_are_named_from_the_nearest_folder_above_that_has_them(tmp_path: Path) -> None:
    main = write_experiment(tmp_path / "conf")
    (composition,) = compositions_of(str(main), yaml_files(tmp_path))
    assert merged(composition) == composed_by_hydra(tmp_path / "conf", "experiments/run")


def test_groups_are_not_in_a_folder_around_the_repository(tmp_path: Path) -> None:
    main = write_experiment(tmp_path / "conf")
    (main.parent / ".git").mkdir()
    (composition,) = compositions_of(str(main), yaml_files(tmp_path))
    assert composition.paths == [str(main)]
    assert composition.unresolved


def test_a_file_is_composed_and_not_one_of_its_name_with_another_suffix(tmp_path: Path) -> None:
    main = write_experiment(tmp_path).rename(tmp_path / "experiments/run.yml")
    write(tmp_path / "experiments/run.yaml", "other: 1\n")
    (composition,) = compositions_of(str(main), yaml_files(tmp_path))
    assert merged(composition) == {"experiments": {"policy": {"v": "base", "lr": 1}}}


def test_a_group_above_has_no_package(tmp_path: Path) -> None:
    """Hydra puts the content below empty names, which nobody means."""
    main = write_experiment(tmp_path / "conf")
    main.write_text("defaults:\n- ../policy: base\n- _self_\n")
    assert composed_by_hydra(tmp_path / "conf", "experiments/run") == {
        "experiments": {"": {"": {"": {"policy": {"v": "base"}}}}}
    }
    with pytest.raises(CompositionError, match="no package"):
        compositions_of(str(main), yaml_files(tmp_path))


@from_table
def test_the_defaults_list_of_an_option_is_read_from_its_group(
    tmp_path: Path, main: str, big: str, expected: dict[str, object]
) -> None:
    for path in ("model/common", "model/fam/common", "model/fam/near"):
        mark = "wrong" if path == "model/fam/common" else path.rpartition("/")[2]
        write(tmp_path / f"{path}.yaml", f"{mark}: 1\n")
    write(tmp_path / "above.yaml", "# @package _global_\nabove: 1\n")
    write(tmp_path / "model/fam/big.yaml", f"defaults:\n- {big}\nbig: 1\n")
    write(tmp_path / "config.yaml", f"defaults:\n- {main}\n- _self_\n")
    assert composed_by_hydra(tmp_path, "config") == expected
    assert [merged(one) for one in compositions_of(str(tmp_path / "config.yaml"), yaml_files(tmp_path))] == [expected]


def test_files_of_a_key_that_is_not_known_are_merged_in_either_order(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / f"{name}.yaml", f"v: {name}\n")
    main = write(tmp_path / "main.yaml", "files: [one.yaml, two.yaml]\nv: main\n")
    compositions = compositions_of(str(main), yaml_files(tmp_path))
    orders = [([Path(path).stem for path in one.paths], one.is_certain) for one in compositions]
    assert orders == [(["one", "two", "main"], True), (["main", "two", "one"], False)]


def has_empty_names(value: object) -> bool:
    return isinstance(value, dict) and ("" in value or any(has_empty_names(one) for one in value.values()))


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_defaults_list_is_composed_as_hydra_composes_it(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for path in NESTED:
            write(folder / f"{path}.yaml", data.draw(texts(path.replace("/", "_"), NESTED[path])))
        write(folder / "config.yaml", data.draw(texts("config", GROUPS)))
        expected = composed_by_hydra(folder, "config")
        if expected is None:
            return
        try:
            compositions = compositions_of(str(folder / "config.yaml"), yaml_files(folder))
        except CompositionError:
            compositions = []
        compositions = [one for one in compositions if not one.choice]
        if any(len(one.paths) != len(set(one.paths)) for one in compositions):
            # Hydra keeps what it reads of a file, merges others into it, and merges that the second time.
            return
        results = [merged(one) for one in compositions]
        if has_empty_names(expected) and not results:
            # A file above without a package; see the test of a group above.
            return
        assert expected in results, ((folder / "config.yaml").read_text(), expected, results)
