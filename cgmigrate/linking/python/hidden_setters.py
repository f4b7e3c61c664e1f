"""Functions that may set a setting by a name that they compute, also in files that name no setting.

Such a name is a text, whole or in parts: ``setattr(model, "cuda_graph_" + name, value)``. A function that no such text
may reach sets no setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.leading_code import FunctionFacts, facts_of
from cgmigrate.proof.flow.modules import Modules, is_test
from cgmigrate.linking.python.name_places import Places
from cgmigrate.linking.python.name_search import NameSearch
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.relevance import sets_by_computed_name
from cgmigrate.proof.flow.world import SETTINGS

_WORDS = ("setattr", "__setattr__", "__dict__", "vars", "exec")


@dataclass(frozen=True, slots=True)
class HiddenSetter:
    """A function that may set a setting by its name, and the functions that may pass it the name, up to its text."""

    function: FunctionFacts
    through: Sequence[FunctionFacts]
    has_part: bool
    """Whether the text is only a part of a name, so that its file names no setting."""


@dataclass
class HiddenSetters:
    """Finds the functions of a project that may set a setting by a name that they compute."""

    places: Places

    def find(self) -> list[HiddenSetter]:
        """Return these functions."""
        setters = (one for one in _functions(self.places.files_with(_WORDS), self._modules) if _sets(one.node))
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
                waiting += self._users_of(one_of_them)
        return tuple(files)

    def _users_of(self, function: FunctionFacts) -> Iterator[FunctionFacts]:
        for place, _ in self.places.users_of(function):
            if place.function is not None and place.function.may_leave:
                yield place.function

    def _with_texts(self, setter: FunctionFacts) -> HiddenSetter | None:
        """Return a setter that a text may reach, None if none may."""
        texts, through = NameSearch(self.places).find(setter)
        has_whole = any(name in text for name in SETTINGS for text in texts)
        return HiddenSetter(setter, through, not has_whole) if texts else None

    @property
    def _modules(self) -> Modules:
        return self.places.references.modules


def _functions(paths: Iterable[str], modules: Modules) -> Iterator[FunctionFacts]:
    for path in paths:
        yield from () if is_test(path) else facts_of(modules.read(path))


@lru_cache(maxsize=65536)
def _sets(node: AnyFunction) -> bool:
    return any(map(sets_by_computed_name, walk(node)))
