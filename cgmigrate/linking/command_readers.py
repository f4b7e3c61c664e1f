"""Places that look at the words of a command line, or at what a script prints, and have no flag in them.

A line goes through the functions and scripts with which it begins, and they may count, filter or log its words. Who
starts a script may read its output, or give it other programs to start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from cgmigrate.linking.name_places import YAML
from cgmigrate.linking.own_options import line_of_words
from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.linking.text_tools import BY_POSITION, CODE, PAGES, SHELL, TextChange, TextPlace, reaches
from cgmigrate.megatron.source_trees import is_part_of_megatron

_LOOKS_AT_OUTPUT = (
    r"(?:\$\(|`)[^)`\n]*(?:\bsh|\bsource|\s\.|\./)\s?[^)`\n]*\b{name}"
    r"|\b(?:ba)?sh -\w*x\w* [^\n]*\b{name}|\bPATH=[^\n]*\b{name}"
    r"|\b{name}\b[^|\n]*\|\s*(?!tee\b|\|)\S|^\s*(?:python3?|torchrun|srun)\s*\(\)"
    r"|^\s*(?:function|alias)\s+(?:python3?|torchrun|srun)\b"
    r"|^\s*exec\s+2>|\bBASH_ENV=|\bPATH=[\"']?(?:\.|\$\{{?PWD|\$\(|[\w-]+/)"
    r"|\bsh\s[^\n|;]*\b{name}\b[^\n]*2>\s*(?!&|/dev/null)"
)
"""Runs a script, and looks at its output, or gives it other programs to start."""
_OUTPUT_IN_CODE = re.compile(r"check_output|getoutput|capture_output|PIPE|popen")
_LOOKS_AT_VARIABLE = r"(?:\bcase|\[\[?|\btest|<<<)\s[^\n]*\$\{{?{name}\b|\$\{{#?{name}[#%/:\[]"
ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)\+?=")
_FIRST_WORD = re.compile(r"(?<!\\\n)^[ \t]*(?:(?:exec|time|nohup|if|then|do|!)[ \t]+)*\$\{?(\w+)", re.MULTILINE)
"""A variable as the first word of a line: the program that it starts."""
_STARTED = re.compile(r"[\"']?(?:[\w./-]*python[\d.]*|torchrun|srun|accelerate|deepspeed)?[\"']?(?:\s|$)")
"""A value of such a variable that starts the line as it is."""
_STARTS = re.compile(r"[ \t]*([\w./-]+)[ \t].*?(?:--\w|\$\{?[A-Za-z_]\w*)")
"""A line that starts something with flags, or with what a variable has."""
_WORDS = re.compile(r"[\w./-]+")
_GET_WORDS = ("#!", "$@", "$*", "${@", "${*", "for ")
_ALL_WORDS = re.compile(r"\b(\w+)=[\"']?\s*\$\{?[@*]")
_TESTS = (
    r"\bcase\s[^\n]*\$\{{?(?:{names}).*?\besac\b|(?:\[\[?|\btest|<<<)\s[^\n]*\$\{{?(?:{names})[^\n]*"
    r"|\b(?:echo|printf)\s[^\n|]*\$\{{?(?:{names})[^\n|]*\|[^\n]*"
)
"""Looks at all words of a script as one text, under one of some names."""
_FUNCTION = r"^[ \t]*(?:function[ \t]+{name}\b|{name}[ \t]*\(\)).*?(?:^\}}|\}}[ \t]*$)"
_LOOKS_AT_WORDS = re.compile(
    r"\$\*|\$#|\$\{[@*#!][^}]|\bfor \w+(?:[ \t]*;| in \"?\$[@*]|\s+do\b)|\bcase\s+\"?\$\{?[1@*]|\bprintf\b[^\n]*\$@"
)
"""Looks at its words one by one, or counts them, instead of starting them."""


def readers_of_words(change: TextChange, texts: ProjectTexts) -> Iterator[TextPlace]:
    """Yield the places, in other files, that look at the words that a fix changes in a script, or at its output."""
    path = change.path
    yield from _readers_of_variables(path, change.old, texts)
    # What runs a script can look at what it prints; a mapping is not run.
    if not path.endswith(YAML):
        yield from _passed_through(change, texts)
        yield from _starts_of(path, texts)


def _readers_of_variables(path: str, old: str, texts: ProjectTexts) -> Iterator[TextPlace]:
    """Yield the places, in other files, that look at a variable with the words that change."""
    text = texts.text(path)
    for name in sorted(set(ASSIGNED.findall(old))):
        exported = re.search(rf"\bexport\b[^\n]*\b{name}\b", text) is not None
        looked_at = re.compile(_LOOKS_AT_VARIABLE.format(name=name), re.MULTILINE)
        for other in texts.holding((name,)):
            if other == path or other.endswith(PAGES) or not (exported or reaches(texts.text(other), path)):
                continue
            pattern = looked_at if other.endswith(SHELL) else re.compile(rf"\b{name}\b")
            if match := pattern.search(texts.text(other)):
                yield other, *_place(texts.text(other), match)


def _passed_through(change: TextChange, texts: ProjectTexts) -> Iterator[TextPlace]:
    """Yield the functions and programs of the checkout through which lines of a script go, if they look at words."""
    lines = texts.text(change.path).replace("\\\n", " ").split("\n")
    starts = [match for line in lines if (match := _STARTS.match(line))]
    first = {match[1] for match in starts}
    words = {os.path.basename(one) for match in starts for one in _WORDS.findall(match.string)}
    for path in texts.holding(_GET_WORDS):
        if os.path.basename(path) not in words or path == change.path or path.endswith(CODE):
            continue
        text = texts.text(path)
        if not (path.endswith(SHELL) or text.startswith("#!")):
            continue
        if re.match(r"#!.*python", text) and (line := line_of_words(path)):
            yield path, line, "argv"
            continue
        is_first = os.path.basename(path) in map(os.path.basename, first)
        if match := (_LOOKS_AT_WORDS.search(text) if is_first else None) or _test_of_words(text, change):
            yield path, *_place(text, match)
    for name in sorted(one for one in first if "/" not in one):
        function = re.compile(_FUNCTION.format(name=re.escape(name)), re.MULTILINE | re.DOTALL)
        for path in texts.holding((f"{name}()", f"{name} ()", f"function {name}")):
            body = function.search(texts.text(path)) if path != change.path and path.endswith(SHELL) else None
            if body and _LOOKS_AT_WORDS.search(body.group()):
                yield path, *_place(texts.text(path), body)


def _test_of_words(text: str, change: TextChange) -> re.Match[str] | None:
    """Return where a script tests all of its words as one text, with a part that comes or goes, or makes a digest."""
    names = "|".join(["[@*]", *(rf"{name}\b" for name in _ALL_WORDS.findall(text))])
    for match in re.finditer(_TESTS.format(names=names), text, re.MULTILINE | re.DOTALL):
        parts = re.findall(r"[\w-]{3,}", match.group())
        if BY_POSITION.search(match.group()) or any(map(change.is_seen_by, parts)):
            return match
    return None


def _starts_of(path: str, texts: ProjectTexts) -> Iterator[TextPlace]:
    """Yield the places that run a script and look at what it prints, or at the words with which it starts programs."""
    name = os.path.basename(path)
    looks = re.compile(_LOOKS_AT_OUTPUT.format(name=re.escape(name)), re.MULTILINE)
    programs = sorted(set(_FIRST_WORD.findall(texts.text(path))))
    for other in texts.holding((name,)):
        if other == path or other.endswith(PAGES) or is_part_of_megatron(other):
            continue
        text = texts.text(other)
        if match := (_OUTPUT_IN_CODE if other.endswith(CODE) else looks).search(text):
            yield other, *_place(text, match)
        for program in programs:
            for match in re.finditer(rf"\b{program}=", text):
                if not _STARTED.match(text, match.end()):
                    yield other, *_place(text, match)


def _place(text: str, match: re.Match[str]) -> tuple[int, str]:
    return text.count("\n", 0, match.start()) + 1, match.group().strip().partition("\n")[0][:60]
