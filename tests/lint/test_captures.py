"""What a site captures, in words."""

from __future__ import annotations

from cgmigrate.lint.captures import outcome
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.types import Reader

OLD, NEW = Release(0, 14), Release(0, 19)


def test_a_refusal_is_at_the_configuration_or_at_the_capture() -> None:
    new_name = capture_of({"cuda_graph_impl": "local"}, OLD, Reader.CONFIG)
    assert outcome(new_name, OLD) == "is refused by 0.14"
    scope = capture_of({"external_cuda_graph": True, "cuda_graph_scope": "full_iteration"}, OLD, Reader.CONFIG)
    assert outcome(scope, OLD) == "fails when captured by 0.14"


def test_a_capture_is_named_with_its_release() -> None:
    captured = capture_of({"cuda_graph_impl": "full_iteration"}, NEW, Reader.CONFIG)
    assert outcome(captured, NEW) == "captures the whole iteration in 0.19"
