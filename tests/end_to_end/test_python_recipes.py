"""Judged by execution: the recipes of megatron-bridge are run before and after, everything they import replaced.

What a recipe imports is a stub that accepts everything and keeps the CUDA-graph settings it is given. So each function
runs to its end without weights, GPUs or a network, and its settings can be read by 0.17 (before) and 0.19 (after).

Most recipes turn the graphs off (``none``), and then nothing is captured whatever the scope says. A launcher that turns
them on after the recipe, as its users do, shows what the other settings are worth: see ``LAUNCHES``.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import enum
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import FETCHED

pytest.importorskip("torch", reason="the judge is the installed megatron-core, which needs torch")
pytest.importorskip("megatron.core", reason="the judge is the installed megatron-core")

from cgmigrate.documents.python import PythonDocument
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import LAST_OLD, NEWEST, Release
from cgmigrate.megatron.settings import FIELDS, IMPL, LAYER_MODULES, MODULES, SCOPE, names_in
from cgmigrate.megatron.types import Capture, Reader, Rejected
from cgmigrate.project.options import Options
from cgmigrate.text.edits import apply
from tests.support.plans import examine
from tests.support.python_tools import rewrites
from tests.support.python_tools import run as run_text

RECIPES = FETCHED / "megatron-bridge-0.4.2/megatron/bridge/recipes"
LAUNCHES: dict[str, tuple[dict[str, Any], Reader]] = {
    "as written": ({}, Reader.BRIDGE),
    "turned on with Transformer Engine": ({IMPL: "transformer_engine"}, Reader.BRIDGE),
    # Bridge 0.6 refuses per-layer graphs with local, which is not the migration's doing; megatron-core does not.
    "turned on with local": ({IMPL: "local"}, Reader.CONFIG),
}
REAL = {*sys.stdlib_module_names, "typing_extensions"} - {"subprocess", "socket", "urllib", "shutil"}
Settings = dict[str, Any]
Recorded = list[tuple[str, Settings]]
"""The objects that were given settings, in the order of their making, each with where it came from."""


# --- stubs ------------------------------------------------------------------------------------------


class World:
    """One execution: its stubs, in the order in which they were made, and what a stub's truth is."""

    def __init__(self, truth: bool) -> None:
        self.truth = truth
        self.stubs: list[Stub] = []
        self.evaluations = 0

    def make(self, path: str, **attributes: Any) -> Stub:
        stub = Stub.__new__(Stub)
        vars(stub).update(_world=self, _path=path, _items={}, **attributes)
        self.stubs.append(stub)
        return stub

    def settings(self) -> Recorded:
        kept = [(stub._path, {k: v for k, v in vars(stub).items() if k in FIELDS}) for stub in self.stubs]
        return [(path, fields) for path, fields in kept if fields]


class Stub:
    """Accepts everything; what is assigned to it stays, everything else of it is a stub as well."""

    _world: World
    _path: str
    _items: dict[Any, Any]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = vars(self)[name] = self._world.make(f"{self._path}.{name}")
        return made

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if len(arguments) == 1 and not named and isinstance(arguments[0], (types.FunctionType, type)):
            return arguments[0]  # used as a decorator
        return self._world.make(f"{self._path}()", **named)

    def __getitem__(self, key: Any) -> Any:
        key = repr(key)
        if key not in self._items:
            self._items[key] = self._world.make(f"{self._path}[{key}]")
        return self._items[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._items[repr(key)] = value

    def __iter__(self) -> Iterator[Any]:
        yield self._world.make(f"{self._path}[*]")

    def __bool__(self) -> bool:
        self._world.evaluations += 1
        if self._world.evaluations > 10_000:
            raise RuntimeError("a loop that only a real object ends")
        return self._world.truth

    def __enter__(self) -> Stub:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __instancecheck__(self, instance: Any) -> bool:
        return self._world.truth

    def __contains__(self, item: Any) -> bool:
        return bool(self)

    def __len__(self) -> int:
        return 1

    def __int__(self) -> int:
        return 1

    __index__ = __int__
    __hash__ = object.__hash__

    def __float__(self) -> float:
        return 1.0

    def _another(self, *_: Any) -> Any:
        return self._world.make(f"({self._path} op)")


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(Stub, f"__{_name}__", Stub._another)
    setattr(Stub, f"__r{_name}__", Stub._another)
for _name in ("neg", "pos", "abs", "invert", "eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Stub, f"__{_name}__", Stub._another)


class OldScope(enum.Enum):
    """``CudaGraphScope`` as 0.17 has it."""

    full_iteration = 1
    attn = 2
    mlp = 3
    moe = 4
    moe_router = 5
    moe_preprocess = 6
    mamba = 7
    full_iteration_inference = 8


def _enums(old: bool) -> dict[str, Any]:
    if old:
        return {"CudaGraphScope": OldScope}
    from megatron.core.transformer import enums

    names = ("CudaGraphScope", "CudaGraphModule", "InferenceCudaGraphScope")
    return {name: getattr(enums, name) for name in names}


def _importer(world: World, old: bool) -> Callable[..., Any]:
    modules: dict[str, Stub] = {}

    def import_(name: str, space: Any = None, local: Any = None, names: Any = (), level: int = 0) -> Any:
        if level == 0 and name.split(".")[0] in REAL:
            return builtins.__import__(name, space, local, names, level)
        # `import a.b` binds `a`; `from a.b import c` asks the module itself.
        path = name if names else name.split(".")[0]
        if path not in modules:
            modules[path] = world.make(path, **_enums(old))
        return modules[path]

    return import_


# --- execution --------------------------------------------------------------------------------------


def assigning(text: str) -> list[str]:
    """The top-level functions that assign to a CUDA-graph setting of some object."""
    return [name for name, node in _functions(text).items() if any(_assigns(inner) for inner in ast.walk(node))]


@cache
def _functions(text: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def _assigns(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Store) and node.attr in FIELDS
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "setattr"
        and any(isinstance(argument, ast.Constant) and argument.value in FIELDS for argument in node.args)
    )


def execute(text: str, name: str, truth: bool, old: bool) -> Recorded:
    """Run one function of a module in which every import is a stub."""
    world = World(truth)
    provided = {**vars(builtins), "__import__": _importer(world, old), "_parts": _parts}
    space: dict[str, Any] = {"__builtins__": provided, "__name__": "recipe"}
    exec(_compiled(text), space)
    function = space[name]
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"{name} is no function once it is decorated")
    code = function.__code__
    needed = code.co_varnames[: code.co_argcount - len(function.__defaults__ or ())]
    keywords = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    named = {n: world.make(n) for n in keywords if n not in (function.__kwdefaults__ or {})}
    function(*(world.make(n) for n in needed), **named)
    return [(path, {key: _plain(value) for key, value in fields.items()}) for path, fields in world.settings()]


@cache
def _compiled(text: str) -> types.CodeType:
    # Annotations are not evaluated: the types of a recipe do not matter for its settings.
    tree = ast.fix_missing_locations(_Unpacking().visit(ast.parse(text)))
    return compile(tree, "recipe", "exec", flags=__future__.annotations.compiler_flag)


class _Unpacking(ast.NodeTransformer):
    """``a, b = call()`` becomes ``a, b = _parts(call(), 2)``: a stub cannot know how many items are expected."""

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        target = node.targets[0]
        if isinstance(target, ast.Tuple) and not any(isinstance(item, ast.Starred) for item in target.elts):
            number = ast.Constant(len(target.elts))
            node.value = ast.Call(ast.Name("_parts", ast.Load()), [node.value, number], [])
        return node


def _parts(value: Any, number: int) -> Any:
    return [value[index] for index in range(number)] if isinstance(value, Stub) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Stub):
        raise TypeError(f"the value {value._path} is known at run time only")
    if isinstance(value, enum.Enum):
        return value.name
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


# --- judging ----------------------------------------------------------------------------------------


def validated(settings: Settings) -> Settings | str:
    """The settings as the installed megatron-core leaves them, or why it refuses them."""
    from megatron.core.transformer import TransformerConfig

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            config = TransformerConfig(
                num_layers=2,
                hidden_size=8,
                num_attention_heads=2,
                # One dense layer, and one of experts that drops and pads: so every name of a part is admitted.
                num_moe_experts=4,
                moe_layer_freq=[0, 1],
                moe_expert_capacity_factor=1.0,
                moe_pad_expert_input_to_capacity=True,
                moe_token_dispatcher_type="alltoall",
                add_bias_linear=False,
                **settings,
            )
        except (AssertionError, KeyError, ValueError, TypeError) as error:
            return f"refused: {error!r}"
    return {
        "cuda_graph_impl": config.cuda_graph_impl,
        "cuda_graph_modules": [module.name for module in config.cuda_graph_modules],
        "inference_cuda_graph_scope": config.inference_cuda_graph_scope.name,
    }


def expected(before: Settings) -> Settings:
    """What the installed release should keep, read off the old settings by hand and not by the tool's own model."""
    scopes = names_in(before.get(SCOPE, "full"))
    impl = before.get(IMPL, "none")
    impl = "local" if before.get("enable_cuda_graph") else impl
    impl = "transformer_engine" if before.get("external_cuda_graph") else impl
    if impl == "local" and "full_iteration" in scopes:
        return {IMPL: "full_iteration", MODULES: [], "inference_cuda_graph_scope": "none"}
    inference = "block" if "full_iteration_inference" in scopes else "layer"
    return {
        IMPL: impl,
        MODULES: [name for name in scopes if name in LAYER_MODULES],
        "inference_cuda_graph_scope": inference if impl == "local" else "none",
    }


def differences(before: Recorded, after: Recorded) -> list[str]:
    """What the two executions of a function do not have in common; nothing if the rewrite was right."""
    if [path for path, _ in before] != [path for path, _ in after]:
        return [f"other objects: {[path for path, _ in before]} before, {[path for path, _ in after]} after"]
    problems = []
    for (path, old), (_, new) in zip(before, after, strict=True):
        for launch, (overrides, reader) in LAUNCHES.items():
            if overrides and "full_iteration" in names_in(old.get(SCOPE)):
                continue  # the implementation is part of what was migrated, so that no launcher may replace it alone
            problems += [f"{path}, {launch}: {problem}" for problem in _differ(old, new, overrides, reader)]
    return problems


def _differ(before: Settings, after: Settings, overrides: Settings, reader: Reader) -> Iterator[str]:
    old, new = {**before, **overrides}, {**after, **overrides}
    was, will = capture_of(old, LAST_OLD, reader), capture_of(new, NEWEST, reader)
    if isinstance(was, Rejected):
        # There is no capture to compare with; but what was refused must not become a job that runs.
        if not overrides and not isinstance(will, Rejected):
            yield f"was refused ({was.reason}), will capture {will}"
        return
    if was != will:
        yield f"captured {was}, will capture {will}"
    kept = validated(new)
    if kept != (required := expected(old)):
        yield f"the installed release keeps {kept}, expected {required}"
    elif isinstance(kept, dict) and capture_of(kept, NEWEST, reader) != was:
        yield f"captured {was}, the installed release captures {capture_of(kept, NEWEST, reader)}"


@dataclass
class Judged:
    """All functions of the recipes that assign to a setting."""

    functions: int = 0
    rewritten: int = 0
    executed: int = 0
    objects: int = 0
    problems: list[str] = field(default_factory=list)
    not_executed: Counter[str] = field(default_factory=Counter)
    captures: Counter[str] = field(default_factory=Counter)


def judge(where: str, text: str, after: str, into: Judged) -> None:
    for name in assigning(text):
        into.functions += 1
        into.rewritten += not _same(text, after, name)
        ran = False
        for truth in (True, False):
            try:
                before = execute(text, name, truth, old=True)
            except Exception as error:
                into.not_executed[f"{type(error).__name__}: {error}"] += 1
                continue
            if not before:
                into.not_executed["nothing is assigned on this branch"] += 1
                continue
            ran = True
            into.objects += len(before)
            for _, settings in before:
                with suppress(ValueError):
                    into.captures[str(capture_of(settings, LAST_OLD, Reader.BRIDGE))] += 1
            try:
                problems = differences(before, execute(after, name, truth, old=False))
            except Exception as error:
                problems = [f"runs before, and not after: {error!r}"]
            into.problems += [f"{where}: {name}: {problem}" for problem in problems]
        into.executed += ran


def _same(text: str, after: str, name: str) -> bool:
    """Whether the function is the same code before and after."""
    return ast.dump(_functions(text)[name]) == ast.dump(_functions(after)[name])


@cache
def recipes() -> tuple[FileResult, ...]:
    """The recipe modules as they are with ``--to 0.19`` and all fixes that are right by themselves.

    A plain ``fix`` writes none of them, since callers of a recipe see its object: tests/test_bridge_recipes.py.
    """
    if not RECIPES.is_dir():
        pytest.skip(f"{RECIPES} is not there; run shared/corpus/fetch.sh")
    run = Run([str(RECIPES)], Options(target=Release(0, 19), rewrite=False))
    checked = [item for item in run if isinstance(item, FileResult)]
    changed = [(item, _after(item, run.context(item.path))) for item in checked if item.path.endswith(".py")]
    return tuple(replace(item, after=after) for item, after in changed if after != item.text)


def _after(checked: FileResult, context: Context) -> str:
    document = PythonDocument(checked.text, str(Path(checked.path).absolute()))
    settings = rewrites(document, examine(document, context))
    return apply(checked.text, document.edits(settings)) if settings else checked.text


@cache
def judged() -> Judged:
    result = Judged()
    for checked in recipes():
        judge(checked.path.rpartition("/recipes/")[2], checked.text, checked.after or "", result)
    return result


def _recipe(name: str) -> FileResult:
    return next(checked for checked in recipes() if checked.path.endswith(f"/{name}"))


# --- tests ------------------------------------------------------------------------------------------


def test_recipes_capture_what_they_did() -> None:
    assert judged().problems == []


def test_most_recipes_are_judged() -> None:
    total = judged()
    print(f"\n{len(recipes())} modules rewritten; of {total.functions} functions that assign to a setting, ", end="")
    print(f"{total.rewritten} are rewritten and {total.executed} executed, giving settings to {total.objects} objects")
    for what, number in [*total.captures.most_common(), *total.not_executed.most_common()]:
        print(f"  {number:4}  {what}")
    assert len(recipes()) >= 25
    assert total.functions >= 150 and total.rewritten >= 0.8 * total.functions
    assert total.executed >= 0.95 * total.functions
    assert total.objects >= total.executed
    # Not all are off: one at least captures something.
    assert set(total.captures) > {str(Capture())}


NONE = ("deepseek/deepseek_v3.py", "    cfg.model.cuda_graph_modules = []\n")
PARTS = ("nemotronh/nemotron_3_super.py", '["attn", "mamba", "moe_router", "moe_preprocess"]')
IMPLEMENTATION = 'cuda_graph_impl = "none"'


@pytest.mark.parametrize(
    ("name", "right", "wrong", "message"),
    [
        (*NONE, '    cfg.model.cuda_graph_modules = ["attn"]\n', "will capture attn of each layer"),
        (*NONE, '    cfg.model.cuda_graph_modules = ["full"]\n    cfg.model.cuda_graph_scope = "mlp"\n', "refused: "),
        (*NONE, '    cfg.model.cuda_graph_modules = ["full_iteration"]\n', "the full iteration"),
        (*NONE, "    cfg.cuda_graph_modules = []\n", "other objects"),
        (*NONE, "    cfg.model.inference_cuda_graph_scope = 'block'\n", "refused: "),
        (*NONE, "    cfg.model.cuda_graph_modules = [CudaGraphModule.attn]\n", "NameError"),
        (NONE[0], IMPLEMENTATION, 'cuda_graph_impl = "full_iteration"', "will capture the full iteration"),
        (NONE[0], IMPLEMENTATION, 'cuda_graph_impl = "transformer_engine"', "will capture whole layers"),
        (*PARTS, '["attn", "mamba", "moe_router"]', "will capture attn+moe_router+mamba of each layer"),
        (*PARTS, "[]", "will capture whole layers"),
        (PARTS[0], 'cuda_graph_impl = "transformer_engine"', 'cuda_graph_impl = "local"', "bridge-local"),
    ],
)
def test_a_wrong_rewrite_is_caught(name: str, right: str, wrong: str, message: str) -> None:
    checked = _recipe(name)
    assert checked.after and right in checked.after
    result = Judged()
    judge(name, checked.text, checked.after.replace(right, wrong), result)
    assert result.problems and message in "\n".join(result.problems), result.problems


def test_no_rewrite_at_all_is_not_counted_as_one() -> None:
    checked = _recipe(NONE[0])
    result = Judged()
    judge(NONE[0], checked.text, checked.text, result)
    assert result.functions and not result.rewritten


SYNTHETIC = """\
from functools import partial
import torch.nn
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.enums import CudaGraphScope
from somewhere import base, decorated

@decorated(1)
@decorated
def whole(size, *, other, flag=False):
    cfg = base(size)
    with cfg.lock:
        for layer in cfg.layers:
            layer.cuda_graph_scope = [CudaGraphScope.attn]
            layer.cuda_graph_impl = "transformer_engine"
    cfg.model.external_cuda_graph = True
    cfg.one, cfg.two = cfg.both()
    cfg.model.width = int(cfg.model.width) * 2 + cfg.other / 3
    return cfg

def branches(a):
    cfg = base()
    if a.big > 3:
        cfg.model.cuda_graph_impl = "local"
        cfg.model.cuda_graph_scope = [CudaGraphScope.full_iteration]
    else:
        setattr(cfg.model, "cuda_graph_impl", "none")
    return TransformerConfig(cuda_graph_impl="transformer_engine", cuda_graph_scope="attn,mlp")

def untouched():
    return base()
"""


def test_the_stubs_record_what_a_function_does() -> None:
    assert assigning(SYNTHETIC) == ["whole", "branches"]
    assert execute(SYNTHETIC, "whole", True, old=True) == [
        ("somewhere.base().layers[*]", {"cuda_graph_scope": ["attn"], "cuda_graph_impl": "transformer_engine"}),
        ("somewhere.base().model", {"external_cuda_graph": True}),
    ]
    made = ("megatron.core.transformer.TransformerConfig()", {IMPL: "transformer_engine", SCOPE: "attn,mlp"})
    on = {"cuda_graph_impl": "local", "cuda_graph_scope": ["full_iteration"]}
    off = {"cuda_graph_impl": "none"}
    assert execute(SYNTHETIC, "branches", True, old=True) == [("somewhere.base().model", on), made]
    assert execute(SYNTHETIC, "branches", False, old=True) == [
        ("somewhere.base().model", off),
        made,
    ]


def test_enum_members_and_branches_are_migrated_alike() -> None:
    result = Judged()
    after = run_text(SYNTHETIC).after
    assert after != SYNTHETIC
    judge("synthetic", SYNTHETIC, after, result)
    assert (result.functions, result.executed, result.problems) == (2, 2, [])
