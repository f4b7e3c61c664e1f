"""The settings in effect in mappings that inherit others, as PyYAML merges them."""

from __future__ import annotations

import pytest
import yaml

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking.inheritance import effective

SCOPE = "  cuda_graph_scope: [attn]\n"


@pytest.mark.parametrize(
    "text",
    [
        "base: &b {external_cuda_graph: true}\nmodel:\n  <<: *b\n" + SCOPE,
        "base: &b {cuda_graph_scope: [mlp]}\nmodel:\n  <<: *b\n" + SCOPE,
        # The mapping around is before the one from which it inherits.
        "model:\n  inner: &b {external_cuda_graph: true}\n  <<: *b\n" + SCOPE,
        "model:\n  inner: &b\n    deeper: &c {external_cuda_graph: true}\n    <<: *c\n  <<: *b\n" + SCOPE,
    ],
)
def test_a_mapping_has_the_settings_that_it_inherits(text: str) -> None:
    document = YamlDocument(text)
    of_model = effective(document.sites)[next(site.index for site in document.sites if site.path == ("model",))]
    loaded = yaml.safe_load(text)["model"]
    assert of_model == {name: value for name, value in loaded.items() if "cuda_graph" in name}
