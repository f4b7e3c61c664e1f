"""Names of Megatron's code in YAML that a release no longer has, such as the class of a ``_target_``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cgmigrate.documents.dotted_names import PATH, is_of_megatron
from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.documents.yaml.tree import Node
from cgmigrate.megatron.code import load
from cgmigrate.text.spans import Span


def code_names(collections: Iterable[Node], path: str) -> Iterator[Problem]:
    """Yield a problem for each scalar in collections that is the path of a module or name which is gone."""
    table = load()
    for node in (item for one in collections for item in one.items):
        text = node.value if node.kind == "scalar" else ""
        if not PATH.match(text) or not is_of_megatron(text, path):
            continue
        module, _, name = text.rpartition(".")
        if (gone := table.gone_name(module, name)) is not None:
            message = table.gone_names(module, {name: gone}, gone.since)
        elif (gone := table.gone_name(text, "")) is not None:
            message = table.gone_module(text, gone.since)
        else:
            continue
        yield Problem(ProblemKind.GONE_NAME, Span(node.start, node.end), message, since=gone.since)
