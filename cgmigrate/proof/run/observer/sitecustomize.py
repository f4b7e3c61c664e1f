"""Loads the observer, and then the `sitecustomize` that this one hides."""

import contextlib
import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec

_OWN = os.path.dirname(os.path.abspath(__file__))

with contextlib.suppress(Exception):
    import cgmigrate_observer  # type: ignore[import-not-found]  # noqa: F401

_spec = PathFinder.find_spec("sitecustomize", [one for one in sys.path if os.path.abspath(one) != _OWN])
if _spec is not None and _spec.loader is not None:
    # Its errors are shown as they are without the observer.
    _hidden = module_from_spec(_spec)
    sys.modules["sitecustomize"] = _hidden
    _spec.loader.exec_module(_hidden)
