"""The places of Python code that name a key of a mapping, as far as each can get another name.

Known are fields of classes, keys of mappings (``config["name"]``, ``config.get("name")``, ``"name" in config``), lists
of names, attributes that get the value of a key, and texts that code writes or shows. Names of variables are none.
Where code gives a key a value of its own, all constants that this can be are known, or the place is not followed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.reaching_constants import Reaching, UnknownValueError, constants_reaching
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.text.spans import Span

Literal = ast.Tuple | ast.List | ast.Set
_CHANGES = frozenset(("append", "extend", "insert", "remove", "pop", "clear", "update", "add", "discard", "sort"))
"""Methods that change a value."""
_SHOWS = frozenset(("print", "warn", "warning", "info", "debug", "error", "exception", "critical", "fail", "skip"))
_WHOLE = r"(?<![\w-]){}(?![\w-])"
"""A name that is no part of another."""
_GENERATED = re.compile(r"[\"']?[ \t]*:(?:[ \t\n\\{]|$)")
"""What is behind a key in a text that code writes."""
_OWN_VALUE = re.compile(r"[\"']?[ \t]*:[^\n{}%$]*(?=\n|\Z)(?:\n[ \t]*- [^\n{}%$]*(?=\n|\Z))*")
"""A colon and the value of a key, as far as a text has it: a line, or a list below."""


class KeyForm(Enum):
    """How code names a key."""

    FIELD = auto()
    """A field of a class: ``name: type``."""
    KEY = auto()
    """A string with which a mapping is read, set or tested."""
    ELEMENT = auto()
    """An element of a list, tuple or set of names."""
    ATTRIBUTE = auto()
    """An attribute, or the name in ``setattr``, that gets the value of the key of the same name."""
    GENERATED = auto()
    """A text that code writes: ``f"name: {value}"``."""
    SHOWN = auto()
    """A text for people."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyPlace:
    """A name at a place of code: ``span`` is that of the name alone, ``owner`` the class, list or statement of it."""

    name: str
    form: KeyForm
    span: Span
    owner: ast.AST
    gets: Reaching | None = None
    """What code gives to the key; None where it reads it, copies it, or has its name in a list."""


class KeyNotFollowedError(Exception):
    """Code names a key in a way that is not followed; ``line`` is where, counted from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def key_places_in(source: PythonSource, names: Collection[str], apart: Sequence[Span]) -> list[KeyPlace]:
    """Return the places of a file that name some keys, in the order of the text.

    ``apart`` are the spans of settings of objects that the code makes itself. Raises KeyNotFollowedError.
    """
    return sorted(_KeyReader(source, names, apart).places(), key=lambda place: place.span.start)


@dataclass(frozen=True, slots=True)
class _KeyReader:
    source: PythonSource
    names: Collection[str]
    apart: Sequence[Span]

    def places(self) -> Iterator[KeyPlace]:
        for node in self.source.walk():
            match node:
                case ast.AnnAssign(target=ast.Name(id=name) as target) if self._is_field(node) and name in self.names:
                    above = self.source.parent(node)
                    assert above is not None
                    gets = self._reaching(node.value, node) if node.value is not None else None
                    yield KeyPlace(name, KeyForm.FIELD, self.source.span(target), above, gets)
                case ast.Attribute(attr=name) if name in self.names and not self._is_apart(node):
                    yield self._attribute(node)
                case ast.Constant(value=str() as text) if any(name in text for name in self.names):
                    yield from self._in_text(node, text)
                case ast.keyword(arg=str(name)) | ast.arg(arg=name) if name in self.names and not self._is_apart(node):
                    raise self._not_followed(node, f"`{name}` as an argument")
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name in self.names:
                    raise self._not_followed(node, f"a function `{name}`")
                case ast.Assign(targets=targets) if isinstance(self.source.parent(node), ast.ClassDef):
                    if any(isinstance(one, ast.Name) and one.id in self.names for one in targets):
                        raise self._not_followed(node, "an attribute of a class")

    def _is_field(self, node: ast.AnnAssign) -> bool:
        return isinstance(self.source.parent(node), ast.ClassDef)

    def _is_apart(self, node: ast.AST) -> bool:
        span = self.source.span(node)
        return any(one.start <= span.start < one.end for one in self.apart)

    def _not_followed(self, node: ast.AST, what: str) -> KeyNotFollowedError:
        return KeyNotFollowedError(f"{what} is not followed", getattr(node, "lineno", 0))

    # --- attributes -------------------------------------------------------------------------------

    def _attribute(self, node: ast.Attribute) -> KeyPlace:
        statement = self.source.parent(node)
        if isinstance(statement, ast.Assign) and statement.targets == [node] and self._is_of_key(statement, node.attr):
            end = self.source.span(node).end
            return KeyPlace(node.attr, KeyForm.ATTRIBUTE, Span(end - len(node.attr), end), statement)
        raise self._not_followed(node, f"the attribute `{node.attr}`")

    def _is_of_key(self, statement: ast.Assign, name: str) -> bool:
        return self._reads(statement.value, name, statement)

    def _reads(self, value: ast.expr, name: str, node: ast.AST) -> bool:
        """Return whether an expression is the value of a key, or a variable that has no other value."""
        if isinstance(value, ast.Name):
            around = self.source.function_of(node) or self.source.tree
            bound = [one for one in walk(around) if _binds(one, value.id)]
            return bool(bound) and all(
                isinstance(one, ast.Assign) and len(one.targets) == 1 and _is_value_of(one.value, name) for one in bound
            )
        return _is_value_of(value, name)

    # --- texts ------------------------------------------------------------------------------------

    def _in_text(self, node: ast.Constant, text: str) -> Iterator[KeyPlace]:
        above = self.source.parent(node)
        words = [name for name in self.names if re.search(_WHOLE.format(name), text)]
        if not words or self._is_apart(node):
            return
        for name in words:
            form = self._form_of(node, above, text, name)
            if form is None:
                raise self._not_followed(node, f"the text `{name}`")
            owner = above if form is KeyForm.ELEMENT and above is not None else self.source.statement_of(node)
            gets = self._gets(node, above, name, form)
            yield from (KeyPlace(name, form, span, owner or self.source.tree, gets) for span in self._spans(node, name))

    def _spans(self, node: ast.Constant, name: str) -> Iterator[Span]:
        """Yield where a name is in a text; of a formatted text this is where it is in any of its parts."""
        above = self.source.parent(node)
        whole = above if isinstance(above, ast.JoinedStr) else node
        values = whole.values if isinstance(whole, ast.JoinedStr) else [node]
        if any(name in ast.unparse(one) for one in values if not isinstance(one, ast.Constant)):
            raise self._not_followed(node, "a name in a formatted text")
        span = self.source.span(whole)
        every = list(re.finditer(_WHOLE.format(name), self.source.text[span.start : span.end]))
        if len(every) != sum(len(re.findall(_WHOLE.format(name), str(getattr(one, "value", "")))) for one in values):
            raise self._not_followed(node, f"the text `{name}`")
        first = next(one for one in values if re.search(_WHOLE.format(name), str(getattr(one, "value", ""))))
        for match in every if first is node else ():
            yield Span(span.start + match.start(), span.start + match.end())

    def _form_of(self, node: ast.Constant, above: ast.AST | None, text: str, name: str) -> KeyForm | None:
        if text == name and (form := self._form_of_key(node, above, name)):
            return form
        if self._is_shown(node):
            return KeyForm.SHOWN
        ends = [text[match.end() :] for match in re.finditer(_WHOLE.format(name), text)]
        is_generated = text != name and all(map(_GENERATED.match, ends))
        return KeyForm.GENERATED if is_generated else None

    def _form_of_key(self, node: ast.Constant, above: ast.AST | None, name: str) -> KeyForm | None:
        match above:
            case ast.Subscript(slice=key) if key is node:
                return KeyForm.KEY if self._is_set(above) or not self._is_changed(above) else None
            case ast.Call(func=ast.Attribute(attr="get"), args=[first, *more]) if first is node:
                return KeyForm.KEY if all(map(_is_nothing, more)) and not self._is_changed(above) else None
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()]) if left is node:
                return KeyForm.KEY
            case ast.Call(func=ast.Name(id="setattr"), args=[_, key, value]) if key is node:
                return KeyForm.ATTRIBUTE if self._reads(value, name, above) else None
            case ast.List(elts=every) | ast.Tuple(elts=every) | ast.Set(elts=every):
                is_list = all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in every)
                return KeyForm.ELEMENT if is_list else None
        return None

    # --- what keys get ----------------------------------------------------------------------------

    def _is_set(self, subscript: ast.Subscript) -> bool:
        """Return whether a statement sets a key, and nothing else."""
        statement = self.source.parent(subscript)
        return isinstance(statement, ast.Assign) and statement.targets == [subscript]

    def _is_changed(self, value: ast.expr) -> bool:
        """Return whether code deletes a key, or changes the value that it reads, at once or through a variable."""
        above = self.source.parent(value)
        if not isinstance(getattr(value, "ctx", ast.Load()), ast.Load) or _changed_by(above) is value:
            return True
        if not isinstance(above, (ast.Assign, ast.NamedExpr, ast.AnnAssign)):
            return False
        targets = above.targets if isinstance(above, ast.Assign) else [above.target]
        names = {one.id for target in targets for one in walk(target) if isinstance(one, ast.Name)}
        around = self.source.function_of(above) or self.source.tree
        changed = filter(None, map(_changed_by, walk(around)))
        return any(dotted(one) in names for one in changed)

    def _gets(self, node: ast.Constant, above: ast.AST | None, name: str, form: KeyForm) -> Reaching | None:
        """Return what a text gives to a key that it names. Raises KeyNotFollowedError if that is not known."""
        if form is KeyForm.GENERATED:
            return self._generated(node, name)
        if form is KeyForm.KEY and isinstance(above, ast.Subscript) and self._is_set(above):
            statement = self.source.parent(above)
            assert isinstance(statement, ast.Assign)
            return None if self._reads(statement.value, name, statement) else self._reaching(statement.value, node)
        return None

    def _reaching(self, value: ast.expr, node: ast.AST) -> Reaching:
        try:
            return constants_reaching(value, self.source.tree)
        except UnknownValueError as error:
            raise self._not_followed(node, "a value of its own") from error

    def _generated(self, node: ast.Constant, name: str) -> Reaching:
        """Return what is behind a key in a text: in its line, in the list below, or in what the text is joined with."""
        text, above = str(node.value), self.source.parent(node)
        every = [_OWN_VALUE.match(text, match.end()) for match in re.finditer(_WHOLE.format(name), text)]
        words = {word for own in every if own for word in re.findall(r"[\w-]+", own[0])}
        last = every[-1]
        if last is None or not all(every):
            raise self._not_followed(node, f"the text `{name}`")
        after = above.values[above.values.index(node) + 1 :] if isinstance(above, ast.JoinedStr) else []
        is_whole = last.end() < len(text) or not (after or isinstance(above, ast.BinOp))
        if words and not is_whole:
            raise self._not_followed(node, "a value in parts")
        if words or text[last.end() :].strip():
            return Reaching(frozenset(words or (None,)), frozenset())
        if after:
            # What is behind the first line break is another key, or a list.
            ends = next((at for at, one in enumerate(after) if "\n" in str(getattr(one, "value", ""))), len(after))
            return self._reaching(ast.List(after[: ends + 1], ast.Load()), node)
        whole: ast.expr = node
        while isinstance(joined := self.source.parent(whole), ast.BinOp):
            whole = joined
        if whole is node or not isinstance(getattr(whole, "op", None), ast.Add):
            raise self._not_followed(node, f"the text `{name}`")
        return self._reaching(whole, node)

    def _is_shown(self, node: ast.AST) -> bool:
        """Return whether a text is a docstring, or for people who read a message."""
        for above in self.source.ancestors(node):
            match above:
                case ast.Raise() | ast.Expr(value=ast.Constant()):
                    return True
                case ast.Assert(msg=message) if message is not None and any(one is node for one in walk(message)):
                    return True
                case ast.Call(func=func) if dotted(func).rpartition(".")[2] in _SHOWS:
                    return True
        return False


def _changed_by(node: ast.AST | None) -> ast.expr | None:
    """Return the value that a node changes: by a method, an operator, or one of its items that is set."""
    match node:
        case ast.Attribute(attr=name, value=value) if name in _CHANGES:
            return value
        case ast.AugAssign(target=value) | ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
            return value
    return None


def _binds(node: ast.AST, name: str) -> bool:
    """Return whether a node gives a variable a value."""
    match node:
        case ast.Assign(targets=targets):
            return any(isinstance(one, ast.Name) and one.id == name for target in targets for one in walk(target))
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.NamedExpr(target=target):
            return isinstance(target, ast.Name) and target.id == name
        case ast.For(target=target) | ast.comprehension(target=target) | ast.withitem(optional_vars=target):
            return target is not None and any(isinstance(one, ast.Name) and one.id == name for one in walk(target))
        case ast.arg(arg=other):
            return other == name
    return False


def _is_value_of(value: ast.expr, name: str) -> bool:
    """Return whether an expression is ``mapping["name"]`` or ``mapping.get("name")``."""
    match value:
        case ast.Subscript(slice=ast.Constant(value=key)):
            return key == name
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=key), *more], keywords=[]):
            return key == name and all(map(_is_nothing, more))
    return False


def _is_nothing(value: ast.expr) -> bool:
    """Return whether a default says that there is no value."""
    match value:
        case ast.Constant(value=None) | ast.List(elts=[]) | ast.Tuple(elts=[]):
            return True
    return False
