"""Write docs/rules/: one page a rule and an index by release, from rules/*.yaml.

Run ``python docs/build.py`` after changing a rule; ``python docs/build.py --check`` (in the tests)
says which pages are out of date and exits with 1.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cgmigrate.report.explain import fix_in_words
from cgmigrate.rules import Rule, load
from cgmigrate.settings import OLDEST

PAGES = Path(__file__).parent / "rules"
FAMILIES = {
    "CG0": "Files and values that cannot be read",
    "CG1": "Deprecated names and values",
    "CG2": "Combinations that megatron-core rejects",
    "CG3": "Settings that do nothing, or not what they seem",
    "CG5": "One ecosystem's own constraints",
}


def page(rule: Rule) -> str:
    """One rule's page."""
    facts = [f"Severity: {rule.severity}."]
    if rule.deprecated_in > OLDEST:
        facts.append(f"Deprecated in megatron-core {rule.deprecated_in}.")
    facts.append(f"Fix: {fix_in_words(rule)}")
    parts = [f"# {rule.id}: {rule.name}", rule.summary + ".", " ".join(facts), rule.explanation.strip()]
    for example in rule.examples:
        parts += _example(example)
    parts += ["## Sources", "\n".join(f"- {source}" for source in rule.sources)]
    parts.append("Generated from the rule's file by `docs/build.py`; change it there.")
    return "\n\n".join(parts) + "\n"


def _example(example: Mapping[str, Any]) -> list[str]:
    releases = "".join(f", {word} {example[word]}" for word in ("from", "to") if word in example)
    why = f": {example['why']}" if "why" in example else ""
    parts = [f"## Example{releases}{why}", _code(example["before"])]
    if "after" in example:
        parts += ["becomes", _code(example["after"])]
    if "unsafe-after" in example:
        parts += ["becomes, with `--unsafe-fixes`", _code(example["unsafe-after"])]
    if len(parts) == 2:
        parts.append("Nothing is rewritten.")
    return parts


def _code(text: str) -> str:
    return f"```yaml\n{text.rstrip()}\n```"


def index(rules: Mapping[str, Rule]) -> str:
    """The table of contents, by family, and the deprecations by release."""
    parts = ["# Rules"]
    for prefix, title in FAMILIES.items():
        rows = [f"| [{r.id}]({r.id}.md) | {r.name} | {r.summary} |" for r in rules.values() if r.id.startswith(prefix)]
        parts += [f"## {title}", "\n".join(["| code | name | what it says |", "|---|---|---|", *rows])]
    parts.append("## By release")
    by_release: dict[str, list[str]] = {}
    for rule in rules.values():
        if rule.deprecated_in > OLDEST:
            by_release.setdefault(str(rule.deprecated_in), []).append(f"[{rule.id}]({rule.id}.md)")
    parts.append("\n".join(f"- deprecated in {release}: {', '.join(ids)}" for release, ids in by_release.items()))
    return "\n\n".join(parts) + "\n"


def wanted() -> dict[Path, str]:
    """Every page with the text that it should have."""
    rules = load()
    return {PAGES / "README.md": index(rules)} | {PAGES / f"{rule.id}.md": page(rule) for rule in rules.values()}


def main() -> int:
    """Write the pages, or with --check say which differ."""
    pages = wanted()
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    stale += [path for path in PAGES.glob("*.md") if path not in pages]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.name} is out of date; run python docs/build.py")
        return bool(stale)
    PAGES.mkdir(exist_ok=True)
    for path in stale:
        path.unlink(missing_ok=True)
        if path in pages:
            path.write_text(pages[path])
    return 0


if __name__ == "__main__":
    sys.exit(main())
