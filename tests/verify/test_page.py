"""The HTML report, on results written by hand: what it shows, and that it is one well-formed page of its own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgmigrate.verify import metrics
from cgmigrate.verify.arms import (
    CRASHED,
    DONE,
    DYNAMIC,
    EAGER,
    EAGER_AGAIN,
    EAGER_SOURCE,
    LEGACY_SOURCE,
    LEGACY_TARGET,
    MIGRATED,
    TRAINING,
    Arm,
    ArmResult,
    Graph,
    Proxy,
    Rank,
)
from cgmigrate.verify.compare import DIFFERENT, EQUIVALENT, EQUIVALENT_BUT, INCONCLUSIVE
from cgmigrate.verify.page import page
from cgmigrate.verify.page.answer import Judged, answer
from cgmigrate.verify.page.charts import Curve, LineChart, difference_chart, loss_chart
from cgmigrate.verify.page.escaping import visible
from cgmigrate.verify.page.render import environment
from cgmigrate.verify.release_changes import GRAPHS, NUMBERS, SUPPORT, changes_of_runs
from tests.support.nightly import examples
from tests.support.tables import from_table

STEPS = 8
OLD, NEW = "0.17.1", "0.19.2"
LAYER = ("TransformerLayer", "SelfAttention", "MLP")
WHOLE = ("TransformerBlock", *LAYER, "LanguageModelEmbedding")
FAILURE = 'RuntimeError: CUDA error: operation not permitted when <stream> is "capturing" & \x1b[31mred\x1b[0m'
MODULES = {"cuda_graph_impl": "local", "cuda_graph_modules": ["attn", "mlp"]}
DIFF = """\
--- recipes/a.yaml
+++ recipes/a.yaml
@@ -1,3 +1,4 @@
 model:
-  enable_cuda_graph: true
-  cuda_graph_scope: "attn,mlp" # <b>&amp;
+  cuda_graph_impl: local
+  cuda_graph_modules: [attn, mlp]
"""


@dataclass(frozen=True)
class Compared:
    """As ``Comparison``."""

    name: str = "recipes/a.yaml:12"
    workload: str = TRAINING
    verdict: str = "equivalent"
    reason: str = "Legacy and migrated are equal to the last bit and in their census on 0.19.2."
    notes: tuple[str, ...] = ()
    roles: Mapping[str, str] = ()  # type: ignore[assignment]
    diff: str = DIFF
    source: str = OLD
    target: str = NEW


# --- results by hand --------------------------------------------------------------------------------------


def arm(release: str, requested: Mapping[str, Any] | None = None, **more: Any) -> Arm:
    return Arm(release, more.pop("workload", TRAINING), requested or {}, Proxy(spec="local"), steps=STEPS, **more)


def layers(kernels: tuple[int, int] = (57, 91), count: int = 4, at: int = 3) -> tuple[Graph, ...]:
    """A forward and a backward graph a layer, each replayed for two microbatches."""
    replays = tuple(2 if step >= at else 0 for step in range(STEPS))
    both = (("forward", LAYER, kernels[0]), ("backward", (), kernels[1]))
    return tuple(
        Graph("layer", layer, way, modules, kernel, kernel, at, replays)
        for way, modules, kernel in both
        for layer in range(1, count + 1)
    )


def iteration(at: int = 2) -> tuple[Graph, ...]:
    replays = tuple(int(step >= at) for step in range(STEPS))
    return (Graph("iteration", 0, "both", WHOLE, 1204, 1260, at, replays),)


def rank(graphs: tuple[Graph, ...] = (), drift: float = 0.0, step: float = 0.0236, number: int = 0) -> Rank:
    """``drift`` moves the losses from the fourth step on; ``step`` is the time of a settled step (s)."""
    losses = [6.25 - 0.02 * n + (drift if n >= 3 else 0.0) for n in range(STEPS)]
    message = tuple(loss.hex() for loss in losses)
    return Rank(
        number,
        losses=message,
        gradient_norms=tuple((1.5 + drift).hex() for _ in losses),
        parameters=tuple(hashlib.sha256(loss.encode()).hexdigest() for loss in message),
        rng="5" * 64,
        graphs=graphs,
        eager=tuple({"LanguageModelEmbedding": 2, **({} if graphs else {"MLP": 8})} for _ in losses),
        seconds=tuple(0.9 if n in (0, 3) else step for n in range(STEPS)),
        peak_bytes=412 << 20,
        reserved_bytes=(1 << 30) + (1 << 28),
    )


def done(of: Arm, *ranks: Rank, **more: Any) -> ArmResult:
    environment = {"GPU": "NVIDIA H200", "driver": "580.65.06", "torch": "2.11.0+cu130", "megatron-core": of.release}
    environment["transformer-engine"] = "2.12.0"
    command = f"RANK=0 PYTHONPATH='/a b/<{of.release}>' python -m cgmigrate.verify.probe '{of.key} & co/arm.json'"
    return ArmResult(of, DONE, ranks=ranks, effective=of.settings, environment=environment, command=command, **more)


def crashed(of: Arm, reason: str = FAILURE) -> ArmResult:
    return replace(done(of), outcome=CRASHED, failure=reason)


def arms_by_role(**by_role: ArmResult) -> tuple[dict[str, str], dict[str, ArmResult]]:
    """Roles and results of a comparison, from results by role."""
    roles = {role.replace("_", "-"): result.arm.key for role, result in by_role.items()}
    return roles, {result.arm.key: result for result in by_role.values()}


def training() -> tuple[dict[str, str], dict[str, ArmResult]]:
    """Per-layer graphs of local layers: 0.17.1's depart from eager, 0.19.2's do not."""
    return arms_by_role(
        eager=done(arm(NEW), rank()),
        eager_again=done(arm(NEW, repeat=1), rank(step=0.0241)),
        eager_source=done(arm(OLD), rank(step=0.034)),
        legacy_source=done(arm(OLD, {"enable_cuda_graph": True}), rank(layers((61, 95)), 3.1e-4, 0.0102)),
        legacy_target=done(arm(NEW, {"enable_cuda_graph": True}), rank(layers(), step=0.0082)),
        migrated=done(arm(NEW, MODULES), rank(layers(), step=0.0079), remarks=("a stand-in kernel was used",)),
    )


def turned_on() -> tuple[dict[str, str], dict[str, ArmResult]]:
    """``none`` + ``full_iteration``: megatron-core's own migration captures, ours does not; 0.17.1 crashes."""
    requested = {"cuda_graph_impl": "none", "cuda_graph_scope": "full_iteration"}
    return arms_by_role(
        eager=done(arm(NEW), rank()),
        legacy_source=crashed(arm(OLD, requested)),
        legacy_target=done(arm(NEW, requested), rank(iteration(), 2e-3, 0.0024)),
        migrated=done(arm(NEW, {"cuda_graph_impl": "none"}), rank()),
    )


def generating(
    release: str, requested: Mapping[str, Any] | None, tokens: Iterable[Iterable[int]], count: int = 0
) -> ArmResult:
    graphs = tuple(
        Graph("block", 0, "forward", WHOLE, 220, 224, 0, (0, int(n == 1), int(n == 1))) for n in range(count)
    )
    result = tuple(tuple(ids) for ids in tokens)
    measured = Rank(0, tokens=result, logits=hashlib.sha256(repr(result).encode()).hexdigest(), graphs=graphs)
    return done(
        arm(release, requested, workload=DYNAMIC), replace(measured, seconds=(0.4, 0.02, 0.02), eager=({}, {}, {}))
    )


def generation() -> tuple[dict[str, str], dict[str, ArmResult]]:
    plain = ((3, 14, 15, 92), (65, 35, 89, 79))
    requested = {"cuda_graph_impl": "local", "cuda_graph_scope": "full_iteration_inference"}
    return arms_by_role(
        eager=generating(NEW, None, plain),
        legacy_source=generating(OLD, requested, (plain[0], (65, 35, 87, 79)), 3),
        legacy_target=generating(NEW, requested, plain, 3),
        migrated=generating(NEW, {"cuda_graph_impl": "local", "inference_cuda_graph_scope": "block"}, plain, 3),
    )


def shown(case: tuple[dict[str, str], dict[str, ArmResult]], **more: Any) -> str:
    roles, results = case
    return page([Compared(roles=roles, **more)], results, {"cgmigrate": "0.5.0"})


def three_comparisons() -> str:
    """What a user gets of a directory."""
    cases = [
        (training(), {"verdict": "equivalent, but", "notes": ("0.17.1's graphs depart from eager since step 4.",)}),
        (turned_on(), {"verdict": "different", "name": "b.yaml:3", "reason": "Only legacy on 0.19.2 captures."}),
        (generation(), {"workload": DYNAMIC, "name": "c.yaml:7"}),
    ]
    results = {key: result for (_, actual), _ in cases for key, result in actual.items()}
    compared = [Compared(roles=roles, **more) for (roles, _), more in cases]  # type: ignore[arg-type]
    config = Compared("d.yaml:1", verdict="inconclusive", reason="0.17.1 is not at hand.", roles={}, diff="")
    return page(
        [*compared, config], results, {"cgmigrate": "0.5.0", "command": "cgmigrate verify <dir> --report a&b.html"}
    )


# --- reading a page -----------------------------------------------------------------------------------------

VOID = {"meta", "wbr"}


class Reader(HTMLParser):
    """Reads a page; complains where an element is not closed in its turn or an attribute is repeated."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), attrs
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))

    def attributes(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.elements if name in attributes]

    def tags(self, name: str) -> list[dict[str, str]]:
        return [attributes for tag, attributes in self.elements if tag == name]

    def text(self, inside: str = "body") -> str:
        return "".join(text for path, text in self.texts if inside in path)


def words(text: str) -> str:
    """The page's text, as a person sees it, on one line."""
    apart = re.sub(r"(?=<(?:th|td|li|p|dt|dd|h\d|small|summary|tr|caption|code)\b)|(?<=</caption>)", " ", text)
    return " ".join(Reader(apart).text().split())


# --- the page as a whole ------------------------------------------------------------------------------------


def test_a_page_is_well_formed_and_its_references_meet() -> None:
    read = Reader(three_comparisons())
    idents = read.attributes("id")
    assert len(set(idents)) == len(idents)
    referred = [name for names in read.attributes("aria-labelledby") for name in names.split()]
    referred += [href.removeprefix("#") for href in read.attributes("href")]
    assert referred
    assert set(referred) <= set(idents)


def test_a_page_loads_nothing() -> None:
    text = three_comparisons()
    read = Reader(text)
    tags = {tag for tag, _ in read.elements}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "image", "use"}
    assert all(href.startswith("#") for href in read.attributes("href"))
    assert not read.attributes("src")
    assert not [name for _, attributes in read.elements for name in attributes if name.startswith("on")]
    style = read.text("style")
    assert style.count("{") == style.count("}") > 50
    assert not re.search(r"@import|url\(|@font-face|https?:", style)
    assert read.tags("meta")[1]["content"].startswith("default-src 'none';")


def test_a_page_is_for_readers_of_all_kinds() -> None:
    read = Reader(three_comparisons())
    headings = [tag for tag, _ in read.elements if re.fullmatch(r"h[1-6]", tag)]
    assert headings[0] == "h1"
    assert headings.count("h1") == 1
    assert set(headings) == {"h1", "h2", "h3"}
    assert all("scope" in attributes for attributes in read.tags("th"))
    message = [attributes for attributes in read.tags("svg") if attributes.get("aria-hidden") != "true"]
    assert len(message) == 4  # losses and differences of two trainings
    assert all(attributes["role"] == "img" and attributes["aria-labelledby"] for attributes in message)
    assert len(read.tags("caption")) == len(read.tags("table"))


def test_every_verdict_is_a_word_in_the_summary_and_in_its_section() -> None:
    text = words(three_comparisons())
    # In the matrix, with its reason, in its section, among the words explained; what only the release changed is green.
    for verdict, number in (("✓ equivalent ", 7), ("≈ equivalent, but", 0), ("≠ different", 4), ("? inconclusive", 4)):
        assert text.count(verdict) == number
    assert text.count("Only legacy on 0.19.2 captures.") == 2


def test_nothing_to_show_is_still_a_page() -> None:
    assert "Nothing was compared." in words(page([], {}, {}))


def test_a_comparison_without_arms_shows_its_diff() -> None:
    text = words(page([Compared(roles={})], {}, {}))
    assert "enable_cuda_graph: true" in text
    assert "No arm was run." in text


def test_arms_that_the_results_do_not_hold_are_not_run() -> None:
    text = words(page([Compared(roles={LEGACY_SOURCE: "a", MIGRATED: "b"})], {}, {}))
    assert "legacy 0.17.1 not run" in text
    assert "migrated 0.19.2 not run" in text


# --- the answer on top --------------------------------------------------------------------------------------

CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    # What a comparison came to: its verdict, and what the releases changed.
    "equal": (EQUIVALENT, ()),
    "numbers": (EQUIVALENT_BUT, (NUMBERS,)),
    "graphs": (EQUIVALENT_BUT, (GRAPHS,)),
    "reservation": (EQUIVALENT_BUT, ()),
    "different": (DIFFERENT, ()),
    "fails": (DIFFERENT, (SUPPORT,)),
    "inconclusive": (INCONCLUSIVE, ()),
}


@from_table
def test_one_sentence_answers_for_all_comparisons(outcomes: str, sentence: str) -> None:
    came_to = [CASES[name] for name in outcomes.split()]
    judged = [Judged("a.yaml:1", TRAINING, verdict, "", changes, "c1") for verdict, changes in came_to]
    assert answer("Is it the same?", judged).sentence == sentence


def test_the_answer_is_the_first_thing_on_the_page_and_its_title() -> None:
    roles, results = training()
    made = page([Compared(roles=roles, verdict=EQUIVALENT_BUT)], results, {})
    sentence = "Yes in 1 of 1; one differs between the releases themselves."
    question = "Do the migrated settings capture the same graphs and compute the same numbers?"
    assert words(made).startswith(f"Verification of CUDA-graph settings {question} {sentence}")
    assert Reader(made).text("title").startswith(f"cgmigrate verify: {sentence}")


def test_the_matrix_has_a_row_a_configuration_and_a_column_a_workload() -> None:
    roles, results = generation()
    made = page(
        [
            Compared("a.yaml:1", roles={}),
            Compared("a.yaml:1", workload=DYNAMIC, roles=roles),
            Compared("b.yaml:2", verdict=DIFFERENT, roles={}),
        ],
        results,
        {},
    )
    row = " a.yaml:1 ✓ equivalent ✓ equivalent Δ release changed numbers b.yaml:2 ≠ different "
    assert f"configuration training generation, dynamic batching{row}Why" in words(made)
    columns = [attributes["data-column"] for attributes in Reader(made).tags("td") if "data-column" in attributes]
    assert columns == ["training", "generation, dynamic batching"] * 2


def test_a_reason_that_comparisons_share_is_said_once_with_all_of_them() -> None:
    made = page([Compared(name, reason="same graphs", roles={}) for name in ("a.yaml:1", "b.yaml:2")], {}, {})
    assert "Why ✓ equivalent same graphs a.yaml:1, training b.yaml:2, training" in words(made)


def test_what_the_release_changed_has_a_badge_of_its_own() -> None:
    roles, results = training()
    assert changes_of_runs({role: results[key] for role, key in roles.items()}) == (NUMBERS,)
    assert words(shown((roles, results))).count("Δ release changed numbers") == 4
    # The old text on the target computes what it did on its own release: other numbers are the migration's.
    results[roles[LEGACY_TARGET]] = replace(results[roles[LEGACY_TARGET]], ranks=(rank(layers(), 3.1e-4),))
    assert "release changed" not in words(shown((roles, results)))


def test_a_verdict_on_the_settings_only_is_not_green() -> None:
    roles, results = training()
    limited = Compared(
        roles=roles, verdict=EQUIVALENT_BUT, reason="for the settings only: the proxy has no Mamba layers"
    )
    text = words(page([limited], results, {}))
    assert "≈ equivalent, but" in text
    assert "Δ release changed" not in text


def test_a_release_changed_nothing_where_eager_runs_do_not_repeat() -> None:
    roles, results = training()
    results[roles[EAGER_AGAIN]] = replace(results[roles[EAGER_AGAIN]], ranks=(rank(drift=1e-5),))
    assert "release changed" not in words(shown((roles, results)))


@pytest.mark.parametrize(
    ("target", "changes"),
    [
        (done(arm(NEW, MODULES), rank(iteration())), (GRAPHS,)),
        (crashed(arm(NEW, MODULES)), (SUPPORT,)),
        (replace(crashed(arm(NEW, MODULES)), outcome="timed out"), ()),
        (done(arm(NEW, MODULES), rank(layers((57, 91)))), ()),
        (done(arm(OLD, MODULES), rank(iteration())), ()),  # no other release
    ],
)
def test_what_changed_between_releases_is_seen_in_the_old_text(target: ArmResult, changes: tuple[str, ...]) -> None:
    source = done(arm(OLD, {"cuda_graph_impl": "local", "cuda_graph_scope": ["attn", "mlp"]}), rank(layers((61, 95))))
    assert changes_of_runs({LEGACY_SOURCE: source, LEGACY_TARGET: target}) == changes


def test_each_word_is_explained_once() -> None:
    made = three_comparisons()
    terms = words(made).partition("What the words mean")[2]
    for word in ("legacy", "eager", "arm", "census", "digest", "difference from eager"):
        assert f" {word} " in terms
    assert made.count("Not one bit differs, at any step, on any process.") == 1
    assert "old text fails on the new release" not in terms  # the page shows no such badge


# --- a comparison -------------------------------------------------------------------------------------------


def test_the_diff_is_coloured_by_line_and_escaped() -> None:
    text = shown(training())
    assert '<span class="del">-  enable_cuda_graph: true\n</span>' in text
    assert '<span class="add">+  cuda_graph_impl: local\n</span>' in text
    assert '<span class="file">--- recipes/a.yaml\n</span>' in text
    assert "# &lt;b&gt;&amp;amp;" in text
    assert Reader(text).text("pre").startswith(DIFF)


def test_every_arm_has_a_row_with_its_figures() -> None:
    text = words(shown(training()))
    digest = metrics.short(rank().parameters[-1])
    assert f"eager 0.19.2 done 6.110000 A {digest} 0 0 23.6 ms 23.6 to 23.6 ms 412 MiB 1.25 GiB reserved" in text
    assert f"legacy enable_cuda_graph=True 0.19.2 done 6.110000 A {digest} 8 16 8.20 ms" in text


def test_equal_digests_share_a_letter_and_others_do_not() -> None:
    text = shown(training())
    same, other = rank().parameters[-1], rank(drift=3.1e-4).parameters[-1]
    cell = '<span class="badge badge-{}">{}</span><code title="{}">'
    assert text.count(cell.format("A", "A", same)) == 4  # the migrated arm says that it is the same as legacy
    assert text.count(cell.format("B", "B", other)) == 1


def test_arms_that_are_equal_in_everything_share_a_column_of_letters() -> None:
    text = words(shown(training()))
    equal = "eager on 0.19.2, eager again on 0.19.2, eager on 0.17.1, legacy on 0.19.2 and migrated on 0.19.2"
    assert f"Equal to the last bit {equal} legacy on 0.17.1 losses A B gradient norms A B parameters A B" in text
    assert "random-number states A A" in text
    roles, results = training()
    del roles[LEGACY_SOURCE]
    everything = "losses, gradient norms, parameters and random-number states"
    assert f"All arms are equal in everything: {everything}." in words(shown((roles, results)))


def test_a_crashed_arm_shows_its_line() -> None:
    text = shown(turned_on())
    assert "crashed" in words(text)
    assert "&lt;stream&gt; is &#34;capturing&#34; &amp; ␛[31mred␛[0m" in text
    assert "<stream>" not in text


def test_an_arm_that_is_another_says_so() -> None:
    roles, results = training()
    roles[LEGACY_TARGET] = roles[MIGRATED]
    assert "migrated cuda_graph_impl=local cuda_graph_modules=attn,mlp the same run as legacy on 0.19.2" in words(
        shown((roles, results))
    )


def test_every_command_is_there_to_be_copied() -> None:
    roles, results = training()
    text = shown((roles, results))
    code = [result for path, result in Reader(text).texts if path[-2:] == ("pre", "code")]
    assert {results[key].command for key in roles.values()} <= set(code)


def test_environment_names_the_arms_where_they_differ() -> None:
    text = words(shown(training()))
    assert "GPU NVIDIA H200 driver 580.65.06 torch 2.11.0+cu130 Transformer Engine 2.12.0" in text
    assert "; 0.17.1 (eager on 0.17.1 and legacy on 0.17.1)" in text
    assert "migrated on 0.19.2: a stand-in kernel was used" in text
    assert "4 local layers, hidden size 256" in text


# --- losses and times ---------------------------------------------------------------------------------------


def test_losses_are_compared_in_words() -> None:
    text = words(shown(training()))
    equal = "eager on 0.19.2, eager again on 0.19.2, eager on 0.17.1, legacy on 0.19.2 and migrated on 0.19.2"
    assert f"{equal}: equal to the last bit in all 8 steps." in text
    assert "legacy on 0.17.1 departs from eager on 0.17.1 at step 4; by 0.00031 nats at most" in text
    assert "departs from eager on 0.19.2" not in text


def test_eager_of_the_old_release_departs_from_eager_of_the_new_one_and_legacy_from_its_own() -> None:
    roles, results = training()
    old = results[roles[EAGER_SOURCE]]
    results[roles[EAGER_SOURCE]] = replace(old, ranks=(rank(drift=1e-5),))
    text = words(shown((roles, results)))
    assert "eager on 0.17.1 departs from eager on 0.19.2 at step 4" in text
    assert "legacy on 0.17.1 departs from eager on 0.17.1 at step 4; by 0.0003 nats at most" in text


def test_without_eager_the_first_arm_is_the_measure() -> None:
    roles, results = training()
    for role in (EAGER, EAGER_AGAIN, EAGER_SOURCE):
        del roles[role]
    text = words(shown((roles, results)))
    assert "legacy on 0.19.2 and migrated on 0.19.2 depart from legacy on 0.17.1 at step 4" in text


def svg(chart: LineChart) -> str:
    """The chart as the page draws it."""
    return str(environment().get_template("charts.html.j2").module.line_chart(chart))  # type: ignore[attr-defined]


def test_curves_that_coincide_share_the_line_in_dashes() -> None:
    flat = (6.0, 5.0, 4.0)
    curves = [Curve(EAGER, "one", flat), Curve(MIGRATED, "two", flat), Curve(LEGACY_SOURCE, "three", (9.0, 8.0, 7.0))]
    chart = loss_chart(curves, "x", "three curves")
    assert chart is not None
    assert [line.dashes for line in chart.lines] == ["6 6", "6 6", ""]
    assert [line.offset for line in chart.lines] == ["0", "-6", ""]
    assert chart.lines[0].path == chart.lines[1].path != chart.lines[2].path
    # Each step of the shared line is marked once, in turn.
    marks = [mark for line in chart.lines for mark in line.marks]
    assert len(marks) == len(set(marks)) == 6
    drawn = Reader(svg(chart)).tags("path")
    lines = [attributes for attributes in drawn if attributes.get("class") == "curve"]
    assert [(line.get("stroke-dasharray"), line["d"]) for line in lines] == [
        (line.dashes or None, line.path) for line in chart.lines
    ]
    assert len([attributes for attributes in drawn if attributes.get("class") == "marker"]) == 6


def test_a_loss_that_is_not_finite_leaves_a_gap_and_is_reported() -> None:
    roles, results = training()
    broken = results[roles[MIGRATED]]
    losses = (*broken.ranks[0].losses[:6], "nan", "inf")
    results[roles[MIGRATED]] = replace(broken, ranks=(replace(broken.ranks[0], losses=losses),))
    text = shown((roles, results))
    paths = " ".join(Reader(text).attributes("d"))
    assert "nan" not in paths
    assert "inf" not in paths
    assert "migrated on 0.19.2 departs from eager on 0.19.2 at step 7; by no finite number" in words(text)
    assert "migrated on 0.19.2: losses that are not finite leave a gap" in words(text)


number = st.floats(allow_nan=True, allow_infinity=True)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.lists(number, max_size=9).map(tuple), min_size=1, max_size=6))
def test_any_losses_make_charts_within_their_boxes(values: list[tuple[float, ...]]) -> None:
    curves = [Curve(role, role, value) for role, value in zip((EAGER, MIGRATED) * 3, values, strict=False)]
    charts = [chart for made in (loss_chart, difference_chart) if (chart := made(curves, "x", "any"))]
    drawn = "".join(map(svg, charts))
    assert bool(drawn) == any(abs(value) < 1e39 for value in sum(values, ()))
    for path in Reader(drawn).attributes("d"):
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path):
            assert -5 <= float(x) <= 480
            assert -5 <= float(y) <= 280
    assert not re.search(r"\b(nan|inf)\b", drawn)


def test_bars_show_the_time_and_the_gain() -> None:
    text = words(shown(training()))
    assert "7.90 ms (7.90 to 7.90 ms), 3.0 × eager’s speed" in text
    assert "10.2 ms (10.2 to 10.2 ms), 3.3 × eager’s speed" in text  # against eager on its own release
    widths = [a["width"] for a in Reader(shown(training())).tags("rect") if a.get("class") == "bar"]
    assert widths[2] == "100.00%"
    assert float(widths[5].rstrip("%")) == pytest.approx(100 * 7.9 / 34, abs=0.01)


def test_the_words_beside_bars_are_text_that_wraps() -> None:
    """Words at fixed places of a drawing are printed over each other in a narrow window."""
    bars = [text for path, text in Reader(shown(training())).texts if "ul" in path and "× eager’s speed" in text]
    assert len(bars) == 3


def test_a_table_that_scrolls_keeps_its_first_column_and_shows_that_it_scrolls() -> None:
    style = Reader(shown(training())).text("style")
    assert re.search(r"\.scroll tbody th, [^}]*position: sticky; left: 0;[^}]*background: var\(--paper\)", style)
    assert re.search(r"\.scroll \{[^}]*no-repeat local,[^}]*var\(--shade\)", style)


def test_a_printed_page_has_margins() -> None:
    assert re.search(r"@page \{ margin: \d+mm \d+mm; \}", Reader(shown(training())).text("style"))


def slower(again: float) -> str:
    """Training whose second eager run takes ``again`` times as long as the first."""
    roles, results = training()
    results[roles[EAGER_AGAIN]] = replace(results[roles[EAGER_AGAIN]], ranks=(rank(step=0.0236 * again),))
    return words(shown((roles, results)))


def test_no_speed_is_given_where_two_eager_runs_differ_by_more_than_5_percent() -> None:
    assert "7.90 ms (7.90 to 7.90 ms), 3.0 × eager’s speed" in slower(1.049)
    for again, percent in ((1.06, 6), (1 / 1.06, 6), (2.5, 150)):
        text = slower(again)
        assert " × eager’s speed" not in text
        assert f"Two eager runs differ by {percent} %, so times are not compared." in text


def test_no_speed_is_given_where_nothing_shows_that_times_repeat() -> None:
    roles, results = training()
    del roles[EAGER_AGAIN]
    text = words(shown((roles, results)))
    assert " × eager’s speed" not in text
    assert "No second eager run shows how far times repeat, so they are not compared." in text


def test_times_of_arms_that_run_side_by_side_are_not_compared() -> None:
    text = words(shown(generation(), workload=DYNAMIC))
    assert " × eager’s speed" not in text
    assert "Arms that generate run side by side, so their times are not compared." in text


def test_a_time_has_its_spread() -> None:
    roles, results = training()
    seconds = (0.9, 0.1, 0.1, 0.1, 0.0078, 0.0086, 0.0077, 0.0079)
    migrated = replace(results[roles[MIGRATED]].ranks[0], seconds=seconds)
    results[roles[MIGRATED]] = replace(results[roles[MIGRATED]], ranks=(migrated,))
    made = shown((roles, results))
    assert "migrated on 0.19.2 7.85 ms (7.70 to 8.60 ms)" in words(made)
    assert "same as legacy on 0.19.2 7.85 ms 7.70 to 8.60 ms 412 MiB" in words(made)
    lines = [attributes for attributes in Reader(made).tags("line") if attributes.get("class") == "spread"]
    ends = [float(lines[-1][name].rstrip("%")) for name in ("x1", "x2")]
    assert ends == pytest.approx([100 * 7.7 / 34, 100 * 8.6 / 34], abs=0.01)
    assert metrics.spread(metrics.Times(0.004, 0.004, 0.004, 1)) == "one measured"


# --- the difference from eager ------------------------------------------------------------------------------


def test_the_difference_from_eager_is_drawn_beside_the_losses() -> None:
    made = shown(training())
    assert "Losses" in words(made).partition("Difference from eager")[0]
    assert "difference (10⁻⁴ nats)" in words(made)
    assert "legacy on 0.17.1 minus eager on 0.17.1; all other arms minus eager on 0.19.2." in words(made)
    assert "legacy on 0.17.1: 0.00031 nats from eager on 0.17.1 at most." in words(made)
    assert "migrated on 0.19.2: 0." in words(made)


def test_a_difference_has_its_sign_and_a_scale_of_its_own() -> None:
    chart = difference_chart([Curve(MIGRATED, "m", (0.0, 2e-5, -1e-5)), Curve(EAGER, "e", (0.0,) * 3)], "x", "")
    assert chart is not None
    assert chart.unit == "difference (10⁻⁵ nats)"
    ticks = {tick.text: float(tick.y) for tick in chart.values}
    assert list(ticks) == ["-1", "0", "1", "2"]
    assert float(chart.zero) == ticks["0"]
    heights = [float(point.split()[1]) for point in re.split("[ML]", chart.lines[0].path)[1:]]
    assert heights == pytest.approx([ticks["0"], ticks["2"], ticks["-1"]], abs=0.1)


def test_no_difference_is_one_line_at_zero() -> None:
    chart = difference_chart([Curve(MIGRATED, "m", (0.0, 0.0))], "x", "")
    assert chart is not None
    assert [tick.text for tick in chart.values] == ["0"]
    assert (chart.unit, chart.values[0].y) == ("difference (nats)", chart.zero)


def test_without_eager_there_is_no_difference_to_show() -> None:
    roles, results = training()
    for role in (EAGER, EAGER_AGAIN, EAGER_SOURCE):
        del roles[role]
    assert "No eager arm ran, so there is no difference to show." in words(shown((roles, results)))


# --- the census ---------------------------------------------------------------------------------------------


def test_the_census_is_side_by_side() -> None:
    text = words(shown(training()))
    assert text.count("4 × layer forward: attn, mlp; 57 kernels; 2 replays a step layers 1–4") == 1
    assert text.count("4 × layer forward: attn, mlp; 61 kernels; 2 replays a step layers 1–4") == 1
    graphs = text.partition(" graphs none")[2].partition("calls outside")[0]
    assert graphs.partition("captured at step")[0].endswith("same as legacy on 0.19.2 ")
    assert graphs.endswith("captured at step – 4 same as legacy on 0.17.1 same as legacy ")
    assert "legacy on 0.19.2 and migrated on 0.19.2 capture the same graphs." in text
    assert "legacy on 0.17.1 and migrated on 0.19.2 capture the same graphs (kernels aside)." in text
    assert "only here" not in text


def test_what_legacy_has_too_is_not_written_again() -> None:
    text = words(shown(training()))
    assert "cuda_graph_modules=attn,mlp 0.19.2 done same as legacy on 0.19.2 7.90 ms" in text
    roles, results = training()
    results[roles[LEGACY_SOURCE]] = replace(results[roles[LEGACY_SOURCE]], ranks=(rank(layers()),))
    text = words(shown((roles, results)))
    assert "legacy enable_cuda_graph=True 0.19.2 done same as legacy on 0.17.1 8.20 ms" in text
    assert "cuda_graph_modules=attn,mlp 0.19.2 done same as legacy 7.90 ms" in text
    # One bit of one loss is enough to write everything.
    other = replace(rank(layers()), losses=(*rank().losses[:-1], (7.0).hex()))
    results[roles[MIGRATED]] = replace(results[roles[MIGRATED]], ranks=(other,))
    assert "cuda_graph_modules=attn,mlp 0.19.2 done 7.000000" in words(shown((roles, results)))


def test_eager_arms_that_show_the_same_share_a_column() -> None:
    heads = words(shown(training())).partition("Census, side by side")[2]
    assert heads.lstrip().startswith("eager on 0.19.2, eager again on 0.19.2 and eager on 0.17.1 legacy on 0.17.1")


def test_what_only_one_side_captures_is_marked() -> None:
    text = shown(turned_on())
    line = "1 × full iteration: attn, mlp, embedding; 1204 kernels of 1260 nodes; 1 replay a step"
    assert re.search(rf"<mark[^>]*>{re.escape(line)}</mark>", text)
    assert "legacy on 0.19.2 and migrated on 0.19.2 capture different graphs" in words(text)


def test_one_kernel_less_on_the_same_release_is_marked_on_both_sides() -> None:
    roles, results = training()
    wrong = results[roles[MIGRATED]]
    results[roles[MIGRATED]] = replace(wrong, ranks=(rank(layers((56, 91))),))
    marked = re.findall(r"<mark[^>]*>(.*?)</mark>", shown((roles, results)))
    assert [line.split("; ")[1] for line in marked] == ["57 kernels", "56 kernels"]


def test_processes_that_differ_are_distinguished() -> None:
    pair = (rank(layers(count=2)), rank(layers(count=4), number=1))
    roles, results = arms_by_role(
        legacy_target=done(arm(NEW, MODULES, processes=2), *pair),
        migrated=done(arm(NEW, processes=2), pair[0], pair[0]),
    )
    text = words(shown((roles, results)))
    assert "process 0 2 × layer forward" in text
    assert "process 1 4 × layer forward" in text
    assert "4, 8" in text


# --- generation ---------------------------------------------------------------------------------------------


def test_generation_shows_tokens_in_place_of_losses() -> None:
    text = words(shown(generation(), workload=DYNAMIC))
    assert "eager on 0.19.2, legacy on 0.19.2 and migrated on 0.19.2: 8 tokens of 2 requests, all equal." in text
    assert "legacy on 0.17.1 differs from eager on 0.19.2 in request 2 from token 3 on: 87, not 89." in text
    assert "request 2: 65 35 87 79" in text
    assert "generation, dynamic batching" in text
    assert "2 × block forward: attn, mlp, embedding; 220 kernels of 224 nodes; never replayed" in text
    assert "1 replay a round" in text
    assert "Losses" not in text


# --- figures ------------------------------------------------------------------------------------------------


def test_the_settled_step_time_omits_captures_and_the_first_half() -> None:
    assert metrics.steady_times(replace(rank(), seconds=(9.0, 9.0, 1.0, 3.0))) == metrics.Times(2.0, 1.0, 3.0, 2)
    late = replace(rank(layers(at=6)), seconds=(1.0,) * 7 + (5.0,))
    assert metrics.steady_times(late) == metrics.Times(5.0, 5.0, 5.0, 1)
    assert metrics.steady_times(replace(rank(layers(at=7)), seconds=(1.0,) * 8)) is None
    assert metrics.steady_times(Rank(0)) is None


def test_counts_of_a_rank() -> None:
    assert metrics.replays_per_step(rank(layers())) == 16
    assert metrics.replays_per_step(rank()) == 0
    assert metrics.capture_steps(rank((*layers(at=3), *iteration(at=5)))) == "4, 6"
    assert metrics.short("0123456789abcdef") == "01234567"


def test_census_lines_put_like_graphs_together() -> None:
    assert metrics.census_lines(rank()) == ()
    first, *rest = layers()
    odd = replace(first, kernels=-1, nodes=-1)
    assert metrics.census_lines(rank((odd, *rest))) == (
        "1 × layer forward: attn, mlp; kernels not counted; 2 replays a step",
        "3 × layer forward: attn, mlp; 57 kernels; 2 replays a step",
        "4 × layer backward; 91 kernels; 2 replays a step",
    )


@from_table
def test_the_settings_words_name_what_ran_inside(modules: tuple[str, ...], parts: tuple[str, ...]) -> None:
    assert metrics.parts_of(modules) == parts


def test_a_departure_is_found_to_the_last_bit() -> None:
    assert metrics.departure((1.0, 2.0), (1.0, 2.0)) is None
    assert metrics.departure((1.0, 2.0, 3.5), (1.0, 2.5, 3.0)) == metrics.Departure(2, 0.5, 2)
    assert metrics.departure((0.0,), (-0.0,)) is not None
    assert metrics.departure((float("nan"),), (float("nan"),)) is None
    shorter = metrics.departure((1.0,), (1.0, 2.0))
    assert shorter is not None
    assert (shorter.first, shorter.at) == (2, 2)


def test_the_first_token_that_differs() -> None:
    assert metrics.first_difference(((1, 2),), ((1, 2),)) is None
    assert metrics.first_difference(((1, 2), (3,)), ((1, 2), (3, 4))) == (2, 2, None, 4)


def test_letters_are_the_same_for_equal_values() -> None:
    assert metrics.letters(["x", "", "y", None, "x"]) == ("A", "", "B", "", "A")
    assert metrics.letters([str(n) for n in range(28)])[-2:] == ("AA", "AB")


def test_amounts_carry_their_units() -> None:
    assert [metrics.milliseconds(value) for value in (0.0079, 0.009996, 0.0571, 0.4123)] == [
        "7.90 ms",
        "10.0 ms",
        "57.1 ms",
        "412 ms",
    ]
    assert [metrics.memory(value) for value in (412 << 20, 5 << 28)] == ["412 MiB", "1.25 GiB"]
    assert metrics.spans([4, 1, 2, 2]) == "1–2, 4"


# --- escaping -----------------------------------------------------------------------------------------------

anything = st.text() | st.text("<>&\"'/=-!`\x00\x1b\r\n\ud800\u202e abct", max_size=30)


@settings(deadline=None, derandomize=True)
@given(anything, anything)
def test_any_text_comes_out_as_it_went_in(text: str, title: str) -> None:
    made = environment().from_string('<p><code title="{{ title }}">{{ text }}</code>{{ text }}</p>')
    made = made.render(text=text, title=title)
    made.encode("utf-8")
    read = Reader(made)
    assert read.text("p") == visible(text) * 2
    assert read.tags("code")[0]["title"] == visible(title)
    assert [tag for tag, _ in read.elements] == ["p", "code"]


@settings(deadline=None, derandomize=True, max_examples=examples(40))
@given(anything)
def test_no_text_changes_the_page(text: str) -> None:
    def tags(message: str) -> list[str]:
        requested = {message: message}
        proxy = Proxy(notes=(message,), fields=requested)
        of = replace(arm(NEW, requested), proxy=proxy)
        ran = replace(done(of, rank()), failure=message, remarks=(message,), environment=requested, command=message)
        roles, results = arms_by_role(
            eager_source=ran, migrated=replace(crashed(arm(NEW, requested), message), command=message)
        )
        compared = Compared(message, message, message, message, (message,), roles, message, message, message)
        made = page([compared], results, {message: message})
        made.encode("utf-8")
        return [tag for tag, _ in Reader(made).elements if tag not in ("span", "wbr")]

    # A diff's lines are spans, and a path may break behind a slash; all other elements are there whatever the text.
    assert tags(f"x{text}y") == tags("xy")


def test_roles_are_shown_in_their_order() -> None:
    roles, results = training()
    backwards = dict(reversed(roles.items()))
    assert shown((backwards, results)) == shown((roles, results))
    assert list(roles) == [EAGER, EAGER_AGAIN, EAGER_SOURCE, LEGACY_SOURCE, LEGACY_TARGET, MIGRATED]
