"""A page a rule: what it says, why, how safe its fix is, and its examples before and after."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from rule_forms import Form, forms

from cgmigrate.lint.rules import Rule, RuleCase
from cgmigrate.megatron.releases import NEWEST, OLDEST
from cgmigrate.report.explain import file_in_words, fix_in_words, releases_in_words

GENERATED = "Generated from the rule's file by `docs/build.py`; change it there."
PROGRAMS = {
    "bridge": "Megatron-Bridge",
    "nemo-rl": "NeMo-RL",
    "nemo-rl-inference": "NeMo-RL",
    "nemo-rl-overrides": "NeMo-RL",
    "command-line": "Megatron-LM",
    "config": "megatron-core",
}
"""A reader or an ecosystem, and what its settings are of."""


def page(rule: Rule) -> str:
    """One rule's page."""
    parts = [f"# {rule.id}: {rule.name}", badges(rule), rule.summary + "."]
    parts.append(f"Severity: {rule.severity}. {releases_in_words(rule)}")
    if rule.cases:
        parts += ["## What it says", _bullets(_plain(case.message) for case in rule.cases)]
    parts += ["## Why", rule.explanation.strip(), "## Fix safety", *_safety(rule)]
    if rule.examples:
        parts.append("## Before and after")
    for number, example in enumerate(rule.examples, 1):
        parts += _example(number, example)
    for form in forms(rule):
        parts += [f"### The first example {form.title}", *_pair(*form.before_and_after)]
    parts += ["## Sources", _bullets(rule.sources), f"<!-- {GENERATED} -->"]
    return "\n\n".join(parts) + "\n"


# --- badges -----------------------------------------------------------------------------------------


def badges(rule: Rule) -> str:
    """Severity, releases, kind of fix and programs, each as a badge."""
    words = {
        "severity": str(rule.severity),
        "releases": releases(rule),
        "fix": applicability(rule),
        "programs": programs(rule),
        "preview": "preview" if rule.preview else "",
    }
    return " ".join(f'<span class="badge {kind}">{text}</span>' for kind, text in words.items() if text)


def releases(rule: Rule) -> str:
    """The targets that a rule concerns: ``0.18 to 0.19``."""
    return f"{rule.since} to {rule.until or NEWEST}" if rule.since > OLDEST or rule.until else "every release"


def applicability(rule: Rule) -> str:
    """Whether the rule's fix is safe, unsafe or either; ``no fix`` without one."""
    words = fix_in_words(rule)
    if words.startswith("applied"):
        return "safe or unsafe fix" if "unsafe" in words else "safe fix"
    return "unsafe fix" if words.startswith("with") else "no fix"


def programs(rule: Rule) -> str:
    """The programs whose settings a rule is about, ``any program`` if it names none."""
    named = [_readers(case.when) for case in rule.cases]
    if not named or not all(named):
        return "any program"
    return ", ".join(dict.fromkeys(PROGRAMS[one] for each in named for one in each))


def _readers(when: Mapping[str, Any]) -> list[str]:
    """The readers or ecosystems that a condition names; all refusals of a reader begin with its name."""
    reader, refusal = when.get("reader", when.get("ecosystem", [])), when.get("rejected", "")
    of_refusal = [name for name in PROGRAMS if isinstance(refusal, str) and refusal.startswith(f"{name}-")]
    return of_refusal + ([reader] if isinstance(reader, str) else list(reader))


# --- safety -----------------------------------------------------------------------------------------


def _safety(rule: Rule) -> list[str]:
    """Whether the fix is applied, and the reason of each case in which it is not."""
    words = fix_in_words(rule)
    parts = [words[0].upper() + words[1:]]
    if words.startswith("applied"):
        parts[0] += (
            " Both are computed for every place; where they differ, the fix is withheld and the diagnostic says how."
        )
    if any("rejected" in case.when for case in rule.cases):
        parts[0] += " What is rejected captures nothing that a rewrite could keep."
    reasons = [_reason(case) for case in rule.cases if (case.fix and case.fix.unsafe) or case.decide]
    return [*parts, _bullets(reasons)] if reasons else parts


def _reason(case: RuleCase) -> str:
    if case.fix and case.fix.unsafe:
        return f"{_plain(case.message)}: with `--unsafe-fixes` only, since {case.fix.unsafe}."
    return f"{_plain(case.message)}: needs review; {case.decide}."


def _plain(message: str) -> str:
    """A message without a file: settings by their plain names, without a release and the reader's own words."""
    message = re.sub(r"\{(?!refuser\}|reason\})(\w+)\}", r"\1", message)
    return message.replace(" for megatron-core {refuser}", "").replace(" {refuser}", "").replace("{reason}", "…")


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in dict.fromkeys(lines))


# --- examples ---------------------------------------------------------------------------------------


def _example(number: int, example: Mapping[str, Any]) -> list[str]:
    releases = "".join(f", {word} {example[word]}" for word in ("from", "to") if word in example)
    why = f": {example['why']}" if "why" in example else ""
    head = [f"### Example {number}{releases}{file_in_words(example)}{why}"]
    beside = [part for name, text in example.get("beside", {}).items() for part in (f"`{name}`", _code(example, text))]
    before = ("Before", _code(example, example["before"]))
    if not example.get("reported", True):
        return [*head, *_not_reported(before, beside, example)]
    afters = [("After", "after"), ("After, with `--unsafe-fixes`", "unsafe-after")]
    after = [(title, _code(example, example[key])) for title, key in afters if key in example]
    if not after:
        return [*head, before[1], *beside, "Nothing is rewritten."]
    return [*head, *beside, *_pair(before, *after)]


def _not_reported(before: tuple[str, str], beside: list[str], example: Mapping[str, Any]) -> list[str]:
    if "after" not in example:
        return [before[1], *beside, "This rule reports nothing."]
    after = ("After the fixes of other rules", _code(example, example["after"]))
    return ["This rule reports nothing.", *beside, *_pair(before, after)]


def _pair(*titled: tuple[str, str]) -> list[str]:
    """Texts next to each other where the window is wide enough; a page of Markdown has one below the other."""
    inner = (part for title, code in titled for part in ("<div markdown>", title, code, "</div>"))
    return ['<div class="pair" markdown>', *inner, "</div>"]


def _code(example: Mapping[str, Any], text: str) -> str:
    return f"```{example['syntax']}\n{text.rstrip()}\n```"


__all__ = ["Form", "applicability", "page"]
