"""Code that replaces a class of Megatron, or what it does with its attributes: its keywords may be others then."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.linking.text_tools import TextPlace
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.project.paths import display_path

_DEFINES = r"^[ \t]*class {name}\b(?:\([^)]*\))?"
_REPLACES = (
    r"^[ \t]*(?:\w+\.)*{name}(?:\.__\w+)?\s*=(?!=)|\b{name}\.__\w+__\s*(?:=(?!=)|$)"
    r"|(?<!def )\b(?:setattr|patch(?:\.\w+)*)\(\s*(?:\w+\.)*{name}\b"
    r"|(?<!\bcast)\(\s*(?:[\w.]+(?:\(\))?,\s*)?[\"'](?:\w+\.)*{name}[\"']|\)\[\s*[\"']{name}[\"']"
)
"""Assigns to a class or to a method of it, or gives its name to a function, which can replace it."""
_MAY_REPLACE = (r"{name}(?:[\"']|\.__|\s*=)", r"(?:setattr|patch(?:\.\w+)*)\(\s*(?:\w+\.)*{name}\b")
"""One of them is in each of these, and is found faster."""
_IS_TEXT = r"[\"'](?:\w+\.)*{name}[\"']"
_STUBS = re.compile(
    r"\bsys\.modules(?:\[|\.update|\.setdefault)|[\"']sys\.modules[\"']|\bmeta_path\b|\bMetaPathFinder\b"
    r"|\bModuleType\(|\b__import__ = "
)
_EXPORTS = re.compile(r"^__all__\b[^\])]*", re.MULTILINE)
"""What a module exports is no use of it."""
_PATCHES = re.compile(r"\bmock\.patch|\bmonkeypatch\.")
_METHOD = re.compile(r"\b(\w+)\.__(?:setattr|getattr|getattribute|init|post_init)__\s*=(?!=)")
_WORDS = (
    *("sys.modules", "__import__ =", "meta_path", "MetaPathFinder", "ModuleType"),
    *("attr__ =", "attribute__ =", "init__ ="),
)
_CODE = (".py", ".pyi", ".ipynb")


def class_changes_in(texts: ProjectTexts, name: str, *, is_own: bool) -> Iterator[TextPlace]:
    """Yield the places, with the code, that define, replace or patch a class.

    A definition has its base classes in the code. ``is_own`` says that the project may be where the class comes from,
    and that a proof follows its definitions.
    """
    defines, *patterns = (re.compile(one.format(name=name), re.MULTILINE) for one in (_DEFINES, _REPLACES, _IS_TEXT))
    may_replace = [re.compile(one.format(name=name)) for one in _MAY_REPLACE]
    for path, text in _code(texts, [name]):
        for match in defines.finditer(text) if not is_own else ():
            yield from _place(path, text, match)
        if not any(one.search(text) for one in may_replace):
            continue
        for one in patterns if _PATCHES.search(text) else patterns[:1]:
            yield from _place(path, text, one.search(text))


def stand_ins_in(texts: ProjectTexts, *, is_own: bool) -> Iterator[TextPlace]:
    """Yield the places, with the code, that replace a method of a class of Megatron, or stand in for a module of it."""
    for path, text in _code(texts, _WORDS):
        yield from _place(path, text, _patched_method(text))
        if "megatron" in path + text and not is_own:
            yield from _place(path, text, _STUBS.search(text))


def _code(texts: ProjectTexts, words: Collection[str]) -> Iterator[tuple[str, str]]:
    for path in texts.holding(words):
        if path.endswith(_CODE) and not is_part_of_megatron(path):
            yield path, _EXPORTS.sub(lambda match: "\n" * match.group().count("\n"), texts.text(path))


def _place(path: str, text: str, match: re.Match[str] | None) -> Iterator[TextPlace]:
    if match is not None:
        yield path, text.count("\n", 0, match.start()) + 1, match.group().strip()


def _patched_method(text: str) -> re.Match[str] | None:
    """Return where a method of a class that is imported from Megatron is replaced."""
    for match in _METHOD.finditer(text):
        if re.search(rf"^from megatron[.\w]* import (?:\([^)]*|[^#\n]*)\b{match[1]}\b", text, re.MULTILINE):
            return match
    return None


# --- names that a project replaces ----------------------------------------------------------------


_PROSE = (".md", ".mdx", ".rst", ".txt")


def replacements_of(names: Iterable[str], texts: ProjectTexts) -> Iterator[str]:
    """Yield where a project may replace one of some names, each with its module, in words."""
    for full in names:
        module, _, name = full.rpartition(".")
        for path in texts.holding((name, module)):
            if path.lower().endswith(_PROSE):
                continue
            text, where = texts.text(path), display_path(path)
            is_code = path.endswith(_CODE)
            if path.endswith(os.path.join(*module.split(".")) + ".py"):
                yield f"{where} may replace `{module}`"
            elif match := (_in_code if is_code else _in_text)(module, name).search(text):
                yield f"{where}:{text.count(chr(10), 0, match.start()) + 1} may replace `{full}`"


@lru_cache(maxsize=256)
def _in_code(module: str, name: str) -> re.Pattern[str]:
    """Return what a store to the name looks like, and texts that are the name, or the path of its module."""
    stored = rf"\.{name}\s*(?:,[^=\n]*)?=(?!=)|\b{name}=(?!=)"
    quoted = rf"""["'](?:[\w.]*\.)?{name}["']|["'][^"'\n]*{re.escape(module)}[^"'\n]*["']"""
    return re.compile(f"{stored}|{quoted}")


@lru_cache(maxsize=256)
def _in_text(module: str, name: str) -> re.Pattern[str]:
    return re.compile(rf"\b{name}\b|{re.escape(module)}\b")
