"""What `rules` and `explain` show, as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cgmigrate import __version__
from cgmigrate.megatron.releases import Release
from cgmigrate.report import readable
from cgmigrate.report.explain import fix_in_words
from cgmigrate.report.release_tables import histories, ranges
from cgmigrate.text.escaping import in_json

if TYPE_CHECKING:
    from cgmigrate.lint.objects import ExplainedFile, ExplainedObject, FileLine, SetOfObject, SettingOrigin
    from cgmigrate.lint.rules import Rule
    from cgmigrate.megatron.catalogue import Setting
    from cgmigrate.megatron.tables import Tables

VERSION = 1
"""It increases when a field is removed or changes its meaning, not when a field is added."""


def rules_document(rules: Iterable[Rule]) -> str:
    """Return a document with rules."""
    return _document(rules=[_rule(rule) for rule in rules])


def setting_document(name: str, setting: Setting | None, rules: Iterable[Rule], tables: Tables) -> str:
    """Return a document with what releases accept under a name, and its entry in the catalogue."""
    about = [rule.id for rule in rules if setting is not None and setting.name in rule.fields]
    entry = _setting(setting) if setting else None
    return _document(setting={"name": name, "catalogue": entry, "accepted": _accepted(name, tables), "rules": about})


def objects_document(file: ExplainedFile, objects: Iterable[ExplainedObject]) -> str:
    """Return a document with objects of a file."""
    return _document(path=readable(file.path), releases=file.releases, objects=[_object(one) for one in objects])


def _document(**content: Any) -> str:
    document = {"version": VERSION, "tool": {"name": "cgmigrate", "version": __version__}, **content}
    return in_json(json.dumps(document, indent=2, ensure_ascii=False)) + "\n"


# --- rules and settings ---------------------------------------------------------------------------


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "code": rule.id,
        **_fields(rule, "name", "kind", "severity", "preview", "summary"),
        "settings": list(rule.fields),
        **_fields(rule, "since", "until", "available_in"),
        "fix": fix_in_words(rule),
        "explanation": rule.explanation.strip(),
        "examples": [dict(example) for example in rule.examples],
        "sources": list(rule.sources),
    }


def _setting(setting: Setting) -> dict[str, Any]:
    return {
        **_fields(setting, "name", "summary", "kind", "choices"),
        "flag": setting.no_flag or setting.flag,
        **_fields(setting, "since", "until", "deprecated_in", "replaced_by", "sources"),
    }


def _fields(one: object, *names: str) -> dict[str, Any]:
    """Return fields under their own names; a release as text."""
    values = ((name, getattr(one, name)) for name in names)
    return {name: str(value) if isinstance(value, Release) else value for name, value in values}


def _accepted(name: str, tables: Tables) -> list[dict[str, Any]]:
    return [
        {
            "as": title,
            "releases": [
                {"from": str(one.first), "to": str(one.last), "accepted": dict(one.row) if one.row else None}
                for one in ranges(history, tables)
            ],
        }
        for title, history in histories(name, tables)
    ]


# --- objects of files -----------------------------------------------------------------------------


def _object(one: ExplainedObject) -> dict[str, Any]:
    source, target = one.releases
    return {
        "line": one.first.number,
        "end_line": one.last,
        "name": one.name,
        "owner": one.owner,
        "from": str(source),
        "to": str(target),
        "settings": [
            {**_origin(setting.origin), "overrides": [_origin(other) for other in setting.overrides]}
            for setting in one.settings
        ],
        "captures": [
            {"text": captures.text, "entry_points": [_line(line) for line in captures.entry_points]}
            for captures in one.captures
        ],
        "layers": list(one.layers),
        "advice": list(one.advice),
        "edit_set": _edit_set(one.edit_set) if one.edit_set else None,
        "diagnostics": [
            {"line": line, "rule": diagnostic.rule, "message": diagnostic.message}
            for line, diagnostic in one.diagnostics
        ],
    }


def _edit_set(edit_set: SetOfObject) -> dict[str, Any]:
    return {
        "id": edit_set.id,
        "safety": edit_set.applicability,
        "files": [readable(path) for path in edit_set.files],
        "members": [
            {
                **_line(one.line),
                "name": one.name,
                "writes": None if one.writes is None else list(one.writes),
                "fix": one.fix,
            }
            for one in edit_set.members
        ],
        "because": list(edit_set.because),
        "withheld": list(edit_set.withheld),
    }


def _origin(origin: SettingOrigin) -> dict[str, Any]:
    return {**_line(origin.line), "text": origin.text, "how": origin.how}


def _line(line: FileLine) -> dict[str, Any]:
    return {"path": readable(line.path), "line": line.number}
