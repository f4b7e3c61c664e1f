"""Programs that look at a file as text: they find, count, cut or compare what a fix changes.

A program is about a fix if it can reach the file, by its name or a pattern of names, and works by position, or has a
pattern that matches the old lines and not the new ones, or the other way round. The patterns are tried, not read. A
program that gets any file is about it if its pattern has a word that goes.
"""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property, lru_cache
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from cgmigrate.documents.python.nodes import parsed, walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.source_trees import is_part_of_megatron

TextPlace = tuple[str, int, str]
"""A file, the number of a line, and the code there."""

CODE = (".py", ".ipynb")
SHELL = (".sh", ".bash")
PROGRAMS = (*CODE, *SHELL)
PAGES = (".md", ".rst", ".log")
"""Pages: their commands are read, not what they say."""
_PATCHES = (".patch", ".diff")
_TOOL_WORDS = ("sed", "awk", "perl", "grep", "rg ", "yq", "jq", "head", "tail", "wc ", "cmp", "diff", "cut ", "tr ")
_OTHER_WORDS = ("sum", "patch", "git apply", "@@ -", "shell cat", "$(<", "$0", "${0")
_READ_WORDS = ("read_text", "read_bytes", "readline", "open(", "splitlines", "getsource", "hashlib", "fileinput")
_TOOLS = re.compile(r"(?:^|[\s|;&(`$\"'/@!])(?:sed|awk|gawk|perl|[ef]?grep|rg|ag|yq|jq)\b|\$\{\w+[/#%]")
_BY_POSITION = re.compile(
    r"(?:^|[\s|;&(`$@-])(?:head|tail|wc|cmp|cut|tr|[a-z0-9]+sum|cksum|nl|split|csplit|patch|comm|join|paste)\s"
    r"|(?:^|[\s|;&(`$@-])diff\s(?!\s*--name-(?:only|status)\b)"
    r"|\bsed\s+(?:-\w+\s+)*[\"']?(?:\d+|\$)[,\d$]*[a-z]|\bNR\s*[=<>]|\bgetline\b|\bgit apply\b"
    r"|\bhash-object\b|\$\(shell cat|\$\(<|\bpatsubst\b|\$\(filter\b"
    r"|\b[yj]q\b.*(?:true|false|_entries|keys|length|select)"
)
_SAID = re.compile(r"\b(?:echo|printf)\s(?:[^|;&`$\n]|\$(?!\())*\|\s*tr\s[^|;&`\n]*")
"""A text that `tr` gets, which takes no file: `echo "$NAME" | tr a b`. What others get may name one."""
_COMMANDS = re.compile(r"\|\|?|&&|;|\$\(|`")
_PASSES_ON = re.compile(
    r"\s*(?:(?:if|then|do|else|exec|time|nohup|sudo|env|!|\(|\{)\s+)*(?:\w+=\S*\s+)*"
    r"(?:[\w./$\{}-]*python[\d.]*|\w*run|srun|sbatch|accelerate|deepspeed|(?:ba|z)?sh|source|\.|cp|mv|ln|rsync|scp|mkdir|rm"
    r"|echo|printf|ls|export|local|declare|readonly|cd|touch|git|docker|for|:|\w+\+?=|-|[\"'\w./${}-]*\s*\\?$|[\"'$#\w./{}-]+\.sh\b)"
)
"""Commands that give a file to a program, copy it, or only have its name."""
_COPIES = re.compile(r"\b(?:cp|mv|ln|rsync|scp)\s")
_READS_TEXT = re.compile(
    r"read_text|read_bytes|readline|\.read\(\)|splitlines|getsource|hashlib|\bopen\(|fileinput|\bast\.parse\("
)
_BY_POSITION_IN_CODE = re.compile(
    r"\bhashlib\b|\.splitlines\(\)\[|\.readlines\(\)\[|\.readline\(|\blen\(open\(|\bdifflib\b"
    r"|\bfor [\w, ]+ in (?:enumerate\()?(?:open\(|f\b|file\b|fh\b|fp\b)|\bfileinput\b|\bpopen\(|\bzlib\b|\bfilecmp\b"
)
_OF_SYNTAX = re.compile(r"\bast\.parse\(|getsource|\btokenize\.")
_LINES = re.compile(r"\bsplitlines\(|\breadlines\(|\.split\([\"']\\n|\bin (?:open\(|f\b|file\b|fh\b|fp\b)")
"""Goes through the lines of a file."""
_LOADS = re.compile(r"\bloads?\w*\((?:[^()\n]|\([^()\n]*\))*\)")
"""A loader that gets the text."""
_ANY_CODE = re.compile(r"\bast\.parse\(\s*open\(|getsource")
"""What looks at the text of code whose file it does not name."""
_IS_COMMAND = re.compile(
    r"\s*(?:[$>]\s+)?(?:sed|awk|perl|[ef]?grep|cat|head|tail|wc|patch|git apply|yq|jq)\s+[-'\"./\w]"
)
"""A line of a page that is a command."""
_OF_CODE = re.compile(r"\bdis\.\w+\(|\bco_(?:consts|names)\b")
"""Looks at code that is compiled."""
_PROGRAM = re.compile(r"[\w./-]+\.(?:py|sh|bash|pl|rb|awk|sed|lua|js)\b")
_STARTS = re.compile(r"\bpopen\(|\bsubprocess\b|\bos\.system\(")
_ANY_FILE = re.compile(r"\bargv\b|\bargparse\b|\bclick\b")
_OWN_TEXT = re.compile(r"[\"']?\$\{?0\b")
_VARIABLE = re.compile(r"\$[{(\w@*<]")
_DIGEST = re.compile(r"(?<!@)(?<!@sha256:)\b[0-9a-f]{32,128}\b")
"""The digest of a file. Behind `@` it is that of a commit or an image."""
_QUOTED = re.compile(r"\"((?:[^\"\\\n]|\\.)*)\"|'([^'\n]*)'")
_SUBSTITUTION = re.compile(r"^\s*(?:\d*,?\d*)?[sy]?([/|#,!])((?:\\.|(?!\1).)+)\1")
_LANGUAGES = (".pl", ".pm", ".rb", ".awk", ".lua", ".js", ".ts", ".php", ".go", ".rs", ".c", ".cpp", ".cc")
"""Programs whose patterns and texts may be anywhere."""
_INCLUDES = re.compile(r"^\s*:(?:lines|start-\w+|end-\w+|emphasize-lines):", re.MULTILINE)
"""What a page that includes a file says of its lines."""
_INNER = (re.compile(r"/((?:\\.|[^/\n])+)/"), re.compile(r"\"([^\"]+)\""))
_SCRIPTED = re.compile(r"\b(?:sed|g?awk|perl|yq|jq)\b|\$\{")
"""Tools that get a script with patterns in it."""
_BASIC = re.compile(r"\\([(){}|+?])")
"""What has a backslash before it in a basic regular expression, and none in Python."""
_IS_PATTERN = re.compile(r"[\\.*+?\[(|^$]")
_GLOB = re.compile(r"[$\w./*?\[\]-]*\*[\w.*?-]*|(?<![\w%])%(?=\.[a-z]+\b)[\w.-]+")
_FOLDER = re.compile(r"(?:^|/)(\w[\w.-]*)(?=/|\Z)")
"""A folder in a pattern of paths that is a name: no variable, and no pattern itself."""
_ALL_OF = (
    r"\b{folder}/(?:\*\*?/)?\*(?!\.)|\s-\w*[rR]\w*\s[^|;\n]*\b{folder}\b"
    r"|(?:listdir|scandir|walk|Path|glob|opendir[^,]*,|readdir\w*)\s*\(?[^()\n]*[\"'](?:\./)?{folder}/?[\"']"
)
"""Goes through all files of a folder."""
_WORD = re.compile(r"[a-z]{5,}")
_NAME_TEST = re.compile(r"(?<!\bdevice)(?<!\bdevice\))\.(startswith|endswith)\(\s*(\([^()]*\)|[^(),]*)")
_IN_QUOTES = re.compile(r"[\"']([\w-]+)[\"']")
_SEARCHES = frozenset(
    (
        *("startswith", "endswith", "replace", "count", "find", "index", "rfind", "split", "partition", "rpartition"),
        *("search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "compile", "removeprefix"),
    )
)
"""Methods that look for a text in another one."""
_MATCHES = frozenset(("search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split", "compile"))
"""Those of which it may be a regular expression."""
_CUTS = frozenset(("partition", "rpartition", "split", "rsplit", "strip", "group", "groups"))
"""Methods that cut a part from a text."""
_OTHER_SYNTAX = ((r"\K", ""), (r"\<", r"\b"), (r"\>", r"\b"), ("[:space:]", r"\s"), ("[:alnum:]", "a-zA-Z0-9"))
"""What regular expressions of other programs have, and Python's have not."""
_ONE_CHARACTER = re.compile(r"\[(?:\[:\w+:\]|[^\]])*\]")
_SHORTEST, _LONGEST = 3, 200
"""Characters of a pattern that is tried."""


@dataclass(frozen=True)
class TextChange:
    """What a fix changes in the text of a file: ``old`` and ``new`` are its lines, ``names`` those of the settings."""

    path: str
    old: str
    new: str
    names: Collection[str]

    @cached_property
    def name(self) -> str:
        """The name of the file."""
        return os.path.basename(self.path)

    @cached_property
    def _gone(self) -> frozenset[str]:
        """The words of names that are not in the new lines."""
        return frozenset(_WORD.findall(" ".join(self.names))) - frozenset(_WORD.findall(self.new))

    def has_gone(self, text: str) -> bool:
        """Return whether a text has a word that goes."""
        return not self._gone.isdisjoint(_WORD.findall(text))

    def is_seen_by(self, pattern: str) -> bool:
        """Return whether a text, or a regular expression, is in the old lines only, or in the new ones only."""
        if len(pattern.strip()) < _SHORTEST:
            return False
        if (pattern in self.old) != (pattern in self.new):
            return True
        compiled = _compiled(pattern)
        return compiled is not None and (compiled.search(self.old) is None) != (compiled.search(self.new) is None)

    def is_cut_by(self, pattern: str) -> bool:
        """Return whether a regular expression gets something else from the old lines than from the new ones."""
        every = filter(None, map(_compiled, (pattern, _BASIC.sub(r"\1", pattern))))
        old, new = f"{self.old}\n", f"{self.new}\n"
        return self.is_seen_by(pattern) or any(_parts(one, old) != _parts(one, new) for one in every)


def _parts(pattern: re.Pattern[str], text: str) -> list[str]:
    """Return what a pattern matches in a text, but nothing."""
    return [match.group() for match in pattern.finditer(text) if match.group()]


@lru_cache(maxsize=16384)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """Return a text as a regular expression; None if it is none."""
    is_pattern = _IS_PATTERN.search(pattern) and not _ONE_CHARACTER.fullmatch(pattern)
    if not _SHORTEST <= len(pattern) <= _LONGEST or not is_pattern:
        return None
    for written, read in _OTHER_SYNTAX:
        pattern = pattern.replace(written, read)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern, re.MULTILINE)
    except (re.error, RecursionError, OverflowError):
        return None


def tools_about(change: TextChange, texts: ProjectTexts) -> Iterator[TextPlace]:
    """Yield the places that look at the text of a file that a fix changes, in the files that can be about it."""
    tools = texts.holding((*_TOOL_WORDS, *_OTHER_WORDS, *_READ_WORDS))
    named = texts.holding((change.name,))
    started = {one for path in named if not path.endswith(PAGES) for one in _started_by(path, texts.text(path), change)}
    for path in sorted({*tools, *named, *started}):
        is_own = path == change.path and not path.endswith(SHELL)
        if is_own or path.endswith(".log") or is_part_of_megatron(path):
            continue
        text = texts.text(path)
        if "\0" in text:
            # An image, or an archive: no program.
            continue
        is_started = path in started
        is_reached = is_started or reaches(text, change.path)
        place = _in_code(text, change, is_reached=is_reached) if path.endswith(CODE) else None
        if not path.endswith(".py") or _STARTS.search(text):
            place = place or _in_script(path, text, change, is_reached=is_reached, is_started=is_started)
        if place is not None:
            yield path, *place


def _started_by(path: str, text: str, change: TextChange) -> Iterator[str]:
    """Yield the programs of a project that another one starts with a file."""
    for line in text.split("\n"):
        if change.name in line:
            for name in _PROGRAM.findall(line):
                program = os.path.realpath(os.path.join(os.path.dirname(path), name))
                if program != change.path and os.path.isfile(program):
                    yield program


def _in_script(
    path: str, text: str, change: TextChange, *, is_reached: bool, is_started: bool
) -> tuple[int, str] | None:
    """Return the first line of a script, with its number, that works on the text of a file."""
    if path.endswith(_PATCHES):
        return (
            (1, change.name) if re.search(rf"^[-+]{{3}} .*\b{re.escape(change.name)}\b", text, re.MULTILINE) else None
        )
    if is_reached and path.endswith(PAGES) and (match := _INCLUDES.search(text)):
        return text.count("\n", 0, match.start()) + 1, match.group().strip()
    is_named = is_reached or _OWN_TEXT.search(text) is not None
    is_any_line = is_reached and path.endswith(_LANGUAGES)
    lines = _code_lines(text, path.endswith(PAGES))
    for at, line, has_variable, has_tool in lines if is_reached or is_started else filter(_has_tool, lines):
        has_file = (is_started and has_variable) or (is_reached and reaches(line, change.path))
        if has_file and (_is_read_as_text(path, line, change) or _DIGEST.search(text)):
            return at, line.strip()[:60]
        if not is_any_line and not (has_tool and (is_named or has_variable)):
            continue
        patterns = chain(_patterns_in(line), _INNER[0].findall(line) if is_any_line else ())
        if any(_sees(change, one, is_named=is_named) for one in patterns):
            return at, line.strip()[:60]
    return None


class _CodeLine(NamedTuple):
    """A line of a script, with its number."""

    at: int
    text: str
    has_variable: bool
    has_tool: bool
    """Whether it has a tool that looks for a pattern."""


_has_tool = attrgetter("has_tool")


@lru_cache(maxsize=4096)
def _code_lines(text: str, is_page: bool) -> list[_CodeLine]:
    """Return the lines of a script, or the commands of a page; it is called again for each fix."""
    return [
        _CodeLine(at, line, _VARIABLE.search(line) is not None, _TOOLS.search(line) is not None)
        for at, line in enumerate(text.split("\n"), 1)
        if not line.lstrip().startswith("#") and (not is_page or _IS_COMMAND.match(line))
    ]


def _sees(change: TextChange, pattern: str, *, is_named: bool) -> bool:
    """Return whether a pattern sees a change; one for any file has a word that goes."""
    return change.is_cut_by(pattern) if is_named else change.has_gone(pattern) and change.is_seen_by(pattern)


def _is_read_as_text(path: str, line: str, change: TextChange) -> bool:
    """Return whether a command gets a file as text: any that is not known to pass it on, to copy or to show it."""
    if path.endswith(".py"):
        return False
    if _BY_POSITION.search(_SAID.sub("", line)):
        return True
    if not path.endswith(SHELL) or change.name not in line:
        return False
    part = next((one for one in _COMMANDS.split(line) if change.name in one), line)
    # A tool with a pattern is tried.
    has_pattern = _TOOLS.search(part) is not None and " -f" not in part
    return not has_pattern and _PASSES_ON.match(part) is None and _COPIES.search(part) is None


def _in_code(text: str, change: TextChange, *, is_reached: bool) -> tuple[int, str] | None:
    """Return the first line of Python, with its number, that works on the text of a file."""
    is_of_code = change.path.endswith(".py")
    if is_of_code and (match := _first(_OF_CODE, text)):
        return text.count("\n", 0, match.start()) + 1, match.group()
    if not _first(_READS_TEXT, text):
        return None
    if is_reached or (is_of_code and _first(_ANY_CODE, text)):
        match = _BY_POSITION_IN_CODE.search(_about(text, change))
        if match is None and is_of_code:
            match = _OF_SYNTAX.search(text)
        if match is not None:
            return text.count("\n", 0, match.start()) + 1, match.group()
    if not is_reached and not _first(_ANY_FILE, text):
        return None
    for line, value, is_pattern in _searched_in(text, is_reached and _LINES.search(text) is not None):
        is_of_line = is_reached or change.has_gone(value) or not (value.isalnum() or _is_of_any_line(value))
        if is_of_line and (change.is_cut_by(value) if is_reached and is_pattern else change.is_seen_by(value)):
            return line, value[:60]
    return None


def _is_of_any_line(pattern: str) -> bool:
    """Return whether a regular expression matches lines with any settings: code that is about some has none such."""
    compiled = _compiled(pattern)
    return compiled is not None and compiled.search("--num-layers 4\nseq_length: 1024\nhidden_size = 64") is not None


@lru_cache(maxsize=16384)
def _first(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """Return the first match in a text, which is searched again for each fix."""
    return pattern.search(text)


def _about(text: str, change: TextChange) -> str:
    """Return code without what loads a file, and without loops over the lines of other files, which it names."""
    lines = text.split("\n")
    for line, names in _files_read_by_line(text):
        lines[line - 1] = lines[line - 1] if change.name in names else ""
    return _LOADS.sub("load()", "\n".join(lines))


@lru_cache(maxsize=4096)
def _files_read_by_line(text: str) -> list[tuple[int, list[str]]]:
    """Return the lines of code with a loop over a file whose name it has, each with the names that this may be."""
    tree = _tree(text)
    values: dict[str, list[ast.expr]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
    result = []
    for node in walk(tree):
        match node:
            case ast.With(items=[ast.withitem(ast.Call(func=ast.Name("open"), args=[path, *_]), ast.Name(name))]):
                every = values.get(path.id, [path]) if isinstance(path, ast.Name) else [path]
                files = [[str(one.value) for one in _texts_in(value) if "." in str(one.value)] for value in every]
                if all(files):
                    loops = (one for one in walk(node) if isinstance(one, ast.For) and dotted(one.iter) == name)
                    result += [(one.lineno, [file[-1].rpartition("/")[2] for file in files]) for one in loops]
    return result


@lru_cache(maxsize=4096)
def _searched_in(text: str, is_by_line: bool) -> list[tuple[int, str, bool]]:
    """Return the texts that code looks for, with their lines, and whether they may be regular expressions.

    It is called again for each fix. What code compares with the parts of a line is looked for as well.
    """
    tree = _tree(text)
    compared = ((one, False) for one in _compared_in(tree)) if is_by_line else ()
    return [
        (one.lineno, one.value.decode("latin-1") if isinstance(one.value, bytes) else str(one.value), is_pattern)
        for one, is_pattern in chain(searches_in(tree), compared)
    ]


def _tree(text: str) -> ast.Module:
    """Return the syntax of code, that of an empty file if it has none."""
    return parsed(text) or ast.Module([], [])


def searches_in(tree: ast.AST) -> Iterator[tuple[ast.Constant, bool]]:
    """Yield the texts that code looks for in others, or that have names; and whether they may be patterns."""
    mappings = _with_keys(tree)
    for node in walk(tree):
        match node:
            case ast.Compare(left, [ast.In() | ast.NotIn(), *_], [where, *_]) if id(where) not in mappings:
                yield from ((text, False) for text in _texts_in(left))
            case ast.Call(func=ast.Attribute(attr=name), args=args) if name in _SEARCHES:
                yield from ((text, name in _MATCHES) for one in args for text in _texts_in(one))
            case ast.Assign(value=ast.Constant() as value):
                yield from ((text, True) for text in _texts_in(value))


def _with_keys(tree: ast.AST) -> set[int]:
    """Return the nodes of names whose entries a function gets by texts, which are mappings and no texts."""
    result: set[int] = set()
    for function in walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes = [*walk(function)]
            keyed = (one for one in nodes if isinstance(one, ast.Subscript))
            stored = Counter(dotted(one) for one in nodes if isinstance(getattr(one, "ctx", None), ast.Store))
            names = {dotted(one.value) for one in keyed if isinstance(getattr(one.slice, "value", 0), str)}
            names = {name for name in names if name and stored[name] <= 1}
            result |= {id(one) for one in nodes if isinstance(one, ast.expr) and dotted(one) in names}
    return result


def _compared_in(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the texts that code compares with a part that it cut from something."""
    cut = {
        one.id
        for node in walk(tree)
        if isinstance(node, ast.Assign) and getattr(getattr(node.value, "func", None), "attr", "") in _CUTS
        for target in node.targets
        for one in _names_in(target)
    }
    for node in walk(tree):
        if isinstance(node, ast.Compare) and any(one.id in cut for one in _names_in(node.left)):
            yield from (text for one in node.comparators for text in _texts_in(one))


def _names_in(node: ast.AST) -> Iterator[ast.Name]:
    return (one for one in walk(node) if isinstance(one, ast.Name))


def _texts_in(node: ast.AST) -> Iterator[ast.Constant]:
    every = (one for one in walk(node) if isinstance(one, ast.Constant))
    return (one for one in every if isinstance(one.value, (str, bytes)))


def reaches(text: str, path: str) -> bool:
    """Return whether a text has the name of a file, a pattern of names that it matches, or all files of its folder."""
    folder, name = os.path.split(path)
    if name in text:
        return True
    # Lines without a pattern are many, and would take the places of the others in the cache.
    patterns = _patterns_of_names(text) if "*" in text or "%" in text else ()
    if any(fnmatch(name, one) and (not above or above in folder.split("/")) for above, one in patterns):
        return True
    return os.path.basename(folder) in text and _has_all_of(text, os.path.basename(folder))


@lru_cache(maxsize=65536)
def _patterns_of_names(text: str) -> list[tuple[str, str]]:
    """Return the patterns of names of files in a text, each with a folder above; it is called again for each fix."""
    every = (one.replace("%", "*").rpartition("/")[::2] for one in _GLOB.findall(text))
    return sorted({("".join(_FOLDER.findall(above)[-1:]), one) for above, one in every if one.strip("*.")})


@lru_cache(maxsize=65536)
def _has_all_of(text: str, folder: str) -> bool:
    return bool(folder) and re.search(_ALL_OF.format(folder=re.escape(folder)), text) is not None


def names_from_outside(text: str, path: str, top: str) -> bool:
    """Return whether a text of another project has the name of a file, or a pattern of paths that it matches."""
    if os.path.basename(path) in text:
        return True
    own = os.path.relpath(path, top) if (patterns := _patterns_of_paths(text)) else ""
    return any(fnmatch(own, one) for one in patterns)


@lru_cache(maxsize=4096)
def _patterns_of_paths(text: str) -> list[str]:
    # A search for patterns takes time for each character.
    lines = [line for line in text.split("\n") if "*" in line and "/" in line]
    every = {one.lstrip("./") for one in _GLOB.findall("\n".join(lines))}
    return sorted(one for one in every if re.search(r"\w/", one))


def _patterns_in(line: str) -> Iterator[str]:
    """Yield the texts of a command that may be patterns: its words, and what is substituted."""
    for match in _QUOTED.finditer(line):
        quoted = match[1] or match[2] or ""
        if _TOOLS.search(quoted):
            yield from _patterns_in(quoted)
        if _SUBSTITUTION.match(quoted):
            yield from (one[2] for part in quoted.split(";") if (one := _SUBSTITUTION.match(part)))
        else:
            yield quoted
        for pattern in _INNER if _SCRIPTED.search(line) else ():
            yield from pattern.findall(quoted)
    for word in _QUOTED.sub(" ", line).split():
        yield word.removesuffix(":")
        if one := _SUBSTITUTION.match(word):
            yield one[2]


def name_parts_in(texts: ProjectTexts, names: Collection[str]) -> Iterator[TextPlace]:
    """Yield the places that make a name or a flag of parts: ``--cuda-graph-$WHAT``, ``$GRAPH-scope``."""
    gaps = [(name, match.start()) for name in names for match in re.finditer("_", name)]
    begins, ends = {name[: at + 1] for name, at in gaps}, {name[at:].replace("_", "-") for name, at in gaps}
    spelled = sorted({*begins, *(one.replace("_", "-") for one in begins)})
    pattern = re.compile(
        rf"(?<![A-Za-z0-9])(?:{'|'.join(spelled)})(?=[${{%\"'<+])"
        rf"|(?:(?<=[}}\"'>)])|(?<=%s)|(?<=\$)\w+)(?:{'|'.join(sorted(ends))})(?![\w-])"
    )
    for path in texts.holding((*spelled, *sorted(ends))):
        if not is_part_of_megatron(path) and (match := _first(pattern, texts.text(path))):
            yield path, texts.text(path).count("\n", 0, match.start()) + 1, match.group()


def name_patterns_in(texts: ProjectTexts, names: Collection[str]) -> Iterator[TextPlace]:
    """Yield the patterns that match some of the names whole, or what they begin with, and not others."""
    every = [re.split("[_-]", name.strip("-")) for name in names]
    words = {word for parts in every for word in (parts[0], parts[-1])}
    spelled = {text for word in words for text in (f"({word}", f"|{word}", f"^{word}", f"{word}|", f"{word})")}
    for word in words:
        parts = [(word[:size], word[-size:]) for size in range(_SHORTEST, len(word) + 1)]
        spelled |= {text for begin, end in parts for text in (f"{begin}*", f"*{end}", f"{begin}.*", f"{begin}\\w")}
    ends = frozenset(part for word in words for part in (word[:_SHORTEST], word[-_SHORTEST:]))
    for path in texts.holding(spelled):
        is_other = is_part_of_megatron(path) or path.endswith(PAGES)
        for at, pattern in _patterns_of(path, texts.text(path), ends) if not is_other else ():
            if _IS_PATTERN.search(pattern.replace(".", "")) and _distinguishes(pattern, names):
                yield path, at, pattern[:60]


@lru_cache(maxsize=4096)
def _patterns_of(path: str, text: str, words: frozenset[str]) -> list[tuple[int, str]]:
    """Return the texts with some words that may be patterns, with their lines: in code, those in quotes."""
    every: Iterable[tuple[int, str]] = _texts_of(text) if path.endswith(".py") else ()
    if not every:
        lines = ((at, line) for at, line in enumerate(text.split("\n"), 1) if any(word in line for word in words))
        every = ((at, pattern) for at, line in lines for pattern in {*_patterns_in(line)})
    return [(at, one) for at, one in every if any(word in one for word in words)]


@lru_cache(maxsize=4096)
def _texts_of(code: str) -> list[tuple[int, str]]:
    """Return the texts in code, with their lines; it is called again for other names."""
    return [(one.lineno, str(one.value)) for one in _texts_in(_tree(code))]


def _distinguishes(pattern: str, names: Collection[str]) -> bool:
    """Return whether a regular expression, or a pattern of file names, matches some names and not others."""
    compiled = _compiled(pattern)
    results = {compiled is not None and compiled.search(name) is not None for name in names}
    globs = {fnmatch(name, pattern) for name in names}
    return len(results) > 1 or len(globs) > 1


def name_tests_in(texts: ProjectTexts, names: Collection[str]) -> Iterator[TextPlace]:
    """Yield the places of code that distinguish names by how they begin or end, or look for them in a text."""
    for path in texts.holding(("startswith(", "endswith(")):
        if not path.endswith(CODE) or is_part_of_megatron(path):
            continue
        text = texts.text(path)
        for match in _NAME_TEST.finditer(text):
            parts = tuple(_IN_QUOTES.findall(match[2]))
            results = [getattr(name, match[1])(parts) for name in names]
            if any(results) and not all(results):
                yield path, text.count("\n", 0, match.start()) + 1, match.group()


def searches_of_objects(texts: ProjectTexts, before: Settings, after: Settings) -> Iterator[TextPlace]:
    """Yield the code that looks for something in the text of an object, and finds something else there than before."""
    names = before.keys() | after.keys()
    change = TextChange("", _text_of(before), _text_of(after), names)
    for path, line, value in _searched_in_objects(texts):
        # The text of an object has a name before each value.
        if change.is_seen_by(value) or ("=" in value and change.is_cut_by(value)):
            yield path, line, value[:60]


def _text_of(settings: Settings) -> str:
    # An object has other fields, too.
    return ", ".join(["num_layers=2", *(f"{name}={value!r}" for name, value in settings.items())])


@lru_cache(maxsize=64)
def _searched_in_objects(texts: ProjectTexts) -> list[TextPlace]:
    """Return what code looks for in the texts of objects."""
    paths = [one for one in texts.holding(("repr(", "str(")) if one.endswith(CODE) and not is_part_of_megatron(one)]
    every = ((path, node) for path in paths for node in walk(_tree(texts.text(path))))
    nodes = ((path, one) for path, one in every if isinstance(one, (ast.Compare, ast.Call)) and _has_text_of(one))
    return [(path, one.lineno, str(one.value)) for path, node in nodes for one, _ in searches_in(node)]


def _has_text_of(node: ast.Compare | ast.Call) -> bool:
    """Return whether a search is in the text of something: ``"x" in str(a)``, ``repr(a).count("x")``."""
    parts: list[ast.expr] = [*node.comparators] if isinstance(node, ast.Compare) else [*node.args]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        parts.append(node.func.value)
    return any(isinstance(one, ast.Call) and dotted(one.func) in ("repr", "str") for one in parts)
