"""Table of the providers of Megatron-Bridge that build a GPTModel: ``rules/gpt_providers.json``.

``python scripts/gpt_providers.py TREE...`` reads the packages of Megatron-Bridge in folders, oldest first. A class is
a provider of GPTModel if it inherits from ``GPTModelProvider``, and the ``provide`` that it has is annotated to return
a GPTModel: those of models with a vision or audio encoder return another class. Its row has its defaults of the fields
that decide the pattern of layers. The rows of checkpoints are written by hand and kept.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

from cgmigrate.megatron.gpt_providers import FIELDS

_IS_OF_CORE = re.compile(r"get_gpt_|experimental_attention|default_layer_spec|transformer_engine_layer_spec")
TABLE = Path(__file__).resolve().parents[1] / "rules/gpt_providers.json"


def rows(tree: Path) -> dict[str, dict[str, object]]:
    """Return the row of each provider of GPTModel in a package."""
    parsed = (ast.parse(path.read_text("utf-8")) for path in sorted(tree.glob("megatron/bridge/**/*.py")))
    classes = {node.name: node for module in parsed for node in ast.walk(module) if isinstance(node, ast.ClassDef)}
    every = {name: _lineage(name, classes) for name in classes}
    return {
        name: _defaults(own) | ({"multi_latent_attention": True} if "MLATransformerConfig" in line else {})
        for name, line in every.items()
        if (own := [classes[one] for one in line if one in classes])
        and "GPTModelProvider" in line
        and _built(own).endswith("GPTModel")
    }


def _lineage(name: str, classes: dict[str, ast.ClassDef]) -> list[str]:
    """Return a class and its bases, nearest first."""
    if name not in classes:
        return [name]
    bases = (ast.unparse(base).rpartition(".")[2] for base in classes[name].bases)
    return [name, *(one for base in bases if base != name for one in _lineage(base, classes))]


def _built(line: list[ast.ClassDef]) -> str:
    nodes = (node for one in line for node in one.body if isinstance(node, ast.FunctionDef))
    first = next((node for node in nodes if node.name == "provide"), None)
    return ast.unparse(first.returns).strip("'\"") if first is not None and first.returns is not None else ""


def _defaults(line: list[ast.ClassDef]) -> dict[str, object]:
    own = [node for one in line if one.name != "GPTModelProvider" for node in one.body]
    every: dict[str, object] = {}
    if any(isinstance(node, ast.FunctionDef) and node.name == "provide" for node in own):
        every["transformer_layer_spec"] = True
    for node in (node for one in line for node in one.body if isinstance(node, (ast.Assign, ast.AnnAssign))):
        name = ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
        if name == "transformer_layer_spec" and node.value is not None and not _IS_OF_CORE.search(ast.unparse(node)):
            every.setdefault(name, True)
        if name in FIELDS and node.value is not None:
            text = ast.unparse(node.value).removeprefix("field(default_factory=lambda: ").removesuffix(")")
            every.setdefault(name, eval(text, {"__builtins__": {}}))
    return {name: every[name] for name in (*FIELDS, "transformer_layer_spec") if every.get(name) is not None}


def main() -> None:
    """Write the classes of the table anew."""
    table = json.loads(TABLE.read_text("utf-8"))
    table["classes"] = {}
    for tree in sys.argv[1:]:
        table["classes"] |= rows(Path(tree))
    parts = (
        f' "{part}": {{\n' + ",\n".join(f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in sorted(own.items()))
        for part, own in sorted(table.items())
    )
    TABLE.write_text("{\n" + "\n },\n".join(parts) + "\n }\n}\n", "utf-8")


if __name__ == "__main__":
    main()
