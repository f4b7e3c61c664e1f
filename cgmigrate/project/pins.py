"""Releases of megatron-core, and diagnostic out which one a project uses.

A project says so in its lock file, in a vendored copy of megatron-core, or in its requirements. What is
found there is used only where ``--from`` and ``--to`` leave something open.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cgmigrate.megatron.releases import KNOWN, LAST_OLD, NEWEST, OLDEST, SPLIT_IN, Release
from cgmigrate.megatron.settings import ACCEPTED, UPSTREAM
from cgmigrate.megatron.source_trees import core_in, environments_in, features
from cgmigrate.text.files import MAX_GENERATED, read_bytes

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet
    from packaging.version import Version

# packaging and tomllib are imported where a pin is read: most runs meet none, and start-up is felt. `re` is
# free here, since dataclasses and pathlib import it anyway; its patterns are compiled at first use.

_RANGE = f"{OLDEST} to {NEWEST}"
_NAME = r"megatron[-_.]+core"
_RELEASE = (
    r"(?:core_[rv]|v)?([0-9]{1,6})\.([0-9]{1,6})(?:\.[0-9]+)*"
    r"(?:[-_.]?(?:alpha|a|beta|b|preview|pre|rc|c|dev|post)[-_.]?[0-9]*){0,3}(?:\+[a-z0-9.]+)?"
)
# Megatron-LM's own tags (v2.5, v3.0) are no releases of megatron-core: only after `core_` may a 1 stand.
_REF = r"(?:[@/]core_[rv]([0-9]+)\.([0-9]+)|@v?(0)\.([0-9]+))(?![0-9])"
_WHEEL = rf"{_NAME}-([0-9]+)\.([0-9]+)"
_NEWER = f"is newer than the known releases ({_RANGE}): assuming that it reads these settings like {NEWEST}"
_GIT_KEYS = {"tag": "a git tag", "rev": "a git revision", "branch": "a git branch"}
_VENDORED = ("", "3rdparty/Megatron-LM/", "Megatron-LM/", "src/")


class ReleaseError(ValueError):
    """A release that is malformed, not known, or in the wrong order; the message is meant for the user."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A requirement on megatron-core, with the oldest and the newest known release that it admits.

    ``line`` is 1-based. ``text`` is the requirement as written; a lock file or a vendored copy, which holds
    none, reads ``megatron-core==VERSION``.
    """

    path: Path
    line: int
    text: str
    oldest: Release
    newest: Release


@dataclass(frozen=True, slots=True)
class Resolution:
    """From which release to which, how that was decided (words for a person), and what to know about it."""

    source: Release
    target: Release
    source_from: str
    target_from: str
    notes: tuple[str, ...]


def parse_release(text: str) -> Release:
    """Return the minor release that a version or a tag of megatron-core belongs to.

    ``0.17``, ``0.17.1``, ``v0.17.1``, ``core_v0.17.0``, ``core_r0.17.0`` and ``0.17.0rc1`` are all 0.17.

    Raises ReleaseError for what is no version, for a release older than 0.12 and for one newer than 0.20, which
    megatron-core's main branch calls itself.
    """
    match = re.fullmatch(_RELEASE, text.strip(), re.IGNORECASE)
    if match is None:
        raise ReleaseError(f"{text!r} is not a megatron-core release; write it like 0.17 or 0.17.1 (known: {_RANGE})")
    release = Release(int(match[1]), int(match[2]))
    if release < OLDEST:
        raise ReleaseError(f"megatron-core {release} is older than what is known ({_RANGE})")
    if release > UPSTREAM:
        raise ReleaseError(
            f"megatron-core {release} is not known yet; give {UPSTREAM}, which is read like {NEWEST}, if {release} "
            "reads these settings in the same way"
        )
    return release


def resolve(directory: Path, source: Release | None, target: Release | None) -> Resolution:
    """Decide the source and target release for the files of ``directory``.

    What is given wins; then the project's pin: its newest release as target and, as source, the release
    nearest to 0.17 among those it admits; then 0.17 and 0.19. Where a pin or default would put the source
    after the target, it gives way to what was given.

    Raises ReleaseError when both are given and the source is newer than the target.
    """
    if source is not None and target is not None:
        if source > target:
            raise ReleaseError(f"--from {source} is newer than --to {target}")
        return Resolution(source, target, "--from", "--to", ())
    pin, unclear, notes = _search(directory)
    where = _place(pin.path, pin.line, directory) if pin else ""
    pinned = f"{where} ({pin.text})" if pin else ""

    if source is not None:
        first, first_from = source, "--from"
    else:
        # An open range such as >=0.12 says what may run, not what does: of what it admits, the release nearest
        # to the last of the old names.
        closest = max(pin.oldest, min(pin.newest, LAST_OLD)) if pin else LAST_OLD
        first, first_from = (closest, pinned) if pin else (LAST_OLD, "the default")
    if target is not None:
        last, last_from = target, "--to"
        if first > last:
            first, first_from = target, "--to"
    else:
        last, last_from = (pin.newest, pinned) if pin else (NEWEST, "the default")
        if first > last:
            last, last_from = NEWEST, "the default"

    if unclear and (pin is None or pin.oldest < pin.newest):
        open_options = [option for option, given in (("--from", source), ("--to", target)) if given is None]
        assumed = f"{first} to {last}" if len(open_options) > 1 else f"{first}" if target is not None else f"{last}"
        notes += (
            f"megatron-core is pinned by {unclear.how} ({_place(unclear.path, unclear.line, directory)}), "
            f"which names no release: assuming {assumed}; set {'/'.join(open_options)}",
        )
    if pin and target is None:
        if last < SPLIT_IN:
            notes += (f"{where} pins {pin.text}, which does not know the new names; give --to {NEWEST} to migrate",)
        elif pin.oldest < SPLIT_IN:
            notes += (
                f"the rewritten files need megatron-core >= {SPLIT_IN}, and {where} ({pin.text}) still "
                f"admits {pin.oldest}: raise it to >={SPLIT_IN}",
            )
    return Resolution(first, last, first_from, last_from, notes)


def find_pin(directory: Path) -> tuple[Pin | None, tuple[str, ...]]:
    """Return the pin of the project that ``directory`` belongs to, and notes on what could not be used.

    Looks in ``directory`` and its parents, up to the first that holds ``.git``; the nearest folder with a pin
    wins. Within a folder: lock file, source tree of megatron-core (vendored, submodule), pyproject.toml, setup.cfg,
    requirements, conda's environment, Dockerfile, what is installed in ``.venv``. Never raises for what the files
    hold. Folders are remembered, so each one is read once in a run.
    """
    pin, _, notes = _search(directory)
    return pin, notes


def project_of(directory: Path) -> Path | None:
    """The nearest folder, from ``directory`` up to its checkout's, that pins megatron-core; None if none does."""
    for folder, found in _folders_above(directory):
        if found.pin is not None:
            return folder
    return None


def _search(directory: Path) -> tuple[Pin | None, _Unclear | None, tuple[str, ...]]:
    """Return the pin, the nearest pin that names no release, and notes on what could not be used."""
    directory = directory.resolve()
    notes: list[str] = []
    unclear: _Unclear | None = None
    pin: Pin | None = None
    for _, found in _folders_above(directory):
        notes += (f"{_place(p.path, p.line, directory)}: {p.message}" for p in found.problems)
        unclear, pin = unclear or found.unclear, found.pin
    return pin, unclear, tuple(notes)


def _folders_above(directory: Path) -> Iterator[tuple[Path, _Folder]]:
    """A folder and those above it, each with what it pins, up to the first that has a pin or is a checkout's."""
    directory = directory.resolve()
    for folder in (directory, *directory.parents):
        found = _read_folder(folder)
        yield folder, found
        if found.pin is not None or found.is_root:
            return


def _place(path: Path, line: int | None, directory: Path) -> str:
    """Name a file as the user would, from here if it lies below, else from the folder it was found for."""
    shared = os.path.commonpath([path.parent, directory.resolve()])
    here = Path.cwd()
    shown = path.relative_to(here if path.is_relative_to(here) else shared).as_posix()
    return shown if line is None else f"{shown}:{line}"


# ---- one folder ----


class _Mention(NamedTuple):
    """One requirement in a file; ``admitted`` is None when nobody can read it.

    ``newer``: it admits only releases newer than all known ones. ``how`` says what pins megatron-core where that names
    no release, or only one that can be wrong (``a git revision``); ``local`` is the folder of a source tree.
    """

    line: int
    text: str
    admitted: frozenset[Release] | None
    newer: bool = False
    how: str = ""
    local: str = ""


class _Problem(NamedTuple):
    path: Path
    line: int | None
    message: str


class _Unclear(NamedTuple):
    """A pin that names no release: ``how`` is what it is instead."""

    path: Path
    line: int
    how: str


class _Folder(NamedTuple):
    pin: Pin | None
    problems: tuple[_Problem, ...]
    is_root: bool
    unclear: _Unclear | None = None


@dataclass(slots=True)
class _Diagnostics:
    """What was learnt on the way to a folder's pin."""

    problems: list[_Problem] = field(default_factory=list)
    unclear: list[_Unclear] = field(default_factory=list)


_Reader = Callable[[str], Iterable[_Mention]]


@cache
def _read_folder(folder: Path) -> _Folder:
    try:
        with os.scandir(folder) as entries:
            names = {entry.name for entry in entries}
    except OSError:
        return _Folder(None, (), False)
    diagnostics = _Diagnostics()
    pin: Pin | None = None
    for path, reader in _pin_files(folder, names):
        pin = _read_tree(path, diagnostics) if reader is _read_package_info else _read_file(path, reader, diagnostics)
        if pin is not None:
            break
    unclear = next(iter(diagnostics.unclear), None)
    return _Folder(pin, tuple(diagnostics.problems), ".git" in names, unclear)


def _pin_files(folder: Path, names: set[str]) -> Iterator[tuple[Path, _Reader]]:
    """Yield the pin files that may exist, those that say most exactly what is installed first."""
    for name in ("uv.lock", "poetry.lock"):
        if name in names:
            yield folder / name, _read_lock
    for prefix in _VENDORED:
        path = f"{prefix}megatron/core/package_info.py"
        if path.split("/", 1)[0] in names:
            yield folder / path, _read_package_info
    if ".gitmodules" in names:
        yield folder / ".gitmodules", _read_gitmodules
    if "pyproject.toml" in names:
        yield folder / "pyproject.toml", _read_pyproject
    if "setup.cfg" in names:
        yield folder / "setup.cfg", _read_setup_cfg
    texts = sorted(name for name in names if name.endswith(".txt"))
    for name in sorted(texts, key=lambda name: name != "requirements.txt"):
        if name.startswith("requirements"):
            yield folder / name, _read_requirements
    if "requirements" in names:
        for path_in in sorted((folder / "requirements").glob("*.txt")):
            yield path_in, _read_requirements
    for name in texts:
        if name.startswith("constraints"):
            yield folder / name, _read_requirements
    yield from _environment_files(folder, names)


def _environment_files(folder: Path, names: set[str]) -> Iterator[tuple[Path, _Reader]]:
    """Yield the files of what surrounds a project: conda, container, virtual environment."""
    for name in sorted(names):
        if re.fullmatch(r"(?:conda|environment)[\w.-]*\.ya?ml", name):
            yield folder / name, _read_conda
    containers = [folder / name for name in names]
    if "docker" in names:
        containers += (folder / "docker").glob("*ockerfile*")
    for path_in in sorted(containers):
        if re.fullmatch(r"Dockerfile.*|.*\.[Dd]ockerfile", path_in.name):
            yield path_in, _read_dockerfile
    if not {".venv", "venv"}.isdisjoint(names):
        for core in environments_in(folder):
            yield core / "package_info.py", _read_package_info


def _read_tree(path: Path, diagnostics: _Diagnostics) -> Pin | None:
    """Return the release of a source tree: that of its settings, which its number must fit."""
    pin = _read_file(path, _read_package_info, diagnostics)
    if pin is None or (found := features(path.parent)) is None:
        return pin
    oldest, newest = found
    release = max(oldest, min(pin.newest, newest))
    if release == pin.newest:
        return pin
    return Pin(path, pin.line, f"{pin.text}, which has the settings of {release}", release, release)


def _read_file(path: Path, reader: _Reader, diagnostics: _Diagnostics) -> Pin | None:
    problems = diagnostics.problems
    try:
        data = read_bytes(path, MAX_GENERATED)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        problems.append(_Problem(path, None, f"cannot be read ({error.strerror}); its pin is not used"))
        return None
    # A vendored package_info.py need not name what its path names already.
    words = (b"megatron", b"nemo") if reader is _read_dockerfile else (b"megatron",)
    if reader is not _read_package_info and not any(word in data.lower() for word in words):
        return None
    try:
        mentions = list(reader(data.decode("utf-8-sig", errors="replace")))
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        problems.append(_Problem(path, None, f"cannot be parsed ({reason[0]}); its pin is not used"))
        return None
    for mention in mentions:
        # A source tree is what is installed, whatever range a requirement beside it admits.
        if mention.local and (core := core_in(path.parent / mention.local)) is not None:
            return _read_tree(core / "package_info.py", diagnostics)
    return _combine(path, mentions, diagnostics)


def _usable(path: Path, mention: _Mention, diagnostics: _Diagnostics) -> bool:
    """Whether a mention names releases; what is to be said of it goes to ``diagnostics``."""
    problem = ""
    if mention.how and not mention.admitted:
        diagnostics.unclear.append(_Unclear(path, mention.line, mention.how))
    elif mention.how:
        problem = f"{mention.text} is the number of {mention.how}, which can have the settings of another release"
    elif mention.newer:
        problem = f"{mention.text} {_NEWER}"
    elif mention.admitted is None:
        problem = f"{mention.text!r} cannot be read; it is ignored"
    elif not mention.admitted:
        problem = f"{mention.text} admits no known release ({_RANGE}); it is ignored"
    if problem:
        diagnostics.problems.append(_Problem(path, mention.line, problem))
    return bool(mention.admitted)


def _combine(path: Path, mentions: list[_Mention], diagnostics: _Diagnostics) -> Pin | None:
    """Return what all requirements of a file admit together, or the first one where they disagree."""
    problems = diagnostics.problems
    usable = [(each, each.admitted or frozenset()) for each in mentions if _usable(path, each, diagnostics)]
    if not usable:
        return None
    chosen, common = usable[0]
    for mention, each in usable:
        if not common & each:
            message = f"{chosen.text} and {mention.text} (line {mention.line}) disagree; the first is used"
            problems.append(_Problem(path, chosen.line, message))
            _, admitted = usable[0]
            return _pin(path, chosen.line, chosen.text, admitted)
        common &= each
    for mention, each in usable:
        if each == common:
            return _pin(path, mention.line, mention.text, common)
    # No single requirement says it all, so naming one would mislead.
    together = " and ".join(dict.fromkeys(mention.text for mention, _ in usable))
    return _pin(path, chosen.line, together, common)


def _pin(path: Path, line: int, text: str, admitted: frozenset[Release]) -> Pin:
    # An open range installs a published release; the main branch counts where nothing else is admitted.
    releases = admitted.intersection(KNOWN) or admitted
    return Pin(path, line, text, min(releases), max(releases))


# ---- one requirement ----


def _requirement(line: int, text: str) -> Iterator[_Mention]:
    """Yield the mention in a PEP 508 requirement or bare URL; nothing if unpinned or of another package."""
    if "megatron" not in text.lower():
        return
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        if "://" in text:
            yield from _url(line, text, text, named=re.search(f"egg={_NAME}", text, re.IGNORECASE) is not None)
        elif re.search(r"(?:^|/)megatron-(?:lm|core)/?(?:\[[^][]*\])?$", text, re.IGNORECASE):
            yield _Mention(line, text, None, how="a local path", local=text.split("[")[0])
        elif "$" in text:
            yield _Mention(line, text, None, how="a variable")
        elif re.match(rf"{_NAME}(?![\w.-])", text, re.IGNORECASE):
            yield _Mention(line, text, None)
        return
    named = canonicalize_name(requirement.name) == "megatron-core"
    if requirement.url:
        yield from _url(line, text, requirement.url, named=named)
    elif named and requirement.specifier:
        yield _specified(line, text, requirement.specifier)


def _url(line: int, text: str, url: str, *, named: bool) -> Iterator[_Mention]:
    """Yield the release that a URL names by a wheel or a tag; a tag counts only in what is Megatron."""
    match = re.search(_WHEEL, url, re.IGNORECASE)
    megatron = named or "/megatron-lm" in url.lower()
    if match is None and megatron:
        match = re.search(_REF, url)
    if match is not None:
        major, minor = (int(part) for part in match.groups() if part is not None)
        yield _exact(line, text, Release(major, minor))
    elif megatron and url.startswith("file://"):
        yield _Mention(line, text, None, how="a local path")
    elif megatron:
        git = url.startswith(("git+", "git:", "git@", "@")) or re.search(r"\.git(?:$|[@#])", url)
        yield _Mention(line, text, None, how=_git_reference(url) if git else "a URL")


def _git_reference(url: str) -> str:
    """What a URL of git pins, in words."""
    reference = re.search(r"@([^@/#:]+(?:/[^@#:]+)?)(?:#|$)", url)
    if reference is None or reference[1].startswith("git@"):
        return "a git repository"
    return "a git revision" if re.fullmatch(r"[0-9a-f]{7,40}", reference[1]) else "a git branch or tag"


def _exact(line: int, text: str, release: Release) -> _Mention:
    """The mention of one release."""
    newer = release > UPSTREAM
    return _Mention(line, text, frozenset({UPSTREAM} if newer else {release}).intersection(ACCEPTED), newer)


def _specified(line: int, text: str, specifier: SpecifierSet) -> _Mention:
    """The mention of the releases that satisfy ``specifier``."""
    admitted = _admitted(specifier)
    newer = not admitted and _admits_newer(specifier)
    return _Mention(line, text, frozenset({UPSTREAM}) if newer else admitted, newer)


def _bounds(specifier: SpecifierSet) -> list[Version]:
    """The versions that a specifier names."""
    from packaging.version import InvalidVersion, Version

    bounds: list[Version] = []
    for clause in specifier:
        try:
            bounds.append(Version(clause.version.removesuffix(".*")))
        except InvalidVersion:
            continue
    return bounds


def _admits_newer(specifier: SpecifierSet) -> bool:
    """Whether some release after all known ones satisfies ``specifier``."""
    from packaging.version import Version

    newer = [version for version in _bounds(specifier) if (version.major, version.minor) > UPSTREAM]
    nexts = [Version(f"{version.major}.{version.minor}.{version.micro + 1}") for version in newer]
    return any(specifier.contains(version, prereleases=True) for version in [*newer, *nexts])


@lru_cache(maxsize=256)
def _admitted(specifier: SpecifierSet) -> frozenset[Release]:
    """Return the accepted minor releases of which some patch or pre-release satisfies ``specifier``."""
    from packaging.version import Version

    # A bound may name what is not among the usual candidates: 0.17.12, 0.18.0rc3, 0.17.1+cu12.
    own = _bounds(specifier)

    def admits(release: Release) -> bool:
        usual = [Version(f"{release}.0rc0"), *(Version(f"{release}.{patch}") for patch in range(10))]
        named = [version for version in own if (version.major, version.minor) == release]
        return any(specifier.contains(version, prereleases=True) for version in usual + named)

    return frozenset(filter(admits, ACCEPTED))


# ---- kinds of files: text → mentions; ValueError where the file cannot be parsed ----


def _line_of(text: str, *needles: str) -> int:
    """Return the line (1-based) of the first needle outside comment lines; 1 where there is none."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("#") and any(needle in line for needle in needles):
            return number
    return 1


def _line_at(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _lines_at(text: str, positions: Iterable[int]) -> Iterator[int]:
    """Return the line (1-based) of each position; they come in order, so that the text is read once."""
    line, before = 1, 0
    for position in positions:
        line += text.count("\n", before, position)
        before = position
        yield line


def _quoted_lines(text: str) -> dict[str, int]:
    """The first line (1-based) of each quoted text outside comment lines, by the text as it is written."""
    quoted = re.compile(r"\"((?:[^\"\\]|\\.)*)\"|'([^']*)'")
    lines: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("#"):
            for match in quoted.finditer(line):
                lines.setdefault(match[match.lastindex or 0], number)
    return lines


def _load_toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def _read_lock(text: str) -> Iterator[_Mention]:
    from packaging.specifiers import SpecifierSet

    # Lock files run to megabytes, of which tomllib parses about one a second: only the blocks asked for.
    starts = [match.start() for match in re.finditer(r"^\[\[package\]\]", text, re.MULTILINE)]
    if not starts:
        _load_toml(text)
    for (start, end), first in zip(pairwise([*starts, len(text)]), _lines_at(text, starts), strict=True):
        block = text[start:end]
        name = re.search(rf"^name\s*=\s*[\"']{_NAME}[\"']", block, re.MULTILINE | re.IGNORECASE)
        if name is None:
            continue
        package = _load_block(block, first)
        version, (how, local) = package.get("version"), _source_of(_table(package, "source"))
        written = re.search(r"^version\s*=", block, re.MULTILINE) or name
        line = first + block.count("\n", 0, written.start())
        if isinstance(version, str):
            mention = _specified(line, f"megatron-core=={version}", SpecifierSet(f"=={version}"))
            yield mention._replace(how=how, local=local)
        elif how:
            yield _Mention(line, "megatron-core", None, how=how, local=local)


def _load_block(block: str, line: int) -> dict[str, Any]:
    """One package of a lock file, whose block begins at a line."""
    try:
        package = _load_toml(block)["package"][0]
    except ValueError:
        # The empty lines make the line in the parser's message that of the file.
        package = _load_toml("\n" * (line - 1) + block)["package"][0]
    return package if isinstance(package, dict) else {}


def _source_of(source: dict[str, Any]) -> tuple[str, str]:
    """How a lock file's package is pinned where that is no published release, and its folder; else empty."""
    for kind in ("editable", "directory", "virtual"):
        if isinstance(local := source.get(kind), str):
            return "a local path", local
    url = source.get("url") if source.get("type") in ("git", "directory") else source.get("git")
    if not isinstance(url, str):
        return "", ""
    if source.get("type") == "directory":
        return "a local path", url
    return ("", "") if re.search(_REF, url.replace("tag=", "@")) else ("a git revision", "")


def _read_package_info(text: str) -> Iterator[_Mention]:
    found = {
        match[1]: match
        for match in re.finditer(
            r"^(MAJOR|MINOR|PATCH)[ \t]*(?::[ \t]*int[ \t]*)?=[ \t]*([0-9]+)\b", text, re.MULTILINE
        )
    }
    if not {"MAJOR", "MINOR"} <= found.keys():
        raise ValueError("it assigns no number to MAJOR and MINOR")
    release = Release(int(found["MAJOR"][2]), int(found["MINOR"][2]))
    patch = f".{found['PATCH'][2]}" if "PATCH" in found else ""
    line = _line_at(text, found["MINOR"].start())
    yield _exact(line, f"megatron-core=={release}{patch}", release)


def _read_pyproject(text: str) -> Iterator[_Mention]:
    document = _load_toml(text)
    project, tool = _table(document, "project"), _table(document, "tool")
    uv, poetry = _table(tool, "uv"), _table(tool, "poetry")

    # An override exists to win over what it contradicts, so it comes first.
    lists = [uv.get("override-dependencies"), project.get("dependencies")]
    if not any(map(_is_core, _strings(project.get("dependencies")))):
        lists += _table(project, "optional-dependencies").values()
        lists += _table(document, "dependency-groups").values()
    lists.append(uv.get("constraint-dependencies"))
    lines = _quoted_lines(text)
    for requirement in (item for each in lists for item in _strings(each)):
        line = lines.get(requirement) or lines.get(requirement.replace('"', '\\"'), 1)
        yield from _requirement(line, requirement.strip())

    tables = [_table(uv, "sources"), _table(poetry, "dependencies")]
    if not any(map(_is_core, tables[1])):
        tables += [_table(poetry, "dev-dependencies")]
        tables += [_table(group, "dependencies") for group in _table(poetry, "group").values()]
    for table in tables:
        for name, value in table.items():
            if re.fullmatch(_NAME, name, re.IGNORECASE):
                for entry in value if isinstance(value, list) else [value]:
                    yield from _poetry_entry(text, name, entry)


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _is_core(requirement: str) -> bool:
    """Whether a requirement, or the name of one, is megatron-core."""
    return re.match(rf"\s*{_NAME}(?![\w.-])", requirement, re.IGNORECASE) is not None


def _table(parent: object, key: str) -> dict[str, Any]:
    value = parent.get(key) if isinstance(parent, dict) else None
    return value if isinstance(value, dict) else {}


def _poetry_entry(text: str, name: str, entry: object) -> Iterator[_Mention]:
    """Yield the mention in one value of a Poetry dependency or uv source: a string, or a table."""
    if isinstance(entry, str):
        entry = {"version": entry}
    if not isinstance(entry, dict):
        return
    version, url = entry.get("version"), entry.get("url")
    if isinstance(version, str):
        line, written = _line_of_key(text, name, version), f'{name} = "{version}"'
        try:
            yield from _poetry_admitted(line, written, version)
        except ValueError:
            yield _Mention(line, written, None)
    elif isinstance(url, str):
        yield from _url(_line_of_key(text, name, url), f'{name} = {{url = "{url}"}}', url, named=True)
    else:
        yield from _source_entry(text, name, entry)


def _source_entry(text: str, name: str, entry: dict[str, Any]) -> Iterator[_Mention]:
    """Yield the mention in a table that names a git repository, a folder or a member of the workspace."""
    for key in ("tag", "rev", "branch"):
        if isinstance(ref := entry.get(key), str):
            written = f'{name} = {{{key} = "{ref}"}}'
            for mention in _url(_line_of_key(text, name, ref), written, f"@{ref}", named=True):
                yield mention._replace(how=_GIT_KEYS[key] if mention.how else "")
            return
    for key, how in (("git", "a git repository"), ("path", "a local path")):
        if isinstance(value := entry.get(key), str):
            local = value if key == "path" else ""
            yield _Mention(_line_of_key(text, name, value), f"{name} = {value}", None, how=how, local=local)
            return
    if entry.get("workspace") is True:
        yield _Mention(_line_of(text, name), name, None, how="a member of the workspace")


def _line_of_key(text: str, name: str, value: str) -> int:
    """Return the line where the key ``name`` is given ``value``: its own line, or one of the lines below."""
    quoted = re.compile(rf"[\"']{re.escape(value)}[\"']")
    key = rf"^[ \t]*(?:\[[^\]\n]*\.)?[\"']?{re.escape(name)}[\"']?[ \t]*[\]=.].*$"
    keys = list(re.finditer(key, text, re.MULTILINE))
    for match in keys:
        if quoted.search(match[0]):
            return _line_at(text, match.start())
    for match in keys:
        section_end = re.compile(r"^\[", re.MULTILINE).search(text, match.end())
        end = section_end.start() if section_end else len(text)
        if found := quoted.search(text, match.end(), end):
            return _line_at(text, found.start())
    return _line_at(text, keys[0].start()) if keys else _line_of(text, name)


def _poetry_admitted(line: int, written: str, constraint: str) -> list[_Mention]:
    """Return the mention in a Poetry constraint, none for ``*``; ValueError for what is no constraint.

    https://python-poetry.org/docs/dependency-specification/
    """
    from packaging.specifiers import SpecifierSet

    mentions: list[_Mention] = []
    for alternative in re.split(r"\|\|?", constraint):
        if alternative.strip() == "*":
            return []
        clause = r"(\^|~=|~|===?|!=|>=|<=|>|<|=|)\s*(v?[0-9][\w.*+!]*)"
        if not re.fullmatch(rf"\s*{clause}(?:[\s,]+{clause})*\s*", alternative):
            raise ValueError(f"{constraint!r} is not a version constraint")
        clauses = (_pep440(operator, version) for operator, version in re.findall(clause, alternative))
        mentions.append(_specified(line, written, SpecifierSet(",".join(clauses))))
    usable = [mention for mention in mentions if not mention.newer] or mentions
    admitted = frozenset[Release]().union(*(mention.admitted or () for mention in usable))
    return [_Mention(line, written, admitted, newer=usable[0].newer)]


def _pep440(operator: str, version: str) -> str:
    """Return a clause of a Poetry constraint in the words of PEP 440."""
    from packaging.version import Version

    if operator in ("", "="):
        return f"=={version}"
    if operator not in ("^", "~"):
        return operator + version
    parts = Version(version).release
    if operator == "^":
        kept = next((i for i, part in enumerate(parts) if part), len(parts) - 1)
    else:
        kept = min(1, len(parts) - 1)
    limit = ".".join(map(str, (*parts[:kept], parts[kept] + 1)))
    return f">={version},<{limit}"


def _read_setup_cfg(text: str) -> Iterator[_Mention]:
    from configparser import Error, RawConfigParser

    parser = RawConfigParser()
    try:
        parser.read_string(text)
    except Error as error:
        raise ValueError(error.message) from error
    required = _setup_list(parser.get("options", "install_requires", fallback=""))
    if not any(map(_is_core, required)) and parser.has_section("options.extras_require"):
        required += [item for value in parser["options.extras_require"].values() for item in _setup_list(value)]
    lines = text.split("\n")
    at = 0
    for requirement in required:
        # They come in the order of the text, but for the extras, which may be above: then the search starts again.
        at = next((at for at in chain(range(at, len(lines)), range(at)) if _says(lines[at], requirement)), 0)
        yield from _requirement(at + 1, requirement)


def _says(line: str, requirement: str) -> bool:
    return requirement in line and not line.lstrip().startswith("#")


def _setup_list(value: str) -> list[str]:
    # setuptools reads a list on one line as separated by semicolons, even where a marker follows.
    items = value.splitlines() if "\n" in value else value.split(";")
    return [item for each in items if (item := re.sub(r"(^|\s)#.*", "", each).strip())]


def _read_requirements(text: str) -> Iterator[_Mention]:
    for number, line in _logical_lines(text):
        # What follows ` --` belongs to pip: hashes and build options.
        requirement = re.split(r"\s--", re.sub(r"(^|\s)#.*", "", line).strip())[0].strip()
        requirement = re.sub(r"^(?:-e\s*|--editable[\s=]\s*)", "", requirement)
        if not requirement.startswith("-"):
            yield from _requirement(number, requirement)


def _read_gitmodules(text: str) -> Iterator[_Mention]:
    megatron = re.compile(
        r"^[ \t]*url[ \t]*=.*[/:]megatron-(?:lm|bridge)(?:\.git)?/?[ \t\r]*$", re.MULTILINE | re.IGNORECASE
    )
    sections = list(re.finditer(r"^\[submodule\b.*?(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL))
    for section, line in zip(sections, _lines_at(text, (each.start() for each in sections)), strict=True):
        path = re.search(r"^[ \t]*path[ \t]*=[ \t]*(\S+)[ \t\r]*$", section[0], re.MULTILINE)
        if path and megatron.search(section[0]):
            yield _Mention(line, path[1], None, how="a git submodule that is not checked out", local=path[1])


def _read_conda(text: str) -> Iterator[_Mention]:
    conda = rf"(?:[\w./-]+::)?({_NAME})\s*=\s*([0-9][^=\s*]*?)(?:\.?\*)?(?:=\S*)?"
    for number, line in enumerate(text.split("\n"), 1):
        item = re.match(r"\s*-\s+(.*)", line)
        if item is None:
            continue
        written = re.sub(r"^[\"']|[\"']$", "", re.split(r"\s#", item[1], maxsplit=1)[0].rstrip())
        # conda's = means any version that begins so; pip's requirements stand in the same file.
        exact = re.fullmatch(conda, written, re.IGNORECASE)
        yield from _requirement(number, f"{exact[1]}=={exact[2]}.*" if exact else written)


def _read_dockerfile(text: str) -> Iterator[_Mention]:
    for number, line in _logical_lines(text):
        words = [a or b or c for a, b, c in re.findall(r"\"([^\"]*)\"|'([^']*)'|(\S+)", line)]
        if not words or words[0].startswith("#"):
            continue
        if words[0].upper() == "FROM":
            if any(re.search(r"nemo|megatron", word, re.IGNORECASE) and re.search("[/:]", word) for word in words[1:]):
                yield _Mention(number, line, None, how="a container image")
        elif _clones_megatron(line):
            yield _clone(number, line)
        elif re.search(r"\bpip3?\s+install\b|\buv\s+add\b", line):
            for word in words:
                yield from _requirement(number, word)


def _clones_megatron(line: str) -> bool:
    command = re.search(r"\bgit\s+clone\b", line, re.IGNORECASE)
    return bool(command and re.compile(r"[/:]megatron-lm(?![\w-])", re.IGNORECASE).search(line, command.end()))


def _clone(number: int, line: str) -> _Mention:
    """The mention in a line that clones Megatron-LM, by the branch or tag that it names."""
    tag = re.search(r"\bcore_[rv]([0-9]+)\.([0-9]+)[0-9.]*", line)
    if tag is None:
        return _Mention(number, line, None, how="a git clone")
    return _exact(number, f"git clone {tag[0]}", Release(int(tag[1]), int(tag[2])))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Join continued lines as pip does (a comment line ends them); the number is of the first line."""
    parts: list[str] = []
    first = 1
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.rstrip("\r")
        if not parts:
            first = number
        is_comment = line.lstrip().startswith("#")
        if line.endswith("\\") and not is_comment:
            parts.append(line[:-1])
            continue
        parts.append(f" {line}" if is_comment else line)
        yield first, "".join(parts)
        parts = []
    if parts:
        yield first, "".join(parts)
