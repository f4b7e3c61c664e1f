"""Modules of a checkout, read on demand: their definitions, imports and re-exports."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.documents.python.class_origins import MAX_BYTES, module_file
from cgmigrate.documents.python.nodes import imported_in, parsed, walk
from cgmigrate.documents.python.scopes import bound_by
from cgmigrate.text.files import read_text

_UNKNOWN = "?"
"""A module whose names another one may import with a star; it may be any."""
_MUTABLE = (ast.List, ast.Dict, ast.Set, ast.Call)
_IMPORT_ERRORS = ("ImportError", "ModuleNotFoundError", "Exception")


@dataclass(frozen=True, slots=True)
class Import:
    """A name that a module imports: ``name`` from ``module``, or the module itself if it has no name.

    ``otherwise`` is what the name is if the import fails; None where the module does not say that.
    """

    module: str
    name: str = ""
    otherwise: ast.expr | None = None

    @property
    def full(self) -> str:
        """The name with its module; it begins with the dots of a relative import."""
        return f"{self.module}.{self.name}" if self.name else self.module


Binding = ast.FunctionDef | ast.ClassDef | ast.expr | Import
"""What a name at the top of a module is bound to."""


@dataclass(eq=False, slots=True)
class Module:
    """A file: what the names at its top are bound to, None where that is not known."""

    path: str
    text: str
    tree: ast.Module
    bindings: dict[str, Binding | None] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    """The modules whose names it imports with a star."""
    stars_before: dict[str, int] = field(default_factory=dict)
    """How many of these imports are before the statement that binds a name."""
    folder: str = field(init=False)

    def __post_init__(self) -> None:
        self.folder = os.path.dirname(self.path)


class Modules:
    """The modules of a checkout; ``texts`` are those that differ from the files, by real path.

    ``tree_of`` returns the tree of a file that was parsed already, None for others. ``list_files`` returns the files of
    code of the checkout, by their real paths.
    """

    def __init__(
        self,
        texts: Mapping[str, str],
        tree_of: Callable[[str, str], ast.Module | None] = lambda _path, _text: None,
        list_files: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._texts, self._tree_of, self._list_files = texts, tree_of, list_files
        self._modules: dict[str, Module | None] = {}
        self._paths: dict[tuple[str, str], str] = {}
        """The files of imported modules, by the names and the folders of those that import them; empty for others."""
        self._versions = _Versions()
        self._unedited: Modules | None = None

    def read(self, path: str) -> Module | None:
        """Return the module in a file, by its real path; None if it cannot be read."""
        if path not in self._modules:
            self._modules[path] = self._unedited.read(path) if self._unedited else self._parsed(path)
        return self._modules[path]

    def seen(self, path: str) -> Module | None:
        """Return the module in a file, which is forgotten if nothing else has read it."""
        return self._modules.get(path) or self._parsed(path)

    def text(self, path: str) -> str | None:
        """Return the text of a file, None if it cannot be read."""
        try:
            return self._texts[path] if path in self._texts else read_text(path, MAX_BYTES)
        except (OSError, UnicodeDecodeError):
            return None

    def _parsed(self, path: str) -> Module | None:
        if (text := self.text(path)) is None:
            return None
        tree = self._tree_of(path, text) or parsed(text)
        return _module(path, text, tree) if tree is not None else None

    def with_texts(self, texts: Mapping[str, str]) -> Modules:
        """Return the modules with other texts for some files; the other files are not parsed again.

        Statements at the top of a file that have the same text are the same nodes, so that what is known of them holds.
        """
        result = Modules(self._texts, self._tree_of, self._list_files)
        result._versions, result._paths, result._unedited = self._versions, self._paths, self
        for path, text in texts.items():
            if (first := self.read(path)) is not None:
                result._modules[path] = self._versions.module(first, text)
        return result

    def imported(self, name: str, importer: Module) -> Module | None:
        """Return the module of the checkout with a full name (``.common`` is relative), None if there is none."""
        key = name, importer.folder
        if key not in self._paths:
            path = _file_of(*key) or self._on_search_path(name, importer)
            self._paths[key] = os.path.realpath(path) if path else ""
        return self.read(self._paths[key]) if self._paths[key] else None

    def _on_search_path(self, name: str, importer: Module) -> str:
        """Return the file of a module in a folder that a module adds to ``sys.path``: the only one with that name.

        Empty if there is none, or if there are several.
        """
        first = name.partition(".")[0]
        if "sys.path" not in importer.text or not first or first in sys.stdlib_module_names:
            return ""
        paths = [path for path in self._list_files() if path.endswith(f"/{name.replace('.', '/')}.py")]
        return paths[0] if len(paths) == 1 else ""

    def all_imported(self, module: Module) -> Iterator[str]:
        """Yield the files of the checkout that code of a module imports, wherever it does."""
        for one in imported_in(module.tree):
            if path := _file_of(one, module.folder):
                yield os.path.realpath(path)


class _Versions:
    """The modules of edited files. Statements at the top that are the same in several have one node."""

    def __init__(self) -> None:
        self._modules: dict[tuple[str, str], Module | None] = {}
        self._nodes: dict[str, dict[str, ast.stmt]] = {}
        """The statements at the top of all versions of a file, by their texts."""

    def module(self, first: Module, text: str) -> Module | None:
        """Return the module of an edited text, None if it is no code; ``first`` is the one of the file."""
        if text == first.text:
            return first
        key = first.path, text
        if key not in self._modules:
            self._modules[key] = self._parsed(first, text)
        return self._modules[key]

    def _parsed(self, first: Module, text: str) -> Module | None:
        tree = parsed(text)
        if tree is None:
            return None
        if first.path not in self._nodes:
            self._nodes[first.path] = {part: node for node, part in _texts_of(first.tree, first.text) if part}
        known = self._nodes[first.path]
        # A statement that occurs twice has two nodes.
        used = set[str]()
        body = []
        for node, part in _texts_of(tree, text):
            body.append(known.setdefault(part, node) if part and part not in used else node)
            used.add(part)
        return _module(first.path, text, ast.Module(body, []))


def _module(path: str, text: str, tree: ast.Module) -> Module:
    module = Module(path, text, tree)
    for statement in tree.body:
        _bind(statement, module)
    return module


def _texts_of(tree: ast.Module, text: str) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the statements at the top of a file with their lines; without a text if others are on the same lines."""
    lines = text.split("\n")
    spans = [(_first_line(node), node.end_lineno or node.lineno) for node in tree.body]
    for at, node in enumerate(tree.body):
        first, last = spans[at]
        is_alone = (not at or spans[at - 1][1] < first) and (at + 1 == len(spans) or last < spans[at + 1][0])
        yield node, "\n".join(lines[first - 1 : last]) if is_alone else ""


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min((node.lineno, *(one.lineno for one in decorators)))


@lru_cache(maxsize=8192)
def _file_of(name: str, folder: str) -> str:
    """Return the file of a module that a file in a folder imports, empty if the checkout has none."""
    level = len(name) - len(name.lstrip("."))
    rest = name[level:]
    for _ in range(level - 1):
        folder = os.path.dirname(folder)
    if not level:
        # Tests beside a folder `src` import what is in it.
        path = (module_file(rest, folder) or module_file(f"src.{rest}", folder)) if rest else ""
    elif rest:
        path = next(filter(os.path.isfile, _files(os.path.join(folder, *rest.split(".")))), "")
    else:
        path = os.path.join(folder, "__init__.py")
    return path if path and os.path.isfile(path) else ""


def _files(stem: str) -> tuple[str, str]:
    return stem + ".py", os.path.join(stem, "__init__.py")


def _bind(statement: ast.stmt, module: Module) -> None:
    """Note what a statement at the top of a module binds."""
    _bind_directly(statement, module)
    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and ":=" in module.text:
        for node in walk(statement):
            if isinstance(node, ast.NamedExpr):
                module.bindings[node.target.id] = None


def _bind_directly(statement: ast.stmt, module: Module) -> None:
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            _set(module, name, statement)
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            _set(module, name, value)
        case ast.Import() | ast.ImportFrom():
            _unbind_imported(statement, module)
            _bind_imports(statement, module, {})
        case ast.Try():
            _bind_try(statement, module)
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            for inner in statement.body:
                _bind(inner, module)
        case ast.Expr(value=ast.Constant()) | ast.AnnAssign():
            pass
        case ast.Expr():
            _unbind_changed(statement, module)
        case _:
            _bind_unknown(statement, module)


def _unbind_imported(statement: ast.Import | ast.ImportFrom, module: Module) -> None:
    """Forget the names that a statement imports again, as long as no code has used them."""
    again = [name for one in statement.names if (name := one.asname or one.name) in module.bindings]
    if again and not statement.col_offset and all(isinstance(one, Import) for one in module.bindings.values()):
        for name in again:
            del module.bindings[name]


def _unbind_changed(statement: ast.Expr, module: Module) -> None:
    """Note that a statement may change what its names are bound to: ``SCOPES.append("mlp")``."""
    for node in walk(statement):
        if isinstance(node, ast.Name) and isinstance(module.bindings.get(node.id), _MUTABLE):
            module.bindings[node.id] = None


def _set(module: Module, name: str, binding: Binding) -> None:
    module.bindings[name] = None if name in module.bindings else binding
    module.stars_before[name] = len(module.stars)


def _bind_imports(statement: ast.Import | ast.ImportFrom, module: Module, otherwise: Mapping[str, ast.expr]) -> None:
    for alias in statement.names:
        if isinstance(statement, ast.Import):
            local = alias.asname or alias.name.partition(".")[0]
            full = alias.name if alias.asname else local
            # `import a.b` and `import a.c` bind the same name to the same package.
            if module.bindings.get(local) != Import(full):
                _set(module, local, Import(full))
            continue
        source = "." * statement.level + (statement.module or "")
        if alias.name == "*":
            module.stars.append(source)
        else:
            local = alias.asname or alias.name
            _set(module, local, Import(source, alias.name, otherwise.get(local)))


def _bind_try(statement: ast.Try, module: Module) -> None:
    """Note the names of ``try: from m import name; except ImportError: name = None``; others are not known."""
    imports = [one for one in statement.body if isinstance(one, (ast.Import, ast.ImportFrom))]
    handlers = statement.handlers
    is_known = len(imports) == len(statement.body) and not statement.orelse and not statement.finalbody
    if not is_known or len(handlers) != 1 or getattr(handlers[0].type, "id", "") not in _IMPORT_ERRORS:
        _bind_unknown(statement, module)
        return
    otherwise = {
        one.targets[0].id: one.value
        for one in handlers[0].body
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    }
    for one in imports:
        _bind_imports(one, module, otherwise)
    for other in handlers[0].body:
        if not isinstance(other, ast.Assign):
            _bind_unknown(other, module)


def _bind_unknown(statement: ast.stmt, module: Module) -> None:
    """Note the names that a statement binds in a way that is not followed."""
    for node in walk(statement):
        for name in bound_by(node):
            if name == "*":
                # It may bind any name again.
                module.stars.append(_UNKNOWN)
                module.bindings |= dict.fromkeys(module.bindings)
            else:
                module.bindings[name] = None
