"""The examples of ``formats.md``: the output of each format for the file that the page shows."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from pathlib import Path

from click.testing import CliRunner

from cgmigrate import __version__
from cgmigrate.cli.commands import main
from cgmigrate.project.options import FORMATS

_BLOCK = re.compile(r"(?<=^```)(?P<language>\w*)\n(?P<text>.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def with_examples(page: str) -> str:
    """Return the page, where the first block of each format's section is the format's output."""
    head, *sections = re.split(r"(?m)^(?=## )", page)
    by_title = {section.partition("\n")[0].removeprefix("## "): section for section in sections}
    example = _BLOCK.search(by_title["The file"])
    assert example is not None
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path(".git").mkdir()
        Path(".git/HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        Path("recipe.yaml").write_text(example["text"], encoding="utf-8")
        for name in FORMATS:
            by_title[name] = _with_output(by_title[name], _output(name))
    return head + "".join(by_title.values())


def _with_output(section: str, output: str) -> str:
    return _BLOCK.sub(lambda match: f"{match['language']}\n{output}\n", section, count=1)


def _output(name: str) -> str:
    result = CliRunner().invoke(main, ["check", "--output-format", name, "recipe.yaml"])
    # The page shows the version that was released last: each commit has one of its own.
    text = result.stdout.replace(f'"{__version__}"', f'"{_released()}"')
    if name == "sarif":
        # Rules come with their whole help; the page shows a result.
        text = json.dumps(json.loads(text)["runs"][0]["results"][0], indent=2)
    return text.rstrip("\n")


def _released() -> str:
    """The newest version of the changelog."""
    changelog = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.findall(r"^## \[(\d.*?)\]", changelog, re.MULTILINE)[0]
