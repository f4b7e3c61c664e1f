"""Processes beside the run, which check the files that are planned alone.

Each process is a copy of the run (a fork) and checks every n-th of these files, in their order; the run takes the
results in the order of all files. A file is checked by the run itself where a process says nothing about it: one that
failed or was killed, and one with notes for the run. So the report is the same with any number of processes.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, BinaryIO

from cgmigrate.documents.syntax import Syntax
from cgmigrate.project.inputs import Input, InputFile

if TYPE_CHECKING:
    from cgmigrate.lint.file_check import FileChecker
    from cgmigrate.lint.file_result import FileResult

WITHOUT_LOCKS = "cgmigrate-progress"
"""The name of a thread that has no lock while processes are started."""
LEAST_FILES = 64
"""With fewer files, processes cost more than they gain."""
_MOST = 8
_LINKED = (Syntax.YAML, Syntax.PYTHON)
"""Syntaxes whose files are planned together with others."""
_SIZE = 8
"""The bytes that say how long a result is."""


def available() -> int:
    """Return how many processes can check files: 1 where the system cannot copy a process, or has one processor."""
    if sys.platform != "linux":
        return 1
    return min(len(os.sched_getaffinity(0)), _MOST)


@dataclass(slots=True)
class Processes:
    """The processes of a run; ``number_of`` says which of them checks a file, by its path."""

    checker: FileChecker
    number_of: dict[str, int] = field(default_factory=dict)
    _children: list[int] = field(default_factory=list)
    _results: list[BinaryIO] = field(default_factory=list)

    @classmethod
    def start(cls, checker: FileChecker, inputs: Sequence[Input], count: int) -> Processes:
        """Return started processes; there are none if they would gain nothing."""
        result = cls(checker)
        if count < 2 or len(inputs) < LEAST_FILES or checker.baseline is not None or _has_threads():
            return result
        sources = [one for one in inputs if isinstance(one, InputFile) and _is_planned_alone(one, checker)]
        if len(sources) < LEAST_FILES:
            return result
        for number in range(count):
            result._start(sources[number::count], number)
        return result

    def _start(self, sources: Sequence[InputFile], number: int) -> None:
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            # Python warns of any thread, also of one without locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os.close(reading)
            _serve(self.checker, sources, writing)
        os.close(writing)
        self._children.append(child)
        self._results.append(os.fdopen(reading, "rb", buffering=1 << 20))
        self.number_of |= dict.fromkeys((source.path for source in sources), number)

    def result(self, source: InputFile) -> FileResult | None:
        """Return a file as one of the processes checked it, None if the run has to check it itself."""
        number = self.number_of.get(source.path)
        if number is None:
            return None
        checked = _read(self._results[number])
        if checked is None:
            return None
        if checked.releases is not None:
            # The run lists the releases of all files, and their notes.
            self.checker.contexts.context(source.path)
        return replace(checked, data=source.data)

    def stop(self) -> None:
        """End the processes."""
        for stream in self._results:
            stream.close()
        for child in self._children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        self._children.clear()


def _read(stream: BinaryIO) -> FileResult | None:
    """Return the next result of a process, None if there is none: the process may have ended at any byte of it."""
    head = stream.read(_SIZE)
    size = int.from_bytes(head, "big")
    data = stream.read(size) if len(head) == _SIZE else b""
    if not data or len(data) < size:
        return None
    checked: FileResult = pickle.loads(data)
    return checked


def _has_threads() -> bool:
    """Return whether a thread may have a lock, which a copy of the process would never get."""
    return any(one is not threading.main_thread() and one.name != WITHOUT_LOCKS for one in threading.enumerate())


def _is_planned_alone(source: InputFile, checker: FileChecker) -> bool:
    from cgmigrate.linking.overrides import has_override

    if source.syntax in _LINKED:
        return False
    return not has_override(source.data, checker.contexts.catalogue_of(source.path))


def _serve(checker: FileChecker, sources: Sequence[InputFile], writing: int) -> None:
    """Check files and write the results; the process ends."""
    try:
        with os.fdopen(writing, "wb", buffering=0) as stream:
            for source in sources:
                data = _checked(checker, source)
                stream.write(len(data).to_bytes(_SIZE, "big") + data)
    finally:
        # Only the run itself cleans up and reports.
        os._exit(0)


def _checked(checker: FileChecker, source: InputFile) -> bytes:
    """Return the result for a file as bytes, none if the run has to check it itself."""
    notes: list[str] = []
    try:
        checked = replace(checker, notes=notes).check(source)
        details = checked.details.known(checked.diagnostics) if checked.details else None
        return b"" if notes else pickle.dumps(replace(checked, data=b"", details=details))
    except Exception:
        return b""
