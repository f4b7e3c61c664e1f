"""What code of Megatron-LM releases no longer have as it was: names of modules, and parameters of functions.

The table is generated from the tags of Megatron-LM (``scripts/code_tables.py``) and kept in ``rules/code.json``, which
is read when it is first needed.
"""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from cgmigrate.megatron.gone import gone_fields
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import rules_folder
from cgmigrate.megatron.tables import release_of


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a function: ``positional`` and ``named`` in order, ``optional`` those with a default.

    ``open_list`` and ``open_names`` say that it takes any further arguments.
    """

    positional: tuple[str, ...]
    named: tuple[str, ...]
    optional: frozenset[str]
    open_list: bool = False
    open_names: bool = False

    @classmethod
    def of(cls, arguments: ast.arguments, *, is_method: bool = False) -> Parameters:
        """Return the parameters of a definition; of a method without its object."""
        positional = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        defaults = positional[len(positional) - len(arguments.defaults) :]
        named = [one.arg for one in arguments.kwonlyargs]
        defaults += [name for name, one in zip(named, arguments.kw_defaults, strict=True) if one is not None]
        positional = positional[1:] if is_method else positional
        is_open = arguments.vararg is not None, arguments.kwarg is not None
        return cls(tuple(positional), tuple(named), frozenset(defaults), *is_open)

    @property
    def names(self) -> frozenset[str]:
        """All names that a call can use."""
        return frozenset((*self.positional, *self.named))

    @classmethod
    def read(cls, text: str) -> Parameters:
        """Return the parameters that `str` gave."""
        return cls.of(ast.parse(f"def f({text}): ...").body[0].args)  # type: ignore[attr-defined]

    def __str__(self) -> str:
        def shown(names: tuple[str, ...]) -> list[str]:
            return [f"{name}=0" if name in self.optional else name for name in names]

        rest = ["*_"] if self.open_list else ["*"] if self.named else []
        return ", ".join([*shown(self.positional), *rest, *shown(self.named), *(["**__"] if self.open_names else [])])

    @property
    def is_open(self) -> bool:
        """Whether it takes arguments that it does not name."""
        return self.open_list or self.open_names

    def without(self, positional: int, names: frozenset[str]) -> Parameters:
        """Return what a call can still pass where the first parameters, and those of some names, have values."""
        return replace(self, positional=self.positional[positional:], optional=self.optional | names)

    def accepts_all_of(self, before: Parameters) -> bool:
        """Return whether each call with the parameters of before means the same."""
        calls = [CallShape(len(before.positional), frozenset(before.named))]
        calls += [CallShape(count, frozenset()) for count in range(len(before.positional))]
        calls += [CallShape(0, frozenset((*before.positional, *before.named)))]
        # One argument more than its parameters, where it takes any.
        calls += [CallShape(len(before.positional) + 1, frozenset(before.named))] if before.open_list else []
        calls += [CallShape(0, frozenset((*before.positional, *before.named, "_")))] if before.open_names else []
        right = [call for call in calls if not call.mismatch(before)]
        return not any(call.mismatch(self) or call.moved(before, self) for call in right)


@dataclass(frozen=True, slots=True)
class CallShape:
    """The arguments of a call: how many by position, the names of the others, and whether there may be more."""

    positional: int
    names: frozenset[str]
    is_open: bool = False

    def mismatch(self, after: Parameters) -> str:
        """Return why a function fails with the call; empty where it does not, as far as its arguments are shown."""
        if twice := sorted(self.names.intersection(after.positional[: self.positional])):
            return f"gets `{twice[0]}` twice"
        if not after.open_names and (unknown := sorted(self.names - after.names)):
            return f"has no parameter `{'`, `'.join(unknown)}`"
        if not after.open_list and self.positional > len(after.positional):
            return f"takes {len(after.positional)} positional arguments, and {self.positional} are passed"
        passed = {*after.positional[: self.positional], *self.names}
        required = [name for name in (*after.positional, *after.named) if name not in after.optional | passed]
        if required and not self.is_open:
            return f"needs `{required[0]}`"
        return ""

    def moved(self, before: Parameters, after: Parameters) -> str:
        """Return which argument by position is taken for another one; empty for none.

        A parameter whose new name shares a word with the old one is taken for the same.
        """
        pairs = zip(before.positional[: self.positional], after.positional, strict=False)
        for number, (old, new) in enumerate(pairs, 1):
            is_elsewhere = old in after.names or new in before.positional
            if old != new and (is_elsewhere or not _share_a_word(old, new)):
                return f"takes `{new}` as argument {number}, where `{old}` was"
        return ""


def _share_a_word(old: str, new: str) -> bool:
    """Return whether two names have a word in common, or one that begins with the other's: `query` and `q`."""
    pairs = ((one, other) for one in old.strip("_").split("_") for other in new.strip("_").split("_"))
    return any(one.startswith(other) or other.startswith(one) for one, other in pairs)


@dataclass(frozen=True, slots=True)
class CallProblem:
    """A call that a function does not take from release ``since`` on, up to the one that takes it again, if one does.

    ``is_silent`` says that the function takes a wrong value instead of raising an error.
    """

    since: Release
    until: Release | None
    why: str
    is_silent: bool


@dataclass(frozen=True, slots=True)
class GoneName:
    """A name of a module that releases have no longer: ``since`` is the first one without it.

    ``module`` is the one that defines such a name there, empty if there are none or several. ``is_same`` is true for
    the same object, which the old module only passed on, false for a definition of the same text, None for another one.
    """

    since: Release
    module: str = ""
    is_same: bool | None = None


@dataclass(frozen=True, slots=True)
class CodeTable:
    """The table of all releases; ``aliases`` are other names of modules, such as ``megatron.core.mpu``.

    ``packages`` are the releases of packages that are built on megatron-core, by its own.
    """

    packages: Mapping[str, Mapping[str, str]]
    aliases: Mapping[str, str]
    gone: Mapping[str, Mapping[str, list[object]]]
    parameters: Mapping[str, Mapping[str, str]]
    callbacks: Mapping[str, Mapping[str, Mapping[str, list[Any]]]]
    """By function and parameter, how a release calls what it gets there, and the position of the parameter."""
    overrides: Mapping[str, Any]
    """By class and method, the parameters that each release added to the method; or another class with the same."""
    weights: Mapping[str, Sequence[str]]
    """Part of the names of weights → one above it, the first release without it, and what is there instead."""

    def release_words(self, module: str, release: Release) -> str:
        """Return the name and the release of the package that has a module: ``Megatron-Bridge 0.4``."""
        own = next((rows for package, rows in self.packages.items() if f"{module}.".startswith(f"{package}.")), None)
        return f"Megatron-Bridge {own[str(release)]}" if own else f"megatron-core {release}"

    def gone_name(self, module: str, name: str) -> GoneName | None:
        """Return what became of a name that a module had; None if it still has it, or never had it."""
        names = self.gone.get(self.aliases.get(module, module), {})
        row = names.get(name) or names.get("")
        if row is None:
            return None
        since, *place = row
        return GoneName(release_of(str(since)), *place)  # type: ignore[arg-type]

    def gone_module(self, module: str, since: Release) -> str:
        """Return the message that a release has a module no longer."""
        return f"{self.release_words(module, since)} has no module `{module}`"

    def gone_names(self, module: str, names: Mapping[str, GoneName], since: Release) -> str:
        """Return the message that a release has names of a module no longer, and where such names are there."""
        places: dict[str, list[str]] = {}
        for name, one in names.items():
            now = f", which `{one.module}` has" if one.module else ""
            if one.module and one.is_same is None:
                now = f" (another one is in `{one.module}`)"
            places.setdefault(now, []).append(f"`{name}`")
        parts = [" and ".join(every) + now for now, every in places.items()]
        return f"`{module}` of {self.release_words(module, since)} has no {'; and no '.join(parts)}"

    def is_row(self, module: str, name: str) -> bool:
        """Return whether a name of a module is gone by itself, and not with its module."""
        return name in self.gone.get(self.aliases.get(module, module), {})

    def added(self, class_name: str, method: str, taken: Parameters) -> Iterator[tuple[Release, str]]:
        """Yield each release whose method of a class has parameters that an override does not take, and their names."""
        row = self.overrides.get(self._home(class_name), {})
        row = self.overrides[row] if isinstance(row, str) else row
        for release, names in row.get(method, {}).items():
            missing = [name for name in names if name not in taken.names]
            if missing and not taken.open_names:
                yield release_of(release), "`, `".join(missing)

    def parameter_gone(self, name: str, parameter: str) -> str:
        """Return the last release in which functions of a name lost a parameter; empty where none did."""
        since = ""
        for function, history in self.parameters.items():
            if function.rpartition(".")[2] == name:
                forms = [(release, Parameters.read(text)) for release, text in history.items()]
                for (_, before), (release, after) in itertools.pairwise(forms):
                    since = release if parameter in before.names - after.names else since
        return since

    def _home(self, function: str) -> str:
        """Return the full name of a function; of one that moved, that of its new place."""
        module, _, name = function.rpartition(".")
        module = self.aliases.get(module, module)
        gone = self.gone_name(module, name)
        return f"{gone.module if gone is not None and gone.is_same is not None else module}.{name}"

    def _history(self, function: str) -> list[tuple[Release, Parameters]]:
        """Return the parameters of a function by release."""
        forms = self.parameters.get(self._home(function), {})
        return [(release_of(release), Parameters.read(text)) for release, text in forms.items()]

    def mismatches(self, function: str, call: CallShape) -> Iterator[CallProblem]:
        """Yield each release whose function does not take a call that the release before took."""
        forms = self._history(function)
        for (_, before), (release, after) in itertools.pairwise(forms):
            if call.mismatch(before):
                continue
            why = call.mismatch(after)
            if why or (moved := call.moved(before, after)):
                again = (
                    one
                    for one, form in forms
                    if one > release and not (form.is_open or call.mismatch(form) or call.moved(before, form))
                )
                yield CallProblem(release, next(again, None), why or moved, is_silent=not why)

    def refused_fields(self, name: str, arguments: Iterable[str]) -> Iterator[CallProblem]:
        """Yield the fields among the arguments of a class, by its full name, that some release has no longer."""
        package, _, owner = name.partition(".")[2].partition(".")
        owner = owner.rpartition(".")[2]
        known = f"{package}.{owner}" if package in ("training", "bridge") else owner
        for argument in sorted(arguments):
            if (since := gone_fields().get((known, argument))) is not None:
                yield CallProblem(since, None, f"has no parameter `{argument}`", is_silent=False)

    def refused_callbacks(self, function: str, argument: str | int, taken: Parameters) -> Iterator[tuple[Release, str]]:
        """Yield each release that calls what a function gets in a way in which it cannot be called, with the reason.

        ``argument`` is the name of the parameter, or its position; ``taken`` are the parameters of what it gets. The
        release before has to call it in a way that works.
        """
        for name, history in self.callbacks.get(self._home(function), {}).items():
            for (_, (position, before)), (release, (_, after)) in itertools.pairwise(history.items()):
                whys = [CallShape(count, frozenset(names)).mismatch(taken) for count, names in after]
                works = any(not CallShape(count, frozenset(names)).mismatch(taken) for count, names in before)
                if argument in (name, position) and works and all(whys):
                    yield release_of(release), whys[0]


@cache
def load() -> CodeTable:
    """Read the table that ships with cgmigrate."""
    data = json.loads((rules_folder() / "code.json").read_text("utf-8"))
    return CodeTable(**data)
