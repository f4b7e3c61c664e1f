"""Rules that migrate a deprecated setting as the catalogue says: ``fix: {migrate: old_name}``.

The catalogue has the replacement, the values and the releases, so such a rule needs no conditions and no messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cgmigrate.lint.kept_defaults import with_kept_default
from cgmigrate.megatron.catalogue import Catalogue, Setting
from cgmigrate.megatron.gone import GoneSetting, gone_names
from cgmigrate.megatron.rule_data import RuleError, text_of


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
