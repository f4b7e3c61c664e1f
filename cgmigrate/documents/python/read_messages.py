"""Messages on reads of a deprecated setting: what a read returns since 0.18, and what to read instead."""

from __future__ import annotations

import ast
from enum import Enum

from cgmigrate.documents.python.name_resolution import SCOPE_CLASS
from cgmigrate.documents.python.source import dotted, last_name
from cgmigrate.megatron.catalogue import Setting, load
from cgmigrate.megatron.settings import ENABLE, IMPL, LAYER_MODULES, MODULES, SCOPE

_VALUES = frozenset((*LAYER_MODULES, "full", "full_iteration", "full_iteration_inference"))
THREE = "`cuda_graph_impl`, `cuda_graph_modules`, `inference_cuda_graph_scope`"


class HolderKind(Enum):
    """What kind of object a setting is read from."""

    ARGS = "Megatron-LM's arguments"
    CONFIG = "a configuration"
    RECIPE = "a model's settings in a recipe, which is not built yet"
    UNKNOWN = "an object whose owner is not known"


def kind_of(owner: ast.expr | None) -> HolderKind:
    """Return the kind of an object, by its name."""
    if owner is None:
        return HolderKind.UNKNOWN
    last = last_name(owner.func if isinstance(owner, ast.Call) else owner).lower()
    if last in ("args", "get_args"):
        return HolderKind.ARGS
    # NeMo's recipes have the configuration below the model, as built models do.
    if last == "model" or last.endswith("provider") or "recipe" in dotted(owner).lower().rpartition(".")[0]:
        return HolderKind.RECIPE
    return HolderKind.CONFIG if last.endswith(("model", "config", "cfg", "conf")) else HolderKind.UNKNOWN


def meaning(name: str, kind: HolderKind = HolderKind.CONFIG) -> str:
    """Return what a name means that is read from an object of this kind."""
    if name == SCOPE_CLASS:
        return f"`{SCOPE_CLASS}` is kept only for unpickling since megatron-core 0.18"
    if kind is HolderKind.ARGS:
        return f"{_of_args(name)}{', and reading it is an AttributeError' if name == SCOPE else ''}"
    if name == SCOPE and kind is HolderKind.RECIPE:
        return f"`{SCOPE}` keeps its value until the config is built; megatron-core >= 0.18 then resets it to None"
    if name == SCOPE:
        return f"megatron-core >= 0.18 resets `{SCOPE}` to None when the config is built"
    return f"`{name}` is deprecated since megatron-core 0.15, and false if `cuda_graph_impl` is set to `{_impl(name)}`"


def _of_args(name: str) -> str:
    """Return what becomes of the attribute of the arguments: executed with `validate_args` of 0.17.1 to 0.19.2."""
    if name == SCOPE:
        return f"megatron-core >= 0.18 has no `args.{name}`"
    return f"`args.{name}` is set only by the old flag, and `validate_args` deletes it"


def deprecation_of(setting: Setting) -> str:
    """Return which release deprecates or removes a setting that is not one of the capture model."""
    if setting.deprecated_in is not None and setting.is_gone_in(setting.deprecated_in):
        return f"megatron-core {setting.deprecated_in} has no `{setting.name}`"
    return f"`{setting.name}` is deprecated since {setting.deprecated_in}"


def replacement_of(setting: Setting) -> str:
    """Return what to read instead of a setting that is not one of the capture model; empty if nothing replaces it."""
    names = " or ".join(f"`{name}`" for name in setting.replaced_by)
    changed = ", which has other values" if setting.values else ""
    return f"use {names}{changed}" if names else ""


def through_getattr(name: str, kind: HolderKind, default: bool) -> str:
    """Return what ``getattr(object, name, default)`` does."""
    if kind is HolderKind.ARGS:
        result = "returns its default" if default else "raises AttributeError"
        return f"{_of_args(name)}: `getattr` {result}{'' if name == SCOPE else ' after that'}"
    if kind is HolderKind.UNKNOWN:
        return f"unknown owner: {meaning(name)}, and {_of_args(name)}"
    if name == SCOPE and kind is HolderKind.RECIPE:
        return f"{meaning(name, kind)}: `getattr` does not return its default"
    if name == SCOPE:
        return f"{meaning(name)}; `getattr` returns None, not its default"
    return f"{meaning(name)}; the field exists, so `getattr` does not return its default"


def through_hasattr(name: str, kind: HolderKind) -> str:
    """Return what ``hasattr(object, name)`` does."""
    if kind is HolderKind.ARGS:
        result = "`hasattr` is false" if name == SCOPE else "`hasattr` is false after that"
        return f"{_of_args(name)}: {result}"
    reset = " (None in a built configuration)" if name == SCOPE else ""
    exists = f"`hasattr` is true in megatron-core >= 0.18 as well, which keeps the deprecated `{name}`{reset}"
    return f"unknown owner: {exists}, and {_of_args(name)}" if kind is HolderKind.UNKNOWN else exists


def of_membership(kind: HolderKind) -> str:
    """Return what a test for a member of the scope does."""
    if kind is HolderKind.ARGS:
        return meaning(SCOPE, kind)
    return f"{meaning(SCOPE, kind)}, {'and' if kind is HolderKind.RECIPE else 'so'} this raises TypeError"


def result_around(node: ast.AST, above: ast.AST | None) -> str:
    """Return what the expression does around a read of a configuration's scope, which is None; empty if unknown."""
    match above:
        case ast.Compare(left=left, ops=[ast.NotEq() | ast.Eq() as op], comparators=[other]) if left is node:
            always = "true" if isinstance(op, ast.NotEq) else "false"
            return f", so this is always {always}{_no_value(other)}"
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[last]) if last is node:
            return ", so this raises TypeError"
        case ast.UnaryOp(op=ast.Not()):
            return ", so this is always true"
        case ast.Subscript(value=value) if value is node:
            return ", so this raises TypeError"
        case ast.Attribute(value=value) if value is node:
            return ", so this raises AttributeError"
    return ", so this reads None" if above is not None else ""


def _no_value(other: ast.expr) -> str:
    if isinstance(other, ast.Constant) and isinstance(other.value, str) and other.value not in _VALUES:
        return f" (no release has the value `{other.value}`)"
    return ""


def advice(name: str, *, is_off: bool = False) -> str:
    """Return what to read instead of a deprecated name; ``is_off`` says that the code asks whether it is false."""
    if name == SCOPE_CLASS:
        return "use `CudaGraphModule`; for full iteration use `cuda_graph_impl` or `inference_cuda_graph_scope`"
    if name == SCOPE:
        return (
            "test `cuda_graph_impl` in place of the old settings: it is `full_iteration`, `local` (per-layer "
            "graphs), `transformer_engine` or `none`; for modules read `cuda_graph_modules`; not fixed: it "
            "changes only together with the code that sets them"
        )
    impl = _impl(name)
    if is_off:
        return (
            f'write `{IMPL} != "{impl}"`, or `{IMPL} == "none"` for no graphs; not fixed: which is meant is not known'
        )
    why = 'or `cuda_graph_impl != "none"` for all graphs; not fixed: which one is meant is not known'
    full = f', `in ("{impl}", "full_iteration")` for full-iteration graphs, too' if name == ENABLE else ""
    return f'write `cuda_graph_impl == "{impl}"` for per-layer graphs{full}, {why}'


def string_advice(name: str, key: str, *, is_key: bool) -> str:
    """Return what replaces a string with a setting, which may be a key that code looks up in a mapping."""
    new = f"`{key.replace(name, MODULES if name == SCOPE else IMPL)}`"
    of_scope = "`full_iteration` is a value of `cuda_graph_impl`"
    value = of_scope if name == SCOPE else f"true is `{_impl(name)}`, false is `none`, which is no false value"
    if is_key:
        return (
            f"if megatron-core gets its value, rename the key to {new} where it is read and written ({value}); else "
            "leave it; not fixed: what writes it is not known"
        )
    return f"write {new} ({value}) if it names megatron-core's setting, else leave it; not fixed: its use is not known"


def flag_advice(name: str) -> str:
    """Return which flags are written instead of the one of a deprecated setting."""
    impl, why = load()[IMPL].flag, "not fixed: the code that writes or reads such words has to change with it"
    if name == SCOPE:
        return f"use `{load()[MODULES].flag}` for modules, `{impl} full_iteration` for full iteration; {why}"
    return f"use `{impl} {_impl(name)}`; {why}"


def _impl(name: str) -> str:
    """Return the implementation that a boolean names, where it is true."""
    return str(dict(load()[name].values)[True])
