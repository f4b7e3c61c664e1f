"""One rule file about settings of three sections: full-iteration graphs need the checks for NaN off."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.sites import Document
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import NEWEST
from tests.linking.test_surroundings import PYTHON, RECIPE
from tests.support.plans import examine

RULE = """\
id: TEAM001
name: nan-checks-with-full-iteration
summary: Full-iteration graphs need the NaN checks off
fields: [cuda_graph_impl]
when:
  cuda_graph_impl: full_iteration
unless:
  check_for_nan_in_loss: false
  check_for_nan_in_grad: false
message: "`{cuda_graph_impl}` cannot capture checks for NaN"
help: turn off both checks for NaN
explanation: A check for NaN waits for the device, and a stream that is captured cannot wait.
sources: [megatron-core arguments.py]
"""


def codes(document: Document, folder: Path) -> list[str]:
    """The codes of the diagnostics of a document with the rule."""
    (folder / "TEAM001.yaml").write_text(RULE)
    context = Context(NEWEST, NEWEST, load([folder]), ecosystems.load())
    return [diagnostic.rule for diagnostic in examine(document, context).diagnostics]


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("", "", False),
        ("check_for_nan_in_loss: false", "check_for_nan_in_loss: true", True),
        ("check_for_nan_in_grad: false", "check_for_nan_in_grad: true", True),
        ("  check_for_nan_in_loss: false\n", "  other: 1\n", True),
        # What is not known is not reported.
        ("check_for_nan_in_loss: false", "check_for_nan_in_loss: ${NAN}", False),
        ("model:", "defaults: base\nmodel:", False),
    ],
)
def test_a_recipe_in_yaml(tmp_path: Path, old: str, new: str, reported: bool) -> None:
    document = YamlDocument(RECIPE.replace(old, new, 1))
    assert ("TEAM001" in codes(document, tmp_path)) is reported


@pytest.mark.parametrize(
    ("old", "new", "reported"),
    [
        ("", "", False),
        ("check_for_nan_in_loss=False", "check_for_nan_in_loss=True", True),
        ("check_for_nan_in_loss=False", "", True),
        ("check_for_nan_in_loss=False", "check_for_nan_in_loss=NAN", False),
        ("check_for_nan_in_loss=False", "**options", False),
    ],
)
def test_a_recipe_in_python(tmp_path: Path, old: str, new: str, reported: bool) -> None:
    document = PythonDocument(PYTHON.replace(old, new, 1))
    assert ("TEAM001" in codes(document, tmp_path)) is reported
