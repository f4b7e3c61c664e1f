"""Writes down what a process builds and reaches. Loaded by every Python process of an observed command.

It needs the standard library only, never raises into the program, and does nothing without its variable. Each process
appends lines of JSON to a file of its own: the configurations that code of the tree made, with the settings as the
release validated them, the watched lines and files that were reached, and the outcomes of tests.
"""

from __future__ import annotations

import atexit
import contextlib
import enum
import functools
import json
import os
import sys
import threading
import warnings
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from typing import Any

VARIABLE = "CGMIGRATE_OBSERVER"
_SIMPLE = (bool, int, float, str, type(None))
_MOST_PENDING = 20_000
"""Configurations of one test; what is made beyond them is not written."""


_real = functools.cache(os.path.realpath)


def quiet(function: Any) -> Any:
    """Return a function whose errors are its own: they must not end the observed program."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with contextlib.suppress(Exception):
            return function(*args, **kwargs)
        return None

    return wrapped


class Observer:
    """What one process is observed with; ``task`` says which tree it is of, and what is watched in it."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task = task
        self.root, self.copy = task["root"] + os.sep, task["copy"] + os.sep
        self.lines = {self.copy + path: frozenset(lines) for path, lines in task["lines"].items()}
        self.files = {self.copy + path: path for path in task["files"]}
        self.test = ""
        self.core: tuple[type, ...] = ()
        """megatron-core's class of configurations, once it is imported."""
        self.pending: list[tuple[object, str]] = []
        self.built: dict[int, dict[str, object]] = {}
        """The settings of built configurations before their release validated them, by the id of the object."""
        self.reached: set[tuple[str, int]] = set()
        self.values: dict[str, int] = {}
        self.start_process()

    def start_process(self) -> None:
        """Begin a file: after a fork, the child has its own."""
        self.out = os.path.join(self.task["out"], f"{os.getpid()}.jsonl")
        self.pending, self.reached, self.values = [], set(), {}

    @quiet
    def write(self, **row: object) -> None:
        """Append a line."""
        with open(self.out, "a", encoding="utf-8") as file:
            file.write(json.dumps({"test": self.test, **row}) + "\n")

    # --- what is reached --------------------------------------------------------------------------

    def watch_lines(self) -> None:
        """Note the watched lines that run: with `sys.monitoring` since Python 3.12, before it as a debugger does."""
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None:
            sys.settrace(self._trace)
            threading.settrace(self._trace)
            return
        tool = next(one for one in (4, 3, 5) if monitoring.get_tool(one) is None)
        events = monitoring.events
        monitoring.use_tool_id(tool, "cgmigrate")

        def start(code: Any, _: int) -> Any:
            if _real(code.co_filename) in self.lines:
                monitoring.set_local_events(tool, code, events.LINE)
            return monitoring.DISABLE

        def line(code: Any, number: int) -> Any:
            if number not in self.lines[_real(code.co_filename)]:
                return monitoring.DISABLE
            self.reached.add((_real(code.co_filename), number))
            return None

        monitoring.register_callback(tool, events.PY_START, start)
        monitoring.register_callback(tool, events.LINE, line)
        monitoring.set_events(tool, events.PY_START)

    def _trace(self, frame: Any, event: str, _: object) -> Any:
        watched = self.lines.get(_real(frame.f_code.co_filename))
        if watched is None:
            return None
        if event == "line" and frame.f_lineno in watched:
            self.reached.add((_real(frame.f_code.co_filename), frame.f_lineno))
        return self._trace

    def audit(self, event: str, args: Any) -> None:
        """Note a watched file that is opened. (A hook must not raise.)"""
        if event == "open" and type(args[0]) is str and (path := os.path.realpath(args[0])) in self.files:
            self.reached.add((path, 0))

    # --- what is built ----------------------------------------------------------------------------

    def place(self) -> str:
        """Return the nearest function of the tree that is being executed."""
        frame: Any = sys._getframe(2)
        while frame is not None and not frame.f_code.co_filename.startswith(self.copy):
            frame = frame.f_back
        if frame is None:
            return ""
        code = frame.f_code
        return f"{code.co_filename[len(self.copy) :]}:{getattr(code, 'co_qualname', code.co_name)}"

    @quiet
    def made(self, one: object) -> None:
        """Note a new configuration. It is written down when its test ends, with what code has set on it until then."""
        if len(self.pending) < _MOST_PENDING:
            self.pending.append((one, self.place()))

    @quiet
    def flush(self) -> None:
        """Write what was made and reached since the last time."""
        pending, self.pending = self.pending, []
        lines, self.reached = self.reached, set()
        for one, place in pending:
            with contextlib.suppress(Exception):
                self._write_config(one, place)
        self.built.clear()
        if lines:
            self.write(kind="reached", lines=sorted([path[len(self.copy) :], line] for path, line in lines))

    def _write_config(self, one: Any, place: str) -> None:
        before = self.built.get(id(one))
        fields: Any = one.__dict__
        error: str | None = ""
        if before is None:
            before = self.settings(one)
            fields, error = _validated(one)
        self.config(type(one).__qualname__, place, before, fields, error)

    def config(self, name: str, place: str, before: object, fields: Any, error: str | None = None) -> None:
        """Write one configuration: its settings as code set them, and all fields as the release validated them."""
        values = json.dumps(self.plain(fields, 6), sort_keys=True)
        number = self.values.get(values)
        if number is None:
            number = self.values[values] = len(self.values)
            self.write(kind="values", number=number, values=json.loads(values))
        self.write(kind="config", name=name, place=place, settings=before, number=number, error=error)

    def settings(self, one: Any) -> dict[str, object]:
        """Return the watched settings of an object."""
        return {name: self.plain(getattr(one, name), 2) for name in self.task["settings"] if hasattr(one, name)}

    def plain(self, value: Any, depth: int) -> object:
        """Return a value of a configuration as JSON has it; of an object without settings, its class."""
        if isinstance(value, (enum.Enum, *_SIMPLE)):
            return value.name if isinstance(value, enum.Enum) else value
        if depth and isinstance(value, dict):
            named = {str(key): part for key, part in value.items()}
            return {key: self.plain(part, depth - 1) for key, part in named.items() if not key.startswith("_")}
        if depth and isinstance(value, (list, tuple, set, frozenset)):
            parts = [self.plain(part, depth - 1) for part in value]
            return parts if isinstance(value, (list, tuple)) else sorted(map(str, parts))
        own = getattr(value, "__dict__", {})
        has_settings = hasattr(value, "__dataclass_fields__") or any(name in own for name in self.task["settings"])
        if depth and has_settings and not isinstance(value, (type, *self.core)):
            # A configuration of a model has a line of its own; what a test uses instead has none.
            return self.plain(own, depth)
        if type(value).__name__ == "dtype":
            return str(value)
        return getattr(value, "__qualname__", "") or type(value).__qualname__


def _validated(one: Any) -> tuple[dict[str, object], str | None]:
    """Return the fields of a configuration that is not built yet as megatron-core validates them, or its refusal."""
    fields = {name: type(value)(value) if type(value) in (list, dict) else value for name, value in vars(one).items()}
    copy: Any = object.__new__(type(one))
    copy.__dict__.update(fields)
    classes = (cls for cls in type(one).__mro__ if cls.__module__.startswith("megatron.core."))
    validate = next((vars(cls)["__post_init__"] for cls in classes if "__post_init__" in vars(cls)), None)
    if validate is None:
        return fields, None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            validate(copy)
    except Exception as error:
        return fields, f"{type(error).__name__}: {error}"[:300]
    return vars(copy), ""


# --- patches ----------------------------------------------------------------------------------------


def _watch_instances(cls: Any, observer: Observer) -> None:
    """Note each object of a class and its subclasses, copies included."""

    def new(own: Any, *_: object, **__: object) -> object:
        one = object.__new__(own)
        observer.made(one)
        return one

    cls.__new__ = staticmethod(new)


def _watch_core(module: Any, observer: Observer) -> None:
    observer.write(kind="release", file=module.__file__, time=os.stat(module.__file__).st_mtime_ns)
    cls = module.TransformerConfig
    observer.core = (cls,)
    _watch_instances(cls, observer)
    validate = cls.__post_init__

    @functools.wraps(validate)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = quiet(observer.settings)(self)
        result = validate(self, *args, **kwargs)
        observer.built.setdefault(id(self), before)
        return result

    cls.__post_init__ = wrapped


def _watch_calls(names: tuple[str, ...]) -> Any:
    """Return a patch that writes down what some functions return."""

    def patch(module: Any, observer: Observer) -> None:
        for name in names:
            if callable(function := getattr(module, name, None)):
                setattr(module, name, _returning(function, name, observer))

    return patch


def _returning(function: Any, name: str, observer: Observer) -> Any:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        place = quiet(observer.place)()
        quiet(observer.config)(name, place, quiet(observer.settings)(result), _fields_of(result))
        return result

    return wrapped


@quiet
def _fields_of(result: Any) -> object:
    """Return the fields of parsed arguments, or a dict of a configuration that was loaded."""
    if hasattr(result, "_metadata"):
        from omegaconf import OmegaConf

        return OmegaConf.to_container(result, resolve=False)
    return result if isinstance(result, dict) else vars(result)


def _watch_unittest(module: Any, observer: Observer) -> None:
    """Note the tests that `unittest` runs, and how each ends. Those that pytest runs are noted already."""
    run = module.TestCase.run

    @functools.wraps(run)
    def wrapped(self: Any, result: Any = None) -> Any:
        if observer.test or result is None:
            return run(self, result)
        observer.flush()
        observer.test, before = self.id(), len(result.failures) + len(result.errors)
        try:
            return run(self, result)
        finally:
            outcome = "passed" if len(result.failures) + len(result.errors) == before else "failed"
            observer.write(kind="outcome", name=observer.test, outcome=outcome)
            observer.flush()
            observer.test = ""

    module.TestCase.run = wrapped


_PATCHES = {
    "unittest.case": _watch_unittest,
    "megatron.core.transformer.transformer_config": _watch_core,
    "megatron.bridge.training.config": lambda module, observer: _watch_instances(module.ConfigContainer, observer),
    "megatron.training.arguments": _watch_calls(("validate_args",)),
    "nemo_rl.utils.config": _watch_calls(("load_config", "load_config_with_inheritance")),
}


class Finder:
    """Finds modules as Python does: those of the tree in its copy, wherever they are installed from."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.asking = threading.local()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the module that the other finders find."""
        if name in (names := self.asking.__dict__.setdefault("names", set())):
            # A finder of the program asks all others, as this one does.
            return None
        names.add(name)
        try:
            others = [one for one in sys.meta_path if one is not self and hasattr(one, "find_spec")]
            specs = (one.find_spec(name, path, target) for one in others)
            spec: ModuleSpec | None = next((spec for spec in specs if spec is not None), None)
        finally:
            names.discard(name)
        return spec and (quiet(self._watched)(name, spec) or spec)

    def _watched(self, name: str, spec: ModuleSpec) -> ModuleSpec:
        spec = self._in_copy(name, spec)
        patch, loader = _PATCHES.get(name), spec.loader
        if patch is not None and loader is not None:
            execute = loader.exec_module

            def exec_module(module: Any) -> None:
                execute(module)
                quiet(patch)(module, self.observer)

            loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def _in_copy(self, name: str, spec: ModuleSpec) -> ModuleSpec:
        """Return a module that is installed from the user's own tree as the copy has it."""
        root = self.observer.root
        folders = spec.submodule_search_locations
        moved = None if folders is None else [_moved(one, self.observer) for one in folders]
        if spec.origin and spec.origin.startswith(root) and os.path.exists(at := _moved(spec.origin, self.observer)):
            return spec_from_file_location(name, at, submodule_search_locations=moved) or spec
        if moved is not None and not spec.origin and any(one.startswith(root) for one in folders or ()):
            spec.submodule_search_locations = moved
        return spec


def _moved(path: str, observer: Observer) -> str:
    inside = path.startswith(observer.root) and not path.startswith(observer.copy)
    other = observer.copy + path[len(observer.root) :] if inside else path
    return other if os.path.exists(other) else path


def _flushing(leave: Any, observer: Observer) -> Any:
    """Return a function that ends the process at once, as workers of multiprocessing do, with all written down."""

    def leaving(status: int) -> None:
        observer.flush()
        leave(status)

    return leaving


def start() -> Observer | None:
    """Observe this process, if its environment asks for it."""
    with open(os.environ[VARIABLE], encoding="utf-8") as file:
        observer = Observer(json.load(file))
    sys.path[:] = [_moved(one, observer) for one in sys.path]
    sys.meta_path.insert(0, Finder(observer))
    if observer.lines:
        observer.watch_lines()
    if observer.files:
        sys.addaudithook(observer.audit)
    observer.write(kind="process")
    os.register_at_fork(after_in_child=observer.start_process)
    atexit.register(observer.flush)
    os._exit = _flushing(os._exit, observer)
    return observer


OBSERVER: Observer | None = quiet(start)() if os.environ.get(VARIABLE) else None
