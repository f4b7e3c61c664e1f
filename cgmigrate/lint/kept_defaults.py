"""Rules about a default that a release changed: ``fix: {keep-default: name}``.

The tables have the releases and both values, so such a rule selects those who rely on the default.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from cgmigrate.lint.fixes import shown
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.releases import KNOWN, Release
from cgmigrate.megatron.rule_data import RuleError
from cgmigrate.megatron.setting import Setting
from cgmigrate.megatron.tables import Accepted, load

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
