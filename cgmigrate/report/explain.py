"""A rule as a person reads it in a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from cgmigrate.lint.rules import Rule
from cgmigrate.megatron.releases import NEWEST, OLDEST


def rule_text(rule: Rule) -> str:
    """Return the rule: what it says, since when, why, its examples and sources."""
    parts = [f"{rule.id} {rule.name}", "", rule.summary]
    facts = [f"Severity: {rule.severity}.", since_in_words(rule), f"Fix: {fix_in_words(rule)}"]
    parts += ["", " ".join(facts), "", rule.explanation.strip()]
    for example in rule.examples:
        parts += ["", *_example(example)]
    parts += ["", "Sources:", *(f"  - {source}" for source in rule.sources)]
    return "\n".join(parts) + "\n"


def since_in_words(rule: Rule) -> str:
    """From which release of megatron-core the rule holds, and from which there is a replacement."""
    if rule.deprecated_in == OLDEST:
        return f"Holds for every release ({OLDEST} to {NEWEST})."
    since = f"Deprecated in megatron-core {rule.deprecated_in}"
    return (
        f"{since}; the replacement is there since {rule.available_in}." if rule.available_in > OLDEST else f"{since}."
    )


def fix_in_words(rule: Rule) -> str:
    """Whether and when the rule's fix is applied."""
    safe, unsafe = _kinds_of_fix(rule)
    if safe:
        rest = " (some cases only with --unsafe-fixes)" if unsafe else ""
        return f"applied where the same graphs are captured before and after{rest}."
    return "with --unsafe-fixes." if unsafe else "none; it needs a person's decision."


def _kinds_of_fix(rule: Rule) -> tuple[bool, bool]:
    """Whether the rule has fixes that are safe, and such that are not."""
    if rule.cases:
        fixes = [case.fix for case in rule.cases if case.fix]
        return any(not fix.unsafe for fix in fixes), any(fix.unsafe for fix in fixes)
    # Its diagnostic and its fix are worked out in code; the examples, which are tests, show the kinds of fix.
    reported = [example for example in rule.examples if example.get("reported", True)]
    return any("after" in example for example in reported), any("unsafe-after" in example for example in reported)


def rule_markdown(rule: Rule) -> str:
    """The rule as `rule_text` tells it, for a reader that shows Markdown."""
    parts = [f"**{rule.summary}**", f"Severity: {rule.severity}. Fix: {fix_in_words(rule)}", rule.explanation.strip()]
    for example in rule.examples:
        for told, code in _blocks(example):
            parts += [told, f"```{example['syntax']}\n{code.rstrip()}\n```"] if code else [told]
    parts.append("\n".join(["Sources:", "", *(f"- {source}" for source in rule.sources)]))
    return "\n\n".join(parts) + "\n"


def _example(example: Mapping[str, Any]) -> list[str]:
    return [line for told, code in _blocks(example) for line in ([told, *_indented(code)] if code else [told])]


def _blocks(example: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is said of each text of an example, and the text."""
    releases = "".join(f" {word} {example[word]}" for word in ("from", "to") if word in example)
    why = f" ({example['why']})" if "why" in example else ""
    before = (f"Before{releases}{why}:", example["before"])
    if not example.get("reported", True):
        others = [("After the fixes of other rules:", example["after"])] if "after" in example else []
        return [before, ("This rule reports nothing.", ""), *others]
    if "after" in example:
        return [before, ("After:", example["after"])]
    if "unsafe-after" in example:
        return [before, ("After, with --unsafe-fixes:", example["unsafe-after"])]
    return [before, ("Nothing is rewritten.", "")]


def _indented(text: str) -> list[str]:
    return textwrap.indent(text.rstrip("\n"), "    ").split("\n")
