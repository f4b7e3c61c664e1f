"""What the user asked for, and the formats that exist."""

from __future__ import annotations

from dataclasses import dataclass

from cgmigrate.megatron.releases import Release

FORMATS = ("text", "concise", "json", "jsonlines", "sarif", "github", "gitlab", "junit", "markdown")
"""The names of the formats; each is that of its module in `cgmigrate.report`."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for."""

    source: Release | None = None
    target: Release | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    unsafe: bool = False
    rewrite: bool = True
    """Whether the rewritten text is wanted, or only what there is to say."""
    edits: bool = False
    """Whether each diagnostic is to carry the edits of its fix."""
    stdin: tuple[str, bytes] | None = None
    """A text that was handed over instead of a path, and the name to call it by."""
    exclude: tuple[str, ...] = ()
    rule_folders: tuple[str, ...] = ()
    baseline: str = ""
    add_ignore: bool = False
    """Whether comments that leave the diagnostics out are to be written, instead of fixes."""
    reason: str = ""
    """What these comments say."""
    strict: bool = False
    """Whether comments suppress nothing."""
