"""The plugin by which the observer knows which test runs, and how each ends."""

from typing import Any

from cgmigrate_observer import OBSERVER  # type: ignore[import-not-found]  # beside it on the path


def pytest_runtest_logstart(nodeid: str) -> None:
    """Begin a test: what was made before it belongs to no test."""
    if OBSERVER is not None:
        OBSERVER.flush()
        OBSERVER.test = nodeid


def pytest_runtest_logreport(report: Any) -> None:
    """Write the outcome of a phase of a test, unless it is a set-up or an end that passed."""
    if OBSERVER is not None and (report.when == "call" or report.outcome != "passed"):
        OBSERVER.write(kind="outcome", name=report.nodeid, outcome=f"{report.when} {report.outcome}")


def pytest_runtest_logfinish() -> None:
    """End a test."""
    if OBSERVER is not None:
        OBSERVER.flush()
        OBSERVER.test = ""


def pytest_collectreport(report: Any) -> None:
    """Write which files cannot be imported."""
    if OBSERVER is not None and report.failed:
        OBSERVER.write(kind="outcome", name=report.nodeid, outcome="not collected")
