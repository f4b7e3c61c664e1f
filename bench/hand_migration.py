"""Compare `cgmigrate fix` with the hand migration of Megatron-LM itself, file by file.

    python bench/hand_migration.py CLONE             prints the table
    python bench/hand_migration.py CLONE --write     writes it into docs/verification/hand-migration.md

CLONE is a clone of Megatron-LM with the history of pull request 4292, which split the scope and moved the launch
scripts and the test cases of the repository to the new flags by hand. `fix --to 0.19` runs on its parent commit.
The result of each for a script or a test case is read again, as words of a command line, and judged by
`capture_of`. The exit status is 1 if a file is wrong.
"""

from __future__ import annotations

import argparse
import io
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import yaml

from cgmigrate import Capture, Rejected, capture_of
from cgmigrate.megatron.releases import LAST_OLD, NEWEST, Release

HAND = "e41b37002c"
"""The commit of pull request 4292; its parent is 54f90af076."""
PAGE = Path(__file__).parents[1] / "docs/verification/hand-migration.md"
NAMES = (
    r"(?:enable|external)[-_]cuda[-_]graph|cuda[-_]graph[-_](?:scope|impl|modules)|inference[-_]cuda[-_]graph[-_]scope"
)
FORMER = re.compile(r"(?<![\w-])--(?:enable-cuda-graph|external-cuda-graph|cuda-graph-scope)(?![\w-])")
SETTING = re.compile(rf"--({NAMES})(?:=(.*))?")
SUFFIXES = (".sh", ".yaml", ".yml")


class Verdict(Enum):
    """How the result of `fix` compares with the hand migration of a file."""

    SAME = "same"
    EQUIVALENT = "equivalent"
    BETTER = "better"
    LEFT = "left"
    WRONG = "wrong"


@dataclass(frozen=True)
class Compared:
    """One file with its verdict and the reason."""

    path: str
    verdict: Verdict
    reason: str = ""


# --- what a text sets -----------------------------------------------------------------------------------


def words_of(path: str, text: str) -> list[str]:
    """The words of the command lines in a text: those of a script, or the keys of a test case with their values."""
    if path.endswith(".sh"):
        return _words_of_script(text)
    words = []
    for flag, value in _flags_in(yaml.safe_load(text)):
        # The runner of the test cases writes a flag for true, nothing for false, and words in brackets as words.
        if value is not False:
            rest = [] if value is True else str(value).strip("[]").split()
            words += [flag, *rest]
    return words


def _words_of_script(text: str) -> list[str]:
    """The words of a script, and those in its strings; a line and a string of several words end with `--`."""
    lines = re.sub(r"^[ \t]*#.*", "", text.replace("\\\n", " "), flags=re.MULTILINE)
    lexer = shlex.shlex(lines.replace("\n", " \n "), posix=True)
    lexer.whitespace, lexer.whitespace_split = " \t\r", True
    words = []
    for word in lexer:
        inner = word.split()
        words += inner if len(inner) == 1 else [*inner, "--"]
    return words


def _flags_in(node: object) -> Iterator[tuple[str, object]]:
    if isinstance(node, dict):
        for key, value in node.items():
            if isinstance(key, str) and key.startswith("--"):
                yield key, value
            else:
                yield from _flags_in(value)
    elif isinstance(node, list):
        for item in node:
            yield from _flags_in(item)


def divided(words: Sequence[str]) -> tuple[dict[str, object], Counter[str]]:
    """The settings among words, and how often each other word is there."""
    settings: dict[str, object] = {}
    others: Counter[str] = Counter()
    at = 0
    while at < len(words):
        match, end = SETTING.fullmatch(words[at]), at + 1
        if match is None:
            others[words[at]] += 1
        else:
            while end < len(words) and not words[end].startswith("-"):
                end += 1
            name, values = match[1].replace("-", "_"), [*filter(None, [match[2]]), *words[at + 1 : end]]
            is_list = name in ("cuda_graph_scope", "cuda_graph_modules")
            settings[name] = (values if is_list else values[0]) if values else True
        at = end
    return settings, others


def captured(words: Sequence[str], release: Release) -> Capture | Rejected:
    """What a release captures with a command line."""
    return capture_of(divided(words)[0], release, "command_line")


def compared(path: str, before: str, ours: str, hand: str) -> Compared:
    """Compare what `fix` and the author made of one file."""
    if ours == hand:
        return Compared(path, Verdict.SAME)
    was, our_words, hand_words = (words_of(path, text) for text in (before, ours, hand))
    former, forgotten = FORMER.search(ours), FORMER.search(hand)
    legacy, migrated = captured(was, LAST_OLD), captured(our_words, NEWEST)
    if divided(was)[1] != divided(our_words)[1]:
        verdict, reason = Verdict.WRONG, "another argument changed"
    elif former:
        verdict, reason = Verdict.LEFT, f"`{former[0]}` is still there"
    elif isinstance(legacy, Rejected) or legacy != migrated:
        verdict, reason = Verdict.WRONG, f"{LAST_OLD} and {NEWEST} capture something else"
    elif forgotten:
        verdict, reason = Verdict.BETTER, f"the author left `{forgotten[0]}`"
    elif captured(hand_words, NEWEST) != migrated:
        verdict, reason = Verdict.BETTER, "the author changed what is captured"
    else:
        verdict, reason = Verdict.EQUIVALENT, "other order or place of the same flags"
    return Compared(path, verdict, reason)


# --- the repository -------------------------------------------------------------------------------------


def exported(clone: Path, commit: str, folder: Path) -> None:
    """Write the files of a commit into a folder that is a project of its own."""
    archive = subprocess.run(["git", "-C", clone, "archive", commit], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    subprocess.run(["git", "init", "--quiet", folder], check=True)


def fixed(folder: Path) -> None:
    """Run a plain `fix` on a folder."""
    command = [sys.executable, "-m", "cgmigrate", "fix", "--to", str(NEWEST), "--quiet", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)


def comparison(clone: Path) -> list[Compared]:
    """Compare every script and test case that `fix` or the author changed, or that has a former flag."""
    with tempfile.TemporaryDirectory() as name:
        before, hand, ours = (Path(name, one) for one in ("before", "hand", "ours"))
        for commit, folder in ((f"{HAND}^", before), (HAND, hand), (f"{HAND}^", ours)):
            exported(clone, commit, folder)
        fixed(ours)
        result = []
        for path in sorted(one for one in before.rglob("*") if one.suffix in SUFFIXES and one.is_file()):
            relative = path.relative_to(before)
            texts = [(folder / relative).read_bytes() for folder in (before, ours, hand)]
            if len(set(texts)) > 1 or FORMER.search(texts[0].decode()):
                result.append(compared(str(relative), *(text.decode() for text in texts)))
        return result


def table(files: Sequence[Compared]) -> str:
    """The comparison as a table, the counts below it."""
    counts = Counter(one.verdict for one in files)
    lines = ["| file | verdict | |", "|---|---|---|"]
    lines += [f"| `{one.path}` | {one.verdict.value} | {one.reason} |" for one in files]
    total = ", ".join(f"{verdict.value} {counts[verdict]}" for verdict in Verdict)
    return "\n".join([*lines, "", f"{len(files)} files: {total}."])


def with_table(page: str, shown: str) -> str:
    """The page with a table between its marks."""
    text, count = re.subn(
        r"(<!-- table -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}\n{shown}\n\n{m[2]}", page, flags=re.S
    )
    assert count == 1, "the page has a place for the table"
    return text


def main() -> int:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    files = comparison(arguments.clone)
    shown = table(files)
    if arguments.write:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), shown), encoding="utf-8")
    else:
        print(shown)
    return any(one.verdict is Verdict.WRONG for one in files)


if __name__ == "__main__":
    sys.exit(main())
