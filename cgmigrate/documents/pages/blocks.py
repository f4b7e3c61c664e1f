"""The code blocks of a page, with the parts of its lines that are code."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from cgmigrate.documents.code import CodeText
from cgmigrate.documents.pages.lines import PageLine, code_of, dedented
from cgmigrate.text.spans import Span

_LANGUAGES = {
    **dict.fromkeys(("yaml", "yml"), "yaml"),
    **dict.fromkeys(("python", "py", "python3", "ipython", "ipython3", "pycon"), "python"),
    **dict.fromkeys(("bash", "sh", "shell", "zsh"), "shell"),
    **dict.fromkeys(("console", "shell-session", "shellsession", "shell-script", "terminal"), "console"),
}
"""Name of a language → what its blocks are read as; others are not read."""
_DIRECTIVE = re.compile(r"\{(?:code-block|code|sourcecode)\}[ \t]*")
_NAME = re.compile(r"\{?\.?(?P<name>[\w+-]*)(?![\w+-])")
_PROMPT = re.compile(r"[ \t]*(?:\([\w.-]+\)[ \t]*)?(?:[\w.-]+@[^\s#$%]*[#$%]|[$%])[ \t]+")
"""What a shell shows in front of a command."""
_SECOND_PROMPT = re.compile(r"[ \t]*>[ \t]+")
_PYTHON_PROMPT = re.compile(r"[ \t]*(?:>>>|In \[\d+\]:)[ \t]")
_PYTHON_CONTINUATION = re.compile(r"[ \t]*\.\.\.(?:[ \t]|$)")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """One block: its language, empty if it says none, and its lines. It has at least one line."""

    language: str
    lines: tuple[PageLine, ...]

    @property
    def span(self) -> Span:
        """The span from the first line to the last one."""
        return Span(self.lines[0].first, self.lines[-1].end)

    def code(self, page: str) -> CodeText | None:
        """Return the code of the block, as far as it is no output; None if it has none."""
        lines = self.lines
        if self.language == "python":
            lines = _after_prompts(lines, page, _PYTHON_PROMPT, _is_python_continuation)
        elif self.language in ("shell", "console"):
            lines = _after_prompts(lines, page, _PROMPT, _continues_with_backslash)
        if self.language == "console" and lines is self.lines:
            return None
        return code_of(dedented(lines, page), page) if lines else None


def language_of(info: str) -> str:
    """Return what a block is read as, by the words behind its fence: empty if there are none.

    A language that is not read is as it is written, and `?` is what is no name of a language.
    """
    match = _NAME.match(_DIRECTIVE.sub("", info.strip(), count=1))
    name = match["name"].lower() if match else ""
    if not info.strip():
        return ""
    return _LANGUAGES.get(name, name if name[:1].isalpha() else "?")


def _is_python_continuation(line: str, _before: str) -> int | None:
    match = _PYTHON_CONTINUATION.match(line)
    return match.end() if match else None


def _continues_with_backslash(line: str, before: str) -> int | None:
    if not before.endswith("\\"):
        return None
    match = _SECOND_PROMPT.match(line)
    return match.end() if match else 0


def _after_prompts(
    lines: tuple[PageLine, ...], page: str, prompt: re.Pattern[str], continuation: Callable[[str, str], int | None]
) -> tuple[PageLine, ...]:
    """Return the lines with a prompt and those that continue them, without prompts; all lines if none has one.

    ``continuation`` returns how much of a line to skip if it continues the one before, else None.
    """
    result: list[PageLine] = []
    before: str | None = None
    for one in lines:
        text = page[one.start : one.end]
        if match := prompt.match(text):
            skipped: int | None = match.end()
        else:
            skipped = None if before is None else continuation(text, before)
        before = None if skipped is None else text
        if skipped is not None:
            result.append(one.shortened(skipped))
    return tuple(result) or lines
