"""Settings that a function copies from a configuration that is built into one that it makes: for a vision tower.

    config = VisionConfig(num_layers=depth)
    config.enable_cuda_graph = megatron_config.enable_cuda_graph
    config.cuda_graph_impl = megatron_config.cuda_graph_impl
    config.cuda_graph_scope = megatron_config.cuda_graph_scope

Both objects were validated, and neither is again: the copies of the booleans mean nothing, the implementation shows who
captures. A scope of 0.17 says what of a layer is captured, and what is for inference: since 0.18 these are two fields.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.documents.python.definitions import Definitions
from cgmigrate.documents.python.nodes import walk, words_of
from cgmigrate.documents.python.scopes import Function, bound_by
from cgmigrate.documents.python.site_nodes import Item, SiteForm, SiteNodes
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.documents.python.statement_edits import add_statement, delete_statements
from cgmigrate.documents.python.use_report import Message, UseReplacement, UseReport
from cgmigrate.documents.sites import FOLLOWS_USES, CannotEditError, ProblemKind
from cgmigrate.megatron.settings import DEPRECATED, ENABLE, EXTERNAL, FIELDS, IMPL, INFERENCE, MODULES, SCOPE
from cgmigrate.text.edits import Edit
from cgmigrate.text.remembered import remembered

_MAX_BASES = 8
_CONSTRUCTION = frozenset(("__init__", "__new__", "__post_init__", "__setattr__"))


def is_built_by(name: str, definitions: Definitions, depth: int = _MAX_BASES) -> bool:
    """Return whether a name is megatron-core's TransformerConfig, or a class that is derived from it and made like it.

    A class that defers its validation, as those of Megatron-Bridge do, is not: its objects are changed and built later.
    """
    full = definitions.module.names.imported(name)
    if full.startswith("megatron.core."):
        return full.endswith("TransformerConfig")
    definition = definitions.of(name) if depth else None
    if definition is None or not isinstance(definition.node, ast.ClassDef) or not _is_plain(definition.node):
        return False
    inner = Definitions(definition.module, definition.examined)
    return all(is_built_by(dotted(base), inner, depth - 1) for base in definition.node.bases)


def _is_plain(node: ast.ClassDef) -> bool:
    """Return whether a class has bases and makes its objects as they do."""
    defined = {one.name for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))}
    decorators = {dotted(one.func if isinstance(one, ast.Call) else one) for one in node.decorator_list}
    made = any(word.arg == "init" for one in node.decorator_list if isinstance(one, ast.Call) for word in one.keywords)
    plain = not defined & _CONSTRUCTION and decorators <= {"dataclass", "dataclasses.dataclass"} and not made
    return bool(node.bases) and not node.keywords and plain


_BOOLEANS = frozenset((ENABLE, EXTERNAL))
_CONFIGS = ("config", "cfg", "conf")
_VALIDATION = frozenset(("__post_init__", "finalize", "replace", "validate"))
_ONLY_READ = frozenset(("hasattr", "getattr", "isinstance"))


@dataclass(frozen=True, slots=True)
class BuiltCopy:
    """A place that only copies settings of a configuration that is built; ``function`` is the one around it."""

    place: SiteNodes
    source: str
    edits: Sequence[Edit]
    function: str

    @property
    def deprecated(self) -> list[Item]:
        """The copies of deprecated settings."""
        return [item for item in self.place.items if item.field in DEPRECATED]

    @property
    def copies_scope(self) -> bool:
        """Whether the old scope is copied, too."""
        return any(item.field == SCOPE for item in self.place.items)


def copy_at(place: SiteNodes, source: PythonSource, definitions_of: Callable[[], Definitions]) -> BuiltCopy | None:
    """Return the copy of settings at a place; None if the function does not show that all objects are built.

    ``definitions_of`` returns what names of the file lead to.
    """
    copied = _copied_from(place)
    function = source.function_of(place.items[0].node) if copied else None
    if not isinstance(function, Function) or place.blocked_by:
        return None
    fields = {item.field for item in place.items}
    definitions = definitions_of()
    copies_booleans = fields <= _BOOLEANS
    is_right = (
        (copies_booleans or _is_complete(fields))
        and _is_parameter(copied, function)
        and _is_made_of_built_class(place.object, function, definitions)
        and _names_only_in(place, DEPRECATED if copies_booleans else frozenset(FIELDS), function)
        and all(copies_booleans and _leaves_booleans(one, definitions) for one in _uses_of(place.object, function))
    )
    if not is_right:
        return None
    try:
        edits = _edits(place, copied, source)
    except CannotEditError:
        return None
    return BuiltCopy(place, copied, edits, function.name)


def _copied_from(place: SiteNodes) -> str:
    """Return the variable whose attributes of the same names a place copies, empty if it does anything else."""
    sources = {_source_of(item, place.object) for item in place.items}
    is_local = place.form is SiteForm.ASSIGNMENTS and place.object.isidentifier()
    return sources.pop() if is_local and len(sources) == 1 else ""


def _source_of(item: Item, target: str) -> str:
    match item.node:
        case ast.Assign(
            targets=[ast.Attribute(value=ast.Name(id=to))], value=ast.Attribute(value=ast.Name(id=name), attr=attr)
        ) if to == target and attr == item.field and name != to:
            return name
    return ""


def _is_parameter(name: str, function: Function) -> bool:
    """Return whether a name is a parameter for a configuration, and the function binds it nowhere else."""
    arguments = function.args
    parameters = [one for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs) if one.arg == name]
    if not parameters or not name.lower().endswith(_CONFIGS) or _bindings(name, function) != parameters:
        return False
    annotation = parameters[0].annotation
    # A provider or a recipe is what a configuration is built from.
    return annotation is None or "TransformerConfig" in ast.unparse(annotation)


def _is_made_of_built_class(name: str, function: Function, definitions: Definitions) -> bool:
    """Return whether the function makes an object of a class that validates, and binds its name nowhere else."""
    bound = _bindings(name, function)
    made = [one for one in walk(function) if isinstance(one, ast.Assign) and _names(one) == [name]]
    if len(bound) != 1 or len(made) != 1 or not isinstance(made[0].value, ast.Call):
        return False
    called = dotted(made[0].value.func)
    if not called or _bindings(called.partition(".")[0], function):
        return False
    return is_built_by(called, definitions)


def _names(node: ast.Assign) -> list[str]:
    return [dotted(one) for one in node.targets]


def _bindings(name: str, function: Function) -> list[ast.AST]:
    """Return the nodes of a function that bind a name, or delete it."""
    return [node for node in walk(function) if node is not function and name in bound_by(node)]


def _names_only_in(place: SiteNodes, names: frozenset[str], function: Function) -> bool:
    """Return whether a function names some settings only where a place copies them."""
    copied = {id(part) for item in place.items for part in walk(item.node)}
    return all(id(part) in copied or names.isdisjoint(words_of(part)) for part in walk(function))


def _is_complete(fields: set[str]) -> bool:
    """Return whether the settings that a place copies say together what is captured, in one of the two forms."""
    if IMPL not in fields:
        return False
    return (SCOPE in fields) is not (MODULES in fields) and not (SCOPE in fields and INFERENCE in fields)


def _uses_of(name: str, function: Function) -> Iterator[ast.AST]:
    """Yield the nodes of a function that may do more with an object than set or read one of its attributes."""
    harmless: set[int] = set()
    for node in walk(function):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=owner))) if owner == name:
                yield node
            case ast.Call(func=ast.Name(id=called)) if called in _ONLY_READ:
                harmless.update(map(id, node.args))
            case ast.Call() if any(dotted(one) == name for one in _arguments(node)):
                harmless.update(map(id, _arguments(node)))
                yield node
            case ast.Attribute(value=ast.Name() as owner) | ast.Return(value=ast.Name() as owner):
                harmless.add(id(owner))
            case ast.Name(id=used, ctx=ast.Load()) if used == name and id(node) not in harmless:
                yield node


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(word.value for word in call.keywords)]


def _leaves_booleans(node: ast.AST, definitions: Definitions) -> bool:
    """Return whether a call is one of a function of the checkout that neither names the booleans nor validates."""
    definition = definitions.of(dotted(node.func)) if isinstance(node, ast.Call) else None
    if definition is None or not isinstance(definition.node, Function):
        return False
    return all((_BOOLEANS | _VALIDATION).isdisjoint(words_of(part)) for part in walk(definition.node))


def _edits(place: SiteNodes, copied: str, source: PythonSource) -> list[Edit]:
    """Return the edits that copy the new settings. Raises CannotEditError."""
    edits = delete_statements([item for item in place.items if item.field in _BOOLEANS], source)
    for item in place.items:
        if item.field == SCOPE:
            end = source.span(item.values[0]).end
            edits += [Edit(item.name.start, item.name.end, MODULES), Edit(end - len(SCOPE), end, MODULES)]
            edits.append(add_statement(-1, item, INFERENCE, f"{copied}.{INFERENCE}", source))
    return edits


def report_copy(copy: BuiltCopy, report: UseReport) -> None:
    """Report a copy of deprecated settings with what to write instead; all of its statements are one problem."""
    first, *others = copy.deprecated
    booleans = " and ".join(f"`{item.field}`" for item in copy.deprecated if item.field in _BOOLEANS)
    deleted = f"delete the copies of {booleans}" if booleans else ""
    if copy.copies_scope:
        text = f"megatron-core >= 0.18 resets `{copy.source}.{SCOPE}` to None: `{copy.place.object}` gets no modules"
        copied = f"copy `{MODULES}` and `{INFERENCE}`, which replace it"
        fix = f"{copied}; {deleted}" if deleted else copied
    else:
        text = f"{booleans} of `{copy.source}` may be false although graphs are on: read `{IMPL}`"
        fix = deleted
    written = f"{copy.place.object}.{MODULES} = {copy.source}.{MODULES}" if copy.copies_scope else deleted
    argument_of = copy.function if copy.copies_scope else ""
    replacement = UseReplacement(written, edits=copy.edits, fix=fix, is_built=True, argument_of=argument_of)
    about = SCOPE if copy.copies_scope else ""
    report.add(first.node, Message(ProblemKind.READ, text, replacement), about=about)
    for item in others:
        report.skip(item.node, item.field, FOLLOWS_USES)


# --- models ---------------------------------------------------------------------------------------

_MODEL = re.compile(r"(?:.*[._])?model(?:_chunk|s?\[\d+\])?\.config")
_MODEL_FUNCTIONS = ("get_model_config", "unwrap_model")


def is_of_built_model(source: PythonSource, place: SiteNodes) -> bool:
    """Return whether the settings of a place are those of a model that is built."""
    node = place.items[0].node
    if _is_config_of_model(place.object):
        return True
    first, line = place.object.partition(".")[0], getattr(node, "lineno", 0)
    function = source.function_of(node)
    if function is None or first != place.object:
        return False
    before = [value for at, value in _assignments(source, function).get(first, ()) if at < line]
    return bool(before) and _returns_config(before[-1])


@remembered
def _assignments(_source: PythonSource, function: ast.AST) -> Mapping[str, Sequence[tuple[int, ast.expr]]]:
    """Return what a function assigns to each name, with the lines."""
    assigned: defaultdict[str, list[tuple[int, ast.expr]]] = defaultdict(list)
    nodes = [node for node in walk(function) if isinstance(node, ast.Assign)]
    for node in sorted(nodes, key=lambda node: node.lineno):
        for target in node.targets:
            if isinstance(target, ast.Name):
                assigned[target.id].append((node.lineno, node.value))
    return assigned


def _returns_config(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return dotted(value.func).rpartition(".")[2] == "get_model_config"
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Call):
        return value.attr == "config" and dotted(value.value.func).rpartition(".")[2] in _MODEL_FUNCTIONS
    return _is_config_of_model(dotted(value))


def _is_config_of_model(path: str) -> bool:
    return bool(_MODEL.fullmatch(path))
