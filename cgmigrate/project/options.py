"""The options of a run, and the output formats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from cgmigrate.megatron.releases import Release


class Format(NamedTuple):
    """An output format; the name is that of its module in `cgmigrate.report`.

    ``for_people`` formats may have colors, and the run is summed up after them. ``edits`` says that a diagnostic has
    the edits of its fix, ``details`` that it has what explains it.
    """

    name: str
    for_people: bool = False
    edits: bool = False
    details: bool = False


ALL_FORMATS = (
    Format("full", for_people=True, details=True),
    Format("concise", for_people=True),
    Format("json", edits=True, details=True),
    Format("sarif", edits=True),
    Format("github"),
    Format("gitlab"),
    Format("rdjson", edits=True),
)
"""The formats. The first is the default."""
FORMATS = tuple(format.name for format in ALL_FORMATS)
"""Their names."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a user requests of check or fix, apart from how the result is shown."""

    source: Release | None = None
    target: Release | None = None
    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Codes that are ignored in the files of a pattern, which is relative to the working directory."""
    fixable: tuple[str, ...] = ()
    """The only rules whose fixes may be applied; empty for all."""
    unfixable: tuple[str, ...] = ()
    keep_defaults: bool = False
    """Whether rules about a default that a release changed write the former one."""
    hybrid: bool = False
    """Whether GPT models are rewritten as hybrid models."""
    raise_pin: bool = False
    """Whether a project drops the old releases that a requirement admits."""
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
    follow: bool = False
    """Whether objects of code are followed although nothing is rewritten."""
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
    docs: bool = False
    """Whether fixes of documentation are applied."""
    explicit: bool = False
    """Whether a fix says that no modules are captured where that is the default."""
    setters: tuple[str, ...] | None = None
    """The functions that fixes of code may call, by their full names; None for those that the project imports."""


def format_of(name: str) -> Format:
    """Return the format of a name."""
    return ALL_FORMATS[FORMATS.index(name)]


def release_words(source: Release | None, target: Release | None) -> list[str]:
    """Return releases as words of a command line, those that it has."""
    options = (("--from", source), ("--to", target))
    return [word for option, release in options if release for word in (option, str(release))]
