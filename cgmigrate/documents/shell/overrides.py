"""Overrides among the words of a command line: ``++policy.megatron_cfg.cuda_graph_scope=[attn]``.

Those of one mapping in one command, array or string are one object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.overrides import COMPUTED, override_pattern, override_text, override_value
from cgmigrate.documents.shell.flags import Flag
from cgmigrate.documents.shell.fragments import Fragment, FragmentForm
from cgmigrate.documents.shell.site_rewriter import ShellSiteRewriter
from cgmigrate.documents.shell.words import Word, literal_with_brackets
from cgmigrate.documents.sites import Use
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import ENABLE, Undecided
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_UNUSUAL = "an override that is written in an unusual way"
_PLAIN_VALUE = re.compile(r"[\w./:,@%+-]*", re.ASCII)
_MEGATRONS = re.compile(r"(model|megatron|transformer_config)\w*\.\Z")
"""The end of a path below which `enable_cuda_graph` alone is Megatron's; other systems have an option of this name."""
_QUOTES = "\"'"


@dataclass(frozen=True, slots=True)
class OverrideLine:
    """The overrides of one mapping in a fragment. ``prefix`` is their path, with its final dot."""

    fragment: Fragment
    prefix: str
    overrides: tuple[Flag, ...]
    texts: tuple[str, ...]
    """All words of the fragment that are known."""


def override_lines(fragments: Sequence[Fragment], text: str, catalogue: Catalogue) -> list[OverrideLine]:
    """Return the overrides of some fragments, in the order of the text."""
    result: list[OverrideLine] = []
    for fragment in fragments:
        by_prefix: dict[str, list[Flag]] = {}
        for prefix, override in _overrides_in(fragment.words, text, catalogue):
            by_prefix.setdefault(prefix, []).append(override)
        known = tuple(one for word in fragment.words if (one := _literal(word, text)) is not None) if by_prefix else ()
        result += (
            OverrideLine(fragment, prefix, tuple(every), known)
            for prefix, every in by_prefix.items()
            if _MEGATRONS.search(prefix) or any(one.use.setting != ENABLE for one in every)
        )
    return sorted(result, key=lambda line: line.overrides[0].span.start)


def _literal(word: Word, text: str) -> str | None:
    return word.text if word.text is not None else literal_with_brackets(text[word.start : word.end])


def _overrides_in(words: Sequence[Word], text: str, catalogue: Catalogue) -> Iterator[tuple[str, Flag]]:
    """Yield each override of a setting below a path, with that path."""
    pattern = override_pattern(catalogue)
    for at, word in enumerate(words):
        # Most words are plain.
        if word.text is not None and "=" not in word.text:
            continue
        written = text[word.start : word.end]
        if "=" not in written or "." not in written:
            continue
        literal = _literal(word, text)
        match = pattern.fullmatch(written.strip(_QUOTES) if literal is None else literal)
        if match and (match[2] or "." in match[3]) and "~" not in match[1]:
            value = override_value(catalogue[match[3]], match)
            if literal is None and not isinstance(value, Undecided):
                value = Undecided(written, COMPUTED)
            yield match[2], _override(word, at, match, (written, value))


def _override(word: Word, at: int, match: re.Match[str], written_and_value: tuple[str, object]) -> Flag:
    written, value = written_and_value
    key = match[2] + match[3]
    quoted = written[:1] in _QUOTES
    closed = quoted and written[-1:] == written[:1]
    if not written[quoted:].startswith(f"{match[1]}{key}=") or quoted != closed:
        value = Undecided(written, _UNUSUAL)
    start = word.start + quoted + len(match[1]) + len(match[2])
    name = Span(start, start + len(match[3]))
    values = Span(name.end + 1, word.end - closed)
    return Flag(Use(match[3], key, value, word.span), name, (values,), at, at)


class OverrideRewriter(ShellSiteRewriter):
    """Rewrites the overrides of one object."""

    def __init__(self, text: str, index: int, line: OverrideLine, catalogue: Catalogue) -> None:
        super().__init__(text, index, (), catalogue)
        self.line = line
        self.places = {one.use.setting: (line.fragment, one) for one in line.overrides}

    def _words(self, _name: str, value: object) -> list[str]:
        return [override_text(value)]

    def _renamed(self, flag: Flag, new: str, value: object) -> list[Edit]:
        edits = [Edit(flag.name.start, flag.name.end, new)]
        if override_text(value) != override_text(flag.use.value):
            edits += self._with_value(flag, self._words(new, value))
        return self._aligned(flag, edits)

    def _with_value(self, flag: Flag, words: Sequence[str]) -> list[Edit]:
        (values,) = flag.values
        old = self.text[values.start : values.end]
        quote = old[0] if old[:1] in _QUOTES and old[-1:] == old[:1] else ""
        new = f"{quote}{words[0]}{quote}" if quote else self._quoted(flag, words[0])
        return [Edit(values.start, values.end, new)]

    def _beside(self, flag: Flag, name: str, value: object) -> str:
        # Signs and quotes are those of the override beside it.
        before = self.text[flag.span.start : flag.name.start]
        closing = before[0] if before[0] in _QUOTES else ""
        return f"{before}{name}={self._quoted(flag, override_text(value))}{closing}"

    def _quoted(self, flag: Flag, value: str) -> str:
        """Return a value as a shell has to read it; in a string and inside quotes it is as it is."""
        inside = self.text[flag.span.start] in _QUOTES or self.line.fragment.form in (
            FragmentForm.STRING,
            FragmentForm.FILE,
        )
        return value if inside or _PLAIN_VALUE.fullmatch(value) else f"'{value}'"


def spelled(line: OverrideLine, name: str, value: object) -> str:
    """Return a setting as an override."""
    return f"{line.prefix}{name}={override_text(value)}"
