"""The settings in effect in mappings that inherit others, as PyYAML merges them."""

from __future__ import annotations

import pytest
import yaml

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking.inheritance import effective
from cgmigrate.megatron.settings import MergedValue
from tests.support.tables import from_table


@from_table
def test_a_mapping_has_the_settings_that_it_inherits(text: str) -> None:
    document = YamlDocument(text)
    of_model = effective(document.sites)[next(site.index for site in document.sites if site.path == ("model",))]
    loaded = yaml.safe_load(text)["model"]
    assert of_model == {name: value for name, value in loaded.items() if "cuda_graph" in name}


ORDERS = ["<<: [*a, *b]", "<<: [*b, *a]", "<<: *a\n  <<: *b", "<<: *b\n  <<: *a"]


@pytest.mark.parametrize("order", ORDERS)
@from_table
def test_where_all_orders_agree_a_value_is_known(order: str, first: str, second: str, own: str) -> None:
    text = f"a: &a {{{first}}}\nb: &b {{{second}}}\nmodel:\n  {order}\n  {own}\n"
    assert effective(YamlDocument(text).sites)[2] == yaml.safe_load(text)["model"]


@pytest.mark.parametrize("order", ORDERS)
def test_where_orders_differ_a_value_is_undecided(order: str) -> None:
    """PyYAML 6.0.4 prefers the last of a list, older ones the first."""
    text = f"a: &a {{cuda_graph_scope: attn}}\nb: &b {{cuda_graph_scope: mlp}}\nc: &c\n  {order}\nd: {{<<: *c}}\n"
    of_c, of_d = (effective(YamlDocument(text).sites)[index] for index in (2, 3))
    value = of_c["cuda_graph_scope"]
    assert isinstance(value, MergedValue) and set(value.text.split(" or ")) == {"attn", "mlp"}
    assert of_d == of_c
    assert yaml.safe_load(text)["c"]["cuda_graph_scope"] in value.text
