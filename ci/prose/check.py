"""Look for the words of words.yaml in names, comments, messages and prose.

`python ci/prose/check.py` lists every use with what to write instead, and exits with 1 if there is one.
Paths as arguments limit the check to them.
"""

import functools
import io
import keyword
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
LISTS = Path(__file__).with_name("words.yaml")

# Generated, recorded or quoted text, and data of tests.
EXEMPT = re.compile(
    r"CHANGELOG\.md|LICENSE|ci/prose/|docs/rules/|docs/verification/.*\.(json|html|txt)$"
    r"|tests/(golden|fixtures|tables)/|.*\.(png|svg|gz|schema\.json)$"
)
GAP = r"(?:\s|#|[\"'] *\n\s*[rf]*[\"'])+"  # between two words of a phrase, also across the lines of a comment
FOREIGN_IMPORT = re.compile(r"\s*(from|import) (?!cgmigrate|tests)")
PART_OF_NAME = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


@dataclass(frozen=True)
class Text:
    """A name, or a piece of prose, and the line where it begins."""

    line: int
    content: str
    is_name: bool


@dataclass(frozen=True)
class Entry:
    """A word or phrase to avoid."""

    pattern: re.Pattern[str]
    instead: str
    in_prose: bool


@dataclass(frozen=True)
class Match:
    """One use of an entry."""

    path: str
    line: int
    use: str
    instead: str


@functools.cache
def lists() -> tuple[list[Entry], re.Pattern[str], re.Pattern[str]]:
    """Return the entries, and the patterns of allowed names and allowed prose."""
    content = yaml.safe_load(LISTS.read_text())
    entries = []
    for words, value in (content["words"] | content["phrases"]).items():
        instead, names_only = (value["instead"], True) if isinstance(value, dict) else (value, False)
        pattern = re.compile(rf"(?<![\w-])(?:{words.replace(' ', GAP)})(?![\w-])", re.IGNORECASE)
        entries.append(Entry(pattern, instead, not names_only))
    allowed = content["allow"]
    names = re.compile("|".join(allowed["names"]))
    prose = re.compile(
        "|".join(rf"(?<!\w){words.replace(' ', GAP)}(?!\w)" for words in allowed["prose"]), re.IGNORECASE
    )
    return entries, names, prose


def _is_foreign(token: tokenize.TokenInfo) -> bool:
    """Return whether a name is imported from another package, or is that of a decorator."""
    if FOREIGN_IMPORT.match(token.line):
        return True
    return token.line.lstrip().startswith(f"@{token.string}")


def texts_of_python(source: str, strings: bool) -> Iterator[Text]:
    """Yield names, comments and docstrings; with `strings` all other strings, too."""
    comments: list[tokenize.TokenInfo] = []
    starts_statement = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments.append(token)
        elif token.type != tokenize.NL and comments:
            yield Text(comments[0].start[0], "\n".join(comment.string for comment in comments), is_name=False)
            comments.clear()
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string) and not _is_foreign(token):
            is_sentence = token.string.startswith("test_")
            yield Text(token.start[0], token.string.replace("_", " ") if is_sentence else token.string, not is_sentence)
        elif token.type in (tokenize.STRING, tokenize.FSTRING_MIDDLE) and (strings or starts_statement):
            yield Text(token.start[0], token.string, is_name=False)
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            starts_statement = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def texts_of(path: str, source: str) -> Iterator[Text]:
    """Yield what is to be checked of a file. The strings of tests are mostly input, so they are not."""
    yield Text(1, re.sub(r"[/.-]", "_", path), is_name=True)
    if path.endswith((".py", ".pyi")):
        yield from texts_of_python(source, strings=not path.startswith("tests/"))
    else:
        yield Text(1, source, is_name=False)


def matches_of(path: str, source: str) -> Iterator[Match]:
    """Yield every use of a word or phrase in a file."""
    entries, allowed_names, allowed_prose = lists()
    for text in texts_of(path, source):
        if text.is_name:
            content = " ".join(PART_OF_NAME.findall(allowed_names.sub("", text.content)))
        else:
            content = allowed_prose.sub(lambda match: "\n" * match[0].count("\n"), text.content)
        for entry in entries:
            if not (text.is_name or entry.in_prose):
                continue
            for match in entry.pattern.finditer(content):
                line = text.line + content.count("\n", 0, match.start())
                use = text.content if text.is_name else " ".join(match[0].split())
                yield Match(path, line, use, entry.instead)


def files(paths: list[str]) -> list[str]:
    """Return the tracked text files to check."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *paths], cwd=ROOT, capture_output=True, check=True, text=True
    )
    return [path for path in listed.stdout.split("\0") if path and not EXEMPT.match(path) and (ROOT / path).is_file()]


def main() -> int:
    """List the uses, with what to write instead; return the exit status."""
    matches = [match for path in files(sys.argv[1:]) for match in matches_of(path, (ROOT / path).read_text())]
    for match in sorted(matches, key=lambda match: (match.path, match.line)):
        print(f"{match.path}:{match.line}: {match.use!r}: write {match.instead}")
    return 1 if matches else 0


if __name__ == "__main__":
    sys.exit(main())
