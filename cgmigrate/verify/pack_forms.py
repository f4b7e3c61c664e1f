"""The packs of a folder of rules: which forms of which settings have to mean the same, and in which releases."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from cgmigrate.lint.entry_rules import sample_values
from cgmigrate.lint.rules import Rule, RuleKind, load
from cgmigrate.megatron import catalogue
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.gone import ARGUMENTS
from cgmigrate.megatron.releases import KNOWN, NEWEST, Release
from cgmigrate.megatron.rule_data import RuleError, load_yaml, rules_folder, upgrade_rules
from cgmigrate.megatron.setting import Setting, flag_of
from cgmigrate.megatron.tables import SWITCHES
from cgmigrate.megatron.tables import load as load_tables
from cgmigrate.megatron.versions import parse_release
from cgmigrate.verify.packs import BRIDGE, MODULES, Build, Pack, Pair, Values


def packs_of(folder: str | None) -> tuple[Pack, ...]:
    """Return the packs of a folder of rules, by default of those that ship. Raises RuleError."""
    is_all = folder is None or Path(folder).resolve() == rules_folder().resolve()
    folders = [rules_folder(), Path(upgrade_rules())] if folder is None or is_all else [Path(folder)]
    extra = [one for one in folders if one != rules_folder()]
    settings = catalogue.load(tuple(map(str, extra)))
    rules = [rule for rule in load(extra).values() if {*Path(rule.path).parents[:2]} & {*folders}]
    entries = [one for one in settings.settings.values() if one.replaced_by and Path(one.path).stem == one.name]
    return (
        *(_of_entry(one, rules) for one in entries if Path(one.path).parent.parent in folders),
        # The rule that an entry brings along is judged with it.
        *(pack for rule in rules if Path(rule.path).parent in folders and (pack := _of_rule(rule, settings)).pairs),
    )


def _of_entry(old: Setting, rules: Iterable[Rule]) -> Pack:
    """Return the pack of an entry, which has no pairs if no release can build both forms."""
    why = ""
    if not _is_of_megatron(old.owner):
        why = f"only classes of Megatron and the container of Megatron-Bridge are built, not {old.owner}"
    elif old.deprecated_in is None or old.deprecated_in > NEWEST:
        why = f"megatron-core {old.deprecated_in} is not released"
    is_one = len(old.replaced_by) == 1
    pairs = () if why else tuple(_pairs(old, _written(old.name, rules)) if is_one else _pairs_of_several(old, rules))
    return Pack(old.name, old.path, pairs, old.values, old.deprecated_in, why)


def _pairs(old: Setting, written: Sequence[tuple[Any, Values]]) -> Iterator[Pair]:
    """Yield the pairs of each value of an entry: in releases that read both names, and in the two around the change."""
    new, first, until = old.replaced_by[0], old.deprecated_in or NEWEST, old.until or NEWEST
    last = max((release for release in KNOWN if old.since <= release <= until and release < first), default=None)
    for number, pair in enumerate(old.values or _samples(old, written)):
        fields = next((beside for value, beside in written if value == pair[0]), written[0][1] if written else {})
        place = ("values", number) if old.values else ("replaced-by",)
        made = partial(Pair, place=place, names=(old.name, new), values=pair)
        for release in KNOWN:
            # Before `deprecated-in` too: a release that reads the old name as the new one contradicts it.
            if release <= until and all(_has(old.owner, name, release) for name in (old.name, new)):
                builds = [Build(release, old.owner, {n: v}, fields) for n, v in zip((old.name, new), pair, strict=True)]
                yield made(*builds, proves=True)
        if last is not None:
            for owner, before, after in _forms(old, new, pair, (last, first)):
                builds = [Build(last, owner, before, fields), Build(first, owner, after, fields)]
                yield made(*builds, proves=before is after)


def _pairs_of_several(old: Setting, rules: Iterable[Rule]) -> Iterator[Pair]:
    """Yield the examples that write several settings in place of one, in each release that reads all of them."""
    releases = [one for one in KNOWN if all(_has(old.owner, name, one) for name in (old.name, *old.replaced_by))]
    for example in (one for rule in rules if rule.kind is RuleKind.DEPRECATED for one in rule.examples):
        for before, after in _forms_of(example, "after"):
            # Where another deprecated name goes too, its own pack says whether that is right.
            if before.get(old.name) is None or before.keys() - after.keys() != {old.name}:
                continue
            fields = {name: value for name, value in before.items() if after.get(name) == value}
            forms = [{name: one[name] for name in one if name not in fields} for one in (before, after)]
            for release in releases:
                both = (Build(release, old.owner, form, fields) for form in forms)
                yield Pair(next(both), next(both), ("replaced-by",), (old.name,), proves=True)


def _samples(old: Setting, written: Sequence[tuple[Any, Values]]) -> Iterator[tuple[Any, Any]]:
    """Yield values of examples and made-up ones, each with itself; a number also doubled."""
    values = [value for value, _ in written]
    values += sample_values(old) if old.is_flag or old.choices or not written else ()
    values += [2 * value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    yield from ((value, value) for value in dict.fromkeys(value for value in values if not isinstance(value, list)))


def _forms(
    old: Setting, new: str, values: tuple[Any, Any], releases: tuple[Release, Release]
) -> Iterator[tuple[str, Values, Values]]:
    """Yield who reads a value in two releases, and what is written for each: the same mapping where words stay."""
    flags, newer = (load_tables().flags(release) for release in releases)
    yield old.owner, {old.name: values[0]}, {new: values[1]}
    if old.flag in flags and flag_of(new) in newer:
        yield ARGUMENTS, {old.flag: values[0]}, {flag_of(new): values[1]}
    for flag, entry in flags.items():
        if entry.dest == old.name and flag in newer and newer[flag].dest != old.name:
            is_switch, is_on = entry.action in SWITCHES, values[0] is (entry.action != "StoreFalse")
            words = {flag: True if is_switch else values[0]} if is_on or not is_switch else {}
            yield ARGUMENTS, words, words


def _is_of_megatron(owner: str) -> bool:
    return owner in (*MODULES, BRIDGE) or owner.startswith("training.")


def _has(owner: str, name: str, release: Release) -> bool:
    tables = load_tables()
    return name in tables.attributes(release) if owner == ARGUMENTS else bool(tables.field(owner, name, release))


def _written(name: str, rules: Iterable[Rule]) -> list[tuple[Any, Values]]:
    """Return the values of a setting in examples, each with what is beside it: it may be valid only there."""
    examples = [example for rule in rules for example in rule.examples if name in example["before"]]
    shown = [one for example in examples for one in _mappings(example, "before") if name in one]
    return [(one[name], {key: value for key, value in one.items() if key != name}) for one in shown]


def _of_rule(rule: Rule, settings: Catalogue) -> Pack:
    """Return the pack of the examples of a rule; it has no pairs unless they delete a setting or write a default."""
    pairs: list[Pair] = []
    for number, example in enumerate(rule.examples):
        key = next((key for key in ("after", "unsafe-after") if key in example), "")
        for before, after in _forms_of(example, key) if "from" in example else ():
            pairs += _pairs_of_example(before, after, example["from"], settings, ("examples", number))
    return Pack(rule.id, rule.path, tuple(pairs))


def _pairs_of_example(
    before: Values, after: Values, source: str, settings: Catalogue, place: tuple[str | int, ...]
) -> Iterator[Pair]:
    """Yield an example in the last release that has the setting, where both forms are the same, and in the next."""
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    entries = [one for name in changed if (one := settings.get(settings.by_key.get(name, name)))]
    owners = {ARGUMENTS if name.startswith("-") else one.owner for name, one in zip(changed, entries, strict=False)}
    renamed = any(one.captures or one.replaced_by or settings.older_names(one.name) for one in entries)
    if len(entries) != len(changed) or len(owners) != 1 or renamed or not _is_of_megatron(min(owners)):
        return
    last = min(one.until or parse_release(source) for one in entries)
    forms = [{name: one[name] for name in changed if name in one} for one in (before, after)]
    fields = {name: value for name, value in before.items() if name not in changed}
    made = partial(Pair, place=place, names=tuple(one.name for one in entries))
    old = Build(last, min(owners), forms[0], fields)
    # The release before may not have what replaces the setting.
    both = [last] if all(_has(old.owner, one.name, last) for one in entries) else []
    for release in (*both, Release(last.major, last.minor + 1)):
        yield made(old, Build(release, old.owner, forms[1], fields), proves=release == last)


# --- what an example writes -----------------------------------------------------------------------------


def _forms_of(example: Mapping[str, Any], key: str) -> Iterator[tuple[Values, Values]]:
    """Return each mapping of an example before and after."""
    return zip(_mappings(example, "before"), _mappings(example, key), strict=False)


def _mappings(example: Mapping[str, Any], key: str) -> list[Values]:
    """Return the flags of a command line, the arguments of each call, or each mapping without those inside it.

    There are none in an example that shows a text with an error.
    """
    read = {"shell": _of_shell, "python": _of_python, "yaml": _of_yaml}.get(example["syntax"])
    try:
        return list(read(example[key])) if read and key in example else []
    except (RuleError, SyntaxError, ValueError):
        return []


def _of_shell(text: str) -> Iterator[Values]:
    flags: dict[str, Any] = {}
    for word in shlex.split(text):
        if word.startswith("--"):
            flags[word] = []
        elif flags:
            flags[[*flags][-1]].append(word)
    yield {flag: words or True for flag, words in flags.items()}


def _of_python(text: str) -> Iterator[Values]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            values = {one.arg: one.value for one in node.keywords if one.arg and isinstance(one.value, ast.Constant)}
            yield {name: value.value for name, value in values.items()}


def _of_yaml(text: str) -> Iterator[Values]:
    waiting = [load_yaml(text, "")]
    while waiting:
        if isinstance(one := waiting.pop(0), dict):
            waiting += one.values()
            yield {str(name): value for name, value in one.items() if not isinstance(value, dict)}
