"""A page for each release of megatron-core: what it changed for configurations, command lines and code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from cgmigrate.lint.rules import Rule
from cgmigrate.megatron.code import CodeTable, Parameters
from cgmigrate.megatron.code import load as load_code
from cgmigrate.megatron.releases import KNOWN, Release
from cgmigrate.megatron.tables import Accepted, Tables, load

_NOTE = """\
From the tables of all releases: parsers, dataclasses and sources, not release notes. `cgmigrate upgrade --from {old} \
--to {new} .` shows which of it concerns your files. Every row is generated; `cgmigrate explain NAME` has all releases \
of a name.
"""
_MOST = 12
"""Names of a module that are listed; a module that is gone has many."""


def release_pages(rules: Mapping[str, Rule]) -> dict[str, str]:
    """Return the pages by release."""
    return {str(new): _page(old, new, rules) for old, new in pairwise(KNOWN)}


def _page(old: Release, new: Release, rules: Mapping[str, Rule]) -> str:
    tables, code = load(), load_code()
    own = [rule for rule in rules.values() if rule.since == new and rule.id.startswith("UPG")]
    sections = {
        "Rules": [f"[{rule.id}](../rules/{rule.id}.md): {rule.summary}" for rule in own],
        "Defaults that changed": list(_defaults(tables, old, new)),
        "Flags that are gone": _names(tables.flags(old).keys() - tables.flags(new).keys()),
        "Fields that are gone": list(_fields(tables, old, new)),
        "Choices that changed": list(_choices(tables, old, new)),
        "Names of modules that are gone": list(_gone(code, new)),
        "Functions and classes with other parameters": list(_parameters(code, new)),
        "New flags": _names(tables.flags(new).keys() - tables.flags(old).keys()),
        "New fields": list(_fields(tables, new, old)),
    }
    parts = [f"# megatron-core {new}\n", _NOTE.format(old=old, new=new)]
    for title, rows in sections.items():
        if rows:
            parts.append(f"## {title}\n\n" + "\n".join(f"- {row}" for row in rows) + "\n")
    return "\n".join(parts)


def _names(names: set[str]) -> list[str]:
    return [", ".join(f"`{name}`" for name in sorted(names))] if names else []


def _owners(tables: Tables) -> list[str]:
    return [owner for owner in tables.classes if not owner.startswith("bridge.")]


def _entries(tables: Tables, release: Release) -> dict[str, Accepted]:
    """Return flags and fields of a release, each field once: with the class that comes first."""
    entries, seen = dict(tables.flags(release)), set[str]()
    for owner in _owners(tables):
        for name, entry in tables.fields(owner, release).items():
            if name not in seen:
                seen.add(name)
                entries[f"{owner}.{name}"] = entry
    return entries


def _defaults(tables: Tables, old: Release, new: Release) -> Iterator[str]:
    before, after = _entries(tables, old), _entries(tables, new)
    for name in sorted(before.keys() & after.keys()):
        values = [entry.expression or repr(entry.default) for entry in (before[name], after[name])]
        if values[0] != values[1]:
            yield f"`{name}`: `{values[0]}`, now `{values[1]}`"


def _choices(tables: Tables, old: Release, new: Release) -> Iterator[str]:
    before, after = _entries(tables, old), _entries(tables, new)
    for name in sorted(before.keys() & after.keys()):
        lost = [one for one in before[name].choices if one is not None and one not in after[name].choices]
        if lost and after[name].choices:
            yield f"`{name}` no longer takes {', '.join(f'`{one}`' for one in lost)}"


def _fields(tables: Tables, having: Release, lacking: Release) -> Iterator[str]:
    """Yield the fields of each class that one release has and the other has not; a class that is new has none."""
    for owner in _owners(tables):
        both = tables.fields(owner, having), tables.fields(owner, lacking)
        if all(both) and (names := sorted(both[0].keys() - both[1].keys())):
            yield f"`{owner}`: {', '.join(f'`{name}`' for name in names)}"


def _gone(code: CodeTable, release: Release) -> Iterator[str]:
    for module, names in sorted(code.gone.items()):
        of_release = {name: one for name in names if (one := code.gone_name(module, name)) and one.since == release}
        parent = code.gone_name(module.rpartition(".")[0], "")
        if parent is not None and parent.since == release:
            continue
        if "" in of_release:
            yield f"`{module}`: the module"
            continue
        shown = [f"`{name}`" + (f" (`{one.module}`)" if one.is_same else "") for name, one in of_release.items()]
        more = f" and {len(shown) - _MOST} more" if len(shown) > _MOST else ""
        if shown:
            yield f"`{module}`: {', '.join(shown[:_MOST])}{more}"


def _parameters(code: CodeTable, release: Release) -> Iterator[str]:
    seen: set[Sequence[str]] = set()
    for function, history in sorted(code.parameters.items()):
        forms = list(history.items())
        for (_, before), (since, after) in pairwise(forms):
            row = (function.rpartition(".")[2], before, after)
            is_change = since == str(release) and not Parameters.read(after).accepts_all_of(Parameters.read(before))
            if is_change and row not in seen:
                seen.add(row)
                old, new = (
                    set(Parameters.read(one).positional + Parameters.read(one).named) for one in (before, after)
                )
                gone = ", ".join(f"`{name}`" for name in sorted(old - new))
                added = ", ".join(f"`{name}`" for name in sorted(new - old))
                parts = [
                    f"without {gone}" if gone else "",
                    f"with {added}" if added else "",
                    "" if gone or added else "another order",
                ]
                yield f"`{function}`: {'; '.join(filter(None, parts))}"
