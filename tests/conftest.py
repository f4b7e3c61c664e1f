"""Shared: where the real configurations are, and a run of the command in a scratch project."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result
from hypothesis import settings

from cgmigrate.cli.commands import main
from cgmigrate.documents import dotted_names
from cgmigrate.documents.python import class_origins
from cgmigrate.linking import project_texts, test_recipes
from cgmigrate.project.pins import folders, package_pins
from tests.support.comparisons import table_of_judged
from tests.support.paths import CORPUS

collect_ignore = ["fixtures"]
"""Projects in the fixtures have tests of their own, which import what is not installed."""

# Two workers on two cores, and whatever else runs there, make one example slow now and then.
settings.register_profile("random", deadline=None)
# A push is judged by the same examples as the one before it; `.ci/run --nightly` tries new ones.
settings.register_profile("fixed", settings.get_profile("random"), derandomize=True)
settings.load_profile("fixed")


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


OF_FOLDERS = (
    *(folders.read_folder, package_pins._nearest, package_pins._pins_in),
    *(project_texts.project_around, dotted_names._is_own, class_origins.module_file, test_recipes._programs),
)
"""What a run reads of a folder once."""


@pytest.fixture(autouse=True)
def new_folders() -> None:
    """Some versions of pytest give the folder of a test that passed to the next one of a like name."""
    for function in OF_FOLDERS:
        function.cache_clear()


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
