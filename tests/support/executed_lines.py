"""A pytest plugin for ``tests/mutation.py``: notes which lines each test executes, and runs only chosen tests.

``--lines-file FILE`` writes, for every test that passes, its CPU seconds and the lines of cgmigrate/ that it executes;
the entry of ``(file)`` has those that run while the file is imported. ``--tests-file FILE`` names the tests to run, one
id a line. Needs ``sys.monitoring`` (Python 3.12).
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from types import CodeType

import pytest

PACKAGE = os.path.join(os.getcwd(), "cgmigrate") + os.sep


def _seconds() -> float:
    """Return the CPU time of the process and its children: it does not depend on what else the machine does."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lines-file", help="where the executed lines are written")
    parser.addoption("--tests-file", help="the ids of the tests to run")


def pytest_configure(config: pytest.Config) -> None:
    if name := config.getoption("--lines-file"):
        config.pluginmanager.register(Recorder(Path(name)))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if name := config.getoption("--tests-file"):
        chosen = set(Path(name).read_text(encoding="utf-8").splitlines())
        items[:] = [item for item in items if item.nodeid in chosen]


class Recorder:
    """Writes ``{test: {"seconds": s, "lines": {path: [line, ...]}}}`` at the end of a run."""

    def __init__(self, output: Path) -> None:
        self.output = output
        self.tests: dict[str, dict[str, object]] = {}
        self.failed: set[str] = set()
        self.lines: dict[str, set[int]] = defaultdict(set)
        monitoring = sys.monitoring
        monitoring.use_tool_id(monitoring.COVERAGE_ID, "executed lines")
        monitoring.register_callback(monitoring.COVERAGE_ID, monitoring.events.LINE, self._line)
        monitoring.set_events(monitoring.COVERAGE_ID, monitoring.events.LINE)

    def _line(self, code: CodeType, line: int) -> object:
        if code.co_filename.startswith(PACKAGE):
            self.lines[code.co_filename].add(line)
        return sys.monitoring.DISABLE

    def _take(self, name: str, seconds: float) -> None:
        lines = {os.path.relpath(path, Path(PACKAGE).parent): sorted(numbers) for path, numbers in self.lines.items()}
        self.tests[name] = {"seconds": seconds, "lines": lines}
        self.lines.clear()
        sys.monitoring.restart_events()

    def pytest_collection_finish(self) -> None:
        self._take("(file)", 0.0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        from cgmigrate.megatron import catalogue

        catalogue._load.cache_clear()  # each test that needs the settings executes the lines that read them
        start = _seconds()
        result = yield
        self._take(item.nodeid, _seconds() - start)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        passed = {name: test for name, test in self.tests.items() if name not in self.failed}
        self.output.write_text(json.dumps(passed), encoding="utf-8")
