"""What each release captures with the settings that people write: the table that the model of the releases gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import KNOWN, SPLIT_IN, Release
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Reader, Rejected

_IMPLEMENTATIONS = ("local", "transformer_engine")
_ITERATIONS = ("full_iteration", "full_iteration_inference")
_SCOPES = ("full", "attn", ["attn", "mlp"], ["attn", "moe_router"], *_ITERATIONS)
OLD: tuple[Settings, ...] = (
    {"enable_cuda_graph": True},
    {"external_cuda_graph": True},
    {"enable_cuda_graph": True, "cuda_graph_scope": "full_iteration"},
    {"enable_cuda_graph": True, "cuda_graph_scope": "attn"},
    {"external_cuda_graph": True, "cuda_graph_scope": ["attn", "moe_router"]},
    *({"cuda_graph_impl": "none", "cuda_graph_scope": scope} for scope in _ITERATIONS),
    *({"cuda_graph_impl": one, "cuda_graph_scope": scope} for one in _IMPLEMENTATIONS for scope in _SCOPES),
)
NEW: tuple[Settings, ...] = (
    {"cuda_graph_impl": "none"},
    {"cuda_graph_impl": "full_iteration"},
    {"cuda_graph_impl": "full_iteration", "inference_cuda_graph_scope": "block"},
    *({"cuda_graph_impl": one, "cuda_graph_modules": []} for one in _IMPLEMENTATIONS),
    *({"cuda_graph_impl": one, "cuda_graph_modules": ["attn", "mlp"]} for one in _IMPLEMENTATIONS),
    {"cuda_graph_impl": "local", "inference_cuda_graph_scope": "layer"},
    {"cuda_graph_impl": "local", "inference_cuda_graph_scope": "block"},
    {"cuda_graph_impl": "transformer_engine", "inference_cuda_graph_scope": "block"},
)
_UNKNOWN = "no such setting"
_READERS = {
    Reader.CONFIG: "TransformerConfig",
    Reader.COMMAND_LINE: "Megatron-LM's command line",
    Reader.BRIDGE: "Megatron-Bridge",
    Reader.NEMO_RL: "NeMo-RL",
}


def captures_page() -> str:
    """The old names and the new ones, each with how releases and readers read them."""
    parts = [
        "# What each release captures",
        "The same text means different things in different releases, and to the programs that read it. These tables "
        "are what [`capture_of`](soundness.md#why-it-can-be-trusted) returns; `cgmigrate explain FILE:LINE` shows it "
        "for a place in your files.",
        "TE is Transformer Engine. Where the first two tables have no row for a release, it has no such setting. "
        "`cuda_graph_impl: none` with `full` or with modules of a layer captures nothing.",
        f"## The names of before {SPLIT_IN}",
        _table(OLD, Reader.CONFIG, KNOWN),
        f"## The names since {SPLIT_IN}",
        _table(NEW, Reader.CONFIG, [one for one in KNOWN if one >= SPLIT_IN]),
        "## Where readers differ",
        "All readers hand the settings to TransformerConfig in the end, but some change or reject them before: these "
        "are the rows in which one does something else. A reader may also reject a configuration because of its other "
        "settings: Megatron-LM's command line stops on `none` with `full_iteration` while checks for NaN are on.",
        _differences(),
        "<!-- Generated from the model of the releases by `docs/build.py`. -->",
    ]
    return "\n\n".join(parts) + "\n"


def _table(every: tuple[Settings, ...], reader: Reader, releases: list[Release] | tuple[Release, ...]) -> str:
    rows = ["| settings | releases | in training | in inference |", "|---|---|---|---|"]
    for settings in every:
        shown = _settings(settings)
        for span, (training, inference) in _spans(settings, reader, releases):
            if training == _UNKNOWN:
                continue
            rows.append(f"| {shown} | {span} | {training} | {inference} |")
            shown = ""
    return "\n".join(rows)


def _differences() -> str:
    """The rows of readers that change or refuse settings which TransformerConfig takes, or the other way round."""
    rows = ["| settings | reader | releases | in training | in inference |", "|---|---|---|---|---|"]
    for settings in (*OLD, *NEW):
        rows_of: dict[tuple[str, tuple[str, str]], list[str]] = {}
        for reader, name in _READERS.items():
            differing = [
                one
                for one in KNOWN
                if one >= SPLIT_IN and _said(settings, one, reader) != _said(settings, one, Reader.CONFIG)
            ]
            for span, said in _spans(settings, reader, differing):
                rows_of.setdefault((span, said), []).append(name)
        rows += (
            f"| {_settings(settings)} | {', '.join(names)} | {span} | {said[0]} | {said[1]} |"
            for (span, said), names in rows_of.items()
        )
    return "\n".join(rows)


def _spans(
    settings: Settings, reader: Reader, releases: list[Release] | tuple[Release, ...]
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield ranges of releases that capture the same, with what they capture in training and in inference."""
    for said, group in groupby(releases, key=lambda one: _said(settings, one, reader)):
        same = list(group)
        yield (f"{same[0]} to {same[-1]}" if len(same) > 1 else str(same[0])), said


def _said(settings: Settings, release: Release, reader: Reader) -> tuple[str, str]:
    capture = capture_of(settings, release, reader)
    if isinstance(capture, Rejected):
        said = _UNKNOWN if capture.code == "unknown-field" else "rejected"
        return said, said
    training, _, inference = capture.describe(modules=True).partition(" in training, ")
    return training, inference.removesuffix(" in inference")


def _settings(settings: Mapping[str, object]) -> str:
    return "<br>".join(f"`{name}: {_value(value)}`" for name, value in settings.items())


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
