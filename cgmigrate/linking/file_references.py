"""The files that a YAML file builds on, as it names them: ``defaults:``, keys such as ``extends:``, Hydra's header."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgmigrate.documents.yaml.tree import Node

_WORD = r"[\w.\-/]+"
_KEY = re.compile(rf"(?P<key>{_WORD}|\"[^\"\\]*\"|'[^']*')[ \t]*:(?P<value>[ \t].*|)$")
_TOP_LEVEL = re.compile(r"^(?!- |-$|[ \t\r#\ufeff]|$).*", re.MULTILINE)
_LIST = re.compile(r"(?:[ \t\r\n]|#[^\n]*\n)*-\s")
_PACKAGE = re.compile(r"#\s*@package\s+(\S+)\s*$")
_SUFFIX = re.compile(r"\.ya?ml\b")
_PROPERTY = re.compile(r"(?:^|[\s\[{,:-])[&*!]")
_KEYWORDS = ("optional", "override")
_MOST_WORDS = 500
"""Words of one value that may name files; a longer list is data."""


@dataclass(frozen=True, slots=True)
class DefaultsEntry:
    """One entry of ``defaults:``: a path, or a group with the names that are chosen of it.

    ``package`` is where the file goes, None if the entry does not say so. ``text`` is the entry as it is written.
    """

    text: str
    group: str = ""
    names: tuple[str, ...] = ()
    package: str | None = None
    is_optional: bool = False
    is_override: bool = False
    is_list: bool = False
    """Whether the names are a list, of which Hydra reads each as the path of a file."""

    @property
    def is_self(self) -> bool:
        """Whether the entry is the file itself."""
        return not self.group and self.names == ("_self_",)


@dataclass(frozen=True, slots=True)
class FileReferences:
    """What a YAML file says about the files that it builds on."""

    defaults: tuple[DefaultsEntry, ...] = ()
    is_list: bool = True
    """Whether ``defaults:`` is a list, which Hydra requires."""
    others: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Further top-level keys whose values may name files, each with the words of its value."""
    package: str | None = None
    """Where Hydra puts the file by its header, None without such a header."""
    unclear: str = ""
    """Why it is not known which files these are, empty if it is."""

    @property
    def has_hydra_forms(self) -> bool:
        """Whether ``defaults:`` has an entry that only Hydra reads."""
        return any(
            entry.group or entry.is_self or entry.package is not None or entry.names[0].startswith("/")
            for entry in self.defaults
        )


def references_of(text: str) -> FileReferences:
    """Return the references of a YAML file; only the parts of the text that may have one are parsed."""
    import yaml

    from cgmigrate.documents.yaml.tree import parse_tree

    part = _relevant_part(text)
    try:
        roots = parse_tree(part)[0] if part else []
        if len(roots) > 1:
            return FileReferences(unclear="it has several YAML documents")
    except (yaml.YAMLError, UnicodeEncodeError):
        # Only the whole text decides whether this is YAML.
        return FileReferences()
    package = _package(text)
    return _of_root(roots[0], part, package) if roots and roots[0].kind == "map" else FileReferences(package=package)


def _package(text: str) -> str | None:
    """Return the package of Hydra's header, which is in the comments at the top of the file."""
    for line in text[:512].splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            break
        if match := _PACKAGE.match(line):
            return match[1]
    return None


# --- the part of the text that has references -----------------------------------------------------


def _relevant_part(text: str) -> str:
    """Return the top-level pairs that may name files, or the whole text where these cannot be seen by lines."""
    kept: list[str] = []
    starts: list[tuple[int, re.Match[str]]] = []
    for line in _TOP_LEVEL.finditer(text):
        if line[0].rstrip() == "---" and not starts:
            continue
        if (match := _KEY.match(line[0])) is None:
            return text
        starts.append((line.start(), match))
    if not starts or text[: starts[0][0]].strip().rpartition("\n")[2].lstrip()[:1] not in ("", "#", "-", "\ufeff"):
        return text
    for (start, match), end in zip(starts, [*(at for at, _ in starts[1:]), len(text)], strict=True):
        if _may_name_files(match, text, start, end):
            kept.append(text[start:end])
    part = "".join(kept)
    return text if _PROPERTY.search(part) else part


def _may_name_files(match: re.Match[str], text: str, start: int, end: int) -> bool:
    """Return whether a top-level pair may name files: its value is a word or a list."""
    key, value = match["key"].strip("\"'"), match["value"].strip()
    if key == "defaults":
        return True
    if value[:1] in ("", "#"):
        # A block of lines: a list of paths, or more often a mapping.
        is_list = _LIST.match(text, start + match.end()) is not None
        return is_list and (key in merge_keys() or _SUFFIX.search(text, start, end) is not None)
    return value[0] not in "|>{" and (
        value[0] != "[" or key in merge_keys() or _SUFFIX.search(text, start, end) is not None
    )


# --- entries --------------------------------------------------------------------------------------


def _of_root(root: Node, text: str, package: str | None) -> FileReferences:
    lists = [value.target for key, value in root.pairs() if key.kind == "scalar" and key.value == "defaults"]
    others = tuple(
        (key.value, words)
        for key, value in root.pairs()
        if key.kind == "scalar" and key.value != "defaults" and (words := _words(value.target))
    )
    if len(lists) > 1:
        return FileReferences(others=others, package=package, unclear="`defaults:` is written twice")
    if not lists or _is_empty(lists[0]):
        return FileReferences(others=others, package=package)
    value = lists[0]
    if value.kind == "map":
        # Not a list of files: the defaults of something else.
        return FileReferences(others=others, package=package)
    items = value.items if value.kind == "seq" else [value]
    entries = [_entry(item.target, text) for item in items]
    unclear = "" if None not in entries else "an entry of `defaults:` has a form that is not known"
    known = [entry for entry in entries if entry is not None]
    for item, entry in zip(items, entries, strict=True):
        # Any of its words may name a file.
        known += [DefaultsEntry(word, names=(word,)) for word in _scalars(item.target)] if entry is None else []
    return FileReferences(tuple(known), value.kind == "seq", others, package, unclear)


def _scalars(node: Node) -> list[str]:
    """Return the words of all scalars in a node."""
    if node.kind == "scalar":
        return [word.partition("@")[0] for word in node.value.split() if word.partition("@")[0]]
    return [word for item in node.items for word in _scalars(item.target)]


def _is_empty(value: Node) -> bool:
    return (value.kind == "scalar" and value.implicit and value.value in ("", "~", "null")) or (
        value.kind == "seq" and not value.items
    )


def _words(value: Node) -> tuple[str, ...]:
    """Return the words of a value that may name files: a scalar without blanks, or a list of them."""
    items = [item.target for item in value.items] if value.kind == "seq" else [value]
    words = [item.value for item in items if item.kind == "scalar"]
    is_plain = len(words) == len(items) <= _MOST_WORDS
    return tuple(words) if is_plain and all(word and not re.search(r"\s", word) for word in words) else ()


def _entry(item: Node, text: str) -> DefaultsEntry | None:
    """Return an entry of ``defaults:``, None if its form is not known."""
    written = " ".join(text[item.start : item.end].split())
    if item.kind == "scalar":
        path, package = _split(item.value)
        return DefaultsEntry(written, names=(path,), package=package) if path and not re.search(r"\s", path) else None
    pairs = list(item.pairs()) if item.kind == "map" else []
    optional = [value for key, value in pairs if key.value == "optional"]
    pairs = [(key, value) for key, value in pairs if key.value != "optional"]
    if len(pairs) != 1 or pairs[0][0].kind != "scalar":
        return None
    *keywords, name = pairs[0][0].value.split(" ")
    group, package = _split(name)
    names = _names(pairs[0][1].target)
    if not group or names is None or any(word not in _KEYWORDS for word in keywords):
        return None
    is_optional = "optional" in keywords or any(value.target.value == "true" for value in optional)
    is_list = pairs[0][1].target.kind == "seq"
    return DefaultsEntry(written, group, names, package, is_optional, "override" in keywords, is_list)


def _split(word: str) -> tuple[str, str | None]:
    path, at, package = word.partition("@")
    return (path, package.partition(":")[0]) if at and "$" not in path else (word, None)


def _names(value: Node) -> tuple[str, ...] | None:
    """Return the names that are chosen of a group, none for null."""
    if _is_empty(value):
        return ()
    items = [item.target for item in value.items] if value.kind == "seq" else [value]
    return tuple(item.value for item in items) if all(item.kind == "scalar" for item in items) else None


@cache
def merge_keys() -> frozenset[str]:
    """Return the top-level keys of loaders that merge a file over those that the key names."""
    from cgmigrate.megatron.rule_data import load_yaml, rules_folder, text_of

    path = rules_folder() / "merging" / "keys.yaml"
    return frozenset(load_yaml(text_of(path), str(path))["keys"])


def has_suffix(word: str) -> bool:
    """Return whether a word ends as the path of a YAML file does."""
    return word.endswith((".yaml", ".yml"))
