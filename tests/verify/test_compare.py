"""Verdicts: what the arms of one configuration say together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cgmigrate.verify.arms import (
    CRASHED,
    EAGER,
    EAGER_AGAIN,
    EAGER_SOURCE,
    LEGACY_SOURCE,
    LEGACY_TARGET,
    MIGRATED,
    MISSING,
    REFUSED,
    TIMED_OUT,
    TRAINING,
    Arm,
    ArmResult,
    Graph,
    Proxy,
    Rank,
)
from cgmigrate.verify.compare import DIFFERENT, EQUIVALENT, EQUIVALENT_BUT, INCONCLUSIVE, exit_status, judge
from cgmigrate.verify.proxy import NO_MAMBA, NO_MLA
from tests.support.tables import from_table

OLD, NEW = "0.17.1", "0.19.2"


def layers(kernels: int = 36, count: int = 4, modules: tuple[str, ...] = ("TransformerLayer",)) -> tuple[Graph, ...]:
    replays = (0, 2, 2, 2)
    return tuple(
        Graph("layer", layer + 1, way, modules if way == "forward" else (), kernels, kernels + 1, 0, replays)
        for way in ("forward", "backward")
        for layer in range(count)
    )


ITERATION = (Graph("iteration", 0, "both", ("TransformerBlock",), 703, 725, 3, (0, 0, 0, 1)),)


def result(
    release: str, graphs: tuple[Graph, ...] = (), losses: tuple[float, ...] = (6.5, 6.25, 6.0, 5.5)
) -> ArmResult:
    """An arm that ran four steps, whose parameters follow from its losses."""
    effective = {"cuda_graph_impl": "none", "cuda_graph_scope": []}
    if release == NEW:
        effective |= {"cuda_graph_scope": None, "cuda_graph_modules": [], "inference_cuda_graph_scope": "none"}
    if graphs:
        effective["cuda_graph_impl"] = "local"
        if release == NEW:
            effective["inference_cuda_graph_scope"] = "layer"
        if graphs is ITERATION:
            effective |= {"cuda_graph_impl": "full_iteration", "inference_cuda_graph_scope": "none"}
            if release == OLD:
                effective |= {"cuda_graph_impl": "local", "cuda_graph_scope": ["full_iteration"]}
    rank = Rank(
        0,
        losses=tuple(map(float.hex, losses)),
        gradient_norms=tuple(float(loss / 2).hex() for loss in losses),
        parameters=tuple(f"digest of {loss}" for loss in losses),
        rng="cpu:1",
        graphs=graphs,
        eager=({"TransformerLayer": 0 if graphs else 8},) * 4,
        seconds=(0.02,) * 4,
    )
    return ArmResult(Arm(release, TRAINING, {}, Proxy()), "done", ranks=(rank,), effective=effective)


def arms(**changed: ArmResult | None) -> dict[str, ArmResult]:
    """Arms that all agree, whole layers captured; ``changed`` replaces some, None takes one away."""
    agreed = {
        EAGER: result(NEW),
        EAGER_AGAIN: result(NEW),
        EAGER_SOURCE: result(OLD),
        LEGACY_SOURCE: result(OLD, layers(33)),
        LEGACY_TARGET: result(NEW, layers()),
        MIGRATED: result(NEW, layers()),
    }
    agreed |= {name.replace("_", "-"): value for name, value in changed.items() if value is not None}
    return {role: value for role, value in agreed.items() if changed.get(role.replace("-", "_"), value) is not None}


def failed(release: str, outcome: str = CRASHED, reason: str = "AssertionError: no") -> ArmResult:
    return replace(result(release), outcome=outcome, failure=reason, ranks=())


def test_the_same_graphs_and_bits_are_equivalent() -> None:
    verdict, reason, notes = judge(arms())
    assert verdict == EQUIVALENT
    assert reason == "the same graphs, and on 0.19.2 the same numbers to the last bit"
    assert "two eager runs on 0.19.2 are equal to the last bit" in notes
    assert "equal to eager on 0.17.1 to the last bit: legacy on 0.17.1" in notes
    assert "equal to eager on 0.19.2 to the last bit: legacy on 0.19.2, migrated on 0.19.2" in notes
    assert not any("random-number states" in note for note in notes)


def test_graphs_that_leave_a_generator_elsewhere_are_equal_all_the_same_and_said_so() -> None:
    """The table of equal values shows other states; a note without them would contradict it."""
    roles = arms()
    for role in (EAGER, EAGER_AGAIN):
        seeded = replace(roles[role].ranks[0], rng="cpu:1 model-parallel-rng:2")
        roles[role] = replace(roles[role], ranks=(seeded,))
    for role in (LEGACY_TARGET, MIGRATED):
        seeded = replace(roles[role].ranks[0], rng="cpu:1 model-parallel-rng:3")
        roles[role] = replace(roles[role], ranks=(seeded,))
    verdict, _, notes = judge(roles)
    assert verdict == EQUIVALENT
    assert "equal to eager on 0.19.2 to the last bit: legacy on 0.19.2, migrated on 0.19.2" in notes
    apart = "random-number states end elsewhere than under eager on 0.19.2 (model-parallel-rng)"
    assert f"{apart}, although all else is equal: legacy on 0.19.2, migrated on 0.19.2" in notes


def test_graphs_that_the_target_turns_on_by_itself_are_reported() -> None:
    """none + full_iteration: 0.17 captured nothing, 0.18 and later capture the iteration for the old text."""
    verdict, reason, _ = judge(
        arms(legacy_source=result(OLD), legacy_target=result(NEW, ITERATION), migrated=result(NEW))
    )
    assert verdict == EQUIVALENT_BUT
    assert reason == (
        "megatron-core 0.19.2's own migration of the old text turns graphs on (1 × full iteration: TransformerBlock; "
        "703 kernels of 725 nodes; 1 replay a step); the migrated text does not, as 0.17.1 did not"
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (result(NEW), "no graphs"),
        (result(NEW, ITERATION), "1 × full iteration"),
        (result(NEW, layers(modules=("SelfAttention",))), "4 × layer forward: attn;"),
        (result(NEW, layers(count=3)), "3 × layer forward"),
    ],
    ids=["nothing", "iteration for layers", "a module dropped", "a layer less"],
)
def test_other_graphs_are_different(wrong: ArmResult, message: str) -> None:
    verdict, reason, _ = judge(arms(migrated=wrong))
    assert verdict == DIFFERENT
    assert message in reason


def test_graphs_of_other_sizes_on_one_release_are_different() -> None:
    """moe_preprocess has no module of its own: only the number of kernels shows that it was dropped."""
    verdict, reason, _ = judge(arms(migrated=result(NEW, layers(31))))
    assert verdict == DIFFERENT
    assert reason == "the old and the migrated text on 0.19.2: graphs of 36 kernels against 31"


def test_settings_that_ask_for_something_else_are_different_even_where_the_proxy_hides_it() -> None:
    wrong = replace(arms()[MIGRATED], effective={**arms()[MIGRATED].effective, "cuda_graph_modules": ["attn"]})
    verdict, reason, _ = judge(arms(migrated=wrong))
    assert verdict == DIFFERENT
    assert "(local) in inference against whole layers (local) in training, no graphs in inference" in reason


def test_settings_of_an_arm_that_are_not_known_are_not_compared() -> None:
    unknown = replace(arms()[MIGRATED], effective={})
    assert judge(arms(migrated=unknown))[0] == EQUIVALENT


def test_other_numbers_on_one_release_are_different() -> None:
    verdict, reason, _ = judge(arms(migrated=result(NEW, layers(), losses=(6.5, 6.25, 6.0, 5.50001))))
    assert verdict == DIFFERENT
    assert "losses differ from step 4 on, 5.5 against 5.50001" in reason


def test_numbers_may_differ_by_as_much_as_two_eager_runs_do() -> None:
    noisy = {"eager_again": result(NEW, losses=(6.5, 6.25, 6.0, 5.5001))}
    verdict, reason, _ = judge(arms(**noisy, migrated=result(NEW, layers(), losses=(6.5, 6.25, 6.0, 5.50012))))
    assert verdict == EQUIVALENT_BUT
    assert "do not repeat to the bit" in reason
    far = arms(**noisy, migrated=result(NEW, layers(), losses=(6.5, 6.25, 6.0, 5.6)))
    assert judge(far)[0] == DIFFERENT


NOISY = {"eager_again": result(NEW, losses=(6.5, 6.25, 6.0, 5.5001))}


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_what_is_no_number_is_no_noise(odd: float) -> None:
    wrong = result(NEW, layers(), losses=(6.5, 6.25, odd, 5.5))
    assert judge(arms(**NOISY, migrated=wrong))[0] == DIFFERENT


def test_noise_excuses_nothing_that_eager_runs_repeat() -> None:
    right = result(NEW, layers())
    wrong = replace(right, ranks=(replace(right.ranks[0], rng="cpu:2"),))
    assert judge(arms(**NOISY, migrated=wrong))[:2] == (
        DIFFERENT,
        "the same graphs on 0.19.2, other numbers: random number states differ from step 1 on, cpu:1 against cpu:2",
    )


def generated(first: ArmResult, token: int) -> ArmResult:
    return replace(first, ranks=(replace(first.ranks[0], tokens=((token,),)),))


def test_other_tokens_where_eager_runs_do_not_repeat_are_not_excused() -> None:
    noisy = {"eager": generated(result(NEW), 1), "eager_again": generated(result(NEW), 2)}
    same = {role: generated(result(NEW, layers()), 1) for role in ("legacy_target", "migrated")}
    same["legacy_source"] = generated(result(OLD, layers(33)), 1)
    verdict, _, notes = judge(arms(**noisy, **same))
    assert verdict == EQUIVALENT
    assert "two eager runs on 0.19.2 differ (tokens differ from request 1, token 1 on: 1 against 2)" in notes
    other = {**same, "migrated": generated(result(NEW, layers()), 7)}
    assert judge(arms(**noisy, **other))[0] == INCONCLUSIVE


def test_eager_runs_with_other_parameters_are_not_called_equal() -> None:
    again = replace(result(NEW), ranks=(replace(result(NEW).ranks[0], parameters=("x",)),))
    _, _, notes = judge(arms(eager_again=again))
    assert not any("two eager runs on 0.19.2 are equal" in note for note in notes)
    assert any(note.startswith("two eager runs on 0.19.2 differ (parameters differ") for note in notes)


@pytest.mark.parametrize("replays", [None, (0, 0, 0, 0)], ids=["captured", "replayed"])
def test_arms_that_agree_on_no_graphs_prove_nothing(
    replays: tuple[int, ...] | None, request: pytest.FixtureRequest
) -> None:
    """More warm-up steps than the run has steps, say."""

    def idle(one: ArmResult) -> ArmResult:
        graphs = tuple(replace(graph, replays=replays) for graph in one.ranks[0].graphs) if replays else ()
        return replace(one, ranks=(replace(one.ranks[0], graphs=graphs),))

    verdict, reason, _ = judge({role: idle(one) for role, one in arms().items()})
    assert verdict == INCONCLUSIVE
    assert f"but no graph was {request.node.callspec.id} in 8 steps" in reason


def on_a_proxy(modules: list[str], *notes: str, graphs: bool = True) -> tuple[str, str]:
    """The verdict on arms that agree, where the settings capture modules and the proxy has notes."""

    def of(role: str, one: ArmResult) -> ArmResult:
        names = {"cuda_graph_scope" if one.arm.release == OLD else "cuda_graph_modules": modules}
        own = {"cuda_graph_impl": "transformer_engine", "inference_cuda_graph_scope": "none"} | names
        ranks = one.ranks if graphs else (replace(one.ranks[0], graphs=()),)
        arm = replace(one.arm, proxy=Proxy(notes=notes))
        return replace(one, arm=arm, effective={} if role.startswith("eager") else own, ranks=ranks)

    return judge({role: of(role, one) for role, one in arms().items()})[:2]


def test_what_the_proxy_lacks_is_equivalent_for_the_settings_only() -> None:
    verdict, reason = on_a_proxy(["attn", "mamba"], NO_MAMBA)
    assert (verdict, reason.partition(":")[0]) == (EQUIVALENT_BUT, "for the settings only")
    assert "the proxy has no Mamba layers, which they capture; what it has: the same graphs" in reason
    assert on_a_proxy([], NO_MAMBA, NO_MLA)[1].count("no Mamba layers and no multi-latent attention") == 1
    assert on_a_proxy(["attn"], NO_MLA)[0] == EQUIVALENT_BUT


def test_what_the_proxy_lacks_is_no_reservation_where_it_is_not_captured() -> None:
    assert on_a_proxy(["attn"], NO_MAMBA)[0] == EQUIVALENT
    # A job runs its own model.
    assert on_a_proxy(["attn", "mamba"])[0] == EQUIVALENT


def test_mamba_layers_alone_leave_nothing_to_capture() -> None:
    verdict, reason = on_a_proxy(["mamba"], NO_MAMBA, graphs=False)
    assert verdict == EQUIVALENT_BUT
    assert reason.endswith("the proxy has no Mamba layers, which they capture; no graph was captured")
    assert on_a_proxy(["mamba"], graphs=False)[0] == on_a_proxy(["attn"], NO_MAMBA, graphs=False)[0] == INCONCLUSIVE


def test_losses_that_are_no_numbers_prove_nothing() -> None:
    nan = (6.5, float("nan"), float("nan"), float("nan"))
    verdict, reason, _ = judge(arms(legacy_target=result(NEW, layers(), nan), migrated=result(NEW, layers(), nan)))
    assert verdict == INCONCLUSIVE
    assert "no finite number" in reason


def test_numbers_that_change_with_the_release_are_placed() -> None:
    """0.17.1's local graphs depart from eager; 0.19.2's do not."""
    verdict, reason, notes = judge(arms(legacy_source=result(OLD, layers(33), losses=(6.5, 6.25, 6.0, 5.499))))
    assert verdict == EQUIVALENT
    assert "the same numbers to the last bit; numbers change with the release, not with the migration" in reason
    assert "graphs of 0.17.1 depart from eager; graphs of 0.19.2 equal eager" in reason
    assert any(
        note.startswith("legacy on 0.17.1 departs from eager on 0.17.1: losses differ from step 4 on") for note in notes
    )


@pytest.mark.parametrize(
    ("changed", "verdict", "message"),
    [
        ({"legacy_source": None}, EQUIVALENT_BUT, "seen on 0.19.2 only; the old text's own release is not available"),
        ({"legacy_source": failed(OLD)}, EQUIVALENT_BUT, "on 0.17.1 the old text crashed: AssertionError: no"),
        ({"legacy_target": failed(NEW, REFUSED)}, EQUIVALENT_BUT, "0.19.2 cannot run the old text (refused: "),
        ({"legacy_target": failed(NEW), "legacy_source": None}, INCONCLUSIVE, "the old text ran on no release"),
        ({"migrated": failed(NEW)}, DIFFERENT, "the migrated text crashed on 0.19.2: AssertionError: no"),
        ({"migrated": failed(NEW)}, DIFFERENT, "; the old text ran on 0.17.1 and 0.19.2"),
        ({"migrated": failed(NEW), "legacy_target": None}, DIFFERENT, "no; the old text ran on 0.17.1"),
        (
            {"migrated": failed(NEW), "legacy_target": failed(NEW)},
            DIFFERENT,
            "the release changed, not the migration",
        ),
        (
            {"migrated": failed(NEW), "legacy_target": failed(NEW), "legacy_source": failed(OLD)},
            INCONCLUSIVE,
            "so did the old text",
        ),
        (
            {"migrated": failed(NEW), "legacy_target": None, "legacy_source": failed(OLD, MISSING, "no GPU")},
            INCONCLUSIVE,
            "nor did the old text run to its end (missing)",
        ),
        (
            # Both fail, of different causes: neither the release nor the migration alone is to blame.
            {"migrated": failed(NEW, CRASHED, "out of memory"), "legacy_target": failed(NEW, REFUSED, "TypeError")},
            DIFFERENT,
            "out of memory; the old text ran on 0.17.1, and on 0.19.2 it was refused: TypeError",
        ),
        (
            {
                "migrated": failed(NEW, CRASHED, "tried to allocate 2.5 GiB"),
                "legacy_target": failed(NEW, CRASHED, "tried to allocate 3 GiB"),
            },
            DIFFERENT,
            "the release changed, not the migration",
        ),
        (
            {"migrated": failed(NEW), "legacy_target": failed(NEW), "eager": failed(NEW)},
            INCONCLUSIVE,
            "so does the same model without graphs, so the settings are not the cause",
        ),
        ({"migrated": failed(NEW), "eager": failed(NEW)}, DIFFERENT, "the old text ran on 0.17.1 and 0.19.2"),
        (
            {"legacy_target": failed(NEW, TIMED_OUT, "no end after 300 s")},
            EQUIVALENT_BUT,
            "nothing shows what the old text does on 0.19.2 (timed out: no end after 300 s)",
        ),
        ({"legacy_source": failed(OLD, REFUSED)}, EQUIVALENT_BUT, "on 0.17.1 the old text was refused: "),
        ({"migrated": failed(NEW, MISSING, "torch sees no GPU")}, INCONCLUSIVE, "torch sees no GPU"),
        (
            {"legacy_source": None, "legacy_target": result(NEW, ITERATION)},
            DIFFERENT,
            "the old and the migrated text on 0.19.2",
        ),
    ],
)
def test_arms_that_did_not_run(changed: dict[str, ArmResult | None], verdict: str, message: str) -> None:
    actual, reason, _ = judge(arms(**changed))
    assert (actual, message in reason) == (verdict, True), reason


@pytest.mark.parametrize("odd", [float("nan"), float("inf")])
def test_what_is_no_number_on_the_old_side_is_no_noise(odd: float) -> None:
    old = result(NEW, layers(), losses=(6.5, 6.25, odd, 5.5))
    verdict, reason, _ = judge(arms(**NOISY, legacy_target=old))
    assert verdict == DIFFERENT
    assert f"losses differ from step 3 on, {odd} against 6" in reason


@pytest.mark.parametrize("odd", [float("nan"), float("-inf")])
def test_the_same_step_without_a_number_on_both_sides_is_no_difference(odd: float) -> None:
    """The first losses of a run in fp16 overflow; noise is measured on the others."""
    losses = (odd, 6.25, 6.0, 5.5)
    noisy = {"eager": result(NEW, losses=losses), "eager_again": result(NEW, losses=(*losses[:3], 5.5001))}
    both = {"legacy_target": result(NEW, layers(), losses), "migrated": result(NEW, layers(), (*losses[:3], 5.50012))}
    verdict, reason, _ = judge(arms(**noisy, **both))
    assert (verdict, "two eager runs differ by 1.8e-05" in reason) == (EQUIVALENT_BUT, True), reason


@pytest.mark.parametrize("role", [EAGER, EAGER_AGAIN])
def test_an_eager_run_that_failed_measures_no_noise(role: str) -> None:
    _, _, notes = judge(arms(**{role: failed(NEW)}))
    assert not any("two eager runs" in note for note in notes)


def test_an_arm_that_stops_early_is_no_noise() -> None:
    verdict, reason, _ = judge(arms(**NOISY, migrated=result(NEW, layers(), losses=(6.5, 6.25, 6.0))))
    assert verdict == DIFFERENT
    assert "losses differ: 4 against 3" in reason


def test_noise_excuses_a_difference_up_to_a_small_factor_only() -> None:
    """Eager runs are 0.0001 of 5.5 apart."""
    near = result(NEW, layers(), losses=(6.5, 6.25, 6.0, 5.50035))
    far = result(NEW, layers(), losses=(6.5, 6.25, 6.0, 5.50045))
    assert judge(arms(**NOISY, migrated=near))[0] == EQUIVALENT_BUT
    assert judge(arms(**NOISY, migrated=far))[0] == DIFFERENT


ATTENTION = layers(modules=("SelfAttention",))
TURNS_ON = {"legacy_source": result(OLD), "legacy_target": result(NEW, ITERATION)}


def test_migrated_text_that_captures_nothing_must_equal_eager() -> None:
    wrong = result(NEW, losses=(6.5, 6.25, 6.0, 5.4))
    verdict, reason, _ = judge(arms(**TURNS_ON, migrated=wrong))
    assert verdict == DIFFERENT
    assert reason == (
        "the migrated text captures nothing, yet it departs from eager on 0.19.2: "
        "losses differ from step 4 on, 5.5 against 5.4"
    )
    unknown = judge(arms(**TURNS_ON, migrated=wrong, eager=failed(NEW)))
    assert unknown[0] == EQUIVALENT_BUT


def test_migrated_text_that_captures_need_not_equal_eager() -> None:
    """0.17 captured attention, the target's own reading of the old text is the full iteration."""
    migrated = result(NEW, ATTENTION, losses=(6.5, 6.25, 6.0, 5.4))
    roles = arms(legacy_source=result(OLD, ATTENTION), legacy_target=result(NEW, ITERATION), migrated=migrated)
    verdict, reason, _ = judge(roles)
    assert verdict == EQUIVALENT_BUT
    assert reason.startswith("megatron-core 0.19.2's own migration of the old text differs (")
    assert reason.endswith("; the migrated text captures what 0.17.1 did")


def test_sizes_alone_are_not_the_release_s_own_migration() -> None:
    """The old text captures the same graphs on both releases; the migrated text's hold other kernels."""
    verdict, reason, _ = judge(arms(migrated=result(NEW, layers(31))))
    assert (verdict, reason) == (DIFFERENT, "the old and the migrated text on 0.19.2: graphs of 36 kernels against 31")


def on_two(first: ArmResult, second: ArmResult | None = None) -> ArmResult:
    """The arm on two processes, the second of which may have done something else."""
    other = replace((second or first).ranks[0], rank=1)
    return replace(first, ranks=(first.ranks[0], other))


def test_every_process_is_compared() -> None:
    two = {role.replace("-", "_"): on_two(one) for role, one in arms().items()}
    assert judge(arms(**two))[0] == EQUIVALENT
    graphs = {**two, "migrated": on_two(result(NEW, layers()), result(NEW, layers(count=3)))}
    verdict, reason, _ = judge(arms(**graphs))
    assert (verdict, reason[-9:]) == (DIFFERENT, "on rank 1")
    numbers = {**two, "migrated": on_two(result(NEW, layers()), result(NEW, layers(), losses=(6.5, 6.25, 6.0, 5.4)))}
    verdict, reason, _ = judge(arms(**numbers))
    assert (verdict, reason[-8:]) == (DIFFERENT, "(rank 1)")
    fewer = {**two, "migrated": result(NEW, layers())}
    assert judge(arms(**fewer))[:2] == (
        DIFFERENT,
        "the old text on 0.17.1 and the migrated text on 0.19.2: 2 processes against 1",
    )
    # One process that ends in no number hides what it computed, whatever the others did.
    nan = result(NEW, layers(), (6.5, 6.25, 6.0, float("nan")))
    hidden = {
        **two,
        "legacy_target": on_two(result(NEW, layers()), nan),
        "migrated": on_two(result(NEW, layers()), nan),
    }
    assert judge(arms(**hidden))[0] == INCONCLUSIVE


def test_what_runs_outside_graphs_is_compared() -> None:
    right = result(NEW, layers())
    more = replace(right, ranks=(replace(right.ranks[0], eager=({"TransformerLayer": 0, "SelfAttention": 4},) * 4),))
    verdict, reason, _ = judge(arms(migrated=more))
    assert verdict == DIFFERENT
    assert reason.endswith("outside graphs run 0 TransformerLayer against 0 TransformerLayer, 4 SelfAttention a step")
    nothing = replace(right, ranks=(replace(right.ranks[0], eager=({},) * 4),))
    assert judge(arms(migrated=nothing))[1].endswith("outside graphs run 0 TransformerLayer against none a step")
    unseen = replace(right, ranks=(replace(right.ranks[0], eager=()),))
    assert judge(arms(migrated=unseen))[0] == EQUIVALENT


@from_table
def test_every_quantity_is_compared(quantity: dict[str, object], expected: str) -> None:
    right = result(NEW, layers())
    wrong = replace(right, ranks=(replace(right.ranks[0], **quantity),))  # type: ignore[arg-type]
    verdict, reason, _ = judge(arms(migrated=wrong))
    assert (verdict, expected in reason) == (DIFFERENT, True), reason


def test_a_release_that_computes_otherwise_is_placed_without_its_generators() -> None:
    seeded = result(OLD, layers(33))
    seeded = replace(seeded, ranks=(replace(seeded.ranks[0], rng="cpu:7"),))
    assert judge(arms(legacy_source=seeded))[0] == EQUIVALENT
    eager = failed(OLD, CRASHED, "out of memory")
    verdict, reason, notes = judge(
        arms(legacy_source=result(OLD, layers(33), losses=(6.5, 6.25, 6.0, 5.499)), eager_source=eager)
    )
    assert verdict == EQUIVALENT
    assert reason.endswith("by at most 1.8e-04 (graphs of 0.19.2 equal eager)")
    assert "an eager arm did not run: out of memory" in notes


def test_verdicts_are_words_that_scripts_can_compare() -> None:
    words = ("equivalent", "equivalent, but", "different", "inconclusive")
    assert words == (EQUIVALENT, EQUIVALENT_BUT, DIFFERENT, INCONCLUSIVE)


def test_exit_status() -> None:
    assert exit_status([EQUIVALENT, EQUIVALENT_BUT]) == 0
    assert exit_status([EQUIVALENT, INCONCLUSIVE]) == 2
    assert exit_status([INCONCLUSIVE, DIFFERENT]) == 1
    assert exit_status([]) == 0


def test_a_result_survives_json() -> None:
    import json

    for item in arms().values():
        assert ArmResult.from_json(json.loads(json.dumps(item.as_json()))) == item
    with pytest.raises(ValueError, match="format"):
        ArmResult.from_json({"format": 99})


def test_two_runs_of_the_old_text_on_one_release_are_no_change_of_release() -> None:
    again = result(NEW, layers(), losses=(6.5, 6.25, 6.0, 5.499))
    verdict, reason, _ = judge(arms(legacy_source=again))
    assert (verdict, "change with the release" in reason) == (EQUIVALENT, False)


@pytest.mark.parametrize("absent", ["eager", "eager_again", "eager_source"])
def test_an_eager_arm_may_be_absent(absent: str) -> None:
    assert judge(arms(**{absent: None}))[0] == EQUIVALENT
