"""How a setting is spelled: a value as Python or Hydra text, and a new setting in the form of its site."""

from __future__ import annotations

import ast

from cgmigrate.documents.overrides import override_text
from cgmigrate.documents.python.name_resolution import MODULE_CLASS, Names
from cgmigrate.documents.python.site_nodes import SiteForm, SiteNodes
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.megatron.settings import Choice


def rendered(value: object, quote: str) -> str:
    """Return a value as Python text."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(rendered(item, quote) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)"
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    return repr(value)


def module_class_like(local: str, names: Names) -> str:
    """Return the name of ``CudaGraphModule`` for code that names ``CudaGraphScope`` as ``local``."""
    head, dot, _ = local.rpartition(".")
    if dot:
        return head + dot + MODULE_CLASS
    known = next((name for name, full in names.full.items() if full.endswith("." + MODULE_CLASS)), "")
    return known or MODULE_CLASS


def spelled_at(place: SiteNodes, name: str, value: object, source: PythonSource) -> str:
    """Return a setting as it would be written at a place, with double quotes."""
    text = str(value) if isinstance(value, Choice) else rendered(value, '"')
    match place.form:
        case SiteForm.FLAGS:
            return ", ".join(rendered(word, '"') for word in (source.catalogue[name].flag, *argument_words(value)))
        case SiteForm.OVERRIDES:
            return f'"{place.prefix}{name}={override_text(value)}"'
        case SiteForm.DICT:
            return f'"{name}": {text}'
        case SiteForm.CALL:
            return f"{name}={text}"
    item = place.items[0]
    before = source.text[item.whole.start : item.name.start]
    if isinstance(item.node, ast.Assign):
        return f"{before}{name} = {text}"
    return f"{before}{name}{source.text[item.name.end]}, {text})"


def argument_words(value: object) -> list[object]:
    """Return the words behind a flag that give it a value; none for a boolean."""
    if isinstance(value, bool) or value is None:
        return []
    return value if isinstance(value, list) else [value]
