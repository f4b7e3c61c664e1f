"""Which Python files of a checkout are loaded together: by their imports, as the text shows them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from cgmigrate.text.files import read_bytes

_MOST_BYTES = 4 * 1024 * 1024
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<module>[.\w]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#;]+)"
    r"|import[ \t]+(?P<modules>[^\n#;]+))",
    re.MULTILINE,
)
_COMPUTED = re.compile(r"import_module\(|__import__\(|spec_from_file_location\(|runpy\.|exec\(")
_NAME = re.compile(r"\w+")


@dataclass
class ImportGraph:
    """The imports between the Python files of a checkout."""

    top: str
    _loaded: dict[str, frozenset[str]] = field(default_factory=dict)
    """File → what it loads, itself included."""

    def may_meet(self, first: str, second: str) -> bool:
        """Return whether some program can load both files."""
        first, second = os.path.realpath(first), os.path.realpath(second)
        if first == second or first not in self.texts or second not in self.texts:
            return True
        return bool(self._loaders(first) & self._loaders(second))

    @cached_property
    def texts(self) -> dict[str, str]:
        """The texts of the Python files, by their real paths."""
        from cgmigrate.project.checkout import code_of

        texts = {}
        for path in code_of(self.top):
            if path.endswith(".py"):
                try:
                    texts[os.path.realpath(path)] = read_bytes(path, _MOST_BYTES).decode("utf-8", "replace")
                except OSError:
                    continue
        return texts

    @cached_property
    def _by_last_name(self) -> dict[str, list[tuple[str, str]]]:
        """The last name of a module → its dotted path from the root, and its file."""
        result: dict[str, list[tuple[str, str]]] = {}
        for path in self.texts:
            parts = os.path.relpath(path, os.path.realpath(self.top))[:-3].split(os.sep)
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            if parts:
                result.setdefault(parts[-1], []).append((".".join(parts), path))
        return result

    @cached_property
    def _importers(self) -> dict[str, set[str]]:
        """File → the files that import it; one that imports by computed names may import any in its folder."""
        result: dict[str, set[str]] = {}
        for path, text in self.texts.items():
            for module in self._modules_in(path, text):
                for imported in self._files_of(module):
                    result.setdefault(imported, set()).add(path)
            if _COMPUTED.search(text):
                folder = os.path.dirname(path) + os.sep
                for other in self.texts:
                    if other.startswith(folder):
                        result.setdefault(other, set()).add(path)
        return result

    def _modules_in(self, path: str, text: str) -> set[str]:
        """Return the modules that a file may import, dotted; relative ones from the root."""
        package = os.path.relpath(os.path.dirname(path), os.path.realpath(self.top)).split(os.sep)
        modules: set[str] = set()
        for match in _IMPORT.finditer(text):
            if match["modules"]:
                modules.update(one.split()[0] for one in match["modules"].split(",") if one.strip())
                continue
            module = match["module"]
            dots = len(module) - len(module.lstrip("."))
            if dots:
                base = [one for one in package if one != "."][: len(package) - dots + 1]
                module = ".".join([*base, *filter(None, [module.lstrip(".")])])
            modules.add(module)
            modules.update(f"{module}.{name}" for name in _NAME.findall(match["names"]))
        return modules

    def _files_of(self, module: str) -> list[str]:
        """Return the files of a module: those whose path ends with it, since any folder may be on the search path."""
        last = module.rpartition(".")[2]
        return [
            path
            for full, path in self._by_last_name.get(last, ())
            if full == module or full.endswith(f".{module}") or module.endswith(f".{full}")
        ]

    def _loaders(self, path: str) -> frozenset[str]:
        """Return the files that load a file, directly or not, itself included."""
        if path not in self._loaded:
            seen, waiting = {path}, [path]
            while waiting:
                for one in self._importers.get(waiting.pop(), ()):
                    if one not in seen:
                        seen.add(one)
                        waiting.append(one)
            self._loaded[path] = frozenset(seen)
        return self._loaded[path]


_ROOTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
"""Files of which each project has one in its root."""


def is_around(place: str, path: str) -> bool:
    """Return whether a file is in a folder around that of another one, or in the same."""
    folder = os.path.dirname(os.path.realpath(place))
    return os.path.realpath(path).startswith(os.path.join(folder, ""))


def is_of_project(place: str, path: str, top: str) -> bool:
    """Return whether a file belongs to the project of another one, which may be a part of a checkout."""
    return is_around(os.path.join(_project_of(os.path.dirname(path), top), "any"), place)


@lru_cache(maxsize=4096)
def _project_of(folder: str, top: str) -> str:
    """Return the nearest folder around a folder, in a checkout, that has the packaging or the pins of a project."""
    above = os.path.dirname(folder)
    if folder == top or above == folder or any(os.path.exists(os.path.join(folder, one)) for one in _ROOTS):
        return folder
    return _project_of(above, top)


def names_file(text: str, path: str, top: str) -> bool:
    """Return whether a text has the name of a file, or the path of its folder from the root of the checkout."""
    folder = os.path.relpath(os.path.dirname(os.path.realpath(path)), os.path.realpath(top))
    if os.path.basename(path) in text:
        return True
    return folder != "." and re.search(rf"(?<![\w.-]){re.escape(folder)}(?![\w-])", text) is not None
