"""The fewest changes that turn the settings of a site into others."""

from __future__ import annotations

from dataclasses import dataclass

from cgmigrate.megatron.settings import Settings


@dataclass(frozen=True, slots=True)
class Rename:
    """A written setting becomes another one in its place; the value stays as written when unchanged."""

    old: str
    new: str
    value: object


@dataclass(frozen=True, slots=True)
class Revalue:
    """A written setting gets another value."""

    name: str
    value: object


@dataclass(frozen=True, slots=True)
class Remove:
    """A written setting goes."""

    name: str


@dataclass(frozen=True, slots=True)
class Add:
    """A new setting, written after the one that ``after`` was."""

    name: str
    value: object
    after: str


Change = Rename | Revalue | Remove | Add


_REPLACES = {
    # Which written names a new one replaces where it stands, best first.
    "cuda_graph_impl": ("enable_cuda_graph", "external_cuda_graph", "cuda_graph_scope", "cuda_graph_modules"),
    "cuda_graph_modules": ("cuda_graph_scope",),
    "inference_cuda_graph_scope": ("cuda_graph_scope", "cuda_graph_modules"),
}


def changes(before: Settings, after: Settings) -> list[Change]:
    """Return the fewest changes that turn one site's own settings into others.

    A person would write the new name where the old one stood: a name that goes is renamed to
    one that comes, where one replaces the other.
    """
    gone = [name for name in before if name not in after]
    result: list[Change] = [
        Revalue(name, after[name]) for name in before if name in after and not same(before[name], after[name])
    ]
    places: dict[str, str] = {}
    for new in (
        name for name in ("cuda_graph_modules", "cuda_graph_impl", "inference_cuda_graph_scope") if name in after
    ):
        if new in before:
            continue
        old = next((name for name in _REPLACES[new] if name in gone), None)
        if old is not None:
            gone.remove(old)
            result.append(Rename(old, new, after[new]))
            places[new] = old
        else:
            candidates = [places.get(name, name) for name in (*_REPLACES[new], "cuda_graph_modules", "cuda_graph_impl")]
            beside = next((name for name in candidates if name in before and name not in gone), None)
            result.append(Add(new, after[new], after=beside or (list(before)[-1] if before else "")))
    result += [Remove(name) for name in gone]
    return result


def same(left: object, right: object) -> bool:
    """Equality that tells True from 1."""
    return type(left) is type(right) and left == right
