"""The probe's stand-in for flash_attn computes what torch's own attention computes, request by request."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.nightly import examples

WIDTH = 8
PAGE = 4


@pytest.fixture(autouse=True, scope="module")
def imported() -> None:
    """What takes two seconds to import is imported for these tests only, and not when tests are collected."""
    global torch, probe
    torch = pytest.importorskip("torch")
    from cgmigrate.verify.probe import flash_attention as probe


def attention(q, k, v, causal=False, window=(-1, -1), scale=None):
    """One request by torch: (queries, heads, width) and keys (tokens, heads of keys, width), the ends aligned."""
    queries, keys = q.shape[0], k.shape[0]
    where = torch.arange(queries)[:, None] + keys - queries
    at = torch.arange(keys)[None, :]
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        seen &= at <= where
    if window[0] >= 0:
        seen &= at >= where - window[0]
    if window[1] >= 0 and not causal:
        seen &= at <= where + window[1]
    groups = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(groups, 1).transpose(0, 1) for x in (k, v))
    out = torch.nn.functional.scaled_dot_product_attention(q.transpose(0, 1), k, v, attn_mask=seen, scale=scale)
    return out.transpose(0, 1).where(seen.any(1)[:, None, None], 0.0)


def bounds(lengths):
    return torch.tensor([0, *lengths]).cumsum(0).to(torch.int32)


def paged(rows, pages, generator):
    """The rows of each request spread over shuffled pages; what nobody wrote is NaN. Returns pages and block table."""
    count = sum(-(-len(request) // PAGE) for request in rows) + 1
    cache = torch.full((count, PAGE, *rows[0].shape[1:]), torch.nan)
    free = torch.randperm(count, generator=generator).tolist()
    table = torch.full((len(rows), pages), -1, dtype=torch.int32)
    for index, request in enumerate(rows):
        for page, start in enumerate(range(0, len(request), PAGE)):
            table[index, page] = place = free.pop()
            part = request[start : start + PAGE]
            cache[place, : len(part)] = part
    return cache, table


@st.composite
def batches(draw, longest=11):
    """Requests of some new queries each (all of the keys, or the last few), and how they attend."""
    shapes = draw(
        st.lists(
            st.integers(1, longest).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))), min_size=1, max_size=4
        )
    )
    heads = draw(st.sampled_from([(1, 1), (4, 2), (4, 1)]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 9999)))
    requests = [
        tuple(
            torch.randn(count, h, WIDTH, generator=generator)
            for count, h in ((new, heads[0]), (n, heads[1]), (n, heads[1]))
        )
        for new, n in shapes
    ]
    options = {
        "causal": draw(st.booleans()),
        "window_size": draw(st.sampled_from([(-1, -1), (2, 0), (0, 0), (3, 1)])),
        "softmax_scale": draw(st.sampled_from([None, 0.5])),
    }
    return requests, options


def expected(requests, options):
    return torch.cat(
        [attention(*one, options["causal"], options["window_size"], options["softmax_scale"]) for one in requests]
    )


@settings(max_examples=examples(60), deadline=None)
@given(batches())
def test_ragged_requests(batch):
    requests, options = batch
    q, k, v = (torch.cat(parts) for parts in zip(*requests, strict=True))
    lengths = [[len(one[part]) for one in requests] for part in (0, 1)]
    out = probe.flash_attn_varlen_func(
        q, k, v, bounds(lengths[0]), bounds(lengths[1]), max(lengths[0]), max(lengths[1]), **options
    )
    torch.testing.assert_close(out, expected(requests, options))


@settings(max_examples=examples(60), deadline=None)
@given(batches(), st.integers(0, 3), st.integers(0, 2))
def test_ragged_requests_of_a_paged_cache_with_padding(batch, idle_requests, padding):
    """As the dynamic engine pads: more requests than there are (no tokens, no pages), more tokens than they have."""
    requests, options = batch
    rows = [list(part) for part in zip(*requests, strict=True)]
    keys, table = paged(rows[1], 4, torch.Generator().manual_seed(7))
    values, _ = paged(rows[2], 4, torch.Generator().manual_seed(7))
    table = torch.cat([table, torch.full((idle_requests, 4), -1, dtype=torch.int32)])
    queries, lengths = ([len(one) for one in part] + [0] * idle_requests for part in (rows[0], rows[1]))
    q = torch.cat([*rows[0], torch.full((padding, *rows[0][0].shape[1:]), torch.nan)])
    out, lse, probabilities = probe.flash_attn_varlen_func(
        q, keys, values, bounds(queries), bounds(lengths), 16, 16, block_table=table, return_attn_probs=True, **options
    )
    requested = expected(requests, options)
    torch.testing.assert_close(out[: len(requested)], requested)
    assert (out[len(requested) :] == 0).all()
    assert (lse[:, len(requested) :] == torch.inf).all()
    assert lse.shape == (q.shape[1], len(q))
    assert probabilities is None


@settings(max_examples=examples(60), deadline=None)
@given(batches(), st.booleans())
def test_decode_from_a_paged_cache(batch, idle):
    requests, options = batch
    rows = [list(part) for part in zip(*requests, strict=True)]
    rows[0] = [one[-1:] for one in rows[0]]
    keys, table = paged(rows[1], 3, torch.Generator().manual_seed(7))
    values, _ = paged(rows[2], 3, torch.Generator().manual_seed(7))
    lengths = torch.tensor([len(one) for one in rows[1]], dtype=torch.int32)
    q = torch.stack(rows[0])
    if idle:
        table = torch.cat([table, torch.full((1, 3), -1, dtype=torch.int32)])
        lengths = torch.cat([lengths, lengths.new_zeros(1)])
        q = torch.cat([q, torch.full((1, *q.shape[1:]), torch.nan)])
    out, lse = probe.flash_attn_with_kvcache(
        q, keys, values, cache_seqlens=lengths, block_table=table, num_splits=0, return_softmax_lse=True, **options
    )
    requested = expected(list(zip(*rows, strict=True)), options)
    torch.testing.assert_close(out[: len(rows[0])].flatten(0, 1), requested)
    assert (out[len(rows[0]) :] == 0).all()
    assert lse.shape == (q.shape[0], q.shape[2], 1)


@pytest.mark.parametrize("pages", [False, True])
@pytest.mark.parametrize("interleaved", [False, True])
def test_decode_writes_the_new_key_and_value_at_the_end_of_each_cache(pages, interleaved):
    """``flash_decode`` of static batching: rotation, then the write in place, then attention."""
    generator = torch.Generator().manual_seed(3)
    lengths = torch.tensor([2, 5], dtype=torch.int32)
    q, k, v = (torch.randn(2, 1, heads, WIDTH, generator=generator) for heads in (4, 2, 2))
    angles = torch.randn(8, WIDTH // 4, generator=generator)
    caches = [torch.randn(8, 2, 2, WIDTH, generator=generator) for _ in range(2)]
    # megatron-core's cache is (tokens, requests, ...); the function gets a view of it.
    table = None
    views = [cache.transpose(0, 1) for cache in caches]
    if pages:
        table = torch.tensor([[3, 1], [0, 2]], dtype=torch.int32)
        views = [view.reshape(2, 2, PAGE, 2, WIDTH)[[1, 0, 1, 0], [0, 1, 1, 0]].clone() for view in views]
    before = [view.clone() for view in views]

    out = probe.flash_attn_with_kvcache(
        q,
        *views,
        k,
        v,
        angles.cos(),
        angles.sin(),
        cache_seqlens=lengths,
        block_table=table,
        rotary_interleaved=interleaved,
    )

    def turned(x):
        return probe.apply_rotary_emb(x, angles.cos(), angles.sin(), interleaved, seqlen_offsets=lengths)

    for request, length in enumerate(lengths.tolist()):
        old = [b[table[request]].flatten(0, 1) if pages else b[request] for b in before]
        now = [w[table[request]].flatten(0, 1) if pages else w[request] for w in views]
        new = [turned(k)[request], v[request]]
        for old_rows, now_rows, row in zip(old, now, new, strict=True):
            torch.testing.assert_close(now_rows[: length + 1], torch.cat([old_rows[:length], row]))
            torch.testing.assert_close(now_rows[length + 1 :], old_rows[length + 1 :])
        torch.testing.assert_close(out[request], attention(turned(q)[request], *(rows[: length + 1] for rows in now)))


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotation_is_a_complex_product(interleaved):
    generator = torch.Generator().manual_seed(5)
    x, angles = torch.randn(2, 6, 3, WIDTH, generator=generator), torch.randn(6, 3, generator=generator)
    out = probe.apply_rotary_emb(x, angles.cos(), angles.sin(), interleaved)
    first, second = (slice(0, 6, 2), slice(1, 6, 2)) if interleaved else (slice(0, 3), slice(3, 6))
    product = torch.complex(x[..., first], x[..., second]) * torch.polar(torch.ones_like(angles), angles)[None, :, None]
    torch.testing.assert_close(out[..., first], product.real)
    torch.testing.assert_close(out[..., second], product.imag)
    assert torch.equal(out[..., 6:], x[..., 6:])


def test_log_sum_exp_of_equal_scores_is_the_log_of_their_number():
    q, k = torch.zeros(1, 1, 2, WIDTH), torch.ones(1, 5, 1, WIDTH)
    _, lse = probe.flash_attn_with_kvcache(q, k, k, cache_seqlens=3, return_softmax_lse=True)
    torch.testing.assert_close(lse, torch.full((1, 2, 1), 3.0).log())


def test_same_inputs_give_the_same_bits_in_the_given_precision():
    q, k = torch.randn(2, 1, 4, WIDTH).bfloat16(), torch.randn(2, 8, 4, WIDTH).bfloat16()
    first, second = (probe.flash_attn_with_kvcache(q, k, k, cache_seqlens=6) for _ in range(2))
    assert first.dtype == torch.bfloat16
    assert torch.equal(first, second)


@pytest.mark.parametrize("option", ["alibi_slopes", "cache_leftpad", "cache_batch_idx"])
def test_what_is_not_there_is_refused(option):
    q = torch.zeros(1, 1, 1, WIDTH)
    with pytest.raises(NotImplementedError, match="the stand-in for flash_attn has no"):
        probe.flash_attn_with_kvcache(q, q, q, **{option: torch.zeros(1)})


class TestInstall:
    NAMES = ("flash_attn", "flash_attn.layers", "flash_attn.layers.rotary")

    @pytest.fixture(autouse=True)
    def _leave_no_trace(self, monkeypatch):
        for name in self.NAMES:
            # Set, then deleted: monkeypatch puts back what was there, and takes out what a test adds.
            monkeypatch.setitem(sys.modules, name, None)
            monkeypatch.delitem(sys.modules, name)

    def test_a_missing_flash_attn_is_replaced_and_said(self, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        assert probe.install() == probe.REMARK
        from flash_attn import __version__, flash_attn_with_kvcache  # type: ignore[import-not-found]
        from flash_attn.layers.rotary import apply_rotary_emb  # type: ignore[import-not-found]

        assert __version__ == probe.VERSION
        assert flash_attn_with_kvcache is probe.flash_attn_with_kvcache
        assert apply_rotary_emb is probe.apply_rotary_emb
        assert probe.install() == probe.REMARK

    def test_other_parts_of_flash_attn_are_missing(self, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        probe.install()
        with pytest.raises(ImportError):
            from flash_attn.cute import flash_attn_varlen_func  # noqa: F401

    def test_a_present_flash_attn_is_left_alone(self, monkeypatch):
        monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
        assert probe.install() is None
        assert "flash_attn" not in sys.modules

    def test_transformer_engine_does_not_take_the_stand_in_for_installed(self):
        import importlib.metadata

        probe.install()
        with pytest.raises(importlib.metadata.PackageNotFoundError):
            importlib.metadata.version("flash-attn")
