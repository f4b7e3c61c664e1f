"""Whose settings a text is, where aliases use it at several places."""

from __future__ import annotations

from pathlib import Path

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.linking.ownership import Owner, is_prose, owned_sites
from cgmigrate.megatron.catalogue import load
from cgmigrate.megatron.releases import KNOWN
from cgmigrate.megatron.rule_data import load_yaml
from cgmigrate.megatron.tables import load as load_tables
from tests.support.tables import from_table

SETTINGS = "&m\n    enable_cuda_graph: true\n"


def owner_of(text: str) -> Owner:
    """The owner of the first site of a text."""
    document = YamlDocument(text)
    return owned_sites(document.sites, document.top_level, ecosystems.load())[1][0]


def name_of(owner: Owner) -> str:
    return owner.ecosystem.name if owner.ecosystem else ""


def test_a_text_at_two_places_of_one_owner_has_that_owner() -> None:
    owner = owner_of(f"policy:\n  megatron_cfg: {SETTINGS}teacher:\n  megatron_cfg: *m\n")
    assert (name_of(owner), owner.conflict) == ("NeMo-RL", "")


def test_a_text_at_places_of_two_owners_has_a_conflict() -> None:
    owner = owner_of(f"policy:\n  megatron_cfg: {SETTINGS}actor:\n  override_transformer_config: *m\n")
    assert name_of(owner) == "NeMo-RL"
    assert owner.conflict == (
        "its text is also used at actor.override_transformer_config, which belongs to "
        "an override of TransformerConfig (verl, slime)"
    )


def test_a_place_with_an_owner_decides_for_one_where_only_names_do() -> None:
    template = "template: &m\n  cuda_graph_impl: local\n  cuda_graph_scope: attn\n"
    assert name_of(owner_of(template)) == "megatron-core's TransformerConfig"
    assert name_of(owner_of(f"{template}policy:\n  megatron_cfg: *m\n")) == "NeMo-RL"


def test_a_place_with_an_owner_decides_for_one_without() -> None:
    template = "template: &m\n  enable_cuda_graph: true\n"
    assert name_of(owner_of(template)) == ""
    assert name_of(owner_of(f"{template}policy:\n  megatron_cfg: *m\n")) == "NeMo-RL"


def test_a_place_without_an_owner_decides_nothing() -> None:
    owner = owner_of(f"policy:\n  megatron_cfg: {SETTINGS}notes:\n  copy: *m\n")
    assert (name_of(owner), owner.conflict) == ("NeMo-RL", "")


@from_table
def test_a_sentence_with_underscores_is_no_value(project: Path, cgmigrate, value: str, is_prose: bool) -> None:
    """Cards about a feature have such sentences under its names."""
    text = f"recommended_path:\n  model.cuda_graph_impl: transformer_engine\n  model.cuda_graph_scope: {value}\n"
    (project / "card.yaml").write_text(text)
    assert ("error[" not in cgmigrate("check", ".").stdout) is is_prose
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert (project / "card.yaml").read_text() == text


def _choices() -> list[str]:
    """Return every choice of every setting, of the catalogue and of the tables of the releases."""
    tables, choices = load_tables(), {str(one) for setting in load().settings.values() for one in setting.choices}
    owners = [tables.fields(owner, release) for owner in tables.classes for release in KNOWN]
    for fields in (*owners, *map(tables.flags, KNOWN)):
        choices |= {str(one) for accepted in fields.values() for one in accepted.choices or ()}
    return sorted(choices)


def test_no_choice_of_any_setting_is_prose() -> None:
    choices = _choices()
    assert len(choices) > 200
    assert [one for one in choices if is_prose(one)] == []
    modules = ["attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba"]
    assert not any(is_prose(between.join(modules)) for between in (" ", ",", "_", ", "))


def test_sentences_of_documentation_are_prose() -> None:
    rules = Path(__file__).parents[2] / "rules"
    summaries = [load_yaml(file.read_text(), str(file))["summary"] for file in rules.glob("settings/**/*.yaml")]
    whole = [one for one in summaries if len(one.split()) > 4]
    assert len(whole) > 50
    assert [one for one in whole if not is_prose(one)] == []
