"""A setting of the catalogue as text: what it is, which releases have it, and which rules name it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cgmigrate.lint.rules import Rule, RuleKind
from cgmigrate.megatron.catalogue import ABSENT, Catalogue, Setting
from cgmigrate.megatron.releases import OLDEST

_GENERAL = (RuleKind.FILE, RuleKind.READER)
"""Kinds of rules that are about every setting."""


def entry_text(setting: Setting, catalogue: Catalogue, rules: Mapping[str, Rule]) -> str:
    """Return a setting: its summary, kind, releases, replacement, values, rules and sources."""
    parts = [setting.name, "", setting.summary or f"Replaces {_names(catalogue.older_names(setting.name))}", ""]
    parts += [f"{label}: {text}" for label, text in _facts(setting) if text]
    parts += [f"Value: {_shown(old)} is {_new(new, setting)}" for old, new in setting.values]
    about = [rule for rule in rules.values() if setting.name in rule.fields and rule.kind not in _GENERAL]
    if about:
        parts += ["", "Rules:", *(f"  {rule.id}  {rule.summary}" for rule in about)]
    elif setting.deprecated:
        parts += ["", f"No rule reports it; one with `fix: {{migrate: {setting.name}}}` does."]
    if setting.sources:
        parts += ["", "Sources:", *(f"  - {source}" for source in setting.sources)]
    return "\n".join(parts) + "\n"


def releases_of(setting: Setting) -> str:
    """Return the releases that have a setting, and which one deprecates it."""
    since = f"since {setting.since}" if setting.since > OLDEST else f"{OLDEST} or earlier"
    until = f" to {setting.until}" if setting.until else ""
    by = f", replaced by {_names(setting.replaced_by)}" if setting.replaced_by else ""
    deprecated = f"; deprecated in {setting.deprecated_in}{by}" if setting.deprecated_in else ""
    return f"{since}{until}{deprecated}"


def _facts(setting: Setting) -> Iterable[tuple[str, str]]:
    choices = f": {', '.join(setting.choices)}" if setting.choices else ""
    return (
        ("Kind", f"{setting.kind}{choices}"),
        ("Field of", setting.owner),
        ("Flag", setting.no_flag or setting.flag),
        ("Releases", releases_of(setting)),
        ("Default", _shown(setting.default) if setting.default is not None else ""),
    )


def _new(value: object, setting: Setting) -> str:
    """Return a value of the replacement as a file has it."""
    name = _names(setting.replaced_by)
    return f"written without {name}" if value == ABSENT else f"{name}: {_shown(value)} today"


def _names(names: Iterable[str]) -> str:
    return " or ".join(names)


def _shown(value: object) -> str:
    from cgmigrate.lint.fixes import shown

    return shown(value)
