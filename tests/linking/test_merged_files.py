"""Sets of several files: YAML files that are merged capture the same after a fix, judged by merging them for real."""

from __future__ import annotations

import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.types import Reader, Rejected
from cgmigrate.project.options import RunOptions
from tests.support.files import write
from tests.support.loaders import load_nemo_rl as loaded_by_nemo_rl
from tests.support.merged_configs import captured, loaded, loaded_by_omegaconf, settings_at
from tests.support.tables import from_table

PLACES = {("model_config",): Reader.CONFIG, ("policy", "megatron_cfg"): Reader.NEMO_RL}
"""Where the settings of generated files are, and who reads them there."""
MEGATRON_CFG = ("policy", "megatron_cfg")
SCOPES = ["full", "attn", "full_iteration", "full_iteration_inference", ["attn", "mlp"], [], None]

mappings = st.fixed_dictionaries(
    {},
    optional={
        "enable_cuda_graph": st.booleans(),
        "external_cuda_graph": st.booleans(),
        "cuda_graph_impl": st.sampled_from(["none", "local", "transformer_engine", "full_iteration"]),
        "cuda_graph_scope": st.sampled_from(SCOPES),
        "cuda_graph_modules": st.sampled_from([["attn"], ["mlp", "attn"], []]),
    },
)


def text_of(place: tuple[str, ...], own: dict[str, Any], builds_on: Any = None) -> str:
    data: dict[str, Any] = {"defaults": builds_on} if builds_on else {}
    nested: dict[str, Any] = dict(own) if builds_on else {"num_layers": 2, "num_attention_heads": 4, **own}
    for name in reversed(place):
        nested = {name: nested}
    return yaml.safe_dump({**data, **nested}, sort_keys=False)


def fixed(folder: Path, unsafe: bool = False) -> list[FileResult]:
    """Fix a folder, write the files, and return the results."""
    results = [item for item in Run([str(folder)], RunOptions(unsafe=unsafe)) if isinstance(item, FileResult)]
    for checked in results:
        if checked.after is not None:
            Path(checked.path).write_text(checked.after)
    return results


def assert_same_captures(before: dict[Path, dict[str, Any]], place: tuple[str, ...]) -> None:
    for path, was in before.items():
        if find_spec("omegaconf"):
            assert loaded(path) == loaded_by_omegaconf(path)
        old, new, reader = settings_at(was, place), settings_at(loaded(path), place), PLACES[place]
        if old == new:
            continue
        first, second = captured(old, reader, migrated=False), captured(new, reader, migrated=True)
        if isinstance(first, Rejected):
            assert isinstance(second, Rejected), (path.name, old, new)
        else:
            assert first == second, (path.name, old, new)


CHAINS = st.one_of(
    st.tuples(st.just({"a": None, "b": "a.yaml"}), st.lists(mappings, min_size=2, max_size=2)),
    st.tuples(st.just({"a": None, "b": "a.yaml", "c": "b.yaml"}), st.lists(mappings, min_size=3, max_size=3)),
    st.tuples(st.just({"a": None, "b": "a.yaml", "c": "a.yaml"}), st.lists(mappings, min_size=3, max_size=3)),
    st.tuples(st.just({"a": None, "b": None, "c": ["a.yaml", "b.yaml"]}), st.lists(mappings, min_size=3, max_size=3)),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(CHAINS, st.sampled_from(list(PLACES)))
def test_what_every_leaf_captures_stays_the_same(
    chain: tuple[dict[str, Any], list[dict[str, Any]]], place: tuple[str, ...]
) -> None:
    names, mapping_of = chain
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / f"{one}.yaml" for one in names]
        for path, builds_on, own in zip(paths, names.values(), mapping_of, strict=True):
            path.write_text(text_of(place, own, builds_on))
        # No run starts with the others, which only are merged into these.
        named = " ".join(map(str, names.values()))
        before = {path: loaded(path) for path in paths if path.name not in named}
        fixed(folder)
        assert_same_captures(before, place)
        again = {path: path.read_text() for path in paths}
        fixed(folder)
        assert {path: path.read_text() for path in paths} == again


def files(folder: Path, **texts: str) -> dict[str, Path]:
    return {name: write(folder / f"{name}.yaml", text) for name, text in texts.items()}


def model(*lines: str, head: str = "") -> str:
    return head + "model_config:\n" + "".join(f"  {line}\n" for line in lines)


BASE = model("num_attention_heads: 4", "cuda_graph_impl: local", "cuda_graph_scope: full_iteration")
CHILD = model("cuda_graph_scope: attn", head="defaults: base.yaml\n")


def test_parent_and_child_are_rewritten_together(project: Path) -> None:
    paths = files(project, base=BASE, child=CHILD)
    before = {path: loaded(path) for path in paths.values()}
    base, child = fixed(project)
    assert paths["base"].read_text() == model("num_attention_heads: 4", "cuda_graph_impl: full_iteration")
    assert paths["child"].read_text() == model(
        "cuda_graph_modules: attn", "cuda_graph_impl: local", head="defaults: base.yaml\n"
    )
    assert_same_captures(before, ("model_config",))
    (fix,) = {one.fix for one in (*base.diagnostics, *child.diagnostics) if one.fix}
    assert fix.paths == (base.path, child.path)
    # The child gets a key of its own, and its diagnostic says why.
    notes = [note for one in child.diagnostics for note in one.notes]
    assert notes[0] == "`cuda_graph_impl: local` is added, since base.yaml will set it to `full_iteration`"


def test_an_added_key_names_the_file_that_has_the_setting(project: Path) -> None:
    """Of two files below, the nearer one does not have it."""
    one = model("num_attention_heads: 4", "cuda_graph_impl: local", "cuda_graph_scope: attn")
    child = model("cuda_graph_scope: full_iteration", head="defaults: [one.yaml, two.yaml]\n")
    paths = files(project, one=one, two=model("cuda_graph_scope: mlp"), child=child)
    before = {path: loaded(path) for path in paths.values()}
    notes = [note for checked in fixed(project) for diagnostic in checked.diagnostics for note in diagnostic.notes]
    assert_same_captures(before, ("model_config",))
    assert "`cuda_graph_impl: full_iteration` is added, since one.yaml will set it to `local`" in notes


@pytest.mark.parametrize("key", ["extends", "_extends_", "inherits", "_base_"])
def test_where_a_loader_may_replace_a_mapping_a_fix_is_safe_only_if_each_file_alone_is_too(
    project: Path, key: str
) -> None:
    alone = model("cuda_graph_scope: attn", head=f"{key}: base.yaml\n")
    paths = files(project, base=BASE, child=alone)
    assert all(checked.after is None for checked in fixed(project))
    assert paths["child"].read_text() == alone
    both = model("cuda_graph_impl: local", "cuda_graph_scope: attn", head=f"{key}: base.yaml\n")
    paths["child"].write_text(both)
    fixed(project)
    assert paths["base"].read_text() == model("num_attention_heads: 4", "cuda_graph_impl: full_iteration")
    assert paths["child"].read_text() == both.replace("graph_scope", "graph_modules")


@from_table
def test_known_forms_of_a_chain_are_followed(project: Path, head: str) -> None:
    paths = files(project, base=BASE, child=model("cuda_graph_scope: attn", head=head))
    fixed(project)
    assert "cuda_graph_impl: local" in paths["child"].read_text()


@from_table
def test_merges_that_are_not_known_stay_unsafe(project: Path, child: str) -> None:
    paths = files(project, base=BASE, child=child)
    assert all(checked.after is None for checked in fixed(project))
    assert paths["base"].read_text() == BASE and paths["child"].read_text() == child


def test_a_set_is_not_written_if_one_merged_result_is_refused(project: Path) -> None:
    """NeMo-RL refuses local per-layer graphs, so neither file may change."""
    base = "policy:\n  megatron_cfg:\n    cuda_graph_impl: local\n    cuda_graph_scope: full_iteration\n"
    child = "defaults: base.yaml\npolicy:\n  megatron_cfg:\n    cuda_graph_scope: attn\n"
    files(project, base=base, child=child)
    results = fixed(project, unsafe=True)
    assert [checked.after for checked in results] == [None, None]
    of_base, of_child = (checked.diagnostics[-1] for checked in results)
    assert of_base.blocked_by == "it shares settings with the mapping in child.yaml:4, which cannot be rewritten"
    assert "would reject the result" in of_child.blocked_by


def test_a_chain_in_which_one_file_has_settings_is_that_file(project: Path) -> None:
    files(project, base="model_config:\n  num_attention_heads: 4\n", child=CHILD, leaf="defaults: child.yaml\nx: 1\n")
    (child,) = fixed(project)
    (fix,) = {one.fix for one in child.diagnostics}
    assert child.after and fix and fix.paths == (child.path,)


def test_a_file_that_merges_the_settings_of_two_others_is_not_followed(project: Path) -> None:
    """It has no settings of its own that could be proved or changed."""
    other = model("cuda_graph_scope: attn")
    both = "defaults: [base.yaml, other.yaml]\n"
    files(project, base=BASE, other=other, both=both)
    assert all(checked.after is None for checked in fixed(project))


def test_files_of_a_checkout_that_are_not_given_are_followed(project: Path) -> None:
    paths = files(project, base=BASE, child=CHILD)
    (project / ".git/HEAD").unlink()
    for words in (["init", "-q", "."], ["add", "."]):
        subprocess.run(["git", *words], check=True)
    (checked,) = [item for item in Run(["base.yaml"], RunOptions()) if isinstance(item, FileResult)]
    (diagnostic,) = checked.diagnostics
    assert checked.after is None and paths["base"].read_text() == BASE
    assert diagnostic.blocked_by == "child.yaml, which has to change with this file"
    assert diagnostic.help == "run `cgmigrate fix base.yaml child.yaml`"


def test_a_child_that_names_a_link_to_its_parent_is_followed(project: Path) -> None:
    """The name of a link need not have anything in common with the name of the file."""
    paths = files(project, base=BASE, child=model("cuda_graph_scope: attn", head="defaults: common.yaml\n"))
    (project / "common.yaml").symlink_to("base.yaml")
    before = {path: loaded(path) for path in paths.values()}
    fixed(project)
    assert "cuda_graph_impl: local" in paths["child"].read_text()
    assert_same_captures(before, ("model_config",))


@from_table
def test_every_spelling_of_a_path_is_followed(project: Path, head: str) -> None:
    paths = files(project, base=BASE, child=model("cuda_graph_scope: attn", head=head))
    fixed(project)
    assert paths["base"].read_text() == model("num_attention_heads: 4", "cuda_graph_impl: full_iteration")
    assert "cuda_graph_impl: local" in paths["child"].read_text()


@pytest.mark.parametrize("entry", ["base:", "base@pkg", "base.yaml@pkg"])
def test_a_file_that_goes_elsewhere_is_rewritten_alone(project: Path, entry: str) -> None:
    """Hydra puts what it sets at another place, or null chooses no file of the group `base`."""
    paths = files(project, base=BASE, child=model("cuda_graph_scope: attn", head=f"defaults:\n- {entry}\n"))
    fixed(project)
    assert paths["base"].read_text() == model("num_attention_heads: 4", "cuda_graph_impl: full_iteration")
    assert paths["child"].read_text() == model("cuda_graph_modules: attn", head=f"defaults:\n- {entry}\n")


def test_the_marker_of_nemo_rl_replaces_a_mapping(project: Path) -> None:
    child = model("cuda_graph_scope: attn", "_override_: true", head="defaults: base.yaml\n")
    paths = files(project, base=BASE, child=child)
    fixed(project)
    assert "cuda_graph_impl: full_iteration" in paths["base"].read_text()
    assert paths["child"].read_text() == child.replace("graph_scope", "graph_modules")


def test_a_value_that_replaces_a_mapping_ends_what_it_inherits(project: Path) -> None:
    texts = {"base": BASE, "middle": "defaults: base.yaml\nmodel_config:\n"}
    child = model("cuda_graph_scope: attn", head="defaults: middle.yaml\n")
    paths = files(project, **texts, child=child)
    before = {path: loaded(path) for path in paths.values()}
    fixed(project)
    assert paths["child"].read_text() == child.replace("graph_scope", "graph_modules")
    assert_same_captures(before, ("model_config",))


def test_a_file_that_has_the_name_of_another_only_in_longer_words_is_not_parsed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    original = YamlDocument.__init__

    def counted(self: YamlDocument, text: str, path: str = "", catalogue: Catalogue | None = None) -> None:
        parsed.append(Path(path).name)
        original(self, text, path, catalogue)

    monkeypatch.setattr(YamlDocument, "__init__", counted)
    files(project, model=BASE, other="defaults: leaf.yaml\nmodel_name: a\nx: my-model\n", leaf="model_path: 1\n")
    fixed(project)
    assert set(parsed) == {"model.yaml"}


def test_a_child_that_is_refused_keeps_the_files_that_it_is_merged_with(project: Path) -> None:
    """The child has a boolean beside an implementation, which 0.17 and later refuse."""
    layers = text_of(MEGATRON_CFG, {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": ["attn"]})
    base = write(project / "base.yaml", layers)
    write(project / "child.yaml", text_of(MEGATRON_CFG, {"cuda_graph_scope": ["mlp"]}, "base.yaml"))
    write(project / "refused.yaml", text_of(MEGATRON_CFG, {"enable_cuda_graph": True}, "base.yaml"))
    results = fixed(project)
    assert base.read_text() == layers
    assert [one.path for one in results if one.remaining] == ["base.yaml", "refused.yaml"]


def test_a_child_that_would_then_be_accepted_prevents_the_rewrite_of_its_parent(project: Path) -> None:
    base = write(project / "base.yaml", text := text_of(MEGATRON_CFG, {"enable_cuda_graph": True}))
    write(project / "child.yaml", text_of(MEGATRON_CFG, {"cuda_graph_impl": "transformer_engine"}, "base.yaml"))
    fixed(project)
    assert base.read_text() == text


def test_the_marker_of_a_file_among_others_replaces_only_what_that_file_builds_on(project: Path) -> None:
    """The base is merged again beside the file with the marker, whose loaded form has none."""
    marked = model("_override_: true", "external_cuda_graph: true", head="defaults: base.yaml\n")
    child = model("cuda_graph_scope: attn", head="defaults: [base.yaml, marked.yaml]\n")
    paths = files(project, base=model("num_attention_heads: 4", "cuda_graph_impl: none"), marked=marked, child=child)
    before = {path: loaded_by_nemo_rl(path) for path in paths.values()}
    assert before[paths["child"]]["model_config"]["cuda_graph_impl"] == "none"
    fixed(project)
    for path, was in before.items():
        old, new = (settings_at(one, ("model_config",)) for one in (was, loaded_by_nemo_rl(path)))
        assert captured(old, Reader.CONFIG, migrated=False) == captured(new, Reader.CONFIG, migrated=True), path.name


def test_a_marker_of_a_file_that_builds_on_nothing_replaces_what_is_merged_before_it(project: Path) -> None:
    child = model("cuda_graph_scope: attn", head="defaults: [base.yaml, marked.yaml]\n")
    marked = model("_override_: true", "num_layers: 2")
    paths = files(project, base=BASE, marked=marked, child=child)
    assert "cuda_graph_impl" not in loaded_by_nemo_rl(paths["child"])["model_config"]
    fixed(project)
    assert paths["child"].read_text() == child.replace("graph_scope", "graph_modules")


def test_a_value_that_replaces_a_mapping_in_one_of_several_files_is_not_followed(project: Path) -> None:
    """A file over it has the mapping again, which is merged with those of the other files."""
    files(project, empty="model_config:\n", other=BASE)
    paths = files(project, own=model("cuda_graph_scope: attn", head="defaults: empty.yaml\n"))
    paths |= files(project, child=model("cuda_graph_scope: mlp", head="defaults: [other.yaml, own.yaml]\n"))
    assert all(checked.after is None for checked in fixed(project))


def test_a_file_whose_last_setting_is_deleted_has_those_of_the_files_below(project: Path) -> None:
    texts = {
        "a": model("num_attention_heads: 4"),
        "b": model("cuda_graph_scope: []", head="defaults: a.yaml\n"),
        "c": model("num_attention_heads: 4", "external_cuda_graph: true"),
    }
    paths = files(project, **texts, d=model("enable_cuda_graph: false", head="defaults: [b.yaml, c.yaml]\n"))
    before = {path: loaded(path) for path in paths.values()}
    fixed(project)
    assert "cuda_graph_impl: transformer_engine" in paths["c"].read_text()
    assert "enable_cuda_graph" not in paths["d"].read_text()
    assert_same_captures(before, ("model_config",))


def test_a_name_without_a_suffix_is_that_of_a_yaml_file(project: Path, cgmigrate) -> None:
    write(project / "base", "no configuration: [\n")
    write(project / "base.yaml", text_of(MEGATRON_CFG, {"cuda_graph_impl": "local"}))
    child = write(project / "child.yaml", text_of(MEGATRON_CFG, {"cuda_graph_scope": "full_iteration"}, "base"))
    cgmigrate("fix", ".")
    assert "cuda_graph_impl: full_iteration" in child.read_text()
