"""A rule as text for a terminal, and as Markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from cgmigrate.lint.rule_tests import Tested
from cgmigrate.lint.rules import Rule, RuleKind
from cgmigrate.megatron.releases import NEWEST, OLDEST
from cgmigrate.text.plurals import counted


def rule_text(rule: Rule) -> str:
    """Return the rule: its summary, releases, explanation, examples and sources."""
    parts = [f"{rule.id} {rule.name}", "", rule.summary]
    facts = [f"Severity: {rule.severity}.", releases_in_words(rule), f"Fix: {fix_in_words(rule)}"]
    parts += ["", " ".join(facts), "", rule.explanation.strip()]
    for example in rule.examples:
        parts += ["", *_example(example)]
    parts += ["", "Sources:", *(f"  - {source}" for source in rule.sources)]
    return "\n".join(parts) + "\n"


def rule_line(rule: Rule) -> str:
    """Return the rule in one line: code, name and summary."""
    return f"{rule.id}  {rule.name:44} {rule.summary}{' (preview)' if rule.preview else ''}"


def releases_in_words(rule: Rule) -> str:
    """Return whether the rule is on, the targets that it concerns, and the release that has the replacement."""
    return f"{_preview(rule)}{_range(rule)}"


def _preview(rule: Rule) -> str:
    return "In preview: off without --preview, or `preview = true` in the configuration. " if rule.preview else ""


def _range(rule: Rule) -> str:
    if rule.since == OLDEST and rule.until is None:
        return f"Applies to every release ({OLDEST} to {NEWEST})."
    if rule.until is not None:
        return f"Applies to megatron-core {rule.since} to {rule.until}."
    about_names = rule.kind in (RuleKind.DEPRECATED, RuleKind.READER)
    since = f"{'Deprecated in' if about_names else 'Applies since'} megatron-core {rule.since}"
    return (
        f"{since}; the replacement is available since {rule.available_in}."
        if rule.available_in > OLDEST
        else f"{since}."
    )


def fix_in_words(rule: Rule) -> str:
    """Return whether and when the fix of the rule is applied."""
    safe, unsafe = _kinds_of_fix(rule)
    if safe:
        rest = " (some cases only with --unsafe-fixes)" if unsafe else ""
        return f"applied if the same graphs are captured before and after{rest}."
    return "with --unsafe-fixes." if unsafe else "none; the diagnostic shows what to write."


def _kinds_of_fix(rule: Rule) -> tuple[bool, bool]:
    """Return whether the rule has safe fixes, and whether it has unsafe ones."""
    fixes = [case.fix for case in rule.cases if case.fix]
    # A rule without cases makes its fix in code. Its examples, which are tested, show which fixes there are.
    reported = [example for example in rule.examples if example.get("reported", True)]
    safe = any(not fix.unsafe for fix in fixes) or any("after" in example for example in reported)
    return safe, any(fix.unsafe for fix in fixes) or any("unsafe-after" in example for example in reported)


def rule_markdown(rule: Rule) -> str:
    """Return the content of `rule_text` as Markdown."""
    parts = [f"**{rule.summary}**", f"Severity: {rule.severity}. Fix: {fix_in_words(rule)}", rule.explanation.strip()]
    for example in rule.examples:
        for title, code in _blocks(example):
            parts += [title, f"```{example['syntax']}\n{code.rstrip()}\n```"] if code else [title]
    parts.append("\n".join(["Sources:", "", *(f"- {source}" for source in rule.sources)]))
    return "\n\n".join(parts) + "\n"


def _example(example: Mapping[str, Any]) -> list[str]:
    return [line for title, code in _blocks(example) for line in ([title, *_indented(code)] if code else [title])]


def _blocks(example: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the texts of an example, each with its title; a title without text says that nothing changes."""
    releases = "".join(f" {word} {example[word]}" for word in ("from", "to") if word in example)
    why = f" ({example['why']})" if "why" in example else ""
    before = (f"Before{',' if releases else ''}{releases}{why}{file_in_words(example)}:", example["before"])
    files = [before, *((f"`{name}`:", text) for name, text in example.get("beside", {}).items())]
    if not example.get("reported", True):
        others = [("After the fixes of other rules:", example["after"])] if "after" in example else []
        return [*files, ("This rule reports nothing.", ""), *others]
    if "after" in example:
        return [*files, ("After:", example["after"])]
    if "unsafe-after" in example:
        return [*files, ("After, with --unsafe-fixes:", example["unsafe-after"])]
    return [*files, ("Nothing is rewritten.", "")]


def file_in_words(example: Mapping[str, Any]) -> str:
    """Return what an example says of its file besides the text, empty if it says nothing."""
    parts = [f"`{text}` {times:,} times" for text, times in example.get("repeat", {}).items()]
    parts += [f"in {example['encoding']}"] if "encoding" in example else []
    parts += [f"{example['size']:,} bytes, filled up with `#`"] if "size" in example else []
    parts += [f"next to `{name}`" for name in example.get("beside", {})]
    return "".join(f", {part}" for part in parts)


def _indented(text: str) -> list[str]:
    return textwrap.indent(text.rstrip("\n"), "    ").split("\n")


# --- tests of rules -------------------------------------------------------------------------------


def tested_text(tested: Tested) -> str:
    """Return one line for a rule that passes, and all failures of one that fails."""
    if not tested.failures:
        return f"ok    {tested.title} ({counted(tested.examples, 'example')})\n"
    lines = [f"FAIL  {tested.title}", *(f"  {failure}" for failure in tested.failures)]
    return "\n".join(line.replace("\n", "\n  ") for line in lines) + "\n"


def totals(tested: Sequence[Tested]) -> str:
    """Return the last line: the number of rules and examples, and of failures."""
    rules, examples = counted(len(tested), "rule"), counted(sum(result.examples for result in tested), "example")
    failed = sum(bool(result.failures) for result in tested)
    outcome = f"{counted(failed, 'rule')} failed" if failed else "all pass"
    return f"Tested {rules}, {examples}: {outcome}."
