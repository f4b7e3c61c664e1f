"""Places that look at the words of a command line, or at what a script prints, and have no flag in them.

A line goes through the functions and scripts with which it begins, and they may count, filter or log its words. Who
starts a script may read its output, or give it other programs to start.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from cgmigrate.documents.shell.plain_words import IF_ANY
from cgmigrate.linking.name_places import YAML
from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.linking.text_tools import CODE, PAGES, SHELL, TextPlace, reaches
from cgmigrate.megatron.source_trees import is_part_of_megatron

_LOOKS_AT_OUTPUT = (
    r"(?:\$\(|`)[^)`\n]*(?:\bsh|\bsource|\s\.|\./)\s?[^)`\n]*\b{name}"
    r"|\b(?:ba)?sh -\w*x\w* [^\n]*\b{name}|\bPATH=[^\n]*\b{name}"
    r"|\b{name}\b[^|\n]*\|\s*(?!tee\b|\|)\S|^\s*(?:python3?|torchrun|srun)\s*\(\)"
    r"|^\s*(?:function|alias)\s+(?:python3?|torchrun|srun)\b"
    r"|^\s*exec\s+2>|\bPATH=[\"']?(?:\.|\$\{{?PWD|\$\(|[\w-]+/)"
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
_FUNCTION = r"^[ \t]*(?:function[ \t]+{name}\b|{name}[ \t]*\(\)).*?(?:^\}}|\}}[ \t]*$)"
_LOOKS_AT_WORDS = re.compile(
    rf"\$\*|\$#{IF_ANY}"
    r"|\$\{[@*#!][^}]|\bfor \w+(?:[ \t]*;| in \"?\$[@*]|\s+do\b)|\bcase\s+\"?\$\{?[1@*]|\bprintf\b[^\n]*\$@"
)
"""Looks at its words one by one, or counts them, instead of starting them."""


def readers_of_words(path: str, old: str, texts: ProjectTexts) -> Iterator[TextPlace]:
    """Yield the places, in other files, that look at the words that a fix changes in a script, or at its output."""
    yield from _readers_of_variables(path, old, texts)
    # What runs a script can look at what it prints; a mapping is not run.
    if not path.endswith(YAML):
        yield from _passed_through(path, texts)
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


def _passed_through(path: str, texts: ProjectTexts) -> Iterator[TextPlace]:
    """Yield the functions and scripts of other files with which lines of a script begin, if they look at words."""
    lines = texts.text(path).replace("\\\n", " ").split("\n")
    for name in sorted({match[1] for line in lines if (match := _STARTS.match(line))}):
        if "/" in name:
            scripts = [os.path.normpath(os.path.join(folder, name)) for folder in (os.path.dirname(path), texts.top)]
            bodies = [(one, re.match(r"#!.*\bsh\b|#!.*bash\b", texts.text(one))) for one in scripts]
            for script, match in bodies:
                if match and (place := _LOOKS_AT_WORDS.search(texts.text(script))):
                    yield script, *_place(texts.text(script), place)
            continue
        function = re.compile(_FUNCTION.format(name=re.escape(name)), re.MULTILINE | re.DOTALL)
        for other in texts.holding((f"{name}()", f"{name} ()", f"function {name}")):
            if other == path or not other.endswith(SHELL):
                continue
            body = function.search(texts.text(other))
            if body and _LOOKS_AT_WORDS.search(body.group()):
                yield other, *_place(texts.text(other), body)


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
