"""The arguments of the Python API: each is of a type that can be used, or an error says what is expected."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import FIELDS, Settings
from cgmigrate.megatron.types import Reader
from cgmigrate.megatron.versions import parse_release

_BY_NAME = {reader.name.lower(): reader for reader in Reader}


def wrong_type(name: str, expected: str, value: object) -> TypeError:
    """Return the error for an argument of the wrong type."""
    shown = repr(value) if value is None or isinstance(value, (bool, int, float)) else type(value).__name__
    return TypeError(f"{name} has to be {expected}, not {shown}")


def text_of(name: str, value: object) -> str:
    """Return an argument that is a text. Raises TypeError."""
    if not isinstance(value, str):
        raise wrong_type(name, "a str", value)
    return value


def path_of(name: str, value: object) -> str:
    """Return an argument that is a path as text. Raises TypeError, and ValueError for an empty one."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(path, str):
        raise wrong_type(name, "a str or a path", path)
    return _usable(name, path)


def paths_of(name: str, value: object) -> tuple[str, ...]:
    """Return an argument that is a list of paths as texts. Raises TypeError and ValueError."""
    return tuple(path_of(f"each item of {name}", one) for one in _items(name, "paths", value))


def texts_of(name: str, value: object) -> tuple[str, ...]:
    """Return an argument that is a list of texts. Raises TypeError and ValueError."""
    each = f"each item of {name}"
    return tuple(_usable(each, text_of(each, one)) for one in _items(name, "texts", value))


def flag_of(name: str, value: object) -> bool:
    """Return an argument that is true or false. Raises TypeError."""
    if not isinstance(value, bool):
        raise wrong_type(name, "True or False", value)
    return value


def release_of(name: str, value: object) -> Release:
    """Return an argument that is a release, or the text of one. Raises TypeError and ValueError."""
    if not isinstance(value, (str, Release)):
        raise wrong_type(name, f'a release as text, such as "{Release(0, 17)}"', value)
    return parse_release(str(value))


def reader_of(name: str, value: object) -> Reader:
    """Return an argument that is a reader, or the name of one in any case. Raises TypeError and ValueError."""
    if isinstance(value, Reader):
        return value
    if not isinstance(value, str):
        raise wrong_type(name, "a Reader or its name", value)
    reader = _BY_NAME.get(value.lower().replace("-", "_"))
    if reader is None:
        raise ValueError(f"{name} {value!r} is none of {', '.join(one.name for one in Reader)}")
    return reader


def settings_of(name: str, value: object) -> Settings:
    """Return an argument that maps settings of the capture model to values. Raises TypeError and ValueError."""
    if not isinstance(value, Mapping):
        raise wrong_type(name, "a mapping of names to values", value)
    for key in value:
        if text_of(f"each key of {name}", key) not in FIELDS:
            near = get_close_matches(key, FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(FIELDS)}"
            raise ValueError(f"{key!r} is no setting of the capture model; {hint}")
    return value


def _items(name: str, items: str, value: object) -> Iterable[object]:
    """Return the items of an argument. A single text or path is refused: its letters or parts are no items."""
    if isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} has to be a list of {items}, not one of them: write [{value!r}]")
    if not isinstance(value, Iterable):
        raise wrong_type(name, f"a list of {items}", value)
    return value


def _usable(name: str, text: str) -> str:
    if not text.strip():
        raise ValueError(f"{name} has to be a text that is not empty")
    if "\0" in text:
        raise ValueError(f"{name} has to be a text without null characters")
    return text
