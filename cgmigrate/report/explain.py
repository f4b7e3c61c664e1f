"""A rule as a person reads it in a terminal."""

from __future__ import annotations

import textwrap

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


def _example(example: object) -> list[str]:
    assert isinstance(example, dict)
    releases = "".join(f" {word} {example[word]}" for word in ("from", "to") if word in example)
    why = f" ({example['why']})" if "why" in example else ""
    lines = [f"Before{releases}{why}:", *_indented(example["before"])]
    if "after" in example:
        lines += ["After:", *_indented(example["after"])]
    elif "unsafe-after" in example:
        lines += ["After, with --unsafe-fixes:", *_indented(example["unsafe-after"])]
    else:
        lines.append("Nothing is rewritten.")
    return lines


def _indented(text: str) -> list[str]:
    return textwrap.indent(text.rstrip("\n"), "    ").split("\n")


def rule_markdown(rule: Rule) -> str:
    """The rule as `rule_text` tells it, for a reader that shows Markdown."""
    parts = [f"**{rule.summary}**", f"Severity: {rule.severity}. Fix: {fix_in_words(rule)}", rule.explanation.strip()]
    for example in rule.examples:
        first, *rest = _example(example)
        block = "\n".join([first, "", *rest])
        for told in ("After:", "After, with --unsafe-fixes:", "Nothing is rewritten."):
            block = block.replace(f"\n{told}", f"\n\n{told}\n")
        parts.append(block.rstrip("\n"))
    parts.append("\n".join(["Sources:", "", *(f"- {source}" for source in rule.sources)]))
    return "\n\n".join(parts) + "\n"
