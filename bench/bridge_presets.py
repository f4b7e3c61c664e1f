"""Execute the recipes of Megatron-Bridge's performance harness with its presets, and compare two trees.

    python bench/bridge_presets.py BEFORE AFTER      exit status 1 if a recipe raises or differs
    python bench/bridge_presets.py --results TREE    prints what each recipe's settings are, or its error, as JSON

The states of Megatron-Bridge from October 2025 to June 2026 have presets of the harness's own, with the old names, in
`scripts/performance/configs`. Each public function there that needs no argument is called for each precision and
variant, with stand-ins as in `bridge_recipes.py`; what it returns is validated as the Bridge does it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.machinery
import itertools
import json
import logging
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import bridge_recipes as bench

HARNESS = ("configs", "utils")
"""The packages of the harness, which import each other by these names."""
PRECISIONS = ("bf16", "fp8_cs", "fp8_mx", "nvfp4")
VARIANTS = ("v1", "v2")


class _OfHarness(bench._Imports):
    """Stand-ins for the packages that the harness imports and that are not installed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:  # noqa: ARG002 - the signature is importlib's
        if name.startswith(HARNESS) or not bench._importer().startswith(HARNESS):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)


def execute(tree: Path) -> dict[str, Any]:
    """Return what each function of the harness sets, by its name, precision and variant; or its error's text."""
    logging.disable(logging.CRITICAL)
    for _ in bench.modules_of(tree):
        pass
    harness = tree / "scripts/performance"
    sys.path.insert(0, str(harness))
    sys.meta_path.append(_OfHarness(harness, last=True))
    results: dict[str, Any] = {}
    for file in sorted((harness / "configs").rglob("*.py")):
        name = ".".join(file.relative_to(harness).with_suffix("").parts)
        if file.name == "__init__.py":
            continue
        try:
            module = importlib.import_module(name)
        except Exception as error:
            results[name] = f"not imported: {type(error).__name__}"
            continue
        results |= {f"{name}.{key}": effect for key, effect in _effects(module)}
    return results


def _effects(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    for name, function in list(vars(module).items()):
        if name.startswith("set_") or "config" not in name or not bench._is_recipe(function, name, module.__name__):
            continue
        known = function.__code__.co_varnames[: function.__code__.co_argcount]
        for precision, variant in itertools.product(PRECISIONS, VARIANTS):
            every = {"precision": precision, "config_variant": variant}
            passed = {key: value for key, value in every.items() if key in known}
            for truth in (True, False):
                effect = bench._effect(lambda f=function, g=passed: f(**g), truth, bench._validated)
                yield f"{name} {precision} {variant} {truth}", effect


def _results(tree: Path) -> dict[str, Any]:
    process = subprocess.run(
        [sys.executable, __file__, "--results", str(tree)], capture_output=True, text=True, check=True
    )
    result: dict[str, Any] = json.loads(process.stdout)
    return result


def main() -> int:
    """Compare two trees, or print the results of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path)
    parser.add_argument("trees", nargs="*", type=Path)
    options = parser.parse_args()
    if options.results:
        print(json.dumps(execute(options.results), default=str))
        return 0
    before, after = map(_results, options.trees)
    executed = [one for one in before.values() if isinstance(one, dict)]
    graphs = sum(one["impl"] != "none" for one in executed)
    different = {name: (one, after.get(name)) for name, one in before.items() if one != after.get(name)}
    print(f"{len(executed)} calls executed ({graphs} capture graphs): {len(different)} differ")
    for name, (old, new) in different.items():
        print(f"{name}\n  before {old}\n  after  {new}")
    return bool(different)


if __name__ == "__main__":
    sys.exit(main())
