"""Write what is generated under docs/: a page a rule, two indexes, and the output in pages that show commands.

Run ``python docs/build.py`` after changing a rule or what the command prints; ``python docs/build.py --check``
(in the tests) says which pages are out of date and exits with 1.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from configuration_schema import schema
from follow import follow
from format_examples import with_examples
from terminal import picture

from cgmigrate.lint.rules import Case, Rule, RuleKind, load
from cgmigrate.megatron import catalogue
from cgmigrate.megatron.catalogue import Setting
from cgmigrate.megatron.releases import KNOWN, NEWEST, OLDEST, UPSTREAM, Release
from cgmigrate.megatron.rule_data import rules_folder
from cgmigrate.report.explain import file_in_words, fix_in_words, releases_in_words
from cgmigrate.report.settings import releases_of

DOCS = Path(__file__).parent
PAGES = DOCS / "rules"
SCHEMA = rules_folder() / "schema.json"
WORKED = (DOCS / "migrate.md", DOCS / "writing-rules.md")
"""Pages that are written by hand and show commands with what they print."""
FORMATS = DOCS / "formats.md"
_NAMES = ("command-line.md", "configuration.md", "design.md", "rewrites.md")
MENTIONING = (DOCS.parent / "README.md", *(DOCS / name for name in _NAMES))
"""Pages that are written by hand and name the known releases, each between two comments."""
RELEASES = {"oldest": OLDEST, "newest": NEWEST, "main": UPSTREAM}
_MENTION = re.compile(r"(<!--(?P<name>oldest|newest|main)-->)[^<]*(<!--/(?P=name)-->)")
FAMILIES = {
    RuleKind.FILE: "Files and values that cannot be read",
    RuleKind.DEPRECATED: "Deprecated names and values",
    RuleKind.REJECTED: "Combinations that megatron-core rejects",
    RuleKind.NO_EFFECT: "Settings that do nothing, or not what they seem",
    RuleKind.COMPANION: "Settings that need or exclude others",
    RuleKind.ECOSYSTEM: "One ecosystem's own constraints",
    RuleKind.READER: "Code that reads the old names",
}
GENERATED = "Generated from the rule's file by `docs/build.py`; change it there."


# --- a rule's page ----------------------------------------------------------------------------------


def page(rule: Rule) -> str:
    """One rule's page."""
    parts = [f"# {rule.id}: {rule.name}", rule.summary + "."]
    parts.append(f"Severity: {rule.severity}. {releases_in_words(rule)}")
    if rule.cases:
        parts += ["## What it says", _bullets(_plain(case.message) for case in rule.cases)]
    parts += ["## Why", rule.explanation.strip(), "## Fix safety", *_safety(rule)]
    if rule.examples:
        parts.append("## Before and after")
    for number, example in enumerate(rule.examples, 1):
        parts += _example(number, example)
    parts += ["## Sources", _bullets(rule.sources), GENERATED]
    return "\n\n".join(parts) + "\n"


def _safety(rule: Rule) -> list[str]:
    """Whether the fix is applied, and the reason of each case in which it is not."""
    words = fix_in_words(rule)
    parts = [words[0].upper() + words[1:]]
    if words.startswith("applied"):
        parts[0] += (
            " Both are computed for every place; where they differ, the fix is withheld and the diagnostic says how."
        )
    if any("rejected" in case.when for case in rule.cases):
        parts[0] += " What is refused captures nothing that a rewrite could keep."
    reasons = [_reason(case) for case in rule.cases if (case.fix and case.fix.unsafe) or case.decide]
    return [*parts, _bullets(reasons)] if reasons else parts


def _reason(case: Case) -> str:
    if case.fix and case.fix.unsafe:
        return f"{_plain(case.message)}: with `--unsafe-fixes` only, since {case.fix.unsafe}."
    return f"{_plain(case.message)}: to decide; {case.decide}."


def _plain(message: str) -> str:
    """A message without a file: settings by their plain names, without a release and the reader's own words."""
    message = re.sub(r"\{(?!refuser\}|reason\})(\w+)\}", r"\1", message)
    return message.replace(" for megatron-core {refuser}", "").replace(" {refuser}", "").replace("{reason}", "…")


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in dict.fromkeys(lines))


def _example(number: int, example: Mapping[str, Any]) -> list[str]:
    releases = "".join(f", {word} {example[word]}" for word in ("from", "to") if word in example)
    why = f": {example['why']}" if "why" in example else ""
    parts = [f"### Example {number}{releases}{file_in_words(example)}{why}", _code(example, example["before"])]
    for name, text in example.get("beside", {}).items():
        parts += [f"`{name}`", _code(example, text)]
    shown = len(parts)
    if not example.get("reported", True):
        others = ["Other rules rewrite it to", _code(example, example["after"])] if "after" in example else []
        return [*parts, "This rule reports nothing.", *others]
    if "after" in example:
        parts += ["becomes", _code(example, example["after"])]
    if "unsafe-after" in example:
        parts += ["becomes, with `--unsafe-fixes`", _code(example, example["unsafe-after"])]
    if len(parts) == shown:
        parts.append("Nothing is rewritten.")
    return parts


def _code(example: Mapping[str, Any], text: str) -> str:
    return f"```{example['syntax']}\n{text.rstrip()}\n```"


# --- indexes ----------------------------------------------------------------------------------------


def index(rules: Mapping[str, Rule]) -> str:
    """The table of contents, by family."""
    parts = ["# Rules", "By what they are about; there is also an [index by release](by-release.md)."]
    for kind, title in FAMILIES.items():
        if of_kind := [rule for rule in rules.values() if rule.kind is kind]:
            parts += [f"## {title}", _table(of_kind)]
    return "\n\n".join(parts) + "\n"


def by_release(rules: Mapping[str, Rule]) -> str:
    """The rules by the release of megatron-core from which they hold."""
    parts = [
        "# Rules by release",
        "The first release of megatron-core that a rule concerns. A rule is silent where the target (`--to`, or the "
        "project's pin) is older, and its fix waits until the target has the replacement.",
    ]
    for release in KNOWN:
        begins = [rule for rule in rules.values() if rule.since == release > OLDEST]
        if begins:
            parts += [f"## Since {release}", _table(begins, since=True)]
    parts += ["## In every release", _table(rule for rule in rules.values() if rule.since == OLDEST)]
    return "\n\n".join(parts) + "\n"


def _table(rules: Iterable[Rule], since: bool = False) -> str:
    head = ["| code | name | what it says |", "|---|---|---|"]
    if since:
        head = [head[0] + " replacement since |", head[1] + "---|"]
    rows = [
        f"| [{rule.id}]({rule.id}.md) | {rule.name} | {rule.summary} |"
        + (f" {_since(rule.available_in)} |" if since else "")
        for rule in rules
    ]
    return "\n".join([*head, *rows])


def _since(release: Release) -> str:
    return str(release) if release > OLDEST else ""


# --- the settings ---------------------------------------------------------------------------------------


def settings_page(settings: Iterable[Setting]) -> str:
    """The settings of the catalogue that ships."""
    parts = [
        "# Settings",
        "The settings that rules and documents know, from `rules/settings`. A team can add its own "
        "([how](writing-rules.md#a-setting-of-another-name)).",
    ]
    rows = [
        f"| `{one.name}` | {one.kind} | {one.owner} | {releases_of(one)} | {one.summary} |"
        for one in sorted(settings, key=lambda one: not one.subject)
    ]
    head = ["| name | kind | field of | releases | what it says |", "|---|---|---|---|---|"]
    parts += ["\n".join([*head, *rows]), "Generated from `rules/settings` by `docs/build.py`; change them there."]
    return "\n\n".join(parts) + "\n"


# --- the schema -------------------------------------------------------------------------------------


def with_names(schema: str, names: Iterable[str]) -> str:
    """The schema of rules with the settings that ship, which editors suggest."""
    text, count = re.subn(r'(?<="examples": )\[.*\](?=\n)', json.dumps([*names]), schema)
    assert count == 1, "the schema lists the names of settings once"
    return text


# --- writing them -----------------------------------------------------------------------------------


def files() -> dict[Path, str]:
    """Every page with the text that it should have."""
    rules = load()
    pages = {PAGES / "README.md": index(rules), PAGES / "by-release.md": by_release(rules)}
    pages[SCHEMA] = with_names(SCHEMA.read_text(encoding="utf-8"), catalogue.load().settings)
    pages[DOCS / "settings.md"] = settings_page(catalogue.load().settings.values())
    pages |= {PAGES / f"{rule.id}.md": page(rule) for rule in rules.values()}
    pages |= {path: path.read_text(encoding="utf-8") for path in MENTIONING if path.exists()}
    pages |= {path: follow(path.read_text(encoding="utf-8")).text for path in WORKED}
    pages[DOCS / "configuration.schema.json"] = schema(
        _with_releases((DOCS / "configuration.md").read_text(encoding="utf-8"))
    )
    pages[DOCS / "terminal.svg"] = picture()
    pages[FORMATS] = with_examples(FORMATS.read_text(encoding="utf-8"))
    return {path: _with_releases(text) for path, text in pages.items()}


def _with_releases(page: str) -> str:
    """Return the page with the releases between its comments, as in ``<!--newest-->0.18<!--/newest-->``."""
    return _MENTION.sub(lambda match: f"{match[1]}{RELEASES[match['name']]}{match[3]}", page)


def main() -> int:
    """Write the pages, or with --check say which differ."""
    pages = files()
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    stale += [path for path in PAGES.glob("*.md") if path not in pages]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.name} is out of date; run python docs/build.py")
        return bool(stale)
    PAGES.mkdir(exist_ok=True)
    for path in stale:
        if path in pages:
            path.write_text(pages[path], encoding="utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
