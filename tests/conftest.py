"""Shared: where the real configurations are, and a run of the command in a scratch project."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result
from hypothesis import settings

from cgmigrate.cli.commands import main
from tests.support.comparisons import table_of_judged
from tests.support.paths import CORPUS

collect_ignore = ["fixtures"]
"""Projects in the fixtures have tests of their own, which import what is not installed."""

# `git init` copies a dozen hooks that are never run, which takes longer than all else that it does.
os.environ["GIT_TEMPLATE_DIR"] = ""
# Two workers on two cores, and whatever else runs there, make one example slow now and then.
settings.register_profile("random", deadline=None)
# A push is judged by the same examples as the one before it; `.ci/run --nightly` tries new ones.
settings.register_profile("fixed", settings.get_profile("random"), derandomize=True)
settings.load_profile("fixed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest: at the end, one worker would wait for the other."""
    items.sort(key=lambda one: not one.nodeid.startswith(("tests/verify/", "tests/end_to_end/")))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the precision and recall of rules that tests of this process judged by executed code."""
    if table := table_of_judged():
        terminalreporter.write_line(table)


@pytest.fixture
def corpus() -> Path:
    """The folder of real configurations; a test that needs it skips where it is absent."""
    if not CORPUS.is_dir():
        pytest.skip("the corpus is not beside the checkout")
    return CORPUS


@pytest.fixture(autouse=True)
def journals(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run notes for ``fix --undo`` is kept out of the user's own cache."""
    # The factory would list all its folders to number one more, for each of thousands of tests.
    monkeypatch.setenv("CGMIGRATE_CACHE_DIR", str(tmp_path_factory.getbasetemp() / f"cache-{uuid4()}"))


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty folder whose path no other test has: what a run reads of a folder is remembered by its path.

    That of pytest may be the one of a test before, and is numbered by a list of all folders.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}-{uuid4().hex[:12]}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is a project of its own (no pins from above), and the working directory."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cgmigrate() -> Callable[..., Result]:
    """Run the command with these words; the result has exit_code, stdout and stderr."""

    def run(*words: str, text: str | None = None) -> Result:
        result = CliRunner().invoke(main, [str(word) for word in words], input=text)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run
