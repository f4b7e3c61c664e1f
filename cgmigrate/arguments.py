"""The arguments of the Python API: texts that name something, and mistakes that would silently be something else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from difflib import get_close_matches

from cgmigrate.megatron.releases import NEWEST, Release
from cgmigrate.megatron.settings import FIELDS, Settings
from cgmigrate.megatron.types import Reader
from cgmigrate.megatron.versions import parse_release

_BY_NAME = {reader.name.lower(): reader for reader in Reader}


def texts_of(name: str, value: Iterable[str | os.PathLike[str]]) -> tuple[str, ...]:
    """Return an argument that is a list of texts or paths as texts. Raises TypeError and ValueError.

    A single text is refused: its letters are no items.
    """
    if isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} has to be a list, not one item of it: write [{value!r}]")
    return tuple(text_of(f"each item of {name}", one) for one in value)


def text_of(name: str, value: str | os.PathLike[str]) -> str:
    """Return an argument that is a text or a path as text. Raises TypeError, and ValueError for an empty one."""
    text = os.fspath(value)
    if not text.strip() or "\0" in text:
        raise ValueError(f"{name} has to be a text that is not empty, without null characters")
    return text


def release_of(name: str, value: str | Release) -> Release:
    """Return an argument that is a release, or the text of one. Raises TypeError and ValueError."""
    if not isinstance(value, (str, Release)):
        raise TypeError(f'{name} has to be a release as text, such as "{Release(0, 17)}", not {value!r}')
    return parse_release(str(value))


def installed_release() -> str:
    """Return the version of megatron-core that this process has imported or could import; the newest known without."""
    from importlib.metadata import PackageNotFoundError, version

    # A source tree on the path is not installed. To import it would take seconds.
    if imported := getattr(sys.modules.get("megatron.core"), "__version__", ""):
        return str(imported)
    try:
        return version("megatron-core")
    except PackageNotFoundError:
        return str(NEWEST)


def reader_of(name: str, value: str | Reader) -> Reader:
    """Return an argument that is a reader, or the name of one in any case. Raises ValueError."""
    reader = value if isinstance(value, Reader) else _BY_NAME.get(str(value).lower().replace("-", "_"))
    if reader is None:
        raise ValueError(f"{name} {value!r} is none of {', '.join(one.name for one in Reader)}")
    return reader


def settings_of(name: str, value: Settings) -> Settings:
    """Return an argument that maps settings of the capture model to values. Raises ValueError."""
    for key in value:
        if key not in FIELDS:
            near = get_close_matches(key, FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(FIELDS)}"
            raise ValueError(f"{key!r} in {name} is no setting of the capture model; {hint}")
    return value
