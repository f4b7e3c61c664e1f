"""The options of a run, and the output formats."""

from __future__ import annotations

from dataclasses import dataclass

from cgmigrate.megatron.releases import Release

FORMATS = ("full", "concise", "grouped", "json", "jsonlines", "sarif", "github", "gitlab", "junit", "markdown")
"""The names of the formats; each is that of its module in `cgmigrate.report`. The first is the default."""
FORMER_NAMES = {"text": "full"}
"""Names that formats had in earlier releases; they are still accepted."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a user requests of check or fix, apart from how the result is shown."""

    source: Release | None = None
    target: Release | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    preview: bool = False
    """Whether rules in preview are enabled."""
    group: str = ""
    """The id of the only fix that is applied, empty for all."""
    unsafe: bool = False
    """Whether unsafe fixes are applied."""
    rewrite: bool = True
    """Whether the rewritten text is made, besides the diagnostics."""
    edits: bool = False
    """Whether each diagnostic has the edits of its fix."""
    details: bool = False
    """Whether what explains a diagnostic (labels, captures, edits) is needed."""
    stdin: tuple[str, bytes] | None = None
    """The name and content of a text that is examined instead of paths."""
    exclude: tuple[str, ...] = ()
    rule_folders: tuple[str, ...] = ()
    baseline: str = ""
    add_ignore: bool = False
    """Whether suppression comments are added instead of applying fixes."""
    reason: str = ""
    """The reason that these comments give."""
    strict: bool = False
    """Whether suppression comments are ignored."""
