"""A configuration that a program has built, as a text that the rules read: the values that are in effect.

No class of megatron-core is imported. What an object is follows from the names of its class and of its attributes.
"""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import reduce
from types import SimpleNamespace
from typing import Any, TypeAlias

from cgmigrate.lint.captures import verdict_on
from cgmigrate.lint.run import Run
from cgmigrate.megatron.capture import capture_of, resolved_configuration
from cgmigrate.megatron.catalogue import load
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.setting import Setting, SettingKind, flag_of
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, FIELDS, IMPL, INFERENCE, MODULES, SCOPE, Settings
from cgmigrate.megatron.types import Capture, Reader, Rejected
from cgmigrate.project.inputs import InputFile

_BRIDGE, _COMMAND_LINE = "megatron-bridge", "megatron-lm"
"""The ecosystems in which settings have keys of their own."""
_NULL_IS_KNOWN = "num_moe_experts"
"""The setting of which null is a fact that rules test: a dense model. Null of another one says that it is not set."""
_MISSING = object()

_Path: TypeAlias = "tuple[str, ...]"


def resolved_text(config: object, release: Release) -> str:
    """Return the settings of a built configuration, and those around them that rules read, as YAML.

    Raises TypeError for an object without settings of graphs, and ValueError for a mapping without them.
    """
    reader, kind = _reader_of(config), ValueError if isinstance(config, Mapping) else TypeError
    is_provider = reader is Reader.BRIDGE and _get(config, "model") is _MISSING
    values = dict(_values({"model": config} if is_provider else config, reader))
    paths = {name: _path(name, reader) for name in FIELDS}
    graphs = {name: values[path] for name, path in paths.items() if path in values}
    if not graphs:
        raise kind(
            "config has to be a TransformerConfig, a configuration or model provider of Megatron-Bridge, arguments of "
            f"Megatron-LM, or a mapping of settings; {type(config).__name__} has no setting of CUDA graphs"
        )
    implied = {paths[name] for name in graphs.keys() - _without_implied(graphs, release, reader).keys()}
    tree: dict[str, Any] = {"model": {"_target_": "megatron.bridge."}} if reader is Reader.BRIDGE else {}
    for (*sections, key), value in values.items():
        if (*sections, key) not in implied:
            reduce(lambda part, section: part.setdefault(section, {}), sections, tree)[key] = value
    return "".join(_lines(tree))


def captured_in(run: Run) -> tuple[Capture | Rejected, str]:
    """Return what a run over such a text captures, of the layers that the model has, or why it is refused.

    Also return why nothing is captured; empty if something is.
    """
    (source,) = (item for item in run.discovery if isinstance(item, InputFile))
    planner = run.checker([source]).planner
    plan = planner.plan(planner.open(source)).plan
    case, context = plan.cases[0, 0], plan.group.files[0].context
    verdict = verdict_on(case, case.before, context.target, context)
    if verdict != Capture():
        return verdict, ""
    written = (name for name in (IMPL, ENABLE, EXTERNAL) if name in case.before)
    key = case.site.written_as(next(written, IMPL))
    if capture_of(case.before, context.target, case.reader) == verdict:
        return verdict, f"`{key}` turns graphs off"
    return verdict, f"what `{key}` and the modules choose is not in this model, or not in this job"


def _reader_of(config: object) -> Reader:
    if isinstance(config, (Namespace, SimpleNamespace)):
        return Reader.COMMAND_LINE
    is_of_bridge = any(one.__module__.startswith("megatron.bridge.") for one in type(config).__mro__)
    return Reader.BRIDGE if is_of_bridge or _get(config, "model") is not _MISSING else Reader.CONFIG


def _path(name: str, reader: Reader) -> _Path:
    """Return where the text has a setting of graphs."""
    if reader is Reader.COMMAND_LINE:
        return "MODEL_ARGS", flag_of(name)
    return ("model", name) if reader is Reader.BRIDGE else (name,)


def _values(root: object, reader: Reader) -> Iterator[tuple[_Path, object]]:
    """Yield the settings of the catalogue that an object has, each with its place in the text."""
    if reader is Reader.COMMAND_LINE:
        # Its command line describes a model, which says that what is not written has its default.
        yield ("MODEL_ARGS", "--num-layers"), _get(root, "num_layers", 1)
    for setting in load().settings.values():
        if reader is Reader.COMMAND_LINE:
            yield from _of_arguments(root, setting)
            continue
        keys = setting.keys.get(_BRIDGE, (f"model.{setting.name}",)) if reader is Reader.BRIDGE else (setting.name,)
        for path in (tuple(key.split(".")) for key in keys):
            value = reduce(_get, path, root)
            if value is not _MISSING and (value is not None or setting.name == _NULL_IS_KNOWN):
                yield path, _plain(value)


def _of_arguments(arguments: object, setting: Setting) -> Iterator[tuple[_Path, object]]:
    """Yield a setting of parsed arguments as its flag; of those around the graphs, what has its default is skipped."""
    flags = [flag.lstrip("-").replace("-", "_") for flag in (setting.flag, setting.no_flag.replace("--no-", "--"))]
    names = (*setting.keys.get(_COMMAND_LINE, ()), *flags, setting.name)
    value = _plain(next((one for name in names if (one := _get(arguments, name)) is not _MISSING), None))
    if not setting.flag or value in (None, []) or (value == setting.default and not setting.captures):
        return
    if isinstance(value, list):
        value = " ".join(map(str, value)) if setting.kind is SettingKind.LIST else str(value)
    if value is not False or setting.captures:
        yield ("MODEL_ARGS", setting.flag), value
    elif setting.no_flag:
        yield ("MODEL_ARGS", setting.no_flag), True


def _get(owner: object, name: str, default: object = _MISSING) -> object:
    return owner.get(name, default) if isinstance(owner, Mapping) else getattr(owner, name, default)


def _plain(value: object) -> object:
    """Return a value as YAML has it, the name of an enum; for another object a reference, whose value is not known."""
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    items = [_plain(one) for one in value] if isinstance(value, Sequence) else [None]
    return f"${{{type(value).__name__}}}" if any(one is None or isinstance(one, list) for one in items) else items


def _without_implied(graphs: Settings, release: Release, reader: Reader) -> Settings:
    """Return the settings that decide what is captured, without those that validation has set because of others."""
    if graphs.get(IMPL, "none") != "none":
        graphs = {name: value for name, value in graphs.items() if name not in (ENABLE, EXTERNAL)}
    for name in (ENABLE, EXTERNAL, SCOPE, MODULES, INFERENCE):
        fewer = {other: value for other, value in graphs.items() if other != name}
        read = resolved_configuration(fewer, release, reader)
        # The last one stays: without a setting of graphs, rules have nothing to read.
        if fewer and not isinstance(read, Rejected) and read == resolved_configuration(graphs, release, reader):
            graphs = fewer
    return graphs


def _lines(tree: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:\n"
            yield from _lines(value, indent + "  ")
        else:
            yield f"{indent}{key}: {json.dumps(value)}\n"
