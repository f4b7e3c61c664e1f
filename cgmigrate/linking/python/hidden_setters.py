"""Functions that may set a setting by a name that they compute, also in files that name no setting.

Such a name is a text, whole or in parts: ``setattr(model, "cuda_graph_" + name, value)``. It is in the function, in
what the function uses, or in code that calls it and passes texts on. A function that no such text may reach sets no
setting.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.linking.python.callers import FilesWith
from cgmigrate.linking.python.leading_code import FunctionFacts, facts_of, used_by
from cgmigrate.linking.python.modules import Module, Modules, is_test
from cgmigrate.linking.python.name_texts import gives_values, is_part, passes_keywords, passes_texts, texts_of
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.relevance import sets_by_computed_name
from cgmigrate.megatron.settings import SCOPE

_WORDS = ("setattr", "__setattr__", "__dict__", "vars", "exec")
_MOST_STEPS = 2
"""How far the code is followed that gives values to a function."""


@dataclass(frozen=True, slots=True)
class HiddenSetter:
    """A function that may set a setting by its name, and the functions that may pass it the name, up to its text."""

    function: FunctionFacts
    through: Sequence[FunctionFacts]
    has_part: bool
    """Whether the text is only a part of a name, so that its file names no setting."""


@dataclass(slots=True)
class HiddenSetters:
    """Finds the functions of a project that may set a setting by a name that they compute."""

    files_with: FilesWith
    references: References
    _users: dict[str, list[FunctionFacts]] = field(default_factory=dict)
    _passing: dict[AnyFunction, list[FunctionFacts]] = field(default_factory=dict)
    """The functions that pass texts to a function, as far as that was looked up."""
    _texts: dict[AnyFunction, frozenset[str]] = field(default_factory=dict)
    """The texts that a function has itself, or gets from what it uses."""

    def find(self) -> list[HiddenSetter]:
        """Return these functions."""
        setters = (one for one in _functions(self.files_with(_WORDS), self._modules) if _sets(one.node))
        return [setter for one in setters if (setter := self._with_texts(one)) is not None]

    def files(self, setters: Iterable[HiddenSetter]) -> tuple[str, ...]:
        """Return the files of such functions, and those of all that use a name in parts."""
        files: dict[str, None] = {}
        known = set[AnyFunction]()
        waiting = list[FunctionFacts]()
        for one in setters:
            files |= dict.fromkeys(path.path for path in one.through)
            waiting += one.through if one.has_part else ()
        while waiting:
            one_of_them = waiting.pop()
            if one_of_them.node not in known:
                known.add(one_of_them.node)
                files[one_of_them.path] = None
                waiting += (one for one in self._users_of(one_of_them) if one.may_leave)
        return tuple(files)

    @property
    def _modules(self) -> Modules:
        return self.references.modules

    def _with_texts(self, setter: FunctionFacts) -> HiddenSetter | None:
        """Return a setter that a text may reach, None if none may."""
        waiting: list[tuple[FunctionFacts, tuple[FunctionFacts, ...]]] = [(setter, ())]
        known = {setter.node}
        for one, after in waiting:
            through = (one, *after)
            texts = self._texts_for(one, after[:1])
            if texts:
                return HiddenSetter(setter, through, all(map(is_part, texts)))
            for user in self._users_that_pass_texts(one):
                if user.node not in known:
                    known.add(user.node)
                    waiting.append((user, through))
        return None

    def _users_that_pass_texts(self, function: FunctionFacts) -> list[FunctionFacts]:
        if function.node not in self._passing:
            names = _names((function,))
            users = self._users_of(function)
            self._passing[function.node] = [one for one in users if passes_texts(one.node, names)]
        return self._passing[function.node]

    def _texts_for(self, function: FunctionFacts, after: Sequence[FunctionFacts]) -> frozenset[str]:
        """Return the texts that a function may use as names, or pass on to the function after it."""
        if function.node not in self._texts:
            self._texts[function.node] = self._own_texts(function)
        if passes_keywords(function.node, _names(after)):
            return self._texts[function.node] | {SCOPE}
        return self._texts[function.node]

    def _own_texts(self, function: FunctionFacts) -> frozenset[str]:
        module = self._modules.read(function.path)
        texts = texts_of(function.node)
        if module is not None:
            texts |= self._texts_behind(function.node, module, _MOST_STEPS)
            texts |= _texts_at_top(module, _names((function,)))
        if function.inside is not None:
            texts |= frozenset[str]().union(*(texts_of(one) for one in _without_methods(function.inside)))
        return texts

    def _texts_behind(self, node: ast.AST, module: Module, depth: int) -> frozenset[str]:
        """Return the texts in the code that gives values to other code."""
        texts = frozenset[str]()
        for used, inner in self.references.of(node, module).code if depth else ():
            if not isinstance(used, ast.ClassDef) and used is not node and gives_values(used):
                texts |= texts_of(used) | self._texts_behind(used, inner, depth - 1)
        return texts

    def _users_of(self, function: FunctionFacts) -> list[FunctionFacts]:
        """Return the functions that use a function."""
        spelled = {*function.spelled, *([function.inside] if _is_special(function) else [])}
        possible = (one for name in _names((function,)) for one in self._with_word(name))
        return [one for one in possible if not used_by(one, self.references).isdisjoint(spelled)]

    def _with_word(self, name: str) -> list[FunctionFacts]:
        if name not in self._users:
            functions = _functions(self.files_with([name]), self._modules)
            self._users[name] = [one for one in functions if name in one.words]
        return self._users[name]


def _is_special(function: FunctionFacts) -> bool:
    return function.inside is not None and function.node.name.startswith("__")


def _names(functions: Iterable[FunctionFacts]) -> list[str]:
    """Return the names by which code calls functions: that of its class for a method that makes an object."""
    return sorted({one.inside.name if one.inside and _is_special(one) else one.node.name for one in functions})


def _functions(paths: Iterable[str], modules: Modules) -> Iterator[FunctionFacts]:
    for path in paths:
        yield from () if is_test(path) else facts_of(modules.read(path))


@lru_cache(maxsize=65536)
def _sets(node: AnyFunction) -> bool:
    return any(map(sets_by_computed_name, ast.walk(node)))


def _without_methods(node: ast.ClassDef) -> Iterator[ast.stmt]:
    """Yield the statements of a class that are no methods, and the methods that set attributes of its objects."""
    for one in node.body:
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)) or one.name in ("__init__", "__post_init__"):
            yield one


def _texts_at_top(module: Module, names: Collection[str]) -> frozenset[str]:
    """Return the texts in the statements of a module, outside its functions, that name some functions."""
    texts = frozenset[str]()
    for statement in module.tree.body:
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and any(
            isinstance(part, ast.Name) and part.id in names for part in ast.walk(statement)
        ):
            texts |= texts_of(statement)
    return texts
