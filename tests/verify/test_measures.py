"""What `verify --run --measure` says of times, kernels and memory, from what ranks wrote."""

from __future__ import annotations

from cgmigrate.verify.arms import (
    DONE,
    EAGER,
    EAGER_AGAIN,
    MIGRATED,
    TRAINING,
    Arm,
    ArmResult,
    Graph,
    Proxy,
    Rank,
)
from cgmigrate.verify.measures import extrapolated, measured
from cgmigrate.verify.probe.times import Times, _union

GRAPH = Graph("layer", 1, "forward", ("MLP",), 10, 11, 3, (0, 0, 0, 2, 2))


def result(step: float, **more: object) -> ArmResult:
    rank = Rank(0, timed=(step, step, 2 * step), busy=0.002, launched=100, seconds=(0.1, 0.1, 0.1, 1.5, 0.1), **more)  # type: ignore[arg-type]
    return ArmResult(Arm("0.19.2", TRAINING, {}, Proxy()), DONE, ranks=(rank,))


def test_nothing_is_said_of_a_job_that_was_not_measured() -> None:
    arm = Arm("0.19.2", TRAINING, {}, Proxy())
    assert list(measured({EAGER: ArmResult(arm, DONE, ranks=(Rank(0),))})) == []


def test_a_form_is_compared_with_eager_where_two_eager_runs_agree() -> None:
    graphs = result(0.02, graphs=(GRAPH,), pool_bytes=30 << 20, reserved_bytes=140 << 20)
    lines = list(
        measured({EAGER: result(0.04, reserved_bytes=100 << 20), MIGRATED: graphs, EAGER_AGAIN: result(0.041)})
    )
    assert len(lines) == 3
    assert lines[1] == (
        "migrated on 0.19.2: step 20.0 ms (20.0 ms to 40.0 ms), 2.00 times as fast as eager; GPU busy 2.00 ms, so 90% "
        "of the step waits for the host; 80 of 100 kernels outside graphs; the steps that capture took 1.5 s; mempools "
        "of graphs 30 MiB, +40 MiB reserved against eager"
    )


def test_times_are_not_compared_where_two_eager_runs_differ() -> None:
    lines = list(measured({EAGER: result(0.04), MIGRATED: result(0.02), EAGER_AGAIN: result(0.05)}))
    assert "times as fast" not in " ".join(lines)
    assert lines[-1] == "the times are not compared with each other: two eager runs differ by 25%"
    assert "there are no two eager runs" in list(measured({EAGER: result(0.04), MIGRATED: result(0.02)}))[-1]


def test_the_gpu_is_busy_while_any_kernel_runs() -> None:
    assert _union([(0, 10), (5, 20), (30, 40), (31, 35)]) == 30
    assert _union([]) == 0


def test_without_steps_nothing_is_timed() -> None:
    assert not Times(0).goes_on()


def sizes(**pools: int) -> dict[int, dict[str, ArmResult]]:
    return {
        int(name[1:]): {
            EAGER: result(0.04, reserved_bytes=100 << 20),
            MIGRATED: result(0.02, pool_bytes=pool << 20, reserved_bytes=(100 + pool // 2) << 20),
        }
        for name, pool in pools.items()
    }


def test_nothing_is_extrapolated_without_sizes() -> None:
    assert list(extrapolated({}, 32)) == []


def test_memory_is_extrapolated_along_a_line_with_its_error() -> None:
    exact, net = extrapolated(sizes(n2=20, n4=30, n6=40, n8=50), 32)
    assert exact == (
        "mempools of graphs by number of layers: 2: +20 MiB, 4: +30 MiB, 6: +40 MiB, 8: +50 MiB; "
        "with 32 layers +170 MiB ± 0 MiB"
    )
    assert net.endswith("; with 32 layers +85 MiB ± 0 MiB")
    rough, _ = extrapolated(sizes(n2=20, n4=30, n6=40, n8=58), 32)
    assert rough.endswith("; with 32 layers +204 MiB ± 34 MiB")


def test_three_sizes_are_too_few() -> None:
    for line in extrapolated(sizes(n2=20, n4=30, n6=40), 32):
        assert line.endswith("not extrapolated, since only 3 sizes ran with fewer layers than the job has")
