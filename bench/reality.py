"""Run cgmigrate over public repositories at fixed commits, and compare each line's outcome with the committed one.

    python bench/reality.py MIRRORS                 ten trees, three minutes
    python bench/reality.py MIRRORS --nightly       all trees, half an hour
    python bench/reality.py MIRRORS --only primus   these trees
    python bench/reality.py MIRRORS --execute       recipes, helpers and tests of Megatron-Bridge before and after `fix`
    python bench/reality.py .corpus --packages      released packages, unpacked, as CI has them

MIRRORS holds OWNER+NAME/repo, git directories of the repositories of `reality/trees.tsv`; one that is missing is named.
Lines whose outcome differs are printed, and the exit status is then 1. `--write` commits to the new outcomes instead.
`--scores` runs nothing: it counts what became of the judged lines, as committed.

A file `reality/lines/TREE.tsv` has the lines that are rewritten, reported or kept with a note, by path; a line that it
lacks is silent. Of the other projects it has places and what cgmigrate makes of settings, and no code.

    safe      rewritten by `fix`
    unsafe    rewritten with `--unsafe-fixes` only
    docs      rewritten with `--docs` only
    reported  has a diagnostic and no fix
    kept      in a note of names that are left unchanged

`reality/judgements.tsv` has lines that somebody read: `rewrite` (a fix exists that keeps what is captured), `report`
(it needs review) and `stay`. A line that must stay and is rewritten by `fix` makes the exit status 1.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "reality"
COSTS = DATA / "costs.tsv"
BRIDGE = "megatron-bridge"
PAGES = (".md", ".mdx", ".rst", ".txt")
NAMES = re.compile(
    r"(?i)(?:enable|external)[-_]cuda[-_]graph\b|cuda[-_]graph[-_](?:scope|impl|modules)\b|\bCudaGraph(?:Scope|Module)\b"
)
"""The settings of CUDA graphs that releases renamed, split or added, in any spelling."""
SETTING = re.compile(
    r"(?i)[-\w]*cuda[-_]?graph[-_\w]*[\"']?\s*(?:==|!=|[:=]|not in|in|\s)\s*(?:\[[^\]]*\]|[^\s,)#\]}]+)?"
)
STATES = ("changed", "reported", "silent")
Key = tuple[str, int]


# --- trees ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tree:
    """A state of a repository, or an unpacked package where it has no commit."""

    name: str
    repository: str = ""
    commit: str = ""
    source: str = "0.17"
    target: str = "0.19"
    short: str = ""

    def lay_out(self, mirrors: Path, folder: Path) -> None:
        """Make a checkout. Files that the mirror lacks (of 4 MB and more) are missing."""
        git = ["git", "-C", str(folder)]
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        if not self.commit:
            shutil.copytree(mirrors / self.name, folder, dirs_exist_ok=True, symlinks=True)
            subprocess.run([*git, "add", "-A", "-f"], check=True, capture_output=True)
            return
        (folder / ".git/objects/info/alternates").write_text(f"{self.mirror(mirrors) / 'objects'}\n", encoding="utf-8")
        subprocess.run([*git, "read-tree", self.commit], check=True)
        subprocess.run([*git, "checkout-index", "-a", "-f", "-u", "-q"], check=False, capture_output=True)

    def mirror(self, mirrors: Path) -> Path:
        """Return the git directory of the repository."""
        return (mirrors / self.repository.replace("/", "+", 1) / "repo").resolve()

    def missing(self, mirrors: Path) -> str:
        """Return what is missing to lay the tree out."""
        if not self.commit:
            return "" if (mirrors / self.name).is_dir() else f"{mirrors / self.name} is no folder"
        command = ["git", f"--git-dir={self.mirror(mirrors)}", "cat-file", "-e", f"{self.commit}^{{tree}}"]
        if not self.mirror(mirrors).is_dir():
            return f"no mirror of {self.repository}"
        return (
            ""
            if subprocess.run(command, capture_output=True).returncode == 0
            else f"{self.repository} lacks {self.commit}"
        )


def all_trees() -> list[Tree]:
    """Return the trees of the table."""
    return [Tree(**row) for row in rows_of(DATA / "trees.tsv")]


def trees_of(options: argparse.Namespace) -> list[Tree]:
    """Return the trees that the options choose."""
    rows = all_trees()
    if options.only:
        return [tree for tree in rows if tree.name in options.only]
    return [tree for tree in rows if bool(tree.commit) != options.packages and (options.nightly or tree.short)]


def rows_of(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table, by the names in its first line."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


# --- runs of cgmigrate ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cost:
    """What a command needed: seconds of CPU, and its peak memory in MB."""

    cpu: float
    memory: int


@dataclass(frozen=True)
class Tool:
    """The cgmigrate that is judged, with a cache of its own for each command."""

    command: Sequence[str]
    cache: Path

    def run(self, tree: Tree, folder: Path, *arguments: str) -> tuple[str, str, Cost]:
        """Return stdout, stderr and the cost of a command. Raises RuntimeError if it fails."""
        command = [*self.command, *arguments, "--from", tree.source, "--to", tree.target, "."]
        environment = {**os.environ, "CGMIGRATE_CACHE_DIR": str(self.cache / arguments[0])}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            texts = [_text(file) for file in (out, err)]
        if process.returncode not in (0, 1):
            raise RuntimeError(
                f"{tree.name}: {' '.join(arguments)} ended with {process.returncode}: {texts[1][-2000:]}"
            )
        return texts[0], texts[1], Cost(round(usage.ru_utime + usage.ru_stime, 1), usage.ru_maxrss // 1000)


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode("utf-8", "surrogateescape"))


# --- outcomes ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """What happens to a line."""

    outcome: str
    rules: str = ""
    text: str = ""
    """What its settings become, with a hash of all that is written; or the note that keeps it."""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.outcome, self.rules, self.text)))


@dataclass(frozen=True)
class Outcome:
    """What happens to the lines of a tree."""

    lines: Mapping[Key, Line]
    facts: Mapping[str, str] = field(default_factory=dict)
    costs: Mapping[str, Cost] = field(default_factory=dict)
    patch: str = ""


def outcome_of(tree: Tree, folder: Path, tool: Tool) -> Outcome:
    """Run `check` and `fix` on a checkout, which stays as it is."""
    report, remarks, check = tool.run(tree, folder, "check", "--verbose", "--output-format", "json")
    patch, _, fix = tool.run(tree, folder, "fix", "--diff")
    wide, _, _ = tool.run(tree, folder, "fix", "--diff", "--unsafe-fixes", "--docs")
    findings = json.loads(report)["findings"]
    safe, others, rules = changes(patch), changes(wide), rules_of(findings)
    lines = {key: Line("kept", "", note) for key, note in kept(remarks)}
    for key in sorted({*safe, *others, *rules}):
        codes = rules.get(key, "")
        if key in safe:
            also = f" (with unsafe fixes: {others[key]})" if others.get(key) not in (None, safe[key]) else ""
            lines[key] = Line("safe", codes, safe[key] + also)
        elif key in others:
            lines[key] = Line("docs" if key[0].endswith(PAGES) else "unsafe", codes, others[key])
        else:
            lines[key] = Line("reported", codes)
    facts = {
        "lines with a name": str(named_lines(folder)),
        "check": counts_of(findings),
        "safe in check, not written by fix": places(key for key in _unwritten(findings, safe)),
        "written by fix, not safe in check": places(_undeclared(findings, safe)),
    }
    return Outcome(lines, facts, {"check": check, "fix": fix}, patch)


def rules_of(findings: Sequence[Mapping[str, Any]]) -> dict[Key, str]:
    """Return the codes of each line, with their severity's first letter, and + for a safe fix, ~ for an unsafe one."""
    codes: defaultdict[Key, set[str]] = defaultdict(set)
    for one in findings:
        fix = {"safe": "+", "unsafe": "~"}.get(one["fix"]["safety"], "?") if one["fix"] else ""
        codes[os.path.normpath(one["path"]), one["line"] or 0].add(f"{one['rule']}{one['severity'][0]}{fix}")
    return {key: ",".join(sorted(values)) for key, values in codes.items()}


def counts_of(findings: Sequence[Mapping[str, Any]]) -> str:
    """Return how many diagnostics have a safe fix, an unsafe one, or none."""
    counts = Counter(one["fix"]["safety"] if one["fix"] else "no fix" for one in findings)
    return ", ".join(f"{number} {safety}" for safety, number in sorted(counts.items())) or "nothing"


def _unwritten(findings: Sequence[Mapping[str, Any]], safe: Mapping[Key, str]) -> Iterator[Key]:
    written = {path for path, _ in safe}
    for one in findings:
        if (
            one["fix"]
            and one["fix"]["safety"] == "safe"
            and not written & set(map(os.path.normpath, one["fix"]["files"]))
        ):
            yield os.path.normpath(one["path"]), one["line"]


def _undeclared(findings: Sequence[Mapping[str, Any]], safe: Mapping[Key, str]) -> Iterator[Key]:
    fixes = [one["fix"] for one in findings if one["fix"] and one["fix"]["safety"] == "safe"]
    declared = {os.path.normpath(path) for fix in fixes for path in fix["files"]}
    return (key for key in safe if key[0] not in declared)


def places(keys: Iterable[Key]) -> str:
    """Return how many lines these are in which files."""
    counts = Counter(path for path, _ in keys)
    return f"{counts.total()} in {len(counts)} files {_digest(sorted(counts.items()))}" if counts else "none"


def changes(patch: str) -> dict[Key, str]:
    """Return what the lines that a patch removes become; lines that it only adds count for the line before them."""
    result: dict[Key, str] = {}
    for path, start, hunk in _hunks(patch):
        number = start
        for is_same, block in itertools.groupby(hunk, lambda line: line.startswith(" ")):
            lines = list(block)
            removed = [number + index for index in range(sum(not line.startswith("+") for line in lines))]
            number += len(removed)
            if is_same:
                continue
            added = [line[1:] for line in lines if line.startswith("+")]
            texts = [[text] for text in added] if len(removed) == len(added) else [added] * max(1, len(removed))
            keys = [(path, one) for one in removed or [max(number - 1, 1)]]
            result |= {key: written(text) for key, text in zip(keys, texts, strict=True)}
    return result


def _hunks(patch: str) -> Iterator[tuple[str, int, list[str]]]:
    """Yield the path, the first line and the lines of each hunk."""
    path = ""
    for part in re.split(r"(?m)^(?=--- |@@ )", patch):
        head, *lines = part.split("\n")
        if hunk := re.match(r"@@ -(\d+)(?:,(\d+))?", head):
            # A hunk without old lines comes after the line that it names.
            yield path, int(hunk[1]) + (hunk[2] == "0"), [line for line in lines if re.match(r"[-+ ]", line)]
        elif head.startswith("--- "):
            path = os.path.normpath(head[4:].split("\t")[0].removeprefix("a/"))


def written(lines: Sequence[str]) -> str:
    """Return the settings in new lines, shortened, and a hash of the lines."""
    if not "".join(lines).strip():
        return "deleted"
    settings = [" ".join(match[0].split()) for line in lines for match in SETTING.finditer(line)]
    return f"{'; '.join(settings)[:60].rstrip()} #{_digest(lines)}".strip()


def kept(remarks: str) -> Iterator[tuple[Key, str]]:
    """Yield the places below notes, each with its note."""
    note = ""
    for line in remarks.split("\n"):
        if line.startswith("note: "):
            note = line[6:].rstrip(":")
        elif note and (place := re.match(r"  (\S.*?):(\d+): ", line)):
            yield (os.path.normpath(place[1]), int(place[2])), note
        elif not line.startswith("  "):
            note = ""


def named_lines(folder: Path) -> int:
    """Return how many lines of the files of git have a name."""
    listed = subprocess.run(["git", "-C", str(folder), "ls-files", "-z"], check=True, capture_output=True).stdout
    number = 0
    for name in filter(None, listed.decode("utf-8", "surrogateescape").split("\0")):
        path = folder / name
        if path.is_file() and not path.is_symlink():
            with contextlib.suppress(UnicodeDecodeError):
                number += sum(bool(NAMES.search(line)) for line in path.read_text(encoding="utf-8").split("\n"))
    return number


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()[:6]


# --- committed outcomes -----------------------------------------------------------------------------


def file_of(tree: Tree) -> Path:
    """Return where the lines of a tree are committed."""
    return DATA / "lines" / f"{tree.name}.tsv"


def save(tree: Tree, outcome: Outcome) -> None:
    """Write the lines of a tree, by path."""
    notes = list(dict.fromkeys(line.text for line in outcome.lines.values() if line.outcome == "kept"))
    rows = [f"# {name}\t{value}" for name, value in outcome.facts.items()]
    rows += [f"# n{number}\t{note}" for number, note in enumerate(notes)]
    last = ""
    for (path, number), line in sorted(outcome.lines.items()):
        rows += [path] if path != last else []
        text = f"n{notes.index(line.text)}" if line.outcome == "kept" else line.text
        rows.append(f"\t{number}\t{line.outcome}\t{line.rules}\t{text}".rstrip())
        last = path
    file_of(tree).write_text("\n".join(rows) + "\n", encoding="utf-8", errors="backslashreplace")


def load(tree: Tree) -> Outcome | None:
    """Return the committed lines of a tree."""
    if not file_of(tree).is_file():
        return None
    facts: dict[str, str] = {}
    lines: dict[Key, Line] = {}
    path = ""
    for row in file_of(tree).read_text(encoding="utf-8").splitlines():
        if row.startswith("# "):
            name, _, value = row[2:].partition("\t")
            facts[name] = value
        elif row.startswith("\t"):
            number, outcome, rules, text = (*row[1:].split("\t"), "", "")[:4]
            lines[path, int(number)] = Line(outcome, rules, facts[text] if outcome == "kept" else text)
        else:
            path = row
    return Outcome(lines, {name: value for name, value in facts.items() if not re.fullmatch(r"n\d+", name)})


def differences(before: Outcome, now: Outcome) -> Iterator[str]:
    """Yield what differs. A note in other words is one difference."""
    words: Counter[tuple[str, str]] = Counter()
    for key in sorted({*before.lines, *now.lines}):
        old, new = (one.lines.get(key, Line("silent")) for one in (before, now))
        if old.outcome == new.outcome == "kept" and old != new:
            words[old.text, new.text] += 1
        elif old != new:
            yield f"{key[0]}:{key[1]}: {old} -> {new}"
    yield from (f"{count} lines kept with another note: {old!r} -> {new!r}" for (old, new), count in words.items())
    for name in {**before.facts, **now.facts}:
        if before.facts.get(name) != now.facts.get(name):
            yield f"{name}: {before.facts.get(name)} -> {now.facts.get(name)}"


# --- judgements -------------------------------------------------------------------------------------


def judged(tree: Tree, outcome: Outcome) -> tuple[Counter[tuple[str, str]], list[str]]:
    """Return how many lines of each judgement `fix` changed and `check` reports, and the wrongly changed ones."""
    counts: Counter[tuple[str, str]] = Counter()
    wrong = []
    for row in rows_of(DATA / "judgements.tsv"):
        if row["tree"] != tree.name:
            continue
        line = outcome.lines.get((row["path"], int(row["line"])), Line("silent"))
        state = "changed" if line.outcome == "safe" else "reported" if line.rules else "silent"
        counts[row["judgement"], state] += 1
        if row["judgement"] == "stay" and state == "changed":
            wrong.append(f"must stay ({row['reason']}), but is rewritten: {row['path']}:{row['line']}")
    return counts, wrong


def scores(counts: Counter[tuple[str, str]]) -> str:
    """Return a sentence with the counts."""
    kinds = [kind for kind in ("rewrite", "report", "stay") if any(kind == one for one, _ in counts)]
    return "; ".join(f"{kind}: {', '.join(f'{counts[kind, state]} {state}' for state in STATES)}" for kind in kinds)


# --- Megatron-Bridge, executed ----------------------------------------------------------------------


def execute(mirrors: Path, tool: Tool, folder: Path, made: Path | None, python: str | None) -> int:
    """Run recipes, helpers and unit tests of Megatron-Bridge before and after `fix`, or a patch that it made before.

    ``python`` runs the unit tests. Return how many steps fail.
    """
    tree = next(one for one in all_trees() if one.name == BRIDGE)
    before, after, megatron = folder / "before", folder / "after", folder / "megatron-lm"
    for one in (before, after):
        tree.lay_out(mirrors, one)
    patch = made.read_bytes() if made else tool.run(tree, before, "fix", "--diff")[0].encode("utf-8", "surrogateescape")
    subprocess.run(["git", "-C", str(after), "apply", "-"], input=patch, check=True)
    pin = subprocess.run(
        ["git", f"--git-dir={tree.mirror(mirrors)}", "rev-parse", f"{tree.commit}:3rdparty/Megatron-LM"],
        check=True,
        capture_output=True,
        text=True,
    )
    core = replace(tree, repository="NVIDIA/Megatron-LM", commit=pin.stdout.strip())
    if missing := core.missing(mirrors):
        print(f"unit tests run with the installed megatron-core: {missing}")
    else:
        core.lay_out(mirrors, megatron)
    trees = [str(before), str(after)]
    steps = [[sys.executable, name, *trees] for name in ("bridge_recipes", "bridge_helpers", "left_lines")]
    if python:
        steps.append([python, "bridge_tests", *trees, *(["--megatron", str(megatron)] if not missing else [])])
    else:
        print("unit tests are skipped: no --tests")
    failed = 0
    for interpreter, name, *arguments in steps:
        print(f"== {name}", flush=True)
        script = str(Path(__file__).with_name(f"{name}.py"))
        failed += subprocess.run([interpreter, script, *arguments], check=False).returncode != 0
    return failed


# --- command ----------------------------------------------------------------------------------------


def examine(tree: Tree, mirrors: Path, command: Sequence[str]) -> Outcome:
    """Lay a tree out in a temporary folder, and return what happens to its lines."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "tree")
        tree.lay_out(mirrors, folder)
        return outcome_of(tree, folder, Tool(command, Path(scratch, "cache")))


def report(tree: Tree, now: Outcome, *, writes: bool) -> tuple[Counter[tuple[str, str]], bool]:
    """Print what a tree has become. Return its judged lines, and whether it needs review."""
    before = load(tree)
    texts = list(differences(before, now)) if before else ["no committed lines"]
    counts, wrong = judged(tree, now)
    outcomes = ", ".join(
        f"{number} {outcome}" for outcome, number in sorted(Counter(o.outcome for o in now.lines.values()).items())
    )
    former = {row["command"]: row for row in rows_of(COSTS) if row["tree"] == tree.name} if COSTS.is_file() else {}
    costs = "; ".join(
        f"{name} {cost.cpu} s {cost.memory} MB{_former(former.get(name))}" for name, cost in now.costs.items()
    )
    print(f"{tree.name}: {outcomes or 'silent'} | {costs} | {'the same' if not texts else f'{len(texts)} differ'}")
    print(*(f"  {text}" for text in (*wrong, *texts)), sep="\n", end="\n" if wrong or texts else "", flush=True)
    if writes:
        save(tree, now)
        save_costs(tree, now.costs)
    return counts, bool(wrong or (texts and not writes))


def _former(row: Mapping[str, str] | None) -> str:
    return f" ({row['cpu']} s {row['memory']} MB)" if row else ""


def save_costs(tree: Tree, costs: Mapping[str, Cost]) -> None:
    """Write the costs of a tree beside those of the others."""
    rows = (
        {(row["tree"], row["command"]): (row["cpu"], row["memory"]) for row in rows_of(COSTS)}
        if COSTS.is_file()
        else {}
    )
    rows |= {(tree.name, command): (str(cost.cpu), str(cost.memory)) for command, cost in costs.items()}
    lines = ["tree\tcommand\tcpu\tmemory", *("\t".join((*key, *value)) for key, value in sorted(rows.items()))]
    COSTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Print the lines that differ."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("mirrors", type=Path, metavar="MIRRORS", nargs="?", default=Path("."))
    parser.add_argument("--short", action="store_true", help="the ten trees of every day (default)")
    parser.add_argument("--nightly", action="store_true", help="all trees")
    parser.add_argument("--packages", action="store_true", help="MIRRORS holds unpacked packages")
    parser.add_argument("--only", nargs="+", metavar="TREE", help="these trees")
    parser.add_argument("--execute", action="store_true", help="execute code of Megatron-Bridge before and after")
    parser.add_argument("--patch", type=Path, metavar="FILE", help="with --execute: what `fix --diff` printed before")
    parser.add_argument("--tests", metavar="PYTHON", help="with --execute: what runs unit tests, see bridge_tests.py")
    parser.add_argument("--compare", action="store_true", help="print the lines that differ (default)")
    parser.add_argument("--write", action="store_true", help="commit to the outcomes of this run")
    parser.add_argument("--scores", action="store_true", help="run nothing, judge the committed outcomes")
    parser.add_argument("--tool", default=str(Path(sys.executable).with_name("cgmigrate")), help="the cgmigrate to run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    if options.scores:
        return show_scores()
    command = options.tool.split()
    trees = {tree: tree.missing(options.mirrors) for tree in trees_of(options)}
    present = [tree for tree, missing in trees.items() if not missing]
    print(*(f"{tree.name}: skipped, {missing}" for tree, missing in trees.items() if missing), sep="\n")
    if options.execute:
        with tempfile.TemporaryDirectory() as scratch:
            tool = Tool(command, Path(scratch, "cache"))
            return min(1, execute(options.mirrors, tool, Path(scratch), options.patch, options.tests))
    total: Counter[tuple[str, str]] = Counter()
    failed = False
    with ThreadPoolExecutor(options.jobs) as pool:
        for tree, now in zip(
            present, pool.map(lambda one: examine(one, options.mirrors, command), present), strict=True
        ):
            counts, wrong = report(tree, now, writes=options.write)
            total, failed = total + counts, failed or wrong
    print(f"judged lines: {scores(total)}")
    return 1 if failed else 0


def show_scores() -> int:
    """Print what became of the judged lines of each tree, as committed."""
    total: Counter[tuple[str, str]] = Counter()
    failed = False
    for tree in all_trees():
        if (committed := load(tree)) is not None:
            counts, wrong = judged(tree, committed)
            total, failed = total + counts, failed or bool(wrong)
            print(*(f"{tree.name}: {text}" for text in (*wrong, *([scores(counts)] if counts else []))), sep="\n")
    print(f"all: {scores(total)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
