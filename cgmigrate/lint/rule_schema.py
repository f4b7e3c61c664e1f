"""Checks of a rule beyond its form: the names of settings, and the placeholders of messages.

``megatron.data_schema`` compares the form with a schema.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from cgmigrate.lint.conditions import ANY_OF, PACKAGE, TESTS_OF_STATE
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.data_schema import line_of
from cgmigrate.megatron.releases import KNOWN
from cgmigrate.megatron.rule_data import RuleError

_PLACEHOLDER = re.compile(r"{([\w.]+)}")


_FILLED_IN = ("source", "target", "reason", "refuser", "ignored")


_Place: TypeAlias = "tuple[str | int, ...]"
"""Keys and positions that lead to a value of the file."""


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule file as data and as text, and the settings that it may name."""

    data: Mapping[str, Any]
    text: str
    path: str
    catalogue: Catalogue

    def check(self) -> None:
        """Check names and messages. Raises RuleError: file, line, what is there, what is expected."""
        for place, name in self._names():
            if name not in self.catalogue:
                where = ".".join(map(str, place))
                reason = f"{name!r} is not a setting of the catalogue{self._nearest(name)}"
                raise self._error(place, f"{where}: {reason}")
        for place, case in self._cases():
            for key in ("message", "decide", "help"):
                text = case.get(key, "")
                for one in text.values() if isinstance(text, Mapping) else (text,):
                    for name in _PLACEHOLDER.findall(one):
                        self._check_placeholder(name, case, (*place, key))
            self._check_release(case.get("fix", {}))

    def _check_placeholder(self, name: str, case: Mapping[str, Any], place: _Place) -> None:
        if name not in self.catalogue and name not in _FILLED_IN:
            names = ", ".join((*self.catalogue.settings, *_FILLED_IN))
            raise self._error(place, f"nothing fills in `{{{name}}}`; there are {names}")
        if name in ("reason", "refuser") and "rejected" not in case.get("when", {}):
            raise self._error(place, f"`{{{name}}}` quotes a refusal, so `when` must ask for `rejected`")

    def _check_release(self, fix: Mapping[str, Any]) -> None:
        """Check that a rule that deletes a name begins with the release that deprecates it, or no longer has it."""
        since = self.data.get("since", self.data.get("deprecated-in"))
        migrated = [fix["migrate"]] if "migrate" in fix and since else []
        subject = [*self.data.get("fields", ()), *migrated, ""][0]
        is_deleted = subject in (*fix.get("remove", ()), *fix.get("rename", ()), *migrated)
        if not is_deleted or self.data.get("kind") not in ("deprecated", "rejected"):
            return
        setting = self.catalogue[subject]
        first = setting.deprecated_in or (setting.until and KNOWN[KNOWN.index(setting.until) + 1])
        if first and since != str(first) and not setting.captures and not setting.is_of_other_package:
            said = f"not {since}" if since else f'write `since: "{first}"`'
            raise self._error(("since",), f"since: {subject} is deprecated or gone since {first}; {said}")

    def _nearest(self, name: str) -> str:
        known = [*self.catalogue.settings, *TESTS_OF_STATE, ANY_OF, PACKAGE]
        near = difflib.get_close_matches(name, known, n=1)
        return f"; did you mean {near[0]}?" if near else ""

    def _error(self, place: _Place, reason: str) -> RuleError:
        return RuleError(f"{self.path}:{line_of(self.text, place)}: {reason}")

    def _cases(self) -> Iterator[tuple[_Place, Mapping[str, Any]]]:
        cases = self.data.get("cases")
        yield from ((("cases", number), case) for number, case in enumerate(cases or ()))
        if cases is None:
            yield (), self.data

    def _names(self) -> Iterator[tuple[_Place, str]]:
        """Yield the names of settings, each with its place."""
        yield from ((("fields", number), name) for number, name in enumerate(self.data.get("fields", ())))
        for place, case in self._cases():
            for key in ("when", "unless"):
                yield from _names_of_condition((*place, key), case.get(key, {}))
            yield from _names_of_fix((*place, "fix"), case.get("fix", {}))


def _names_of_condition(place: _Place, when: Mapping[str, Any]) -> Iterator[tuple[_Place, str]]:
    for name, expected in when.items():
        if name == ANY_OF:
            for number, part in enumerate(expected):
                yield from _names_of_condition((*place, name, number), part)
        elif name not in TESTS_OF_STATE and name != PACKAGE:
            yield (*place, name), name


def _names_of_fix(place: _Place, fix: Mapping[str, Any]) -> Iterator[tuple[_Place, str]]:
    for key in ("set", "remove", "rename", "drop"):
        names = fix.get(key, ())
        yield from (((*place, key, number if key == "remove" else name), name) for number, name in enumerate(names))
    for old, new in fix.get("rename", {}).items():
        yield (((*place, "rename", old), new) if isinstance(new, str) else ((*place, "rename", old, "to"), new["to"]))
    for key in ("migrate", "keep-default"):
        if key in fix:
            yield (*place, key), fix[key]
