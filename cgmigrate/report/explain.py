"""A rule as a person reads it in a terminal."""

from __future__ import annotations

import textwrap

from cgmigrate.rules import Rule
from cgmigrate.settings import NEWEST, OLDEST


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
    # Its finding and its fix are worked out in code: the examples, which are tests, tell.
    return any("after" in e for e in rule.examples), any("unsafe-after" in e for e in rule.examples)


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
        lines.append("Nothing is rewritten." if example.get("reported", True) else "Nothing is reported.")
    return lines


def _indented(text: str) -> list[str]:
    return textwrap.indent(text.rstrip("\n"), "    ").split("\n")
