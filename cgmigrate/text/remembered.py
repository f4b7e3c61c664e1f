"""Methods that work out each of their results once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

_Self = TypeVar("_Self")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def remembered(
    method: Callable[Concatenate[_Self, _Arguments], _Result],
) -> Callable[Concatenate[_Self, _Arguments], _Result]:
    """Return a method that keeps its results with its object, by the arguments, as `cached_property` keeps its one."""
    name = f"{method.__module__}.{method.__qualname__}"

    @wraps(method)
    def once(self: _Self, /, *args: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        results: dict[Any, _Result] = self.__dict__.setdefault(name, {})
        key = (*args, *named.items())
        if key not in results:
            results[key] = method(self, *args, **named)
        return results[key]

    return once
