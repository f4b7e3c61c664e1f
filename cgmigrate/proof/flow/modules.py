"""Modules of a checkout, read on demand: their definitions, imports and re-exports."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.documents.python.class_origins import MAX_BYTES, module_file
from cgmigrate.documents.python.name_resolution import package_of
from cgmigrate.documents.python.nodes import imported_in, walk
from cgmigrate.project.paths import is_test
from cgmigrate.text.files import read_bytes

IMPORTS_BY_NAME = ("import_module", "__import__", "run_path", "run_module")
"""Functions that import a module by a name that code may compute."""
LOOKUPS = (*IMPORTS_BY_NAME, "globals")
"""Functions through which code gets others by such names."""
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
    _package: str | None = None
    values: dict[str, object] = field(default_factory=dict)
    """The values of expressions at the top, once they were read."""
    _functions: frozenset[ast.AST] | None = None
    _names: dict[str, frozenset[str]] | None = None
    """The names at the top for what the module imports, by its name in the other module."""

    def names_for(self, imported: str) -> frozenset[str]:
        """Return the names at the top for what another module has under a name."""
        if self._names is None:
            self._names = {}
            for local, one in self.bindings.items():
                if isinstance(one, Import):
                    self._names[one.name] = self._names.get(one.name, frozenset()) | {local}
        return self._names.get(imported, frozenset())

    @property
    def functions(self) -> frozenset[ast.AST]:
        """The functions of the module, those in classes and in other functions too."""
        if self._functions is None:
            self._functions = frozenset().union(*map(_functions_in, self.tree.body))
        return self._functions

    @property
    def package(self) -> str:
        """The package of Megatron that the file is in, empty for others."""
        if self._package is None:
            self._package = package_of(self.path)
        return self._package

    @property
    def exports(self) -> frozenset[str] | None:
        """The names in ``__all__``; None if the module has none."""
        match self.bindings.get("__all__"):
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                names = [one.value for one in elements if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                return frozenset(names)
        return None


class Modules:
    """The modules of a checkout; ``texts`` are those that differ from the files, by real path.

    ``tree_of`` returns the tree of a file that was parsed already, None for others. ``list_files`` returns the files of
    code of the checkout, by their real paths, and ``files_with`` those that contain one of some words.
    """

    def __init__(
        self,
        texts: Mapping[str, str],
        tree_of: Callable[[str, str], ast.Module | None] = lambda _path, _text: None,
        list_files: Callable[[], Iterable[str]] = tuple,
        files_with: Callable[[Collection[str]], Iterable[str]] = lambda _words: (),
    ) -> None:
        self._files_with = files_with
        self._texts, self._tree_of, self._list_files = texts, tree_of, list_files
        self._modules: dict[str, Module | None] = {}
        self._in_folders: tuple[int, dict[str, list[Module]]] = (0, {})
        self._paths: dict[tuple[str, str], str] = {}
        """The files of imported modules, by the names and the folders of those that import them; empty for others."""
        self._versions = _Versions()
        self._others: dict[str, tuple[str, ...]] = {}
        self._read: set[str] = set()
        self._tests: dict[str, tuple[str, ...]] = {}

    def read(self, path: str) -> Module | None:
        """Return the module in a file, by its real path; None if it cannot be read."""
        if path not in self._modules:
            self._read.add(path)
            self._modules[path] = self._parsed(path)
        return self._modules[path]

    @property
    def files(self) -> frozenset[str]:
        """The files that were read, also with other texts, and those that could not be."""
        return frozenset(self._read)

    def add(self, path: str, text: str) -> Module:
        """Return a module with a text, as if it were in a file; code that imports it by its path gets it."""
        module = _module(path, text, ast.parse(text))
        self._modules[path] = module
        return module

    def _parsed(self, path: str) -> Module | None:
        try:
            text = self._texts.get(path)
            if text is None:
                text = read_bytes(path, MAX_BYTES).decode("utf-8")
            tree = self._tree_of(path, text) or ast.parse(text)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return _module(path, text, tree)

    def with_texts(self, texts: Mapping[str, str]) -> Modules:
        """Return the modules with other texts for some files; the other files are not parsed again.

        Statements at the top of a file that have the same text are the same nodes, so that what is known of them holds.
        """
        result = Modules({**self._texts, **texts}, self._tree_of, self._list_files, self._files_with)
        result._versions, result._paths, result._others = self._versions, self._paths, self._others
        result._tests, result._read = self._tests, self._read
        result._modules = {path: module for path, module in self._modules.items() if path not in texts}
        for path, text in texts.items():
            if (first := self.read(path)) is not None:
                result._modules[path] = self._versions.module(first, text)
        return result

    def imported(self, name: str, importer: Module) -> Module | None:
        """Return the module of the checkout with a full name (``.common`` is relative), None if there is none."""
        key = name, os.path.dirname(importer.path)
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

    def others_with(self, name: str) -> Iterator[Module]:
        """Yield the modules that contain a name, without those of tests."""
        if name not in self._others:
            self._others[name] = tuple(path for path in self._files_with([name]) if not is_test(path))
        yield from filter(None, map(self.read, self._others[name]))

    def tests_with(self, name: str) -> Iterator[Module]:
        """Yield the modules of tests that contain a name."""
        if name not in self._tests:
            self._tests[name] = tuple(path for path in self._files_with([name]) if is_test(path))
        yield from filter(None, map(self.read, self._tests[name]))

    def all_imported(self, module: Module) -> Iterator[str]:
        """Yield the files of the checkout that code of a module imports, wherever it does."""
        folder = os.path.dirname(module.path)
        for one in imported_in(module.tree):
            if path := _file_of(one, folder):
                yield os.path.realpath(path)

    def near(self, module: Module) -> list[Module]:
        """Return the modules that were read in the folder of a module, and in the one above it."""
        if self._in_folders[0] != len(self._modules):
            folders: dict[str, list[Module]] = {}
            for path, one in self._modules.items():
                if one is not None:
                    folders.setdefault(os.path.dirname(path), []).append(one)
            self._in_folders = len(self._modules), folders
        folder = os.path.dirname(module.path)
        return [one for name in (folder, os.path.dirname(folder)) for one in self._in_folders[1].get(name, ())]


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
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
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
        tree.body = body
        return _module(first.path, text, tree)


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


@lru_cache(maxsize=65536)
def _functions_in(node: ast.stmt) -> frozenset[ast.AST]:
    return frozenset(one for one in walk(node) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))


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
    if not is_known or len(handlers) != 1 or not _catches_import(handlers[0]):
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


def _catches_import(handler: ast.ExceptHandler) -> bool:
    return isinstance(handler.type, ast.Name) and handler.type.id in _IMPORT_ERRORS


def _bind_unknown(statement: ast.stmt, module: Module) -> None:
    """Note the names that a statement binds in a way that is not followed."""
    for node in walk(statement):
        for name in names_bound_by(node):
            if name == "*":
                # It may bind any name again.
                module.stars.append(_UNKNOWN)
                module.bindings |= dict.fromkeys(module.bindings)
            else:
                module.bindings[name] = None


def names_bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds itself."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name
        case ast.alias():
            yield node.asname or node.name.partition(".")[0]
        case (
            ast.MatchAs(name=str() as name)
            | ast.MatchStar(name=str() as name)
            | ast.MatchMapping(rest=str() as name)
            | ast.ExceptHandler(name=str() as name)
        ):
            yield name
