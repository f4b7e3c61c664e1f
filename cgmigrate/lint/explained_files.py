"""A file with its objects explained, from the plan of a run over it and the files that change together with it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.lint.objects import ExplainedObject, objects_of
from cgmigrate.lint.run import Run
from cgmigrate.project.inputs import InputError, InputFile, TooLarge

if TYPE_CHECKING:
    from cgmigrate.lint.planning import Planned
    from cgmigrate.project.cascade import Configurations
    from cgmigrate.project.options import RunOptions


@dataclass(frozen=True, slots=True)
class ExplainedFile:
    """The objects of a file in the order of the text, and the releases that apply to it."""

    path: str
    objects: tuple[ExplainedObject, ...] = ()
    releases: str = ""
    """With their origins; empty for a file without settings."""
    notes: tuple[str, ...] = ()

    def at(self, line: int) -> ExplainedObject | None:
        """Return the smallest object around a line, None if there is none."""
        around = [one for one in self.objects if one.distance(line) == 0]
        return min(around, key=lambda one: one.length, default=None)

    def nearest(self, line: int) -> ExplainedObject | None:
        """Return the object nearest to a line, None for a file without objects."""
        return min(self.objects, key=lambda one: one.distance(line), default=None)


def explain_file(path: str, options: RunOptions, configurations: Configurations) -> ExplainedFile | InputError:
    """Return a file with its objects, or why it cannot be examined. Raises RuleError and ConfigurationError."""
    run = Run([path], options, configurations)
    planned = _planned(run, path)
    if planned is not None and not isinstance(planned, InputError) and len(planned.files) > 1:
        # A file outside of the paths of a run is not written: with all of them as paths, the plan is that of `.`.
        run = Run([one.path for one in planned.files], options, configurations)
        planned = _planned(run, path)
    if planned is None or isinstance(planned, InputError):
        return planned or ExplainedFile(path)
    number = [_is_same(one.path, path) for one in planned.files].index(True)
    objects = tuple(objects_of(planned.plan, number))
    return ExplainedFile(path, objects, "; ".join(map(str, run.resolutions)), tuple(run.notes))


def _planned(run: Run, path: str) -> Planned | InputError | None:
    """Return the plan of a file in a run; None for a file without settings."""
    inputs = list(run.discovery)
    sources = [item for item in inputs if isinstance(item, InputFile)]
    file = next((item for item in inputs if _is_same(item.path, path)), None)
    match file:
        case None | InputError():
            return file
        case TooLarge():
            return InputError(path, f"has {file.size:,} bytes and is not read as a configuration", missing=True)
    return _plan(run, sources, file)


def _plan(run: Run, sources: Sequence[InputFile], file: InputFile) -> Planned | InputError:
    from cgmigrate.text.failures import TOO_DEEP, too_deep

    planner = run.checker(sources).planner
    try:
        return planner.plan(planner.open(file))
    except UnicodeDecodeError as error:
        return InputError(file.path, f"is not UTF-8 ({error.reason})", missing=True)
    except TOO_DEEP as error:
        return InputError(file.path, too_deep(error), missing=True)


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
