"""Settings whose owner is ambiguous: the message names what would have to be known."""

from __future__ import annotations

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.sites import Document
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import Release
from tests.support.plans import examine

OTHERS = "other systems have a setting of this name, too"


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (YamlDocument("engine:\n  enable_cuda_graph: true\n"), OTHERS),
        (
            PythonDocument("import megatron\ndef f(engine):\n    engine.enable_cuda_graph = True\n"),
            "`engine` is not known as a Megatron class",
        ),
        (
            PythonDocument("import megatron\nfrom ours import make\nmake().enable_cuda_graph = True\n"),
            "`make()` is not known as a Megatron class",
        ),
        (
            PythonDocument("import megatron\ndef f(engine):\n    engine.enable_cuda_graph = True if a else False\n"),
            "`engine` is not known as a Megatron class",
        ),
        (
            PythonDocument("import megatron\nengine = {'enable_cuda_graph': True}\n"),
            "cgmigrate does not see the dictionary `engine` reach a TransformerConfig",
        ),
        (
            PythonDocument("import megatron\nstart({'enable_cuda_graph': True})\n"),
            "cgmigrate does not see this place reach a TransformerConfig",
        ),
    ],
    ids=["a mapping", "an object", "a result", "a conditional value", "a dictionary", "a dictionary without a name"],
)
def test_the_receiver_is_named(document: Document, reason: str) -> None:
    result = examine(document, Context(Release(0, 17), Release(0, 19), load(), ecosystems.load()))
    (diagnostic,) = result.diagnostics
    assert diagnostic.message == f"cannot tell whether `enable_cuda_graph` is megatron-core's: {reason}"


@pytest.mark.parametrize(
    ("implementation", "advice"),
    [
        ("none", "delete it: it captures nothing if the implementation is none"),
        ("local", 'write `engine.cuda_graph_impl = "full_iteration"` and delete it'),
    ],
)
def test_the_help_says_what_to_write_if_the_owner_is_megatron(implementation: str, advice: str) -> None:
    code = f'    engine.cuda_graph_impl = "{implementation}"\n    engine.cuda_graph_scope = "full_iteration"\n'
    document = PythonDocument(f"import megatron\ndef f(engine):\n{code}")
    (diagnostic,) = examine(document, Context(Release(0, 17), Release(0, 19), load(), ecosystems.load())).diagnostics
    assert (
        diagnostic.help == f"if megatron-core gets it, {advice}; else, or where a test is about the old name, leave it"
    )
