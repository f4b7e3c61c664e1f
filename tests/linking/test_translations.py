"""What packages make of their configurations, compared with what NeMo-RL's own source made of random ones."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.linking.ownership import owned_sites
from cgmigrate.linking.surroundings import SiteSurroundings
from cgmigrate.lint.run import Run
from cgmigrate.lint.severity import Severity
from cgmigrate.megatron import catalogue
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import rules_folder
from cgmigrate.megatron.settings import Missing, names_in
from cgmigrate.project.options import RunOptions
from tests.support.nemo_rl_configs import FIELDS, MODELS, random_policy, without_graphs
from tests.support.nemo_rl_judge import COMMITS, SOURCE, answers, missing, text_of
from tests.support.nemo_rl_table import Judged, judged

PINS = {"0.6": "nemo-rl==0.6.0\n", "0.7": "nemo-rl==0.7.0\n", "main": ""}
RELEASES = {"0.6": Release(0, 6), "0.7": Release(0, 7), "main": Release(0, 8)}
TRANSLATION = next(one.translation for one in ecosystems.load() if one.id == "nemo-rl")


def surroundings(policy: Mapping[str, Any], release: str) -> SiteSurroundings:
    """The surroundings of the settings in a policy, which a release of NeMo-RL reads."""
    document = YamlDocument(yaml.safe_dump({"policy": policy}))
    sites, owners = owned_sites(document.sites, document.top_level, ecosystems.load())
    owned = ((site, one.ecosystem) for site, one in zip(sites, owners, strict=True))
    site, owner = next((site, owner) for site, owner in owned if owner is not None and owner.id == "nemo-rl")
    # No setting of the site itself: its translation is tested, too.
    return SiteSurroundings(document, site, owner, {}, lambda _, newest: RELEASES[release] <= newest)


def same(name: str, value: object, real: object) -> bool:
    """Whether two values of a setting are the same; lists of names may be written as one text."""
    if name.endswith("modules"):
        return sorted(names_in(value)) == sorted(names_in(real))
    return value == real


@pytest.mark.parametrize("release", COMMITS)
def test_the_fields_are_those_of_the_real_source(release: str) -> None:
    known, changed = Counter[str](), Counter[str]()
    for row in judged(release):
        if row.refused:
            continue
        around = surroundings(row.policy, release)
        for full in FIELDS:
            name = full.rpartition(".")[2]
            value = around.get(name)
            if value is Missing.UNKNOWN:
                continue
            known[name] += 1
            if value is Missing.ABSENT:
                assert full not in row.fields, f"{name} is set by {row.policy}"
            elif full in row.fields:
                changed[name] += 1
                assert same(name, value, row.fields[full]), f"{name} in {row.policy}"
    # Each field is known somewhere, but for those that only the model decides.
    of_model = TRANSLATION.of_model if TRANSLATION else frozenset()
    assert {full.rpartition(".")[2] for full in FIELDS} - known.keys() <= of_model
    assert {"recompute_granularity", "pipeline_model_parallel_size", "overlap_grad_reduce"} <= changed.keys()


def check(policies: list[Mapping[str, Any]], folder: Path, pin: str) -> list[set[str]]:
    """The rules whose errors are reported for policies, without preview."""
    (folder / ".git").mkdir()
    (folder / "requirements.txt").write_text(pin)
    for number, policy in enumerate(policies):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump({"policy": policy}), encoding="utf-8")
    errors: list[set[str]] = [set() for _ in policies]
    for result in Run([str(folder)], RunOptions(target=Release(0, 19))):
        if result.path.endswith(".yaml"):
            reported = {one.rule for one in result.diagnostics if one.severity is Severity.ERROR}
            errors[int(Path(result.path).stem)] |= reported
    return errors


def rates(rows: list[Judged], errors: list[set[str]]) -> tuple[float, float]:
    """The recall and the precision; what depends on the model does not count."""
    counts = Counter((row.is_refused, bool(reported)) for row, reported in zip(rows, errors, strict=True))
    matches = counts[True, True]
    return matches / max(1, matches + counts[True, False]), matches / max(1, matches + counts[False, True])


@pytest.mark.parametrize("release", COMMITS)
def test_what_nemo_rl_refuses_is_an_error(release: str, tmp_path: Path) -> None:
    rows = judged(release)
    errors = check([row.policy for row in rows], tmp_path, PINS[release])
    refused = [row for row in rows if row.is_refused]
    if release == "0.6":
        assert not refused and not any(errors), "it reads no setting of graphs"
        return
    assert len(refused) >= 40 and sum(row.is_refused is False for row in rows) >= 40
    recall, precision = rates(rows, errors)
    assert recall >= 0.97 and precision >= 0.98


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_new_configurations_are_judged_by_the_real_source(tmp_path: Path) -> None:
    chance = Random()
    policies = [random_policy(chance) for _ in range(200)]
    requests = [
        {"policy": one, "model": model}
        for policy in policies
        for one in (policy, without_graphs(policy))
        for model in MODELS.values()
    ]
    refused = [bool(answer["refused"]) for answer in answers(requests)]
    groups = [refused[start : start + 4] for start in range(0, len(refused), 4)]
    rows = [
        Judged(policy, ("x" * own[0], "x" * own[1]) if any(own[:2]) else (), any(own[2:]), {})
        for policy, own in zip(policies, groups, strict=True)
    ]
    recall, precision = rates(rows, check(list(policies), tmp_path, PINS["main"]))
    assert recall >= 0.97 and precision >= 0.98


def test_every_name_of_a_translation_is_a_field() -> None:
    tables = (rules_folder() / "releases.json").read_text(encoding="utf-8")
    for ecosystem in ecosystems.load():
        if (translation := ecosystem.translation) is not None:
            for name in chain(translation.settings, translation.of_model):
                assert f'"{name}"' in tables or name in catalogue.load(), f"{ecosystem.id}: {name}"


def test_old_names_in_the_overrides_of_the_model_stay(tmp_path: Path) -> None:
    # NeMo-RL refuses the new names there.
    text = "policy: {megatron_cfg: {cuda_graph_impl: local, model_overrides: {cuda_graph_scope: [attn]}}}\n"
    path = tmp_path / "a.yaml"
    path.write_text(text)
    (result,) = Run([str(path)], RunOptions(unsafe=True))
    assert any(one.rule == "CG106" and one.fix is None for one in result.diagnostics)


SOURCES = {
    **{(0, minor): "nemo_rl/models/policy/megatron_policy_worker.py" for minor in (3, 4)},
    (0, 5): "nemo_rl/models/policy/workers/megatron_policy_worker.py",
    **{(0, minor): "nemo_rl/models/megatron/setup.py" for minor in (6, 7, 8)},
}
"""Release → the file in which it sets the fields of the model."""


@pytest.mark.skipif(not SOURCE, reason="NEMO_RL_SOURCE is not set")
@pytest.mark.parametrize(("release", "path"), SOURCES.items())
def test_each_release_sets_the_fields_of_the_translation(release: tuple[int, int], path: str) -> None:
    assert TRANSLATION is not None
    commit = COMMITS.get("main" if release == (0, 8) else ".".join(map(str, release)), f"v0.{release[1]}.0")
    text = text_of(commit, path)
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Assign))
    targets = (target for node in nodes for target in node.targets if isinstance(target, ast.Attribute))
    assigned = {target.attr for target in targets if ast.unparse(target.value) == "model_cfg"}
    if "set_cuda_graph_modules(" in text:
        assigned.add("cuda_graph_modules")
    settings = catalogue.load()
    known = {
        name
        for name, sources in TRANSLATION.settings.items()
        if (setting := settings.get(name)) is not None
        and setting.owner == "TransformerConfig"
        and any(one.is_of(lambda newest: Release(*release) <= newest) for one in sources)
    }
    assert known == assigned & settings.settings.keys()
