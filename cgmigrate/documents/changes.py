"""The smallest set of changes that turns the settings of a site into others."""

from __future__ import annotations

from dataclasses import dataclass

from cgmigrate.megatron.settings import Settings


@dataclass(frozen=True, slots=True)
class Rename:
    """A setting gets another name where it is; an equal value stays as written."""

    old: str
    new: str
    value: object


@dataclass(frozen=True, slots=True)
class Revalue:
    """A setting gets another value."""

    name: str
    value: object


@dataclass(frozen=True, slots=True)
class Remove:
    """A setting is deleted."""

    name: str


@dataclass(frozen=True, slots=True)
class Add:
    """A new setting is written after the setting ``after``, or after what that one is renamed to."""

    name: str
    value: object
    after: str


Change = Rename | Revalue | Remove | Add


_REPLACES = {
    # The settings that a new one may replace where they are, best first.
    "cuda_graph_impl": ("enable_cuda_graph", "external_cuda_graph", "cuda_graph_scope", "cuda_graph_modules"),
    "cuda_graph_modules": ("cuda_graph_scope",),
    "inference_cuda_graph_scope": ("cuda_graph_scope", "cuda_graph_modules"),
}


def changes(before: Settings, after: Settings) -> list[Change]:
    """Return the smallest set of changes that turns one site's own settings into others.

    The result looks like a person's edit: a new setting takes the line of the deprecated one that it replaces.
    """
    removed = [name for name in before if name not in after]
    result: list[Change] = [
        Revalue(name, after[name]) for name in before if name in after and not same(before[name], after[name])
    ]
    places: dict[str, str] = {}
    for new in (
        name for name in ("cuda_graph_modules", "cuda_graph_impl", "inference_cuda_graph_scope") if name in after
    ):
        if new in before:
            continue
        old = next((name for name in _REPLACES[new] if name in removed), None)
        if old is not None:
            removed.remove(old)
            result.append(Rename(old, new, after[new]))
            places[new] = old
        else:
            candidates = [places.get(name, name) for name in (*_REPLACES[new], "cuda_graph_modules", "cuda_graph_impl")]
            beside = next((name for name in candidates if name in before and name not in removed), None)
            result.append(Add(new, after[new], after=beside or (list(before)[-1] if before else "")))
    result += [Remove(name) for name in removed]
    return result


def same(left: object, right: object) -> bool:
    """Whether two values are equal and of one type, so that True is not 1."""
    return type(left) is type(right) and left == right
