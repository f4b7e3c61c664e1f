"""Risks of fixes: why the fix of a place is unsafe, by its form, its object, and the code that gets the object."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from operator import itemgetter

from cgmigrate.documents.python.calls import WRAPPERS
from cgmigrate.documents.python.definitions import Definitions, module_of
from cgmigrate.documents.python.flag_uses import search_for_flag
from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.programs import PROGRAM
from cgmigrate.documents.python.release_checks import PossibleReleaseChecks
from cgmigrate.documents.python.scopes import function_around, parameters_of, returned_by
from cgmigrate.documents.python.site_nodes import Item, SiteForm, SiteNodes
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.text.spans import Span

_VALIDATED = ("megatron.core.", "nemo.collections.")
"""Packages whose configuration classes validate the settings in their constructors."""
PROGRAM_UNKNOWN = "these arguments go to a program that cgmigrate does not know as Megatron's"
_STARTS_PROCESS = ("subprocess.", "os.exec", "os.spawn", "shlex.")
_CALLERS_SEE_IT = "its callers may set or read the settings under the old names"
_KEYS_NOT_READ = "cgmigrate does not know the code that reads the keys of this dict"


class FixRisks:
    """Decides for the places and reads of one file."""

    def __init__(self, source: PythonSource, names: Names) -> None:
        self._source, self._names = source, names
        self.definitions = Definitions(module_of(source.tree, names, names.path, source.text))
        self._checks = PossibleReleaseChecks(source.catalogue)

    def of_place(self, place: SiteNodes) -> str:
        """Return why other code may see what this place sets, empty when none does."""
        node = place.items[0].node
        guard = self.guard_of(place)
        match place.form:
            case SiteForm.ASSIGNMENTS:
                return self.of_object(dotted(_base(node)), node)
            case SiteForm.CALL:
                return self._call(self._source.parent(node)) or guard or self._seen_later(place)
            case SiteForm.DICT:
                return _KEYS_NOT_READ
            case SiteForm.FLAGS:
                searched = search_for_flag({item.field for item in place.items}, self._source)
                return searched or self._flags(self._source.parent(node)) or guard
        return self._list(self._source.parent(node)) or guard

    def guard_of(self, place: SiteNodes) -> str:
        """Return which condition around a place may test for a release, empty if none does."""
        node = place.items[0].node
        return self._checks.above(node, self._source.ancestors(node))

    def of_read(self, span: Span) -> str:
        """Return why other code may see the object whose setting is read in a span."""
        at = bisect_left(self._reads, span.start, key=lambda read: read[0])
        if at == len(self._reads) or self._reads[at][0] > span.end:
            return ""
        node = self._reads[at][1]
        return self.of_object(dotted(node.value), node)

    def of_object(self, path: str, node: ast.AST) -> str:
        """Return which other code may see the object at a path, or that no code shows that none does."""
        function = function_around(self._source.ancestors(node))
        if not path or function is None:
            return "cgmigrate does not follow the expression that returns this object"
        root = path.partition(".")[0]
        if isinstance(function, ast.Module):
            return f"`{root}` is a module-level name, which other files can import"
        if root in parameters_of(function):
            return f"`{root}` is a parameter of `{function.name}`: {_CALLERS_SEE_IT}"
        if any(f"{path}.".startswith(f"{dotted(result)}.") for result in returned_by(function)):
            return f"`{function.name}` returns `{root}`: {_CALLERS_SEE_IT}"
        return f"cgmigrate does not follow where `{path}` is created and where it is passed"

    def _call(self, call: ast.AST | None) -> str:
        """Check a call with settings: its other arguments, whether it validates them, and what gets the result."""
        if not isinstance(call, ast.Call):
            return "cgmigrate does not follow this call"
        name = dotted(call.func)
        full = self._names.resolve(name)
        if full == "dataclasses.replace":
            return "`dataclasses.replace` copies settings that this file does not show"
        if name == "dict" and name not in self._names.full:
            return _KEYS_NOT_READ
        wrapped = dotted(call.args[0]) if full in WRAPPERS and call.args else ""
        if why := self.definitions.why_not_megatrons(wrapped or name):
            return why
        if unpacked := next((keyword.value for keyword in call.keywords if keyword.arg is None), None):
            return f"`**{ast.unparse(unpacked)[:60]}` on line {unpacked.lineno} may also set these settings"
        return "" if self._validates(name) and not wrapped else f"cgmigrate does not follow the result of `{name}(...)`"

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

    def _seen_later(self, place: SiteNodes) -> str:
        """Return which line may read a setting that the object of a constructor keeps as it is written, or set it."""
        names = {item.field for item in place.items if self._is_read_as_written(item)}
        if not names:
            return ""
        own = {id(part) for item in place.items for value in item.values for part in walk(value)}
        first = min(filter(None, (self._first_named(name, own) for name in names)), default=None)
        return f"line {first[1]} may read or set `{first[2]}` of the object" if first else ""

    def _first_named(self, name: str, own: Collection[int]) -> tuple[int, int, str] | None:
        """Return the position and the line of the first node that names a setting and is none of a place's own."""
        named = self._named.get(name, ())
        return next(((at, getattr(node, "lineno", 0), name) for at, node in named if id(node) not in own), None)

    def _is_read_as_written(self, item: Item) -> bool:
        """Whether the object of a constructor keeps what it gets: the capture model has the other settings."""
        setting = self._source.catalogue[item.field]
        return setting.deprecated and (not setting.captures or (setting.is_flag and item.value is not False))

    @cached_property
    def _named(self) -> Mapping[str, Sequence[tuple[int, ast.AST]]]:
        """The nodes that name each deprecated setting as an attribute, in a pattern or as text, with their positions.

        They are in the order of the text. A file may have many calls: each looks at the nodes of its own settings.
        """
        result: dict[str, list[tuple[int, ast.AST]]] = {}
        for at, node in enumerate(self._source.walk()):
            for name in self._source.catalogue.deprecated.intersection(_names_in(node)):
                result.setdefault(name, []).append((at, node))
        return result

    @cached_property
    def _reads(self) -> list[tuple[int, ast.Attribute]]:
        """The attributes that name a deprecated setting, in the order of their ends, each with its end."""
        nodes = (node for every in self._named.values() for _, node in every if isinstance(node, ast.Attribute))
        return sorted(((self._source.span(node).end, node) for node in nodes), key=itemgetter(0))

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


def _names_in(node: ast.AST) -> Sequence[str]:
    """Return the names of attributes, or the text, that a node has."""
    match node:
        case ast.Attribute(attr=name) | ast.Constant(value=str() as name):
            return (name,)
        case ast.MatchClass(kwd_attrs=names):
            return names
    return ()


def _base(statement: ast.AST) -> ast.AST:
    """Return the object of ``object.name = value`` or ``setattr(object, "name", value)``."""
    match statement:
        case ast.Assign(targets=[ast.Attribute(value=base)]):
            return base
        case ast.Expr(value=ast.Call(args=[base, *_])):
            return base
    return statement
