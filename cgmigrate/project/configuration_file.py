"""Configuration files: their keys, the values that each accepts, and the errors for other values.

Imported only if there is a configuration file.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cgmigrate.megatron.releases import Release
from cgmigrate.project.configuration import SHARED_FILE, Configuration, ConfigurationError
from cgmigrate.project.ignore_files import Patterns
from cgmigrate.project.options import FORMATS
from cgmigrate.project.paths import display_path
from cgmigrate.text.files import text_if_readable


def read(path: str, raw: bytes, folder: str, folders: Sequence[str], required: bool) -> Configuration | None:
    """Return the configuration in a file; None for a pyproject.toml without one, unless it is required.

    Raises ConfigurationError.
    """
    name, shared = display_path(path), os.path.basename(path) == SHARED_FILE
    table, text = _table(raw, name, shared)
    if table is not None:
        return _ConfigurationReader(name, text, folder, shared).read(path, table, folders)
    if required:
        raise ConfigurationError(f"{name}: has no [tool.cgmigrate]")
    return None


def _table(raw: bytes, name: str, shared: bool) -> tuple[Any, str]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        text = raw.decode("utf-8-sig")
        data: Any = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{name}: not valid TOML: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise ConfigurationError(f"{name}: nested too deeply to be read") from error
    if shared:
        data = data.get("tool", {})
        data = data.get("cgmigrate") if isinstance(data, dict) else None
    return data, text


@dataclass(frozen=True, slots=True)
class _ConfigurationReader:
    """Reads a table as a configuration; its errors name file, line and key."""

    name: str
    text: str
    folder: str
    shared: bool

    def read(self, path: str, table: Any, folders: Sequence[str]) -> Configuration:
        if not isinstance(table, dict):
            raise self.error("tool.cgmigrate", "is not a table")
        if not self.shared and set(table) == {"tool"}:
            raise ConfigurationError(
                f"{self.name}: the keys of this file are at its top level, without [tool.cgmigrate]"
            )
        if REQUIRED_VERSION in table:
            # First: another version may have other keys.
            self._require_version(table[REQUIRED_VERSION])
        for key in table:
            if key not in KEYS:
                raise self.error(key, f"unknown key{_suggestion(key, KEYS.keys())}")
        values = {KEYS[key].name: KEYS[key].read(self, key, value) for key, value in table.items() if KEYS[key].name}
        configuration = Configuration(path, self.folder, **values)
        self._check_codes(configuration, folders)
        return configuration

    def _require_version(self, value: Any) -> None:
        """Check that this version of cgmigrate is one that the configuration allows. Raises ConfigurationError."""
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        from cgmigrate import __version__

        text = _text(self, REQUIRED_VERSION, value)
        try:
            allowed = SpecifierSet(f"=={text}" if text[:1].isdigit() else text)
        except InvalidSpecifier as error:
            expected = 'a version such as "0.2.0" or a range such as ">=0.2,<0.4" is expected'
            raise self.error(REQUIRED_VERSION, f"{expected}, not {text!r}") from error
        if not allowed.contains(__version__, prereleases=True):
            raise self.error(REQUIRED_VERSION, f"{text} is required, and this is cgmigrate {__version__}")

    def error(self, key: str, reason: str) -> ConfigurationError:
        """Return the error for a key, with its line."""
        name = re.escape(key)
        at = re.search(rf"^[ \t]*(?:\[.*\b)?[\"']?{name}[\"']?[ \t]*[\]=.]", self.text, re.MULTILINE)
        at = at or re.search(rf"[\"']{name}[\"']", self.text)
        line = f":{self.text.count(chr(10), 0, at.end()) + 1}" if at else ""
        return ConfigurationError(f"{self.name}{line}: `{key}`: {reason}")

    def _check_codes(self, configuration: Configuration, folders: Sequence[str]) -> None:
        """Raise an error for a code that no rule's code begins with: it would select nothing, and a gate would pass."""
        keys = [key for key, one in KEYS.items() if one.read is _codes]
        named = [(key, code) for key in keys for code in getattr(configuration, KEYS[key].name) or ()]
        named += [(pattern, code) for pattern, codes in configuration.per_file_ignores for code in codes]
        if not named:
            return
        known = known_codes((*configuration.extend_rules, *folders))
        for key, code in named:
            if not any(rule.startswith(code) for rule in known):
                near = _suggestion(code, known)
                raise self.error(key, f"no rule's code begins with {code}{near} (`cgmigrate rules` lists them)")


def known_codes(folders: Iterable[str] = ()) -> list[str]:
    """Return the codes of the shipped rules, and of those in folders, without loading any of them."""
    from cgmigrate.megatron.rule_data import rules_folder

    known = [path.name[: path.name.index("-")] for path in rules_folder().glob("*-*.yaml")]
    for folder in folders:
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if name.endswith(".yaml"):
                known += _codes_in(os.path.join(folder, name))
    return sorted(known)


def _codes_in(path: str) -> list[str]:
    # The error of one that cannot be read is reported when the rule is loaded.
    text = text_if_readable(path) or ""
    return re.findall(r"^[\"']?id[\"']?\s*:\s*[\"']?([A-Z]+[0-9]+)", text, re.MULTILINE)


def _suggestion(word: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word.replace("_", "-"), sorted(known), n=1, cutoff=0.56)
    return f"; did you mean `{near[0]}`?" if near else ""


# --- values of keys ---------------------------------------------------------------------------------


def _release(reader: _ConfigurationReader, key: str, value: Any) -> Release:
    from cgmigrate.megatron.versions import ReleaseError, parse_release

    try:
        return parse_release(_text(reader, key, value))
    except ReleaseError as error:
        raise reader.error(key, str(error)) from error


def _text(reader: _ConfigurationReader, key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        hint = f' (write "{value}")' if isinstance(value, float) else ""
        raise reader.error(key, f"a text in quotes is expected, not {value!r}{hint}")
    return value


def _texts(reader: _ConfigurationReader, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        hint = f" (write [{value!r}])" if isinstance(value, str) else ""
        raise reader.error(key, f"a list of texts is expected, not {value!r}{hint}".replace("'", '"'))
    return tuple(value)


def _boolean(reader: _ConfigurationReader, key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise reader.error(key, f"true or false is expected, not {value!r}")
    return value


def _codes(reader: _ConfigurationReader, key: str, value: Any) -> tuple[str, ...]:
    return tuple(code.upper() for code in _texts(reader, key, value))


def _patterns(reader: _ConfigurationReader, key: str, value: Any) -> tuple[str, ...]:
    patterns = _texts(reader, key, value)
    for pattern in patterns:
        _check_pattern(reader, key, pattern)
    return patterns


def _check_pattern(reader: _ConfigurationReader, key: str, pattern: str) -> None:
    try:
        Patterns([pattern])
    except ValueError as error:
        raise reader.error(key, f"{pattern!r} is not a pattern as in .gitignore: {error}") from error


def _by_pattern(reader: _ConfigurationReader, key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise reader.error(key, f"a table is expected (pattern = …), not {value!r}")
    for pattern in value:
        _check_pattern(reader, pattern, pattern.removeprefix("!"))
    return value


def _per_file(reader: _ConfigurationReader, key: str, value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple(
        (pattern, _codes(reader, pattern, codes)) for pattern, codes in _by_pattern(reader, key, value).items()
    )


def _ecosystems(reader: _ConfigurationReader, key: str, value: Any) -> tuple[tuple[str, str], ...]:
    from cgmigrate.megatron.rule_data import rules_folder

    known = sorted(path.stem for path in (rules_folder() / "ecosystems").glob("*.yaml"))
    for pattern, name in _by_pattern(reader, key, value).items():
        if _text(reader, pattern, name) not in known:
            raise reader.error(pattern, f"{name!r} is none of the ecosystems {', '.join(known)}")
    return tuple(value.items())


def _folders(reader: _ConfigurationReader, key: str, value: Any) -> tuple[str, ...]:
    folders = tuple(os.path.normpath(os.path.join(reader.folder, name)) for name in _texts(reader, key, value))
    for folder in folders:
        if not os.path.isdir(folder):
            raise reader.error(key, f"{display_path(folder)} is not a folder of rules")
    return folders


def _is_explicit(reader: _ConfigurationReader, key: str, value: Any) -> bool:
    if value not in STYLES:
        raise reader.error(key, f"{value!r} is none of {', '.join(STYLES)}")
    return bool(value == "explicit")


def _setters(reader: _ConfigurationReader, key: str, value: Any) -> tuple[str, ...]:
    names = _texts(reader, key, value)
    for name in names:
        if "." not in name or not all(part.isidentifier() for part in name.split(".")):
            raise reader.error(key, f"{name!r} is no full name of a function (`package.module.function`)")
    return names


def _format(reader: _ConfigurationReader, key: str, value: Any) -> str:
    if _text(reader, key, value) not in FORMATS:
        raise reader.error(key, f"{value!r} is none of {', '.join(FORMATS)}")
    return str(value)


def _path(reader: _ConfigurationReader, key: str, value: Any) -> str:
    return os.path.normpath(os.path.join(reader.folder, _text(reader, key, value)))


@dataclass(frozen=True, slots=True)
class Key:
    """A key: its field of `Configuration`, empty if it has none, and the function that reads its value."""

    name: str
    read: Callable[[_ConfigurationReader, str, Any], Any]


STYLES = ("delete", "explicit")
"""What a fix of code does with a setting that no code needs."""
REQUIRED_VERSION = "required-version"


KEYS: Mapping[str, Key] = {
    REQUIRED_VERSION: Key("", _text),
    "from": Key("source", _release),
    "to": Key("target", _release),
    "select": Key("select", _codes),
    "extend-select": Key("extend_select", _codes),
    "ignore": Key("ignore", _codes),
    "fixable": Key("fixable", _codes),
    "unfixable": Key("unfixable", _codes),
    "preview": Key("preview", _boolean),
    "docs": Key("docs", _boolean),
    "style": Key("explicit", _is_explicit),
    "setters": Key("setters", _setters),
    "per-file-ignores": Key("per_file_ignores", _per_file),
    "exclude": Key("exclude", _patterns),
    "extend-exclude": Key("extend_exclude", _patterns),
    "extend-rules": Key("extend_rules", _folders),
    "ecosystems": Key("ecosystems", _ecosystems),
    "output-format": Key("format", _format),
    "baseline": Key("baseline", _path),
    "prove": Key("prove", _text),
}
"""All keys of a configuration."""
