"""What a configuration captures: one pure function for every megatron-core release.

``capture_of(settings, release, reader)`` is the centre of the program: two configurations behave the same if their
captures are equal, and a rewrite is sound if the capture before, read by the source release, equals the capture after,
read by the target release.

It has the two steps of megatron-core. ``resolved_configuration`` returns the settings after validation
(``TransformerConfig.__post_init__``, ``validate_args``, Megatron-Bridge's ``validate_cuda_graph_configuration``);
``capture_of_resolved`` returns what the run then captures (``GraphableMegatronModule``, ``TransformerBlock``,
``FullCudaGraphWrapper``).

Sources: megatron-core 0.12.3, 0.13.1, 0.14.0, 0.15.3, 0.16.1, 0.17.1, 0.18.2, 0.19.2 and Megatron-Bridge 0.3.1 to 0.6.2
were read; all but the first two releases of megatron-core were also executed. ``tests/megatron/test_capture.py``
compares this model with those executions row by row.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from cgmigrate.megatron import graphs
from cgmigrate.megatron.bridge import validate_as_bridge
from cgmigrate.megatron.command_line import parse_arguments
from cgmigrate.megatron.releases import IMPL_SINCE, SPLIT_IN, Release
from cgmigrate.megatron.settings import FIELDS, FLAGS, IMPL, INFERENCE, MODULES, Settings, Undecided
from cgmigrate.megatron.types import Capture, Reader, Rejected, RejectedError, ResolvedConfiguration
from cgmigrate.megatron.validation import validate


def capture_of(settings: Settings, release: Release, reader: Reader) -> Capture | Rejected:
    """Return what ``settings`` capture when ``release`` reads them through ``reader``.

    ``settings`` maps field names to values as YAML or Python gives them, without the fields that are not written.
    Only those of the capture model (``settings.FIELDS``) are read.
    Raises ValueError for an ``Undecided`` value.
    """
    key = _key(settings)
    return _captured(settings, release, reader) if key is None else _captured_by_key(key, release, reader)


_Key: TypeAlias = "tuple[tuple[str, type, object], ...]"
"""Settings that can be looked up: each name with the type of its value, since True is not 1, and the value."""
_PLAIN = frozenset((str, bool, int, type(None)))


def _key(settings: Settings) -> _Key | None:
    """Return settings as a key, None for values that cannot be one."""
    own = [(name, settings[name]) for name in FIELDS if name in settings]
    if not all(type(value) in _PLAIN or _is_list_of_text(value) for _, value in own):
        return None
    return tuple((name, type(value), tuple(value) if isinstance(value, list) else value) for name, value in own)


def _is_list_of_text(value: object) -> bool:
    return type(value) is list and all(type(item) is str for item in value)


@lru_cache(maxsize=1024)
def _captured_by_key(key: _Key, release: Release, reader: Reader) -> Capture | Rejected:
    """Return what settings capture. The files of a project have few different ones."""
    settings = {name: list(value) if isinstance(value, tuple) else value for name, _, value in key}
    return _captured(settings, release, reader)


def _captured(settings: Settings, release: Release, reader: Reader) -> Capture | Rejected:
    configuration = resolved_configuration(settings, release, reader)
    return configuration if isinstance(configuration, Rejected) else capture_of_resolved(configuration, release)


def capture_of_resolved(configuration: ResolvedConfiguration, release: Release) -> Capture | Rejected:
    """Return what a run of ``release`` captures with settings that its validation has accepted.

    ``configuration`` comes from ``resolved_configuration`` or from the release itself
    (``cgmigrate.verify.config_level``).
    """
    try:
        return graphs.capture(configuration, release)
    except RejectedError as error:
        return error.rejected


def resolved_configuration(settings: Settings, release: Release, reader: Reader) -> ResolvedConfiguration | Rejected:
    """Return the settings after the validation of ``reader`` and ``release``, or why they are rejected."""
    settings = {name: settings[name] for name in FIELDS if name in settings}
    for name, value in settings.items():
        if isinstance(value, Undecided):
            raise ValueError(f"{name} is undecided: {value.reason}")
    try:
        _check_fields_exist(settings, release, reader)
        arguments = _config_arguments(settings, release, reader)
        return validate(arguments, release, from_command_line=reader is Reader.COMMAND_LINE)
    except RejectedError as error:
        return error.rejected


def validation_input(settings: Settings, release: Release, reader: Reader) -> Settings | Rejected:
    """Return the settings that ``reader`` passes to megatron-core's validation, or why it rejects them before."""
    try:
        return _config_arguments(settings, release, reader)
    except RejectedError as error:
        return error.rejected


def _config_arguments(settings: Settings, release: Release, reader: Reader) -> Settings:
    if reader is Reader.COMMAND_LINE:
        return parse_arguments(settings, release)
    if reader is Reader.NEMO_RL and IMPL not in settings:
        settings = {name: value for name, value in settings.items() if name != INFERENCE}
    if reader.validates_as_bridge and release > SPLIT_IN:
        return validate_as_bridge(settings)
    return settings


def _check_fields_exist(settings: Settings, release: Release, reader: Reader) -> None:
    newer: list[str] = [IMPL] if release < IMPL_SINCE else []
    if release < SPLIT_IN:
        newer += [MODULES, INFERENCE]
    for name in newer:
        if name not in settings:
            continue
        if reader is Reader.COMMAND_LINE:
            raise RejectedError("unknown-field", f"error: unrecognized arguments: {FLAGS[name]}", (name,))
        message = f"TransformerConfig.__init__() got an unexpected keyword argument '{name}'"
        raise RejectedError("unknown-field", f"TypeError: {message}", (name,))
