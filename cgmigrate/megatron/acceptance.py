"""Whether a release accepts a setting and its value, as the tables of releases and the catalogue say.

The tables are authoritative for a field or flag that they have in any release. A field of a class that they do not
have, or that only a fork of megatron-core has, is accepted in the releases that its entry in the catalogue names.
"""

from __future__ import annotations

from cgmigrate.megatron.catalogue import Setting
from cgmigrate.megatron.releases import KNOWN, NEWEST, Release
from cgmigrate.megatron.tables import Accepted, load


def refusal_of_setting(setting: Setting, value: object, release: Release, *, as_flag: bool) -> str:
    """Return why a release does not accept a setting with a value, empty if it does.

    ``as_flag`` says that it is written on a command line.
    """
    table = _flag if as_flag else _field
    name, owner = (setting.flag, "the command line") if as_flag else (setting.name, f"`{setting.owner}`")
    if not any(table(setting, known) for known in KNOWN):
        has = setting.since <= release and (setting.until is None or release <= setting.until)
        return "" if has else f"`{name}` exists since {setting.since}"
    accepted = table(setting, min(release, NEWEST))
    if accepted is None:
        return f"{owner} of megatron-core {release} has no `{name}`"
    if accepted.choices and isinstance(value, str) and value not in accepted.choices:
        choices = ", ".join(map(str, accepted.choices))
        return f"{owner} of megatron-core {release} accepts {choices} as `{name}`, and not {value}"
    return ""


def refusal_of_place(old: Setting, new: Setting, release: Release) -> str:
    """Return why a setting cannot be written where another one is, empty if it can."""
    if new.owner == old.owner or load().field(old.owner, new.name, release) is not None:
        return ""
    return f"`{new.name}` is a field of {new.owner}, and not of {old.owner}"


def _field(setting: Setting, release: Release) -> Accepted | None:
    return load().field(setting.owner, setting.name, release)


def _flag(setting: Setting, release: Release) -> Accepted | None:
    return load().flags(release).get(setting.flag)
