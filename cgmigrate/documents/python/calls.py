"""Settings as keyword arguments, entries of dicts, flags in lists of arguments, and override strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from cgmigrate.documents.python.class_origins import owner_of
from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.places import FIELD_SET, Form, Item, Place, guards_above
from cgmigrate.documents.python.source import Source, dotted, spreads_in
from cgmigrate.documents.python.values import value_of
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, FIELDS, FLAGS, Undecided
from cgmigrate.text.spans import Span

_FIELD_OF_FLAG = {flag: name for name, flag in FLAGS.items()}
_OVERRIDE = re.compile(rf"([+~]{{0,2}})((?:[A-Za-z_][\w-]*\.)*)({'|'.join(FIELDS)})=(.*)", re.DOTALL)
# Callables whose first argument is what they will call with the keywords.
_WRAPPERS = ("functools.partial", "nemo_run.Config", "nemo_run.Partial", "fiddle.Config", "fiddle.Partial")


def places_in_calls(node: ast.AST, source: Source, names: Names) -> list[Place]:
    """The sites that one call, dict or list of arguments holds."""
    found: list[Place] = []
    match node:
        case ast.Call():
            if any(keyword.arg in FIELD_SET for keyword in node.keywords):
                found.append(_call(node, source, names))
            found += _words(node.args, node, source, names)
        case ast.Dict():
            if any(isinstance(key, ast.Constant) and key.value in FIELD_SET for key in node.keys):
                found.append(_dict(node, source, names))
        case ast.List() | ast.Tuple():
            found += _words(node.elts, node, source, names)
    for place in found:
        place.fixed = place.fixed or guards_above(node, source.ancestors(node))
    return found


# --- calls and dicts ------------------------------------------------------------------------------


def _call(node: ast.Call, source: Source, names: Names) -> Place:
    items = []
    for keyword in node.keywords:
        if keyword.arg in FIELD_SET:
            whole = source.span(keyword)
            name = Span(whole.start, whole.start + len(keyword.arg))
            value = value_of(keyword.arg, keyword.value, names)
            items.append(Item(keyword.arg, name, [keyword.value], whole, keyword, value=value, span=whole))
    place = Place(Form.CALL, items, owner=ast.unparse(node.func)[:60])
    place.elements = sorted(map(source.span, [*node.args, *node.keywords]), key=lambda span: span.start)
    _name_callee(place, node, source, names)
    return place


def _name_callee(place: Place, node: ast.Call, source: Source, names: Names) -> None:
    """What the keywords go to: the callee, or what a wrapper will call, or what a dict is spread into."""
    written = dotted(node.func)
    full = owner_of(names, written)
    if full in _WRAPPERS and node.args:
        place.callee = owner_of(names, dotted(node.args[0]))
        place.owner = ast.unparse(node.args[0])[:60]
    elif full == "dataclasses.replace" and node.args:
        place.object = "replace " + (dotted(node.args[0]) or "?")
        place.overrides = True
        if {item.field for item in place.items} - {"cuda_graph_scope"}:
            place.fixed = (
                "`dataclasses.replace` validates again, and since 0.18 refuses another implementation "
                "unless `inference_cuda_graph_scope=None` is given, too"
            )
    elif written == "dict" and written not in names.full:
        _name_user(place, node, source, names)
    else:
        place.callee = full
    first = (dotted(node.args[0]) if full in _WRAPPERS and node.args else written).partition(".")[0]
    if first in names.shadowed:
        place.callee = ""
    # A class of this file may have defaults of its own: what is left out is not megatron-core's default.
    place.overrides = place.overrides or first in names.classes


def _dict(node: ast.Dict, source: Source, names: Names) -> Place:
    items = []
    elements = []
    for key, value in zip(node.keys, node.values, strict=True):
        value_span = source.span(value)
        if key is None:
            stars = source.text.rindex("**", 0, value_span.start)
            elements.append(Span(stars, value_span.end))
            continue
        whole = Span(source.span(key).start, value_span.end)
        elements.append(whole)
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value in FIELD_SET:
            quoted = source.span(key)
            name = Span(quoted.start + 1, quoted.end - 1)
            items.append(
                Item(key.value, name, [value], whole, key, value=value_of(key.value, value, names), span=whole)
            )
    place = Place(Form.DICT, items, elements, owner="this dict", overrides=True)
    if any(source.text[item.name.start : item.name.end] != item.field for item in items):
        place.fixed = "a key is written in an unusual way"
    _name_user(place, node, source, names)
    return place


def _name_user(place: Place, node: ast.expr, source: Source, names: Names) -> None:
    """Who gets a dict: the call that it is spread into, the name that it is assigned to."""
    place.owner = "this dict"
    place.overrides = True
    above = source.parent(node)
    match above:
        case ast.keyword(arg=None):
            call = source.parent(above)
            if isinstance(call, ast.Call):
                place.overrides = False
                place.owner = ast.unparse(call.func)[:60]
                full = owner_of(names, dotted(call.func))
                if full in _WRAPPERS and call.args:
                    full = owner_of(names, dotted(call.args[0]))
                place.callee = full
        case ast.Assign(targets=[target]):
            place.object = "dict " + (dotted(target) or "?")
            if isinstance(target, ast.Name) and (callee := _spread_into(target.id, source, names)):
                place.callee = callee
        case ast.keyword(arg=str() as name):
            place.object = "dict " + name
        case ast.Dict():
            at = next(i for i, value in enumerate(above.values) if value is node)
            key = above.keys[at]
            place.object = "dict " + (str(key.value) if isinstance(key, ast.Constant) else "?")


def _spread_into(name: str, source: Source, names: Names) -> str:
    """What a dict of this name is spread into, where that is all that is done with it in the whole file."""
    if source.spreads is None:
        source.spreads = spreads_in(source.tree)
    spread = source.spreads.get(name)
    if spread is None or spread.stores != 1 or spread.loads != len(spread.functions):
        return ""
    callees = {owner_of(names, function) for function in spread.functions}
    return callees.pop() if len(callees) == 1 else ""


# --- lists of words -------------------------------------------------------------------------------


def _words(elements: Sequence[ast.expr], node: ast.expr, source: Source, names: Names) -> list[Place]:
    """The flags and the override strings among the elements of a list, tuple or call."""
    texts = [element.value if isinstance(element, ast.Constant) else None for element in elements]
    spans = [source.span(element) for element in elements]
    found: list[Place] = []
    is_call = isinstance(node, ast.Call)
    if not is_call and any(_flag_in(text) for text in texts):
        found.append(_flags(elements, texts, spans, source))
    by_prefix: dict[str, list[Item]] = {}
    for element, text, span in zip(elements, texts, spans, strict=True):
        match = _OVERRIDE.fullmatch(text) if isinstance(text, str) else None
        if match and (match[2] or not is_call):
            written = source.text[span.start : span.end]
            at = written.find(match[3] + "=")
            name = Span(span.start + at, span.start + at + len(match[3]))
            item = Item(match[3], name, [element], span, element, value=_override_value(match[3], match[4]), span=span)
            if at < 0 or written[at + len(match[3]) + 1 :].rstrip("\"'") != match[4].rstrip("\"'"):
                item.value = Undecided(written, "a string with escapes or several parts")
            by_prefix.setdefault(match[2], []).append(item)
    for prefix, items in by_prefix.items():
        place = Place(Form.OVERRIDES, items, spans, owner=prefix.rstrip("."), object=prefix.rstrip("."))
        place.overrides, place.prefix = True, prefix
        found.append(place)
    return found


def _flag_in(text: object) -> str:
    word = text.partition("=")[0] if isinstance(text, str) else ""
    return _FIELD_OF_FLAG.get(word, "")


def _flags(elements: Sequence[ast.expr], texts: Sequence[object], spans: list[Span], source: Source) -> Place:
    """A list of command-line words: each flag takes the words up to the next one."""
    place = Place(Form.FLAGS, [], spans, owner="this list of arguments")
    for at, text in enumerate(texts):
        name = _flag_in(text)
        if not name:
            continue
        assert isinstance(text, str)
        values: list[ast.expr] = []
        for value, word in zip(elements[at + 1 :], texts[at + 1 :], strict=True):
            if name in (ENABLE, EXTERNAL) or "=" in text or (isinstance(word, str) and word.startswith("-")):
                break
            values.append(value)
        words = [value.value if isinstance(value, ast.Constant) else None for value in values]
        span = spans[at]
        end = spans[at + len(values)].end
        start = span.start + 1
        item = Item(name, Span(start, start + len(FLAGS[name])), values, Span(span.start, end), elements[at])
        item.span = Span(span.start, end)
        item.value = True if name in (ENABLE, EXTERNAL) else [str(word) for word in words]
        if name in ("cuda_graph_impl", "inference_cuda_graph_scope"):
            item.value = words[0] if len(words) == 1 else words
        if "=" in text or any(not isinstance(word, str) for word in words):
            item.value = Undecided(source.text[span.start : end], "words that are computed when the code runs")
        if source.text[item.name.start : item.name.end] != FLAGS[name]:
            item.value = Undecided(source.text[span.start : end], "a flag that is written in an unusual way")
        if any(other.field == name for other in place.items):
            place.fixed = f"`{FLAGS[name]}` is written twice"
        place.items.append(item)
    return place


def _override_value(name: str, text: str) -> object:
    """What Hydra makes of the value of an override."""
    text = text.strip()
    if re.search(r"[${}\\]", text):
        return Undecided(text, "a value that is computed when the override is read")
    if text.startswith("[") and text.endswith("]"):
        return [word.strip().strip("'\"") for word in text[1:-1].split(",") if word.strip()]
    word = text.strip("'\"")
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    if text.lower() == "null":
        return False if name in (ENABLE, EXTERNAL) else None
    if name in (ENABLE, EXTERNAL):
        return Undecided(text, "not a boolean")
    return word
