"""Deprecated names in command lines inside values, which are not rewritten."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.documents.yaml.tree import Node
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import ENABLE, IMPL, INFERENCE, MODULES
from cgmigrate.text.spans import Span


@lru_cache(maxsize=8)
def _in_text(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of deprecated names in a command line; other systems have an option `enable_cuda_graph`."""
    names, flags = catalogue.alternatives(deprecated=True), catalogue.alternatives(deprecated=True, flags=True)
    return re.compile(
        rf"(?<![\w-])(?:{flags})(?![\w-])"
        rf"|(?<![\w.])[+~]{{0,2}}(?:\w+\.)+(?!{ENABLE})(?:{names})="
        rf"|(?<![\w.])[+~]{{0,2}}(?:\w+\.)*(?:model|megatron|transformer_config)\w*\.{ENABLE}="
    )


def command_lines(nodes: Sequence[Node], text: str, catalogue: Catalogue) -> list[Problem]:
    """Return a problem for each deprecated name that is a flag or override inside a value."""
    pattern = _in_text(catalogue)
    if not pattern.search(text):
        return []
    values = [value for node in nodes for value in (node.items[1::2] if node.kind == "map" else node.items)]
    problems: list[Problem] = []
    for value in values:
        if value.kind == "scalar":
            for match in pattern.finditer(text, value.start, value.end):
                name = match.group().lstrip("+~").rstrip("=")
                message = f"`{name}` is part of a command line inside a value; command lines are not rewritten yet"
                kind, advice = ProblemKind.COMMAND_LINE_IN_VALUE, _by_hand(name, catalogue)
                problems.append(Problem(kind, Span(*match.span()), message, advice=advice))
    return problems


def _by_hand(name: str, catalogue: Catalogue) -> str:
    """Return what to write for a deprecated name in a command line, as a flag or an override like it."""
    flag = name.startswith("-")
    prefix = "" if flag else name.rpartition(".")[0] + "."

    def spelled(setting: str, value: str) -> str:
        return f"`{catalogue[setting].flag} {value}`" if flag else f"`{prefix}{setting}={value}`"

    old = catalogue[catalogue.by_key[name if flag else name.rpartition(".")[2]]]
    if not old.captures:
        return f"write {' or '.join(spelled(new, '…') for new in old.replaced_by)}" if old.replaced_by else ""
    match old.name:
        case "enable_cuda_graph":
            return f"write {spelled(IMPL, 'local')}"
        case "external_cuda_graph":
            return f"write {spelled(IMPL, 'transformer_engine')}"
    modules = spelled(MODULES, "attn" if flag else "[attn]")
    return (
        f"write {spelled(IMPL, 'full_iteration')} for full_iteration, {spelled(INFERENCE, 'block')} for "
        f"full_iteration_inference, and modules as in {modules}"
    )
