"""What a site captures, in words."""

from __future__ import annotations

from cgmigrate.lint.captures import before_and_after, both, outcome
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.types import Backend, Blocks, Capture, Iteration, Layers, Reader

OLD, NEW = Release(0, 14), Release(0, 19)


def test_a_refusal_is_at_the_configuration_or_at_the_capture() -> None:
    new_name = capture_of({"cuda_graph_impl": "local"}, OLD, Reader.CONFIG)
    assert outcome(new_name, OLD) == "0.14: rejected"
    scope = capture_of({"external_cuda_graph": True, "cuda_graph_scope": "full_iteration"}, OLD, Reader.CONFIG)
    assert outcome(scope, OLD) == "0.14: capture fails"


def test_a_capture_is_named_with_its_release() -> None:
    captured = capture_of({"cuda_graph_impl": "full_iteration"}, NEW, Reader.CONFIG)
    assert outcome(captured, NEW) == "0.19: full iteration"


LAYERS = Layers(Backend.LOCAL)


def test_what_only_one_release_captures_is_said() -> None:
    """`whole layers (local) in training` beside `whole layers (local)` says nothing of inference."""
    assert both(Capture(LAYERS), Capture(LAYERS, LAYERS)) == (
        "whole layers (local) in training, no graphs in inference",
        "whole layers (local) in training and in inference",
    )
    assert both(Capture(Iteration()), Capture(inference=Blocks())) == (
        "full iteration in training, no graphs in inference",
        "no graphs in training, the block in inference",
    )


def test_captures_in_the_same_phases_are_said_briefly() -> None:
    assert both(Capture(LAYERS), Capture(Iteration())) == ("whole layers (local) in training", "full iteration")
    assert both(Capture(), Capture(LAYERS)) == ("no graphs", "whole layers (local) in training")
    parts = Layers(Backend.LOCAL, frozenset({"attn"}))
    assert both(Capture(LAYERS), Capture(parts))[1] == "layers (local, modules attn) in training"


def test_before_and_after_name_their_releases() -> None:
    old, new = Release(0, 16), Release(0, 19)
    assert before_and_after(Capture(LAYERS, LAYERS), old, Capture(LAYERS), new) == [
        "0.16: whole layers (local) in training and in inference",
        "0.19: whole layers (local) in training, no graphs in inference",
    ]
