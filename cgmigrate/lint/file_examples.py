"""Examples of rules as files: saved in a temporary folder, and checked and fixed as a command would.

An example may say more of its file than a text: its encoding, its size, and the files beside it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.megatron.releases import LAST_OLD, NEWEST
from cgmigrate.megatron.versions import parse_release
from cgmigrate.project.options import RunOptions

KEYS = ("encoding", "size", "repeat", "beside")
"""What an example says of its file."""
_SUFFIXES = {"python": ".py", "yaml": ".yaml", "markdown": ".md", "shell": ".sh", "toml": ".toml"}


@dataclass(frozen=True, slots=True)
class FileExample:
    """An example, and the folders of rules that apply to it beside those that ship."""

    example: Mapping[str, Any]
    rule_folders: tuple[str, ...] = ()

    def checked(self, text: str, unsafe: bool = False) -> FileResult:
        """Return the file with a text in place of that of the example, after its fixes. Raises RuleError."""
        source = parse_release(self.example["from"]) if "from" in self.example else LAST_OLD
        target = parse_release(self.example["to"]) if "to" in self.example else NEWEST
        options = RunOptions(min(source, target), target, unsafe=unsafe, preview=True, rule_folders=self.rule_folders)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"example{_SUFFIXES[self.example['syntax']]}"
            path.write_bytes(self.content(text))
            for name, beside in self.example.get("beside", {}).items():
                (Path(folder) / name).write_text(beside, encoding="utf-8")
            checked = [item for item in Run([folder], options) if isinstance(item, FileResult)]
        own = next((item for item in checked if Path(item.path).name == path.name), None)
        return own or FileResult(str(path), self.content(text), text, ())

    def content(self, text: str) -> bytes:
        """Return a text as the file has it."""
        for repeated, times in self.example.get("repeat", {}).items():
            text = text.replace(repeated, repeated * times, 1)
        content = text.encode(self.example.get("encoding", "utf-8"))
        return content.ljust(self.example.get("size", 0), b"#")
