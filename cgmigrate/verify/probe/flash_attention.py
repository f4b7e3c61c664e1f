"""A stand-in in torch for the functions of flash_attn that megatron-core's inference calls.

The dynamic batching engine computes attention with flash_attn alone, and static batching under CUDA graphs does so in
decode (``flash_decode``). Where flash_attn is not installed, the probe gives megatron-core these functions instead:
slower, but the same mathematics. They read no value back to the host and their shapes depend on shapes alone, so that
a CUDA graph can hold them.

Sources: flash_attn 2.8.3, flash_attn_interface.py and layers/rotary.py; megatron-core 0.15.3 to 0.19.2,
transformer/attention.py (``flash_decode``, ``flash_decode_and_prefill``) and models/common/embeddings/rope_utils.py.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

VERSION = "2.8.3"
"""The version whose interface this is; megatron-core wants 2.7.3 at least (``is_fa_min_version``)."""

REMARK = "flash_attn is not installed: a stand-in in torch computes the attention of the engine"

Window = tuple[int, int]
NO_WINDOW: Window = (-1, -1)


def install() -> str | None:
    """Offer the stand-in as ``flash_attn`` where the real one is missing; return a remark for the report, else None.

    To be called before megatron-core is imported, which looks for flash_attn once. No metadata of a distribution is
    added: Transformer Engine looks there, and must not take the stand-in for the kernels that it would train with.
    """
    present = sys.modules.get("flash_attn")
    if present is None and importlib.util.find_spec("flash_attn") is not None:
        return None
    if present is not None:
        return REMARK if getattr(present, "is_stand_in", False) else None
    package, layers, rotary = (
        _module(name) for name in ("flash_attn", "flash_attn.layers", "flash_attn.layers.rotary")
    )
    contents: dict[ModuleType, dict[str, Any]] = {
        package: {
            "is_stand_in": True,
            "__version__": VERSION,
            "flash_attn_varlen_func": flash_attn_varlen_func,
            "flash_attn_with_kvcache": flash_attn_with_kvcache,
            "layers": layers,
        },
        layers: {"rotary": rotary},
        rotary: {"apply_rotary_emb": apply_rotary_emb},
    }
    for module, names in contents.items():
        vars(module).update(names)
        sys.modules[module.__name__] = module
    return REMARK


def _module(name: str) -> ModuleType:
    # A package with an empty path: submodules that it lacks (flash_attn.cute) are missing, as ImportError.
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    module.__path__ = []
    return module


def flash_attn_varlen_func(  # noqa: PLR0913, PLR0917 - the signature is flash_attn's
    q: Tensor,
    k: Tensor,
    v: Tensor,
    cu_seqlens_q: Tensor,
    cu_seqlens_k: Tensor,
    max_seqlen_q: int | Tensor,  # noqa: ARG001 - part of flash_attn's signature, of no use to this algorithm
    max_seqlen_k: int | Tensor,  # noqa: ARG001 - part of flash_attn's signature, of no use to this algorithm
    dropout_p: float = 0.0,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Window = NO_WINDOW,
    softcap: float = 0.0,
    alibi_slopes: Tensor | None = None,
    deterministic: bool = False,  # noqa: ARG001 - part of flash_attn's signature, of no use to this algorithm
    return_attn_probs: bool = False,
    block_table: Tensor | None = None,
) -> Any:
    """Attention over requests of different lengths, laid end to end.

    ``q`` is (tokens, heads, width); ``cu_seqlens_q`` and ``cu_seqlens_k`` (requests + 1) say where each request begins
    and the last ends. ``k`` and ``v`` are (tokens, heads of keys, width) or, with ``block_table`` (requests, pages),
    pages of (pages, tokens a page, heads of keys, width). The last query of a request is aligned with its last key.
    Tokens after the last request get zeros. Returns (tokens, heads, width of values); with ``return_attn_probs`` that,
    the log-sum-exp (heads, tokens), infinite where there is no key, and None.

    Raises NotImplementedError for dropout and for alibi.
    """
    _refuse(dropout=dropout_p, alibi=alibi_slopes)
    lengths = cu_seqlens_k.diff()
    keys = _ragged(k, v, cu_seqlens_k) if block_table is None else _paged(k, v, lengths, block_table)
    requests = lengths.shape[0]
    place = torch.arange(q.shape[0], device=q.device, dtype=cu_seqlens_q.dtype)
    owner = torch.searchsorted(cu_seqlens_q, place, right=True) - 1
    real, owner = owner < requests, owner.clamp(0, requests - 1)
    position = place - cu_seqlens_q[owner] + (lengths - cu_seqlens_q.diff())[owner]
    out, lse = _attend(_Queries(q, owner, position, real), keys, _Scores(softmax_scale, causal, window_size, softcap))
    return (out, lse, None) if return_attn_probs else out


def flash_attn_with_kvcache(  # noqa: PLR0913, PLR0917 - the signature is flash_attn's
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    k: Tensor | None = None,
    v: Tensor | None = None,
    rotary_cos: Tensor | None = None,
    rotary_sin: Tensor | None = None,
    cache_seqlens: int | Tensor | None = None,
    cache_batch_idx: Tensor | None = None,
    cache_leftpad: Tensor | None = None,
    block_table: Tensor | None = None,
    softmax_scale: float | None = None,
    causal: bool = False,
    window_size: Window = NO_WINDOW,
    softcap: float = 0.0,
    rotary_interleaved: bool = True,
    alibi_slopes: Tensor | None = None,
    num_splits: int = 0,  # noqa: ARG001 - part of flash_attn's signature, of no use to this algorithm
    return_softmax_lse: bool = False,
) -> Any:
    """Attention of a few new queries of each request to its KV cache.

    ``q`` is (requests, queries, heads, width). The caches are (requests, tokens, heads of keys, width) or, with
    ``block_table`` (requests, pages), pages of (pages, tokens a page, heads of keys, width). ``cache_seqlens`` counts
    the tokens in each cache; new ``k`` and ``v`` (requests, new tokens, heads of keys, width) are written after them,
    in place. ``rotary_cos`` and ``rotary_sin`` (positions, rotated width / 2) rotate ``q`` and the new ``k``. Returns
    (requests, queries, heads, width), with ``return_softmax_lse`` also the log-sum-exp (requests, heads, queries).

    Raises NotImplementedError for ``cache_batch_idx``, ``cache_leftpad`` and alibi.
    """
    _refuse(cache_batch_idx=cache_batch_idx, cache_leftpad=cache_leftpad, alibi=alibi_slopes)
    requests, queries = q.shape[:2]
    before = _lengths(cache_seqlens, k_cache, requests)
    lengths = before
    if k is not None and v is not None:
        new = before[:, None] + torch.arange(k.shape[1], device=q.device)
        if rotary_cos is not None and rotary_sin is not None:
            # As the kernel does: without a causal order, all queries have the position of the first new key.
            ordered = causal or window_size != NO_WINDOW
            steps = torch.arange(queries, device=q.device) * int(ordered)
            q = _rotated(q, rotary_cos, rotary_sin, before[:, None] + steps, rotary_interleaved)
            k = _rotated(k, rotary_cos, rotary_sin, new, rotary_interleaved)
        for cache, rows in ((k_cache, k), (v_cache, v)):
            _write(cache, rows, new, block_table)
        lengths = before + k.shape[1]
    if block_table is None:
        block_table = torch.arange(requests, device=q.device)[:, None]
    keys = _paged(k_cache, v_cache, lengths, block_table)
    owner, steps = _grid(requests, queries, q.device)
    flat = _Queries(q.reshape(-1, *q.shape[2:]), owner, lengths[owner] - queries + steps, torch.ones_like(owner).bool())
    out, lse = _attend(flat, keys, _Scores(softmax_scale, causal, window_size, softcap))
    out = out.reshape(requests, queries, *out.shape[1:])
    return (out, lse.reshape(-1, requests, queries).transpose(0, 1)) if return_softmax_lse else out


def apply_rotary_emb(  # noqa: PLR0913, PLR0917 - the signature is flash_attn's
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    interleaved: bool = False,
    inplace: bool = False,
    seqlen_offsets: int | Tensor = 0,
    cu_seqlens: Tensor | None = None,
    max_seqlen: int | None = None,  # noqa: ARG001 - part of flash_attn's signature, of no use to this algorithm
) -> Tensor:
    """Rotate the first channels of ``x`` (batch, tokens, heads, width).

    ``cos`` and ``sin`` are (positions, rotated width / 2); token i has position ``seqlen_offsets`` + i.
    Raises NotImplementedError for ``cu_seqlens`` and ``inplace``.
    """
    _refuse(cu_seqlens=cu_seqlens, inplace=inplace)
    places = torch.arange(x.shape[1], device=x.device).expand(x.shape[0], -1)
    if isinstance(seqlen_offsets, Tensor):
        seqlen_offsets = seqlen_offsets[:, None]
    return _rotated(x, cos, sin, places + seqlen_offsets, interleaved)


# --- the parts -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Queries:
    """``values`` (queries, heads, width), and of each query its request, its position there, whether it is real."""

    values: Tensor
    owner: Tensor
    position: Tensor
    real: Tensor


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys and values of all requests (keys, heads of keys, width), with the same data as queries have."""

    keys: Tensor
    values: Tensor
    owner: Tensor
    position: Tensor
    real: Tensor


@dataclass(frozen=True, slots=True)
class _Scores:
    """How scores are made: their scale, and which keys a query sees."""

    scale: float | None
    causal: bool
    window: Window
    softcap: float


def _ragged(k: Tensor, v: Tensor, bounds: Tensor) -> _Keys:
    requests = bounds.shape[0] - 1
    place = torch.arange(k.shape[0], device=k.device, dtype=bounds.dtype)
    owner = torch.searchsorted(bounds, place, right=True) - 1
    real, owner = owner < requests, owner.clamp(0, requests - 1)
    return _Keys(k, v, owner, place - bounds[owner], real)


def _paged(k: Tensor, v: Tensor, lengths: Tensor, table: Tensor) -> _Keys:
    # Pages that a request does not have are -1 in the table; their keys lie after its length.
    pages = table.clamp(min=0).long()
    owner, position = _grid(pages.shape[0], pages.shape[1] * k.shape[1], k.device)
    real = position < lengths[owner]
    return _Keys(k[pages].flatten(0, 2), v[pages].flatten(0, 2), owner, position, real)


def _attend(q: _Queries, kv: _Keys, options: _Scores) -> tuple[Tensor, Tensor]:
    """Attention of each query to the keys of its own request: (queries, heads, width), (heads, queries).

    All queries meet all keys in one product and a mask parts the requests: more work than needed, but fixed shapes.
    """
    count, heads, width = q.values.shape
    groups = kv.keys.shape[1]
    scale = width**-0.5 if options.scale is None else options.scale
    left, right = options.window[0], 0 if options.causal else options.window[1]
    distance = kv.position[None, :] - q.position[:, None]
    seen = q.real[:, None] & kv.real[None, :] & (q.owner[:, None] == kv.owner[None, :])
    if right >= 0:
        seen &= distance <= right
    if left >= 0:
        seen &= distance >= -left

    queries = q.values.float().reshape(count, groups, heads // groups, width).permute(1, 2, 0, 3).flatten(1, 2)
    scores = torch.bmm(queries, kv.keys.float().permute(1, 2, 0)) * scale
    if options.softcap > 0:
        scores = options.softcap * torch.tanh(scores / options.softcap)
    scores = scores.reshape(groups, heads // groups, count, -1).masked_fill(~seen, -torch.inf)
    highest = scores.amax(-1, keepdim=True)
    weights = (scores - highest.masked_fill(highest.isinf(), 0.0)).exp()
    total = weights.sum(-1, keepdim=True)
    # Memory that was never written may hold NaN, which no weight of zero can cancel.
    values = kv.values.float().masked_fill(~kv.real[:, None, None], 0.0).transpose(0, 1)
    out = torch.bmm(weights.flatten(1, 2), values).reshape(groups, heads // groups, count, -1)
    out = (out / total.masked_fill(total == 0, 1.0)).permute(2, 0, 1, 3).flatten(1, 2)
    lse = (highest + total.log()).masked_fill(total == 0, torch.inf)
    return out.to(q.values.dtype), lse.reshape(heads, count)


def _grid(rows: int, columns: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The row and the column of each cell of a table, row by row."""
    row = torch.arange(rows, device=device)[:, None].expand(rows, columns).reshape(-1)
    return row, torch.arange(columns, device=device).repeat(rows)


def _lengths(count: int | Tensor | None, cache: Tensor, requests: int) -> Tensor:
    if isinstance(count, Tensor):
        return count
    return torch.full((requests,), cache.shape[1] if count is None else count, device=cache.device, dtype=torch.int32)


def _write(cache: Tensor, rows: Tensor, places: Tensor, table: Tensor | None) -> None:
    """Write ``rows`` (requests, new tokens, ...) to positions ``places`` (requests, new tokens) of each cache."""
    request = torch.arange(rows.shape[0], device=rows.device)[:, None]
    if table is None:
        cache[request, places.long()] = rows
    else:
        size = cache.shape[1]
        cache[table[request, places.long() // size].long(), places.long() % size] = rows


def _rotated(x: Tensor, cos: Tensor, sin: Tensor, places: Tensor, interleaved: bool) -> Tensor:
    """Rotate ``x`` (batch, tokens, heads, width) by the angles of its positions ``places`` (batch, tokens)."""
    half = cos.shape[-1]
    c, s = (table[places.long()].float().unsqueeze(2) for table in (cos, sin))
    turned, rest = x[..., : 2 * half].float(), x[..., 2 * half :]
    one, two = (turned[..., ::2], turned[..., 1::2]) if interleaved else (turned[..., :half], turned[..., half:])
    pair = (one * c - two * s, one * s + two * c)
    rotated = torch.stack(pair, -1).flatten(-2) if interleaved else torch.cat(pair, -1)
    return torch.cat((rotated.to(x.dtype), rest), -1)


def _refuse(**options: Any) -> None:
    for name, value in options.items():
        if isinstance(value, Tensor) or value:
            raise NotImplementedError(f"the stand-in for flash_attn has no {name}")
