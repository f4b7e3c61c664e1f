"""Whose names the uses in a file are: whether the file and its objects are Megatron's."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.documents.python.made_objects import class_made_by, class_of_megatron, is_of_hugging_face
from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.read_messages import HolderKind, kind_of
from cgmigrate.documents.python.scopes import bound_by
from cgmigrate.documents.python.source import PythonSource, dotted, last_name
from cgmigrate.documents.sites import UNKNOWN_OWNER

if TYPE_CHECKING:
    from cgmigrate.documents.python.definitions import Definitions

OWN = "a variable, parameter or attribute of the file's own"
NO_MEGATRON = "another system (nothing in the file is Megatron's)"
HUGGING_FACE = "a configuration of Hugging Face"
FIELDS_SET = "the project's own options (a current name there)"
_CONFIGS = ("model", "config", "cfg", "provider", "conf")
OTHER_SYSTEMS = frozenset(
    ("deepspeed", "vllm", "sglang", "tensorrt_llm", "onnxruntime", "onnxruntime_genai", "lmdeploy")
)


@dataclass(frozen=True, slots=True)
class UseOwners:
    """Decides the owners of names in one file; ``megatron`` says that the file works with Megatron.

    ``starts_megatron`` says that it names a program of Megatron, whose flags its texts may have.
    """

    source: PythonSource
    names: Names
    megatron: bool
    starts_megatron: bool = False
    definitions: Callable[[], Definitions] | None = None
    """Returns what names of the file lead to in the checkout, if that is read."""

    def of_unrelated_name(self) -> str:
        """Return the owner of a name in a file that does not show that the name is Megatron's."""
        return NO_MEGATRON if self.is_another_system() else UNKNOWN_OWNER

    def is_another_system(self) -> bool:
        """Whether the file imports a system that has settings of its own with these names."""
        return is_another_system(self.names)

    def meant(self, node: ast.expr) -> ast.expr:
        """Return the attribute that a name of a function is bound to: ``model`` for ``m = cfg.model``.

        For a name of an object that a class of Megatron makes, return one that says so: ``provider`` for
        ``p = GPTModelProvider()``. Any other expression is returned as it is.
        """
        if not isinstance(node, ast.Name) or (function := self.source.function_of(node)) is None:
            return node
        parts = list(walk(function))
        if sum(node.id in bound_by(part) for part in parts) != 1:
            return node
        for part in parts:
            match part:
                case ast.Assign(targets=[target], value=value) if node.id in bound_by(target):
                    return self._named(value) or node
                case ast.arg(arg=name, annotation=ast.Name() | ast.Attribute() as annotation) if name == node.id:
                    return _named_as(class_of_megatron(self.names, dotted(annotation))) or node
        return node

    def declared_by_class_of(self, node: ast.expr) -> frozenset[str]:
        """Return the fields that the class of an object defines itself, in the checkout, as far as the name shows."""
        name = ""
        if dotted(node) == "self":
            inside = next((above for above in self.source.ancestors(node) if isinstance(above, ast.ClassDef)), None)
            name = inside.name if inside else ""
        elif isinstance(node, ast.Name) and (function := self.source.function_of(node)) is not None:
            for part in walk(function):
                match part:
                    case ast.Assign(targets=[target], value=ast.Call(func=func)) if node.id in bound_by(target):
                        name = dotted(func)
                    case ast.arg(arg=bound, annotation=ast.Name() | ast.Attribute() as annotation) if bound == node.id:
                        name = dotted(annotation)
        return self.definitions().declared_by(name) if name and self.definitions is not None else frozenset()

    def is_of_hugging_face(self, node: ast.expr) -> bool:
        """Whether an object is a configuration of Hugging Face."""
        path, made_by = dotted(node), ""
        function = self.source.function_of(node) if isinstance(node, ast.Name) else None
        for one in walk(function) if function is not None else ():
            match one:
                case ast.Assign(targets=[target], value=ast.Call(func=func)) if dotted(target) == path:
                    made_by = self.names.resolve(dotted(func))
        return is_of_hugging_face(path, made_by)

    def _named(self, value: ast.expr) -> ast.Name | None:
        """Return the name that says what a value is, None if that is not known."""
        match value:
            case ast.Attribute(attr=name):
                return ast.Name(name)
            case ast.Call() if self.definitions is not None:
                return _named_as(class_made_by(value, self.definitions()))
        return None

    def is_recipe(self, node: ast.expr) -> bool:
        """Whether an object is a configuration of a recipe, which is not built yet."""
        return kind_of(self.meant(node)) is HolderKind.RECIPE and self.is_config(node)

    def is_config(self, node: ast.expr) -> bool:
        """Whether an object is a Megatron configuration, as far as its name and the file show."""
        if not self.megatron or self.is_of_hugging_face(node):
            return False
        node = self.meant(node)
        path = dotted(node)
        last = last_name(node).lower()
        if path == "self":
            inside = next((above for above in self.source.ancestors(node) if isinstance(above, ast.ClassDef)), None)
            full = self.names.resolve(inside.name) if inside else ""
            return full.startswith(("megatron.", "nemo.")) and full.endswith(("Config", "Provider"))
        if kind_of(node) is HolderKind.ARGS:
            # Megatron-LM's namespace; a harness has flags of its own with these names.
            return any(module.startswith("megatron.training") for module in self.names.modules)
        return last.endswith(_CONFIGS)


def _named_as(full: str) -> ast.Name | None:
    """Return a name for an object of a class of Megatron with settings, None for any other."""
    return next((ast.Name(end.lower()) for end in ("Provider", "Config") if full.endswith(end)), None)


def is_another_system(names: Names) -> bool:
    """Return whether a file imports a system that has settings of its own with these names."""
    return any(module.partition(".")[0] in OTHER_SYSTEMS for module in names.modules)
