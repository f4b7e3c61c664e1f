"""A rule as a person reads it in a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from cgmigrate.rules import Rule
from cgmigrate.settings import OLDEST


def rule_text(rule: Rule) -> str:
    """Return the rule: what it says, since when, why, its examples and sources."""
    parts = [f"{rule.id} {rule.name}", "", rule.summary]
    facts = [f"Severity: {rule.severity}."]
    if rule.deprecated_in > OLDEST:
        facts.append(f"Deprecated in megatron-core {rule.deprecated_in}.")
    facts.append(f"Fix: {fix_in_words(rule)}")
    parts += ["", " ".join(facts), "", rule.explanation.strip()]
    for example in rule.examples:
        parts += ["", *_example(example)]
    parts += ["", "Sources:", *(f"  - {source}" for source in rule.sources)]
    return "\n".join(parts) + "\n"


def fix_in_words(rule: Rule) -> str:
    """Whether and when the rule's fix is applied."""
    fixes = [case.fix for case in rule.cases]
    if not any(fixes):
        return "none; it needs a person's decision."
    unsafe = [fix for fix in fixes if fix and fix.unsafe]
    if len(unsafe) == len([fix for fix in fixes if fix]):
        return "with --unsafe-fixes."
    rest = " (some cases only with --unsafe-fixes)" if unsafe else ""
    return f"applied where the same graphs are captured before and after{rest}."


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
    if "after" in example:
        return [before, ("After:", example["after"])]
    if "unsafe-after" in example:
        return [before, ("After, with --unsafe-fixes:", example["unsafe-after"])]
    return [before, ("Nothing is rewritten.", "")]


def _indented(text: str) -> list[str]:
    return textwrap.indent(text.rstrip("\n"), "    ").split("\n")
