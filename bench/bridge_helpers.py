"""Call every helper of the recipes of a Megatron-Bridge tree that takes a configuration, and compare two trees.

    python bench/bridge_helpers.py BEFORE AFTER

Each helper gets configurations with each combination of implementation and scope in `OBJECTS`. Those of the first tree
have the former names; those of the second the present ones, as fixed code leaves them. With `--former`, both have the
former names, as code of users may: megatron-core still reads these. Private helpers get what recipes give them, and no
more, so they are called with `--private` only. Exit status 1 if a helper raises or differs.

Stand-ins and validation are those of `bridge_recipes.py`. Helpers whose further parameters have no
defaults get stand-ins for these.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import json
import logging
import subprocess
import sys
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge_recipes import TRUTH, Anything, Comparison, _validated, compare, environment, modules_of

OBJECTS: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]] = (
    ({}, {}),
    *(
        ({"cuda_graph_impl": "none", "cuda_graph_scope": scope}, {"cuda_graph_impl": "none"})
        for scope in ("full", [], ["attn"], "full_iteration")
    ),
    *(
        ({"cuda_graph_impl": impl, "cuda_graph_scope": scope}, {"cuda_graph_impl": impl, "cuda_graph_modules": modules})
        for impl in ("local", "transformer_engine")
        for scope, modules in (
            ("full", []),
            ([], []),
            ("attn", ["attn"]),
            (["attn"], ["attn"]),
            (["attn", "moe_router", "moe_preprocess"], ["attn", "moe_router", "moe_preprocess"]),
        )
    ),
    *(
        ({"cuda_graph_impl": "local", "cuda_graph_scope": scope}, {"cuda_graph_impl": "full_iteration"})
        for scope in ("full_iteration", ["full_iteration"])
    ),
    ({"cuda_graph_impl": "transformer_engine"}, {"cuda_graph_impl": "transformer_engine"}),
)
"""The settings of a configuration, under the former names and under the present ones."""
_CONFIGURATIONS = ("cfg", "config", "recipe", "cfg_container")
_MODELS = ("model", "model_cfg", "model_config", "provider", "model_provider")


def execute(tree: Path, *, is_former: bool, has_private: bool) -> dict[str, Any]:
    """Call the helpers of a tree with each object: name and number of the object -> settings, or the error's text."""
    results: dict[str, Any] = {}
    for name, module in modules_of(tree):
        if isinstance(module, str):
            continue
        for helper, function in sorted(vars(module).items()):
            if not isinstance(function, types.FunctionType) or function.__module__ != name:
                continue
            if helper.startswith("_") and not has_private:
                continue
            for number, (former, present) in enumerate(OBJECTS):
                settings = former if is_former else present
                effects = [_effect(function, settings, truth) for truth in (True, False)]
                if effects[0] is not None:
                    results[f"{name}.{helper} {number} {dict(former)}"] = effects
    return results


def _effect(function: types.FunctionType, settings: Mapping[str, Any], truth: bool) -> dict[str, Any] | str | None:
    """The settings in effect after a call; None for a function that takes no configuration first."""
    first, *others = inspect.signature(function).parameters.values() or [None]
    if first is None or first.name not in (*_CONFIGURATIONS, *_MODELS):
        return None
    TRUTH[0] = truth
    model = Anything(**{name: [*value] if isinstance(value, list) else value for name, value in settings.items()})
    made = Anything(model=model)
    needed = (
        one for one in others if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    )
    named = {one.name: Anything() for one in needed}
    try:
        function(model if first.name in _MODELS else made, **named)
    except Exception as error:
        return f"not executed: {type(error).__name__}: {error}"
    try:
        return _validated(made.model, made.rng)
    except Exception as error:
        return f"raises: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def results_of(tree: Path, *options: str) -> dict[str, Any]:
    """Execute a tree in a process of its own."""
    command = [sys.executable, __file__, "--results", str(tree), *options]
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, env=environment())
    results: dict[str, Any] = json.loads(process.stdout)
    return results


def main() -> int:
    """Print the results of a tree as JSON, or compare two."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--former", action="store_true", help="both trees get configurations with the former names")
    parser.add_argument("--private", action="store_true", help="call private helpers, too")
    parser.add_argument("--results", action="store_true", help="print the settings after each call in one tree")
    options = parser.parse_args()
    if options.results:
        logging.disable()
        with contextlib.redirect_stdout(io.StringIO()):
            results = execute(options.trees[0], is_former=options.former, has_private=options.private)
        print(json.dumps(results, default=lambda value: type(value).__name__))
        return 0
    before, after = options.trees
    private = ["--private"] if options.private else []
    former = ["--former"] if options.former else []
    comparison = compare(results_of(before, "--former", *private), results_of(after, *former, *private))
    print(_shown(comparison))
    return 1 if comparison.raises or comparison.differs else 0


def _shown(comparison: Comparison) -> str:
    helpers = {name.partition(" ")[0] for name in (*comparison.raises, *comparison.differs)}
    text = str(comparison).replace("recipes executed", "calls of helpers executed")
    return f"{text}\nhelpers that raise or differ: {len(helpers)}: {', '.join(sorted(helpers))}"


if __name__ == "__main__":
    sys.exit(main())
