"""Risks of fixes: why the fix of a place is unsafe, by its form, its object, and the code that gets the object."""

from __future__ import annotations

import ast
from bisect import bisect_left

from cgmigrate.documents.python.calls import WRAPPERS, unpacked_into
from cgmigrate.documents.python.definitions import Definitions, module_of
from cgmigrate.documents.python.escape_analysis import Escapes
from cgmigrate.documents.python.flag_uses import search_for_flag
from cgmigrate.documents.python.later_uses import LaterUses
from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.possible_release_checks import PossibleReleaseChecks
from cgmigrate.documents.python.programs import PROGRAM
from cgmigrate.documents.python.scopes import function_around
from cgmigrate.documents.python.site_nodes import Form, Place
from cgmigrate.documents.python.source import Source, dotted
from cgmigrate.text.spans import Span

_VALIDATED = ("megatron.core.", "nemo.collections.")
"""Packages whose configuration classes validate the settings in their constructors."""
PROGRAM_UNKNOWN = "the program that gets these arguments is not known as Megatron's"
_STARTS_PROCESS = ("subprocess.", "os.exec", "os.spawn", "shlex.")


class FixRisks:
    """Decides for the places and reads of one file."""

    def __init__(self, source: Source, names: Names) -> None:
        self._source, self._names = source, names
        self.definitions = Definitions(module_of(source.tree, names, names.path, source.text))
        self._later_uses = LaterUses(source)
        self._escapes = Escapes(self.definitions)
        self._checks = PossibleReleaseChecks(source.catalogue)
        self._reads: list[tuple[int, ast.Attribute]] | None = None

    def of_place(self, place: Place) -> str:
        """Return why other code may see what this place sets, empty when none does."""
        node = place.items[0].node
        guard = self.guard_of(place)
        match place.form:
            case Form.ASSIGNMENTS:
                return self.of_object(dotted(_base(node)), node) or guard
            case Form.CALL:
                return self._call(self._source.parent(node)) or guard or self._later_uses.of_place(place)
            case Form.DICT:
                return self._dict(place, self._source.parent(node)) or guard or self._later_uses.of_place(place)
            case Form.FLAGS:
                searched = search_for_flag({item.field for item in place.items}, self._source)
                return searched or self._flags(self._source.parent(node)) or guard
        return self._list(self._source.parent(node)) or guard

    def guard_of(self, place: Place) -> str:
        """Return which condition around a place may test for a release, empty if none does."""
        node = place.items[0].node
        return self._checks.above(node, self._source.ancestors(node))

    def of_read(self, span: Span) -> str:
        """Return why other code may see the object whose setting is read in a span."""
        if self._reads is None:
            old = self._source.catalogue.deprecated
            reads = [n for n in self._source.walk() if isinstance(n, ast.Attribute) and n.attr in old]
            self._reads = sorted(((self._source.span(n).end, n) for n in reads), key=lambda read: read[0])
        at = bisect_left(self._reads, span.start, key=lambda read: read[0])
        if at == len(self._reads) or self._reads[at][0] > span.end:
            return ""
        node = self._reads[at][1]
        return self.of_object(dotted(node.value), node)

    def of_object(self, path: str, node: ast.AST) -> str:
        """Return why code that is not followed may see the object at a path."""
        function = function_around(self._source.ancestors(node))
        if not path or function is None:
            return "the object is reached through an expression that is not followed"
        return self._escapes.of_object(path, function)

    def _call(self, call: ast.AST | None) -> str:
        """Check a call with settings: its other arguments, whether it validates them, and what gets the result."""
        if not isinstance(call, ast.Call):
            return "the call is not followed"
        name = dotted(call.func)
        full = self._names.resolve(name)
        if full == "dataclasses.replace":
            return "the object that is replaced has settings that this file does not show"
        if name == "dict" and name not in self._names.full:
            return self._spread(self._source.parent(call))
        wrapped = dotted(call.args[0]) if full in WRAPPERS and call.args else ""
        if why := self.definitions.why_not_megatrons(wrapped or name):
            return why
        return self._spreads(call) or ("" if self._validates(name) and not wrapped else self._result(call))

    def _spreads(self, call: ast.Call) -> str:
        """Check for ``T(**kwargs, cuda_graph_scope=...)``: what is unpacked may contain the other settings."""
        unpacked = (keyword.value for keyword in call.keywords if keyword.arg is None)
        return next(filter(None, map(_unknown_keys, unpacked)), "")

    def _validates(self, name: str) -> bool:
        """Whether a constructor validates: Megatron's does, unless a class of this file defines one of its own."""
        if not self._names.resolve(name).startswith(_VALIDATED):
            return False
        classes, seen = [name], set[str]()
        while classes and (current := classes.pop()) not in seen:
            seen.add(current)
            definition = self.definitions.module.definitions.get(current)
            if isinstance(definition, ast.ClassDef):
                own = {node.name for node in definition.body if isinstance(node, ast.FunctionDef)}
                if own & {"__post_init__", "__init__"}:
                    return False
                classes += [base for base in map(dotted, definition.bases) if base]
        return True

    def _result(self, call: ast.Call) -> str:
        function = function_around(self._source.ancestors(call))
        if function is None:
            return "the object is made in a class body or a lambda, and its users are not known"
        return self._escapes.of_result(call, (), self._escapes.scope(function))

    # --- dicts and lists ------------------------------------------------------------------------

    def _dict(self, place: Place, node: ast.AST | None) -> str:
        parent = self._source.parent(node) if node is not None else None
        if isinstance(node, ast.Dict) and (why := _unknown_keys(node)):
            return why
        if isinstance(parent, ast.keyword) and parent.arg is None:
            return self._spread(parent)
        if place.callee and isinstance(parent, ast.Assign):
            return self._assigned_dict(place, parent)
        return "the code that reads the keys of this dict was not read"

    def _assigned_dict(self, place: Place, statement: ast.Assign) -> str:
        """Check a dict with a name: a class that validates has to get its entries, and no other code."""
        if isinstance(function_around(self._source.ancestors(statement)), ast.Module):
            return f"`{place.object.removeprefix('dict ')}` is a name of the module, which other files can import"
        names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
        is_only_unpacked = any(unpacked_into(name, self._source, self._names) for name in names)
        if is_only_unpacked and self._validates(place.callee):
            return ""
        why = self.definitions.why_not_megatrons(place.callee)
        return why or "the object that is made with the entries of this dict is not followed"

    def _spread(self, above: ast.AST | None) -> str:
        call = self._source.parent(above) if isinstance(above, ast.keyword) and above.arg is None else None
        return self._call(call) if call is not None else "the code that reads the keys of this dict was not read"

    def _flags(self, node: ast.AST | None) -> str:
        """Check a list of flags: Megatron's program has to get it."""
        call = self._source.parent(node) if node is not None else None
        words = (part.value for part in walk(call) if isinstance(part, ast.Constant)) if call else ()
        known = any(isinstance(word, str) and PROGRAM.fullmatch(word) for word in words)
        return self._list(node) or ("" if known else PROGRAM_UNKNOWN)

    def _list(self, node: ast.AST | None) -> str:
        """Check a list of arguments: it is complete only in the call that starts the program."""
        call = self._source.parent(node) if node is not None else None
        if isinstance(node, (ast.List, ast.Tuple)) and any(isinstance(item, ast.Starred) for item in node.elts):
            return "the list has arguments that are computed elsewhere"
        if isinstance(call, ast.Call) and self._names.resolve(dotted(call.func)).startswith(_STARTS_PROCESS):
            return ""
        return "other code may add arguments to this list, or read them from it"


def _unknown_keys(value: ast.expr) -> str:
    """Return which part of an unpacked mapping may contain settings that the code does not show; empty if none."""
    match value:
        case ast.Dict(keys=keys, values=values):
            if computed := next((key for key in keys if key is not None and not isinstance(key, ast.Constant)), None):
                return f"the key `{ast.unparse(computed)[:60]}` may be a setting (line {computed.lineno})"
            parts = [part for key, part in zip(keys, values, strict=True) if key is None]
        case ast.Call(func=ast.Name(id="dict"), args=args, keywords=keywords):
            parts = [*args, *(keyword.value for keyword in keywords if keyword.arg is None)]
        case _:
            return f"`**{ast.unparse(value)[:60]}` may hold settings as well (line {value.lineno})"
    return next(filter(None, map(_unknown_keys, parts)), "")


def _base(statement: ast.AST) -> ast.AST:
    """Return the object of ``object.name = value`` or ``setattr(object, "name", value)``."""
    match statement:
        case ast.Assign(targets=[ast.Attribute(value=base)]):
            return base
        case ast.Expr(value=ast.Call(args=[base, *_])):
            return base
    return statement
