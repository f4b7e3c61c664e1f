"""Rules that migrate a deprecated setting as the catalogue says: ``fix: {migrate: old_name}``.

The catalogue has the replacement, the values and the releases, so such a rule needs no conditions and no messages.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cgmigrate.lint.fixes import shown
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.gone import GoneSetting, gone_names
from cgmigrate.megatron.releases import KNOWN, Release
from cgmigrate.megatron.rule_data import RuleError, text_of
from cgmigrate.megatron.setting import Setting
from cgmigrate.megatron.tables import Accepted, load

# --- defaults that are kept -----------------------------------------------------------------------

_OF_PROGRAM = "the program may have defaults of its own (`extra_args_provider`, `set_defaults`)"


def with_kept_default(data: Mapping[str, Any], setting: Setting, catalogue: Catalogue, path: str) -> Mapping[str, Any]:
    """Return the conditions, the message and the fix of a rule whose fix writes the default of before.

    Raises RuleError if the default is the same in all releases, or a class of those that rely on it has no such field.
    """
    of_command_line = data["when"].get("reader") == "command-line"
    known = [(release, _accepted(setting, release, of_command_line)) for release in KNOWN]
    changes = [
        (release, old, new)
        for (_, old), (release, new) in itertools.pairwise(known)
        if old and new and _default(old) != _default(new)
    ]
    if not changes:
        raise RuleError(f"{path}: keep-default: the default of {setting.name} is the same in all releases")
    release, old, new = changes[-1]
    owners = {name: catalogue[name].owner for name in data["fields"]} if not of_command_line else {}
    for name, owner in owners.items():
        if load().field(owner, setting.name, release) is None:
            raise RuleError(f"{path}: keep-default: {name} is a field of {owner}, which has no {setting.name}")
    fix = {key: value for key, value in data["fix"].items() if key != "keep-default"}
    own = data["when"]
    # Some of the settings that rely on it have to be there: the default of an object without them is another one's.
    relying = [{name: {"written": True}} for name in data["fields"] if name not in own]
    anchored = {"any-of": relying} if len(relying) == len(data["fields"]) else {}
    return {
        "since": str(release),
        "when": {**own, **anchored, setting.name: {"in": [None], "default": True}, "source-before": str(release)},
        "message": f"megatron-core {release} changes the default of `{{{setting.name}}}` "
        f"from {_shown(old)} to {_shown(new)}, and it is not written",
        "help": f"write `{{{setting.name}}}`; `cgmigrate upgrade --keep-defaults` writes {_shown(old)}",
        "fix": {
            **fix,
            **({"unsafe": _OF_PROGRAM} if of_command_line else {}),
            "keeps-default": True,
            "set": {setting.name: _written(old.default, of_command_line)},
        },
    }


def _accepted(setting: Setting, release: Release, of_command_line: bool) -> Accepted | None:
    """Return what a release accepts as this setting: on the command line, or in its class."""
    if not of_command_line:
        return load().field(setting.owner, setting.name, release)
    flags = load().flags(release).values()
    return next((flag for flag in flags if flag.dest == setting.name), None)


def _written(default: object, of_command_line: bool) -> object:
    """Return a default as it is read from a file: the items of a list on a command line are words."""
    return list(map(str, default)) if of_command_line and isinstance(default, list) else default


def _default(accepted: Accepted) -> tuple[str, str]:
    # True is not 1.
    return repr(accepted.default), accepted.expression


def _shown(accepted: Accepted) -> str:
    return accepted.expression or shown(accepted.default)


# --- migrations ------------------------------------------------------------


def expanded(data: Mapping[str, Any], catalogue: Catalogue, path: str) -> Mapping[str, Any]:
    """Return the content of a rule file in which each ``migrate`` is written out. Raises RuleError."""
    if data.get("gone"):
        return {**data, **_of_gone_names(catalogue, Path(path))}
    if cases := data.get("cases"):
        return {**data, "cases": [_with_rename(case, catalogue, path) for case in cases]}
    if name := data.get("fix", {}).get("keep-default"):
        return {**data, **with_kept_default(data, catalogue[name], catalogue, path)}
    old_name = data.get("fix", {}).get("migrate")
    if old_name is None:
        return data
    old = catalogue[old_name]
    new = _replacement(old, catalogue, path)
    whole = {
        "fields": [old.name],
        "since": str(old.deprecated_in),
        "replacement-available-in": str(new.since),
        "help": f"write `{new.name}` with the value that is meant, and delete `{old.name}`",
        "cases": _cases(_with_rename(data, catalogue, path), old, new, catalogue.older_names(new.name)),
    }
    return {**whole, **{key: value for key, value in data.items() if key not in ("fix", "when")}}


def _of_gone_names(catalogue: Catalogue, path: Path) -> Mapping[str, Any]:
    """Return the fields and cases of a rule about every name that is gone, and that no other rule beside it has."""
    others = "\n".join(text_of(one) for one in sorted(path.parent.glob("*.yaml")) if one != path)
    known = set(re.findall(r"\w+", others))
    every = [one for one in gone_names() if catalogue.get(one.setting.name) == one.setting]
    every = [one for one in every if one.setting.name not in known]
    return {
        "fields": [one.setting.name for one in every],
        "cases": [case for one in every for case in _cases_of_gone(one)],
    }


def _cases_of_gone(one: GoneSetting) -> Iterator[Mapping[str, Any]]:
    name = one.setting.name
    for reader, release in one.since.items():
        since = {"reader": reader, "source-before": str(release), "target-since": str(release)}
        near = f"; `{one.nearest}` is new there" if one.nearest else ""
        yield {
            "when": {**since, name: {"written": True}},
            "stage": "config",
            "message": f"megatron-core {release} has no `{{{name}}}`{near}",
        }


def _cases(data: Mapping[str, Any], old: Setting, new: Setting, replaced: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the cases of a rule that migrates a setting: beside its replacement or another old name, and alone.

    ``replaced`` are all settings that have the same replacement.
    """
    since = f"`{{{old.name}}}` is deprecated since megatron-core {old.deprecated_in}"
    if old.deprecated_in is not None and old.is_gone_in(old.deprecated_in):
        since = f"megatron-core {old.deprecated_in} has no `{{{old.name}}}`"
    own = data.get("when", {})
    beside_other = [
        {
            "when": {**own, old.name: {"written": True}, other: {"written": True}},
            "message": f"{since}, and `{{{new.name}}}` replaces both it and `{{{other}}}`",
            "decide": f"write the value that is meant as `{{{new.name}}}`, and delete the others",
        }
        for other in replaced
        if other != old.name
    ]
    return [
        *beside_other,
        {
            "when": {**own, old.name: {"written": True}, new.name: {"written": True}},
            "message": f"{since}, and `{{{new.name}}}` that replaces it is written as well",
            "decide": f"keep the value that is meant as `{{{new.name}}}`, and delete `{{{old.name}}}`",
        },
        {
            "when": {**own, old.name: {"written": True}},
            "message": data.get("message", f"{since}; `{{{new.name}}}` replaces it"),
            "fix": data["fix"],
        },
    ]


def _with_rename(data: Mapping[str, Any], catalogue: Catalogue, path: str) -> Mapping[str, Any]:
    fix = dict(data.get("fix", {}))
    name = fix.pop("migrate", None)
    if name is None:
        return data
    if name in fix.get("rename", {}):
        raise RuleError(f"{path}: `migrate` renames {name} as the catalogue says; delete it from `rename`")
    old = catalogue[name]
    to = {"to": _replacement(old, catalogue, path).name, "values": old.values}
    return {**data, "fix": {**fix, "rename": {**fix.get("rename", {}), name: to}}}


def _replacement(old: Setting, catalogue: Catalogue, path: str) -> Setting:
    if len(old.replaced_by) != 1:
        count, instead = "several replacements", "`when` with `set` and `remove`, for each value,"
        if not old.replaced_by:
            count, instead = "no replacement", "`when` with `remove`"
        raise RuleError(f"{path}: {old.name} has {count} in the catalogue; write {instead} in place of `migrate`")
    return catalogue[old.replaced_by[0]]
