"""`rules test` builds both forms of each entry in releases of megatron-core, and compares them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result

from cgmigrate.megatron.rule_data import rules_folder, upgrade_rules
from cgmigrate.verify.mcore import Home, MCoreError, homes_of, installed
from cgmigrate.verify.pack_forms import packs_of
from cgmigrate.verify.packs import PROVED, UNTESTED, WRONG, Pack, Pair, Verdict, judge
from tests.support.files import write
from tests.support.paths import FETCHED
from tests.support.release_judges import read_in_forks
from tests.support.tables import table_of

PROOFS: Mapping[str, str] = json.loads((rules_folder() / "proofs.json").read_text())


@pytest.fixture(scope="module")
def homes() -> Iterator[Mapping[str, Home]]:
    """The installed release, and two before it, fetched once."""
    if installed() is None:
        pytest.skip("megatron-core is not installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(FETCHED))
        read_in_forks(patch)
        try:
            yield homes_of(["0.17.1", "0.18.2"])
        except MCoreError as error:
            pytest.skip(str(error))


def entry(folder: Path, name: str, *changes: tuple[str, str]) -> tuple[Pack, ...]:
    """The packs of a team's folder with an entry that ships, and the rule that has its examples, with some changes."""
    shipped = Path(upgrade_rules())
    for path in (shipped / f"settings/{name}.yaml", *shipped.glob(f"*-{name.replace('_', '-')}.yaml")):
        text = path.read_text()
        for old, new in changes:
            text = text.replace(old, new)
        write(folder / path.relative_to(shipped), text)
        if "\nrule: TEAM" in text:
            break
    return packs_of(str(folder))


def test_a_folder_without_entries_has_nothing_to_compare(tmp_path: Path) -> None:
    assert packs_of(str(tmp_path)) == () and judge((), {}) == []


def test_without_a_release_nothing_passes(tmp_path: Path) -> None:
    (verdict,) = judge(entry(tmp_path, "muon_use_nesterov"), {})
    assert (verdict.verdict, verdict.reason) == (UNTESTED, "no megatron-core 0.17, 0.18")


WRONG_PACKS = table_of(__name__, "WRONG_PACKS")
LEGACY = """\
summary: Uses the legacy models
kind: flag
owner: training.Arguments
since: "0.12"
until: "0.17"
sources: [the parsers]
"""


def of_layers(pair: Pair) -> Pair:
    """A pair whose new form captures layers in inference, where the old one captures the block."""
    after = {name: "layer" if value == "block" else value for name, value in pair.after.settings.items()}
    return replace(pair, after=replace(pair.after, settings=after))


@pytest.fixture(scope="module")
def verdicts(homes: Mapping[str, Home], tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, list[Verdict]]:
    """The verdicts on what ships, on wrong packs, and on values that are deleted; each release is started once."""
    packs = {"shipped": packs_of(None)}
    for key, (name, change, _) in WRONG_PACKS.items():
        packs[key] = entry(tmp_path_factory.mktemp("wrong"), name, change)
    rule = (Path(upgrade_rules()) / "UPG207-use-legacy-models.yaml").read_text()
    for value in ("false", "true"):
        folder = tmp_path_factory.mktemp(value)
        write(folder / "settings/use_legacy_models.yaml", LEGACY)
        write(folder / "UPG207.yaml", rule.replace("use_legacy_models: false", f"use_legacy_models: {value}"))
        packs[value] = packs_of(str(folder))
    (several,) = (pack for pack in packs["shipped"] if pack.name == "cuda_graph_scope")
    packs["several"] = (replace(several, pairs=tuple(map(of_layers, several.pairs))),)
    judged = iter(judge([pack for some in packs.values() for pack in some], homes))
    return {key: [next(judged) for _ in some] for key, some in packs.items()}


def parts(proof: str) -> Iterator[tuple[str, str]]:
    """What was compared, each with a release."""
    for part in proof.split("; "):
        what, *where = part.split(", ")
        yield from ((what, one) for one in where if what.partition(":")[0] != UNTESTED)


def test_what_ships_is_what_the_releases_do(verdicts: Mapping[str, list[Verdict]]) -> None:
    assert [one for one in verdicts["shipped"] if one.verdict == WRONG] == []
    assert {one.name for one in verdicts["shipped"]} >= PROOFS.keys()
    proved = {one.name: {*parts(one.reason)} for one in verdicts["shipped"] if one.verdict == PROVED}
    assert {name for name, compared in proved.items() if not compared <= {*parts(PROOFS[name])}} == set()
    named = {"cuda_graph_scope", "moe_router_padding_for_fp8", "hybrid_override_pattern", "UPG207"}
    assert named | {"tokenizer_metadata"} <= proved.keys()


def test_several_settings_for_one_that_capture_something_else_are_refused(
    verdicts: Mapping[str, list[Verdict]],
) -> None:
    (verdict,) = verdicts["several"]
    assert verdict.verdict == WRONG and "inference_cuda_graph_scope is " in verdict.reason


@pytest.mark.parametrize("key", WRONG_PACKS)
def test_a_pack_that_the_tables_accept_is_refused(verdicts: Mapping[str, list[Verdict]], key: str) -> None:
    name, _, reason = WRONG_PACKS[key]
    (verdict,) = (one for one in verdicts[key] if one.name == name)
    assert verdict.verdict == WRONG and reason in verdict.reason
    assert re.search(rf"/settings/{name}\.yaml:\d+: ", verdict.reason)


def test_a_value_that_is_deleted_is_proved_if_the_release_before_builds_it(
    verdicts: Mapping[str, list[Verdict]],
) -> None:
    (default,), (other,) = verdicts["false"], verdicts["true"]
    assert (default.verdict, other.verdict) == (PROVED, UNTESTED)
    assert "megatron-core 0.17 refuses use_legacy_models = true" in other.reason


def test_the_command_names_file_and_line_and_ends_with_1(
    homes: Mapping[str, Home], project: Path, cgmigrate: Callable[..., Result]
) -> None:
    name, change, _ = WRONG_PACKS["another setting"]
    entry(project / "team", name, ("replaced-by:", "rule: TEAM001\nreplaced-by:"))
    right = cgmigrate("rules", "test", "team")
    assert right.exit_code == 0 and f"\nproved      {name}: both forms in TransformerConfig, 0." in right.stdout
    entry(project / "team", name, change)
    wrong = cgmigrate("rules", "test", "team")
    assert wrong.exit_code == 1 and f"\nFAIL        {name}: team/settings/{name}.yaml:6: " in wrong.stdout
    assert re.search(r"^Compared 1 pack in megatron-core \(.*\): 1 FAIL\.$", wrong.stderr, re.M)
