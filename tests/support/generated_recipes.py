"""Hypothesis strategies for small packages of recipes of Megatron-Bridge, and their execution with stand-ins.

A package has functions that make a configuration, helpers that change one, base recipes, readers, registries, tests,
and objects of other libraries. ``outcomes`` executes all of its functions that take no argument, with the defaults of
one release of megatron-core.
"""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from cgmigrate.megatron.releases import SPLIT_IN, Release
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, FIELDS, IMPL, INFERENCE, MODULES, SCOPE

PACKAGE = "megatron.bridge.recipes"
Draw = Callable[[st.SearchStrategy[Any]], Any]


# --- what modules of a package say ------------------------------------------------------------------

_IMPORTS = """\
import copy
import functools
import os

import vllm
from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.training.config import ConfigContainer
"""
_TE = '{t}.cuda_graph_impl = "transformer_engine"'
_WRITES = (
    [_TE, '{t}.cuda_graph_scope = ["attn"]'],
    [_TE, '{t}.cuda_graph_scope = ["attn", "mlp"]'],
    ['{t}.cuda_graph_impl = "local"', '{t}.cuda_graph_scope = "full_iteration"'],
    ['{t}.cuda_graph_impl = "none"', '{t}.cuda_graph_scope = "full"'],
    ['{t}.cuda_graph_scope = ["mlp"]'],
    ["{t}.cuda_graph_scope = []"],
    ["{t}.cuda_graph_scope = None"],
    ['{t}.cuda_graph_scope = "full"'],
    ['{t}.cuda_graph_scope = "full_iteration"'],
    ["{t}.enable_cuda_graph = True"],
    ["{t}.enable_cuda_graph = False"],
    ["{t}.external_cuda_graph = True"],
    ["{t}.external_cuda_graph = True", '{t}.cuda_graph_scope = ["attn"]'],
    ["{t}.external_cuda_graph = False"],
    ['{t}.cuda_graph_impl = "none"'],
    [_TE],
    ['setattr({t}, "cuda_graph_scope", ["attn"])'],
    ['setattr({t}, "cuda_graph_" + "scope", ["mlp"])'],
    ["{t}.cuda_graph_scope = SCOPES"],
    ['vars({t}).update(cuda_graph_scope=["attn"])'],
    ['{t}.cuda_graph_modules = ["attn"]'],
)
_PLAIN_WRITES = 16
_READS = (
    'cfg.tracker = "attn" in ({t}.cuda_graph_scope or ())',
    'cfg.tracker = {t}.cuda_graph_impl != "none"',
    'cfg.note = f"{{{t}.cuda_graph_scope}}"',
    'cfg.tracker = getattr({t}, "cuda_graph_scope", None) == ["attn"]',
    "cfg.tracker = {t}.enable_cuda_graph",
    "cfg.graphs = bool({t}.cuda_graph_scope)",
)
_CONDITIONS = (
    "cfg.dataset.is_big",
    '{t}.cuda_graph_impl == "none"',
    '{t}.cuda_graph_impl == "transformer_engine"',
    "not {t}.enable_cuda_graph",
    '"attn" in ({t}.cuda_graph_scope or [])',
    'hasattr({t}, "cuda_graph_modules")',
    "isinstance(cfg, ConfigContainer)",
    'os.environ.get("NO_SUCH_VARIABLE")',
    "cfg.model is not None",
)
_KEYWORDS = (
    "",
    'cuda_graph_impl="transformer_engine", cuda_graph_scope=["attn"]',
    "enable_cuda_graph=True",
    'cuda_graph_impl="local"',
    "hidden_size=8",
)
_OTHERS = (
    'vllm.EngineConfig(enable_cuda_graph=True, cuda_graph_scope=["attn"])',
    'Harness(cuda_graph_scope="full")',
    '{{"enable_cuda_graph": True, "deepspeed": 1}}',
)
_HARNESS = """\
class Harness:
    def __init__(self, cuda_graph_scope="full"):
        self.cuda_graph_scope = cuda_graph_scope
        self.enable_cuda_graph = cuda_graph_scope == "full"


SCOPES = ["attn"]


"""
_PLAIN_HARNESS = 'class Harness:\n    pass\n\n\nSCOPES = ["attn"]\n\n\n'
_PROVIDERS = (
    "class Provider(GPTModelProvider):\n    pass\n",
    'class Provider(GPTModelProvider):\n    cuda_graph_scope = ["mlp"]\n',
    "class Provider(GPTModelProvider):\n    enable_cuda_graph = True\n",
    "class Provider(GPTModelProvider):\n    def __init__(self, **kw):\n        super().__init__(**kw)\n"
    '        self.cuda_graph_impl = "local"\n',
    "class Provider(GPTModelProvider):\n    @property\n    def is_graphed(self):\n"
    '        return self.cuda_graph_impl != "none"\n',
    "class Provider(GPTModelProvider):\n    def __setattr__(self, name, value):\n"
    '        super().__setattr__(name.replace("_scope", "_kept"), value)\n',
    "def make_model():\n    made = GPTModelProvider()\n    made.cuda_graph_impl = 'transformer_engine'\n"
    "    return made\n\n\nclass Provider(GPTModelProvider):\n    first = make_model()\n",
)
_NEW = (
    "ConfigContainer(model=GPTModelProvider({keywords}))",
    "ConfigContainer(model=Provider({keywords}))",
    "new()",
    "new({keywords})",
    "new_of(GPTModelProvider)",
    "new_of(Provider)",
)
_COMMON = """\
def new(**keywords):
    return ConfigContainer(model=GPTModelProvider(**keywords))


def new_of(kind):
    return ConfigContainer(model=kind())


def apply(cfg, change):
    change(cfg)


def add_to(values):
    values.append("mlp")


def nothing(cfg):
    cfg.dataset.seen = True


def with_seed(cfg):
    cfg.seed = 1
    return cfg


def model_of(cfg):
    return cfg.model


"""


_MADE_OF_DICTS = (
    "cfg = ConfigContainer(model=GPTModelProvider(**LAYERS))",
    "cfg = ConfigContainer(model=GPTModelProvider(**WIDE))",
    "cfg = new(**LAYERS)",
    "cfg = new(**{{'hidden_size': 8, **LAYERS}})",
    "cfg = new(**dict(LAYERS, hidden_size=8))",
    "kw = dict({keywords})\n    kw.update(num_layers=2)\n    cfg = new(**kw)",
    "kw = {{'cuda_graph_scope': ['attn']}}\n    cfg = ConfigContainer(model=GPTModelProvider(**kw))",
    "p = GPTModelProvider({keywords})\n    p.external_cuda_graph = True\n    cfg = ConfigContainer(model=p)",
)
_USES_OF_DICTS = (
    ["for name, value in LAYERS.items():", "    setattr({t}, name, value)"],
    ["{t}.cuda_graph_scope = LAYERS.get('cuda_graph_scope')"],
    ["cfg.note = str(LAYERS)"],
    ["cfg.tracker = bool(LAYERS.get('enable_cuda_graph')) or {t}.enable_cuda_graph"],
    ["cfg.kept = new(**WIDE)"],
    ["p = {t}", "p.enable_cuda_graph = False"],
)


_SHORT = (
    ["with_seed(cfg)"],
    ["assert cfg.model.cuda_graph_scope in (None, 'full', [])"],
    ["if cfg.model.cuda_graph_scope == ['attn']:", "    raise ValueError"],
)


_FORMS_OF_STATEMENTS = frozenset(("read", "branch", "apply", "rare", "lists", "another", "dicts"))
_FORMS = sorted(_FORMS_OF_STATEMENTS | {"writes", "public", "provider", "maker", "further", "parameters"})


@dataclass(frozen=True)
class Package:
    """The texts of the modules of a package, by their names."""

    modules: Mapping[str, str]

    def __str__(self) -> str:
        return "\n".join(f"# ---- {name}.py\n{text}" for name, text in self.modules.items())


@dataclass
class _Names:
    """The functions that a module can use, by what they take."""

    recipes: list[str] = field(default_factory=list)
    of_config: list[str] = field(default_factory=lambda: ["nothing"])
    of_model: list[str] = field(default_factory=list)
    forms: frozenset[str] = frozenset()
    """The rarer forms of code that this package has: with all of them in each, no fix would ever be proved."""

    def has(self, form: str) -> bool:
        return form in self.forms


def _indented(lines: list[str], by: int = 1) -> list[str]:
    return ["    " * by + line for line in lines]


def _one(draw: Draw, *choices: Any) -> Any:
    return draw(st.sampled_from(choices))


def _statement(draw: Draw, names: _Names, depth: int = 0) -> list[str]:
    """Some lines of a function that has a configuration `cfg` and its model `m`."""
    target = _one(draw, "cfg.model", "cfg.model", "cfg.model", "m")
    form = _one(draw, "write", "write", "helper", *sorted(names.forms & _FORMS_OF_STATEMENTS))
    match form:
        case "read":
            return [_one(draw, *_READS).format(t=target)]
        case "branch" if depth < 2:
            body = _indented(_statement(draw, names, depth + 1))
            otherwise = _one(draw, [], [], ["else:", *_indented(_statement(draw, names, depth + 1))])
            return [f"if {_one(draw, *_CONDITIONS).format(t=target)}:", *body, *otherwise]
        case "helper":
            if names.of_model and draw(st.booleans()):
                return [f"{_one(draw, *names.of_model)}({target})"]
            return [f"{_one(draw, *names.of_config)}(cfg)"]
        case "apply":
            helper = _one(draw, *names.of_config)
            return _one(draw, [f"apply(cfg, {helper})"], [f"for change in ({helper}, nothing):", "    change(cfg)"])
        case "rare":
            return _rare(draw, names, depth)
        case "lists":
            return _with_lists(draw, target)
        case "another":
            return _another(draw, names, depth)
        case "dicts":
            return [line.format(t=target) for line in _one(draw, *_USES_OF_DICTS)]
    return _write(draw, names, target)


def _write(draw: Draw, names: _Names, target: str) -> list[str]:
    writes = _WRITES if names.has("writes") else _WRITES[:_PLAIN_WRITES]
    return [line.format(t=target) for line in draw(st.sampled_from(writes))]


def _with_lists(draw: Draw, target: str) -> list[str]:
    mods = ['mods = ["attn"]']
    changed = _one(
        draw, [], ["add_to(mods)"], ["if cfg.dataset.is_big:", '    mods.append("mlp")'], ['mods += ["moe"]']
    )
    value = _one(draw, "mods", "list(mods)", '[one for one in mods if one != "mlp"]', "SCOPES", "mods[:1]")
    return [*mods, *changed, f"{target}.cuda_graph_scope = {value}"]


def _another(draw: Draw, names: _Names, depth: int) -> list[str]:
    """Lines about a second configuration, or about an object of another library."""
    lines = [
        [f"cfg.extra = {_one(draw, *_OTHERS)}".replace("{{", "{").replace("}}", "}")],
        ["kept = copy.deepcopy(cfg)", "cfg.kept = kept"],
        ["kept = cfg", *_write(draw, names, "kept.model")],
        ["cfg.model = GPTModelProvider()"],
        ["m = cfg.model"],
        ["m = model_of(cfg)"],
        ["cfg = with_seed(cfg)"],
        ["m = cfg.model", "cfg = with_seed(cfg)", *_write(draw, names, "m")],
        ["cfg = new()"],
    ]
    if names.recipes:
        other = _one(draw, *names.recipes)
        lines += [
            [f"cfg = {other}()"],
            [f"other = {other}()", "cfg.model = other.model"],
            [f"other = {other}()", "cfg.model.cuda_graph_impl = other.model.cuda_graph_impl"],
            [f"other = {other}()", "cfg.model.cuda_graph_scope = other.model.cuda_graph_scope"],
            [f"other = {other}()", "for one in (cfg, other):", *_indented(_statement(draw, names, depth + 1))],
        ]
    return list(draw(st.sampled_from(lines)))


def _rare(draw: Draw, names: _Names, depth: int) -> list[str]:
    if depth > 1:
        return _one(draw, *_SHORT)
    lines = [
        *_SHORT,
        ["if cfg.dataset.is_big:", "    return cfg"],
        ["try:", *_indented(_statement(draw, names, 2)), "except AttributeError:", "    cfg.failed = True"],
        ["try:", *_indented(_statement(draw, names, 2)), "finally:", *_indented(_statement(draw, names, 2))],
        [
            "try:",
            *_indented(_one(draw, ["nothing(cfg)"], ["return cfg"], ["raise KeyError(1)"], _statement(draw, names, 2))),
            "except KeyError:",
            *_indented(_statement(draw, names, 2)),
            "except (ValueError, IndexError):",
            "    cfg.failed = True",
            *_one(draw, [], ["finally:", *_indented(_statement(draw, names, 2))]),
        ],
        ["with vllm.context():", *_indented(_statement(draw, names, 2))],
        [f"later = functools.partial({_one(draw, *names.of_config)}, cfg)", "later()"],
        [f"(lambda one: {_one(draw, *names.of_config)}(one))(cfg)"],
        [
            "parts = {'model': cfg.model}",
            "if cfg.dataset.is_big:",
            "    parts['model'] = GPTModelProvider()",
            *_write(draw, names, "parts['model']"),
        ],
        ["while cfg.model.cuda_graph_impl == 'none':", "    cfg.model.cuda_graph_impl = 'transformer_engine'"],
    ]
    return list(draw(st.sampled_from(lines)))


def _body(draw: Draw, names: _Names, first: str, most: int = 4) -> str:
    lines = [first] if first else []
    lines += ["m = cfg.model"]
    for _ in range(draw(st.integers(1, most))):
        lines += _statement(draw, names)
    return "".join(line + "\n" for line in _indented([*lines, "return cfg"]))


def _helper(draw: Draw, name: str, names: _Names) -> str:
    parameters = _one(draw, "cfg", "cfg, *rest, **options") if names.has("parameters") else "cfg"
    return f"def {name}({parameters}):\n{_body(draw, names, '', 3)}\n\n"


def _model_helper(draw: Draw, name: str, names: _Names) -> str:
    default = _one(draw, "", ', scope=["attn"]', ", enable=True") if names.has("parameters") else ""
    lines = _write(draw, names, "model")
    lines += {"": [], ", enable=True": ["model.enable_cuda_graph = enable"]}.get(
        default, ["model.cuda_graph_scope = scope"]
    )
    return f"def {name}(model{default}):\n" + "".join(line + "\n" for line in _indented(lines)) + "\n\n"


def _recipe(draw: Draw, name: str, names: _Names) -> str:
    made = _one(draw, *(_NEW if names.has("maker") else _NEW[:1])).format(keywords=_one(draw, *_KEYWORDS))
    if names.recipes and draw(st.booleans()):
        made = _one(draw, *names.recipes) + "()"
    parameters = _one(draw, "", "big=False", "**options", "enable=True") if names.has("parameters") else ""
    first = f"cfg = {made}"
    if names.has("dicts") and draw(st.booleans()):
        first = _one(draw, *_MADE_OF_DICTS).format(keywords=_one(draw, *_KEYWORDS))
    text = _body(draw, names, first)
    if parameters == "enable=True":
        text = text.replace("enable_cuda_graph = True", "enable_cuda_graph = enable")
    if parameters == "**options":
        text = text.replace("GPTModelProvider()", "GPTModelProvider(**options)")
    return f"def {name}({parameters}):\n{text}\n\n"


def _tables(draw: Draw) -> str:
    entries = _one(draw, *_KEYWORDS[1:4])
    wide = _one(draw, "{**LAYERS, 'hidden_size': 8}", "dict(LAYERS, hidden_size=8)", "{'cuda_graph_scope': []}")
    return f"LAYERS = dict({entries})\nWIDE = {wide}\n\n\n"


def _test(draw: Draw, name: str, names: _Names) -> str:
    lines = [f"cfg = {_one(draw, *names.recipes)}()"]
    check = _one(
        draw,
        "assert cfg.model.cuda_graph_impl in ('none', 'local', 'transformer_engine')",
        'assert cfg.model.cuda_graph_scope == ["attn"]',
        "assert cfg.model is not None",
        "assert not cfg.model.enable_cuda_graph",
    )
    lines += [check, "return cfg"]
    return f"def {name}():\n" + "".join(line + "\n" for line in _indented(lines)) + "\n\n"


def _imported(draw: Draw, module: str, functions: list[str]) -> str:
    listed = ", ".join(functions)
    how = _one(draw, "plain", "plain", "relative", "star")
    if how == "star" and not any(name.startswith("_") for name in functions):
        return f"from {PACKAGE}.{module} import *\n"
    source = f".{module}" if how == "relative" else f"{PACKAGE}.{module}"
    return f"from {source} import {listed}\n"


@st.composite
def packages(draw: Draw) -> Package:
    """Packages of four modules: helpers, base recipes, recipes, and tests."""
    names = _Names(forms=draw(st.frozensets(st.sampled_from(_FORMS), max_size=3)))
    provider = _one(draw, *_PROVIDERS) if names.has("provider") else _PROVIDERS[0]
    common = f"{_IMPORTS}\n\n{_HARNESS if names.has('another') else _PLAIN_HARNESS}{provider}\n\n{_COMMON}"
    fixed = ["new", "new_of", "apply", "add_to", "nothing", "with_seed", "model_of", "Harness", "Provider", "SCOPES"]
    tables = _tables(draw) if names.has("dicts") else ""
    if tables and (are_common := draw(st.booleans())):
        common += tables
        fixed += ["LAYERS", "WIDE"]
    own_tables = tables if tables and not are_common else ""
    helpers = []
    public = ("reset_graphs",) if names.has("public") else ()
    for name in (*draw(st.sampled_from((("_use",), ("_use", "_reset", "_again"), ()))), *public):
        common += _helper(draw, name, names)
        names.of_config.append(name)
        helpers.append(name)
    for name in draw(st.sampled_from(((), ("_of_model",), ("set_graphs",) if public else ()))):
        common += _model_helper(draw, name, names)
        names.of_model.append(name)
        helpers.append(name)
    modules = {"common": common}
    header = f"{_IMPORTS}{_imported(draw, 'common', [*fixed, *helpers])}\n\n"
    first = header + own_tables
    for name in ("base", "start_config"):
        first += _recipe(draw, name, names)
        names.recipes.append(name)
    modules["first"] = first
    own = ["LAYERS", "WIDE"] if own_tables else []
    second = f"{header.rstrip()}\n{_imported(draw, 'first', [*names.recipes, *own])}\n\n"
    for name in draw(st.sampled_from((("one",), ("one", "two_config")))):
        second += _recipe(draw, name, names)
        names.recipes.append(name)
    modules["second"] = second
    if names.has("further"):
        modules |= _further(draw, names)
    return Package(modules)


def _further(draw: Draw, names: _Names) -> dict[str, str]:
    """Modules that use recipes: tests, registries, callers that change what they get."""
    source = f"from {PACKAGE}.second import *\nfrom {PACKAGE}.first import *\nfrom {PACKAGE}.first import base\n\n\n"
    listed = ", ".join(f'"{name}": {name}' for name in names.recipes)
    name = _one(draw, *names.recipes)
    change = _one(draw, 'setattr(cfg.model, "cuda_graph_" + "scope", ["mlp"])', "cfg.seen = True", "nothing(cfg)")
    texts = (
        {},
        {"test_first": source + _test(draw, "test_of_recipe", names)},
        {
            "registry": source + f"RECIPES = {{{listed}}}\n\n\ndef started():\n    cfg = RECIPES['{name}']()\n"
            f"    {change}\n    return cfg\n"
        },
        {"caller": source + f"def called():\n    cfg = {name}()\n    {change}\n    return cfg\n"},
        {
            "api": f"from {PACKAGE}.second import *\nfrom {PACKAGE}.first import base as start\n",
            "caller": f"from {PACKAGE} import api\n\n\ndef called():\n    cfg = api.start()\n    {change}\n"
            "    return cfg\n".replace("nothing(cfg)", "pass"),
        },
    )
    return dict(draw(st.sampled_from(texts)))


# --- execution --------------------------------------------------------------------------------------


class Model:
    """A provider of the Bridge: settings that nothing has set have the defaults of a release."""

    def __init__(self, **settings: Any) -> None:
        for name, value in settings.items():
            setattr(self, name, value)


class _Part:
    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def __call__(self, *_: Any, **values: Any) -> _Part:
        return _Part(**values)

    def __enter__(self) -> _Part:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def _defaults(release: Release) -> dict[str, Any]:
    if release < SPLIT_IN:
        return {ENABLE: False, EXTERNAL: False, IMPL: "none", SCOPE: "full"}
    return {ENABLE: False, EXTERNAL: False, IMPL: "none", SCOPE: None, MODULES: "full", INFERENCE: None}


@dataclass(frozen=True)
class Outcome:
    """How a function ends: the class of its exception, the settings of its objects, and everything else."""

    error: str = ""
    settings: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    others: str = ""


class _World:
    """The modules of a package, executed under a release."""

    def __init__(self, package: Package, release: Release, is_big: bool) -> None:
        self.package, self.is_big = package, is_big
        self.model = type("GPTModelProvider", (Model,), _defaults(release))
        self.container = type("ConfigContainer", (_Part,), {})
        part = self

        def made(self: Any, **values: Any) -> None:
            vars(self).update({"dataset": _Part(is_big=part.is_big), **values})

        self.container.__init__ = made  # type: ignore[assignment, misc]
        self.modules: dict[str, types.ModuleType] = {}
        self.builtins = {**vars(builtins), "__import__": self.load}

    def load(self, name: str, _globals: Any = None, _locals: Any = None, names: Any = (), level: int = 0) -> Any:
        """The replaced ``__import__``."""
        full = f"{PACKAGE}.{name}".rstrip(".") if level else name
        if full == PACKAGE:
            return types.SimpleNamespace(**{one: self.module(one) for one in names or ()})
        if full.startswith(PACKAGE + "."):
            return self.module(full.removeprefix(PACKAGE + "."))
        if full.startswith("megatron."):
            return types.SimpleNamespace(GPTModelProvider=self.model, ConfigContainer=self.container)
        if full == "vllm":
            return types.SimpleNamespace(EngineConfig=_Part, context=_Part)
        return builtins.__import__(name, _globals, _locals, names, level)

    def module(self, name: str) -> types.ModuleType:
        """A module of the package, executed once."""
        if name not in self.modules:
            module = self.modules[name] = types.ModuleType(f"{PACKAGE}.{name}")
            vars(module)["__builtins__"] = self.builtins
            exec(compile(self.package.modules[name], f"{name}.py", "exec"), vars(module))
        return self.modules[name]


def outcomes(package: Package, release: Release, is_big: bool) -> dict[str, Outcome]:
    """What each public function does that takes no argument, or only its defaults."""
    results: dict[str, Outcome] = {}
    world = _World(package, release, is_big)
    for module in package.modules:
        for name, function in vars(world.module(module)).items():
            is_own = isinstance(function, types.FunctionType) and function.__module__ == f"{PACKAGE}.{module}"
            if is_own and not name.startswith("_"):
                # What one function changes in a module must not be seen by another.
                own = _World(package, release, is_big)
                results[f"{module}.{name}"] = _outcome(vars(own.module(module))[name], own)
    return results


def _outcome(function: Any, world: _World) -> Outcome:
    code = function.__code__
    needed = code.co_varnames[: code.co_argcount - len(function.__defaults__ or ())]
    values_of = {"cfg": lambda: world.container(model=world.model()), "model": world.model, "kind": lambda: world.model}
    values_of |= {"values": list, "change": lambda: lambda _: None}
    arguments = [values_of[name]() for name in needed]
    try:
        value = function(*arguments)
    except RecursionError:
        return Outcome("RecursionError")
    except Exception as error:
        return Outcome(type(error).__name__)
    settings: list[tuple[str, Mapping[str, Any]]] = []
    others: list[str] = []
    for at, one in enumerate((value, *arguments)):
        _describe(one, f"value{at}", settings, others, set())
    return Outcome("", tuple(settings), "\n".join(others))


def _describe(value: Any, name: str, settings: list[Any], others: list[str], seen: set[int]) -> None:
    if id(value) in seen:
        others.append(f"{name} again")
        return
    if isinstance(value, Model):
        seen.add(id(value))
        own = {key: getattr(value, key) for key in FIELDS if key in _written(value)}
        settings.append((name, own))
        for key, part in sorted(vars(value).items()):
            if key not in FIELDS:
                _describe(part, f"{name}.{key}", settings, others, seen)
    elif isinstance(value, _Part):
        seen.add(id(value))
        for key, part in sorted(vars(value).items()):
            _describe(part, f"{name}.{key}", settings, others, seen)
    elif hasattr(value, "__dict__") and not isinstance(value, (type, types.FunctionType)):
        others.append(f"{name} {type(value).__name__} {sorted(vars(value).items())!r}")
    else:
        others.append(f"{name} {value!r}" if not callable(value) else name)


def _written(model: Model) -> Iterator[str]:
    """The settings of a model that code has set, its classes included."""
    yield from vars(model)
    for kind in type(model).__mro__:
        if kind.__name__ not in ("GPTModelProvider", "Model", "object"):
            yield from vars(kind)
