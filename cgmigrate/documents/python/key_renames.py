"""Edits with which code names the keys of a mapping that replace others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from cgmigrate.documents.python.key_places import KeyForm, KeyNotFollowedError, KeyPlace, Literal
from cgmigrate.documents.python.nodes import parents_in, walk
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.documents.python.statement_edits import newline_near, remove_elements, rest_of_line
from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.megatron.settings import MODULES
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span, line_end, line_start

# --- loops over names -----------------------------------------------------------------------------

_WRAPPERS = ("frozenset", "set", "tuple", "list", "sorted")


def is_copied_as_it_is(names: Literal, source: PythonSource, *, is_looked_up: bool = False) -> bool:
    """Return whether all that a file does with a list of names is to copy the values of these keys.

    With ``is_looked_up`` it may look up whether a name is one of them as well. A list at the top of the file is not
    followed: other files may import it.
    """
    parents = parents_in(source.tree)
    expression: ast.AST = names
    above = parents.get(names)
    while isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id in _WRAPPERS:
        expression, above = above, parents.get(above)
    match above:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            if isinstance(parents.get(above), ast.Module):
                return False
            uses = _loads(name, above, source.tree, parents)
        case _:
            uses = [expression]
    return bool(uses) and all(_is_copied(use, parents) or (is_looked_up and _is_test(use, parents)) for use in uses)


def _is_test(use: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether code looks whether something is in a list."""
    match parents.get(use):
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[names]):
            return names is use
    return False


def _loads(name: str, assignment: ast.AST, tree: ast.Module, parents: dict[ast.AST, ast.AST]) -> list[ast.AST]:
    """Return where a variable of a function is read; nothing if the file does anything else with a name like it."""
    loads: list[ast.AST] = []
    for node in walk(tree):
        match node:
            case ast.Name(id=other, ctx=ast.Load()) if other == name:
                loads.append(node)
            case ast.Name(id=other) if other == name and parents[node] is not assignment:
                return []
            case ast.arg(arg=other) | ast.alias(asname=other) if other == name:
                return []
            case ast.Global(names=others) | ast.Nonlocal(names=others) if name in others:
                return []
            case ast.Constant(value=str() as text) if text == name:
                # It may be read by its name.
                return []
    return loads


def _is_copied(use: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether a loop over names does nothing but to copy, and the object is not one that was built before."""
    loop = parents.get(use)
    match loop:
        case ast.For(target=ast.Name(id=key), iter=iterated, body=[ast.If() as test], orelse=[]) if iterated is use:
            target = _target_of(test, key)
            return target is not None and not _is_built(target, loop, parents)
    return False


def _target_of(statement: ast.If, key: str) -> ast.expr | None:
    """Return what gets the value of a key if the mapping has it, None if the statement does anything else."""
    match statement:
        case ast.If(test=test, body=[stored, *more], orelse=[]) if all(map(_prints, more)):
            tests = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
            mapping = _mapping_of(tests[0], key)
            target = _stored(stored, mapping, key) if mapping is not None else None
            return target if target is not None and all(_has(one, target, key) for one in tests[1:]) else None
    return None


def _has(test: ast.expr, target: ast.expr, key: str) -> bool:
    """Return whether a test is that the target has the attribute: in the release that reads the new names it has."""
    match test:
        case ast.Call(func=ast.Name(id="hasattr"), args=[of, ast.Name(id=name)]):
            return name == key and ast.unparse(of) == ast.unparse(target)
    return False


def _mapping_of(test: ast.expr, key: str) -> ast.expr | None:
    """Return the mapping that has a key where a test is true."""
    match test:
        case ast.Compare(left=ast.Name(id=name), ops=[ast.In()], comparators=[mapping]) if name == key:
            return mapping
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return _got(left, key)
    return None


def _got(value: ast.expr, key: str) -> ast.expr | None:
    """Return the mapping of ``mapping[key]`` and ``mapping.get(key)``."""
    match value:
        case ast.Subscript(value=mapping, slice=ast.Name(id=name)) if name == key:
            return mapping
        case ast.Call(func=ast.Attribute(value=mapping, attr="get"), args=[ast.Name(id=name)]) if name == key:
            return mapping
    return None


def _stored(statement: ast.stmt, mapping: ast.expr, key: str) -> ast.expr | None:
    """Return what gets the value of a key under its own name, None if the statement does anything else."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="setattr"), args=[target, ast.Name(id=name), value])):
            pass
        case ast.Assign(targets=[ast.Subscript(value=target, slice=ast.Name(id=name))], value=value):
            pass
        case _:
            return None
    read = _got(value, key)
    is_same = name == key and read is not None and ast.unparse(read) == ast.unparse(mapping)
    return target if is_same and ast.unparse(target) != ast.unparse(mapping) else None


def _is_built(target: ast.expr, loop: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Return whether a configuration was validated before it gets the values, and is not again."""
    text = ast.unparse(target)
    around: ast.AST = loop
    while around in parents and not isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
        around = parents[around]
    made = (
        node.value.func
        for node in walk(around)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _names(node.targets) == [text]
    )
    return text.endswith(".config") or any(dotted(one).endswith(("Config", "get_model_config")) for one in made)


def _names(targets: Sequence[ast.expr]) -> list[str]:
    return [ast.unparse(one) for one in targets]


def _prints(statement: ast.stmt) -> bool:
    """Return whether a statement only prints or logs."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method))):
            return name in ("log", "logger", "logging") and method in ("debug", "info", "warning")
    return False


# --- key renames ------------------------------------------------------------

Replacements = Mapping[str, Sequence[str]]
"""Old key → the keys that replace it in all mappings: one with the same value, or several with others."""
_OF_ONE_NAME = (KeyForm.KEY, KeyForm.ATTRIBUTE, KeyForm.GENERATED)
_READING = "the deprecated key `{name}` is in code that reads {where}"
_MESSAGES = {
    KeyForm.ATTRIBUTE: "the deprecated attribute `{name}` gets the value of this key in {where}",
    KeyForm.GENERATED: "the deprecated key `{name}` is in a text that code writes, as in {where}",
}


def renaming_edits(
    places: Sequence[KeyPlace], new: Replacements, same_value: frozenset[str], source: PythonSource
) -> list[Edit]:
    """Return the edits with which code names new keys. Raises KeyNotFollowedError.

    ``same_value`` are the keys whose value is that of the key that replaces them.
    """
    edits: list[Edit] = []
    owners: dict[int, list[KeyPlace]] = {}
    for place in places:
        if place.form in (KeyForm.FIELD, KeyForm.ELEMENT):
            owners.setdefault(id(place.owner), []).append(place)
        elif place.name in same_value:
            edits.append(Edit(place.span.start, place.span.end, new[place.name][0]))
        elif place.form in _OF_ONE_NAME:
            line = source.line_of(place.span.start)
            raise KeyNotFollowedError(f"`{place.name}` is read by itself, and several keys replace it", line)
    for of_owner in owners.values():
        change = _fields if of_owner[0].form is KeyForm.FIELD else _elements
        edits += change(of_owner, new, same_value, source)
    return edits


def problem_of(place: KeyPlace, new: Replacements, where: str, index: int) -> Problem:
    """Return the problem about a place; ``where`` are the mappings that have the key."""
    names = " and ".join(f"`{name}`" for name in new[place.name])
    is_field = place.form is KeyForm.FIELD
    kind = ProblemKind.DEFINITION if is_field else ProblemKind.NAME_IN_TEXT
    message = _MESSAGES.get(place.form, _READING).format(name=place.name, where=where)
    fix = f"write {names}"
    return Problem(kind, place.span, message, index, fix, fix=fix)


def _added(places: Sequence[KeyPlace], new: Replacements, present: Sequence[str]) -> list[str]:
    """Return the new names that some old ones become, but those that are there already."""
    every = dict.fromkeys(name for place in places for name in new[place.name])
    return [name for name in every if name not in present]


# --- lists of names -------------------------------------------------------------------------------


def _elements(
    places: Sequence[KeyPlace], new: Replacements, same_value: frozenset[str], source: PythonSource
) -> Iterator[Edit]:
    owner = places[0].owner
    assert isinstance(owner, (ast.Tuple, ast.List, ast.Set))
    is_same = all(place.name in same_value for place in places)
    if not is_copied_as_it_is(owner, source, is_looked_up=is_same):
        line = source.line_of(places[0].span.start)
        raise KeyNotFollowedError("a list of names whose use is not followed", line)
    names = [str(element.value) for element in owner.elts if isinstance(element, ast.Constant)]
    added = _added(places, new, names)
    # The list keeps an element, or its brackets mean something else.
    kept = places[: 1 if added else 0]
    if added:
        yield Edit(kept[0].span.start, kept[0].span.end, _between(kept[0].span, added, source))
    removed = [at for at, name in enumerate(names) if name in new and name not in {one.name for one in kept}]
    if len(removed) == len(names) and not added:
        raise KeyNotFollowedError("a list would have no names", source.line_of(places[0].span.start))
    spans = [source.span(element) for element in owner.elts]
    is_one = isinstance(owner, ast.Tuple) and len(names) - len(removed) + max(len(added) - 1, 0) == 1
    has_comma = source.text[spans[-1].end :].lstrip().startswith(",")
    for edit in remove_elements(source.text, removed, spans):
        is_last = edit.end == spans[-1].end and any(edit.start == one.end for one in spans)
        takes_comma = is_one and is_last and not has_comma
        # A tuple of one element is none without its comma.
        yield Edit(edit.start, edit.end, ",") if takes_comma else edit


def _between(first: Span, names: Sequence[str], source: PythonSource) -> str:
    """Return names as the elements that replace the text of one, without its own quotes."""
    quote = source.text[first.start - 1]
    start = line_start(source.text, first.start)
    indent = source.text[start : first.start - 1]
    comma = f"{quote},{newline_near(source.text, start)}{indent}{quote}" if not indent.strip() else f"{quote}, {quote}"
    return comma.join(names)


# --- fields of classes ----------------------------------------------------------------------------


def _fields(
    places: Sequence[KeyPlace], new: Replacements, same_value: frozenset[str], source: PythonSource
) -> Iterator[Edit]:
    owner = places[0].owner
    assert isinstance(owner, ast.ClassDef)
    fields = {
        one.target.id: one for one in owner.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    added = _added(places, new, list(fields))
    for place in places:
        field = fields[place.name]
        own = [name for name in added if name in new[place.name]]
        added = [name for name in added if name not in own]
        if not own:
            yield _line_without(field, source)
        elif place.name in same_value:
            yield Edit(place.span.start, place.span.end, own[0])
        else:
            yield from _with_types(field, own, source)


def _line_without(field: ast.AnnAssign, source: PythonSource) -> Edit:
    span, text = source.span(field), source.text
    start, end = line_start(text, span.start), line_end(text, span.end)
    if text[start : span.start].strip() or rest_of_line(text, span.end):
        raise KeyNotFollowedError("a field shares its line with something else", field.lineno)
    return Edit(start, end, "")


def _with_types(field: ast.AnnAssign, names: Sequence[str], source: PythonSource) -> Iterator[Edit]:
    """Yield the edits with which an optional key becomes others, which have other types."""
    if not isinstance(field.annotation, ast.Subscript) or field.value is not None:
        raise KeyNotFollowedError("the type of a field is not known", field.lineno)
    span, optional = source.span(field), source.of(field.annotation.value)
    start = line_start(source.text, span.start)
    between = newline_near(source.text, start) + source.text[start : span.start]
    yield Edit(span.start, span.end, between.join(f"{name}: {optional}[{_type_of(name)}]" for name in names))


def _type_of(name: str) -> str:
    return "list[str] | str" if name == MODULES else "str"
