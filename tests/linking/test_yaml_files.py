"""YAML files that others name: what cannot be read, words that are no plain paths, and unclear references."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgmigrate.linking.compositions import CompositionError, compositions_of
from tests.support.compositions import yaml_files
from tests.support.files import write

BASE = "model_config:\n  cuda_graph_scope: attn\n"


def test_a_file_that_cannot_be_read_has_no_document(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_bytes("# caf\xe9\n".encode("latin-1") + BASE.encode())
    files = yaml_files(tmp_path)
    path = str(tmp_path.resolve() / "base.yaml")
    assert files.document(path) is None
    assert not files.has_settings(path)
    assert files.document(str(tmp_path / "missing.yaml")) is None


def test_a_document_is_known_once_it_is_parsed(tmp_path: Path) -> None:
    write(tmp_path / "base.yaml", BASE)
    files = yaml_files(tmp_path)
    path = str(tmp_path.resolve() / "base.yaml")
    assert files.known_document(path) is None
    assert files.document(path) is files.known_document(path) is not None


@pytest.mark.parametrize(
    "word", ["conf/base", "conf/base.yaml", "/conf//base", "./conf/./base", "../conf/base", "base"]
)
def test_a_word_matches_the_files_whose_paths_end_in_it(tmp_path: Path, word: str) -> None:
    for name in ("conf/base", "conf/other", "conf/database", "more/base"):
        write(tmp_path / f"{name}.yaml", BASE)
    expected = {"conf/base.yaml", "more/base.yaml"} if word == "base" else {"conf/base.yaml"}
    assert yaml_files(tmp_path).matching(word) == {str(tmp_path.resolve() / name) for name in expected}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("${size}", {"conf/base-7b.yaml", "conf/model/base.yaml"}),
        ("base-${size}.yaml", {"conf/base-7b.yaml"}),
        ("./base-${size}", {"conf/base-7b.yaml"}),
        ("model/${size}", {"conf/model/base.yaml"}),
        ("../other/base-${size}", {"other/base-7b.yaml"}),
        ("${folder}/base", {"conf/model/base.yaml"}),
    ],
)
def test_an_interpolation_may_be_any_name_below_the_folder_that_is_written(
    tmp_path: Path, word: str, expected: set[str]
) -> None:
    for name in ("conf/base-7b", "conf/model/base", "other/base-7b"):
        write(tmp_path / f"{name}.yaml", BASE)
    top = tmp_path.resolve()
    assert yaml_files(tmp_path).named(word, str(top / "conf"), True) == {str(top / name) for name in expected}


def test_a_group_from_the_root_is_below_a_folder_of_the_checkout(tmp_path: Path) -> None:
    write(tmp_path / "policy/base.yaml", BASE)
    main = write(tmp_path / "checkout/conf/run.yaml", "defaults:\n- /policy: base\n- _self_\n" + BASE)
    (tmp_path / "checkout/.git").mkdir()
    assert yaml_files(tmp_path / "checkout").may_name(str(main.resolve())) == set()
    inside = write(tmp_path / "checkout/policy/base.yaml", BASE)
    assert yaml_files(tmp_path / "checkout").may_name(str(main.resolve())) == {str(inside.resolve())}


def test_a_composition_with_unclear_references_is_refused(tmp_path: Path) -> None:
    """Loaders differ in which of two keys of one name is in effect."""
    write(tmp_path / "base.yaml", BASE)
    write(tmp_path / "twice.yaml", f"defaults: base.yaml\ndefaults: other.yaml\n{BASE}")
    write(tmp_path / "child.yaml", f"extends: twice.yaml\n{BASE}")
    files = yaml_files(tmp_path)
    for name in ("twice", "child"):
        with pytest.raises(CompositionError, match="`defaults:` is written twice"):
            compositions_of(str(tmp_path.resolve() / f"{name}.yaml"), files)
