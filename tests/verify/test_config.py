"""`verify --level config`: real releases of megatron-core read settings before and after migration, on a CPU.

The installed release is the target; the source, 0.17.1, is fetched once into .corpus where pip reaches a registry.
"""

from __future__ import annotations

import json
import re
import shutil
import site
import stat
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from cgmigrate.cli.commands import main
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Choice, Undecided
from cgmigrate.megatron.types import Reader, ResolvedConfiguration
from cgmigrate.megatron.versions import parse_release
from cgmigrate.verify import config_level, mcore
from cgmigrate.verify.compare import DIFFERENT, EQUIVALENT, EQUIVALENT_BUT, INCONCLUSIVE
from cgmigrate.verify.config_level import (
    READ,
    REFUSED,
    UNREAD,
    Case,
    ConfigVerdict,
    Request,
    RequestOutcome,
    compare_readings,
    read_all,
    verify_config,
)
from cgmigrate.verify.mcore import Home, MCoreError, environment, home_for, homes_of, in_folder, installed
from cgmigrate.verify.plan import VerifySelection, cases_of
from cgmigrate.verify.related_fields import assumed_fields, related_fields
from cgmigrate.verify.release_changes import changes_of_readings
from tests.support.paths import CORPUS, EXAMPLES, FETCHED, FIXTURES, ROOT
from tests.support.release_judges import read_in_forks
from tests.support.tables import from_table, table_of

OLD, NEW = Release(0, 17), Release(0, 19)
CONFIG, FLAGS, BRIDGE = Reader.CONFIG, Reader.COMMAND_LINE, Reader.BRIDGE
IMPL, SCOPE, MODULES, INFERENCE = (
    "cuda_graph_impl",
    "cuda_graph_scope",
    "cuda_graph_modules",
    "inference_cuda_graph_scope",
)
NAN = {"--no-check-for-nan-in-loss-and-grad": True}
EXPERTS = {"num_moe_experts": 4}
PARTS = ["attn", "moe_router", "moe_preprocess"]


def case(name: str, before: dict, after: dict, reader: Reader = CONFIG, source: Release = OLD, **fields: Any) -> Case:
    return Case(name, reader, before, after, source, NEW, fields)


# The matrix of the verification: what it is called, the old text, the migrated text.
MATRIX = {
    "enable": ({"enable_cuda_graph": True}, {IMPL: "local"}),
    "external": ({"external_cuda_graph": True, SCOPE: ["attn"]}, {IMPL: "transformer_engine", MODULES: ["attn"]}),
    "iteration": ({IMPL: "local", SCOPE: ["full_iteration"]}, {IMPL: "full_iteration"}),
    "parts": ({IMPL: "local", SCOPE: ["attn", "mlp"]}, {IMPL: "local", MODULES: ["attn", "mlp"]}),
    "block": ({IMPL: "local", SCOPE: ["full_iteration_inference"]}, {IMPL: "local", INFERENCE: "block"}),
    "experts": ({IMPL: "transformer_engine", SCOPE: PARTS}, {IMPL: "transformer_engine", MODULES: PARTS}),
    "none": ({IMPL: "none", SCOPE: ["full_iteration"]}, {IMPL: "none"}),
}
# Rewrites that capture something else: a module dropped or added, another implementation, layers for blocks.
WRONG = table_of(__name__, "WRONG")


def matrix() -> list[Case]:
    return [
        Case(f"{name}, {reader.name}", reader, before, after, OLD, NEW, {**(NAN if reader is FLAGS else {}), **experts})
        for name, (before, after) in MATRIX.items()
        for reader in (CONFIG, FLAGS)
        for experts in [EXPERTS if name == "experts" else {}]
    ]


def wrong_rewrites() -> list[Case]:
    return [
        Case(f"{name} → {after}, {reader.name}", reader, MATRIX[name][0], after, OLD, NEW, {**fields, **experts})
        for name, afters in WRONG.items()
        for after in afters
        for reader, fields in ((CONFIG, {}), (FLAGS, NAN))
        for experts in [EXPERTS if name == "experts" else {}]
    ]


# What 0.17.1 and 0.19.2 treat differently: the old text, a text that keeps what 0.17.1 did as far as 0.19.2 can.
SELECTIVE = {"recompute_granularity": "selective"}
TRAPS = {
    "none + full_iteration, implementation not written": (
        case("", {SCOPE: "full_iteration"}, {}),
        EQUIVALENT_BUT,
        "own migration of the old text turns graphs on: it captures full iteration",
    ),
    "none + full_iteration on a command line that checks for NaN": (
        case("", {IMPL: "none", SCOPE: "full_iteration"}, {IMPL: "none"}, FLAGS),
        EQUIVALENT_BUT,
        "refuses the old text (AssertionError: --no-check-for-nan-in-loss-and-grad should be set",
    ),
    "none + full_iteration, left as it was": (
        case("", {IMPL: "none", SCOPE: "full_iteration"}, {IMPL: "none", SCOPE: "full_iteration"}),
        DIFFERENT,
        "as megatron-core's own migration of the old text does",
    ),
    "parts + full_iteration": (
        case("", {IMPL: "local", SCOPE: "attn,full_iteration"}, {IMPL: "full_iteration"}),
        EQUIVALENT_BUT,
        "refuses the old text (AssertionError: cuda_graph_modules must be empty",
    ),
    "full_iteration + full_iteration_inference": (
        case("", {IMPL: "local", SCOPE: ["full_iteration", "full_iteration_inference"]}, {IMPL: "full_iteration"}),
        EQUIVALENT_BUT,
        "cannot contain multiple deprecated values",
    ),
    "TE + full_iteration_inference": (
        case("", {IMPL: "transformer_engine", SCOPE: "full_iteration_inference"}, {IMPL: "none"}),
        EQUIVALENT_BUT,
        "refuses the old text",
    ),
    "TE + full_iteration, which no release accepts": (
        case("", {IMPL: "transformer_engine", SCOPE: "full_iteration"}, {IMPL: "transformer_engine"}),
        INCONCLUSIVE,
        "nothing ran the old text",
    ),
    "block + selective recompute + dropout": (
        case("", *MATRIX["block"], **SELECTIVE),
        DIFFERENT,
        "the release changed, not the migration",
    ),
    "the same without dropout": (
        case("", *MATRIX["block"], **SELECTIVE, attention_dropout=0.0, hidden_dropout=0.0),
        EQUIVALENT,
        "the block in inference",
    ),
    "full_iteration + CPU offloading, which 0.17 refused": (
        case("", *MATRIX["iteration"], cpu_offloading=True, cpu_offloading_num_layers=1),
        EQUIVALENT_BUT,
        "only on 0.19.2, which captures full iteration",
    ),
    "a text that only the new release knows": (
        case("", {IMPL: "local", MODULES: ["attn"]}, {IMPL: "local", MODULES: ["attn"]}),
        EQUIVALENT_BUT,
        "megatron-core 0.17.1 refuses the old text (TypeError: TransformerConfig.__init__() got an unexpected keyword",
    ),
    "the same, rewritten into something else": (
        case("", {IMPL: "local", MODULES: ["attn"]}, {IMPL: "local"}),
        DIFFERENT,
        "on megatron-core 0.19.2 the old text captures whole layers (local) in training, no graphs in inference",
    ),
    "parts of experts that another file sets": (
        case("", *MATRIX["experts"]),
        EQUIVALENT,
        "attn, moe_router, moe_preprocess per layer",
    ),
    "the same on a command line, experts spread": (
        case("", *MATRIX["experts"], FLAGS, expert_model_parallel_size=4),
        EQUIVALENT,
        "attn, moe_router, moe_preprocess per layer",
    ),
    "recompute that cannot be built alone": (
        case("", *MATRIX["parts"], recompute_granularity="selective", recompute_modules=["mla_up_proj"]),
        EQUIVALENT,
        "whole layers (local)",
    ),
    "Megatron-Bridge and the full iteration": (
        case("", *MATRIX["iteration"], BRIDGE),
        EQUIVALENT,
        "captures full iteration",
    ),
    "Megatron-Bridge, which refuses local parts since 0.6": (
        case("", *MATRIX["parts"], BRIDGE),
        DIFFERENT,
        "Megatron-Bridge on megatron-core 0.19.2 refuses the migrated text (ValueError: Megatron Bridge supports",
    ),
    "a value from the environment": (
        case("", {IMPL: Undecided("${oc.env:G}", "taken from the environment")}, {}),
        INCONCLUSIVE,
        "`cuda_graph_impl` is taken from the environment",
    ),
    "a value that code chooses": (
        case("", {IMPL: Choice(("", " if moe else ", ""), ("local", "none"))}, {}),
        INCONCLUSIVE,
        "`cuda_graph_impl` is chosen by a condition",
    ),
}


@pytest.fixture(scope="module")
def target() -> Home:
    """The installed megatron-core."""
    home = installed()
    if home is None or home.release != NEW:
        pytest.skip(f"megatron-core {NEW} is not installed")
    return home


@pytest.fixture(scope="module")
def source() -> Home:
    """megatron-core 0.17.1, fetched once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(FETCHED))
        try:
            return mcore.fetched("0.17.1")
        except MCoreError as error:
            pytest.skip(str(error))


Verdicts = Mapping[str, ConfigVerdict]


class Recorded:
    """In the place of ``read_all``: every release reads the settings of all tests at once, in one process."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests = requests
        self.readings: dict[str, dict[str, RequestOutcome]] = {}

    def __call__(self, requests: Sequence[Request], home: Home) -> list[RequestOutcome]:
        if home.version not in self.readings:
            own = [request for request in self.requests if request.release == home.release]
            self.readings[home.version] = dict(zip(map(repr, own), read_all(own, home), strict=True))
        return [self.readings[home.version][repr(request)] for request in requests]


@pytest.fixture(scope="module")
def cases_in_files(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Every site that cgmigrate migrates in our examples and fixtures, and in the corpus if it is available."""
    # In our checkout, code has the names of the settings: its tests.
    own = tmp_path_factory.mktemp("own")
    for folder in (EXAMPLES, EXAMPLES.parent / "verify", FIXTURES / "yaml"):
        shutil.copytree(folder, own / folder.name)
    # Their pins admit old releases and new ones.
    selections = [VerifySelection((str(own),), parse_release("0.17"), parse_release("0.19"))]
    selections += [VerifySelection((str(CORPUS),))] if CORPUS.is_dir() else []
    input_error: list[str] = []
    cases = [each for one in selections for each in cases_of(one, input_error) if each.before != each.after]
    assert not input_error
    return cases


def traps() -> list[Case]:
    return [Case(name, c.reader, c.before, c.after, c.source, c.target, c.fields) for name, (c, *_) in TRAPS.items()]


Verify = Callable[[Sequence[Case], Mapping[str, Home]], list[ConfigVerdict]]


@pytest.fixture(scope="module")
def recorded(cases_in_files: list[Case]) -> Recorded:
    """One process for each release: importing torch takes longer than all that it reads."""
    cases = [*matrix(), *wrong_rewrites(), *traps(), *cases_in_files]
    clear = [each for each in cases if not config_level.undecided(each.before, each.after)]
    return Recorded([request for each in clear for request in config_level._requests(each)])


@pytest.fixture(scope="module")
def verify(recorded: Recorded) -> Verify:
    """``verify_config`` of what is recorded."""

    def run(cases: Sequence[Case], homes: Mapping[str, Home]) -> list[ConfigVerdict]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(config_level, "read_all", recorded)
            read_in_forks(patch)
            return verify_config(cases, homes)

    return run


@pytest.fixture(scope="module")
def judged(target: Home, source: Home, verify: Verify) -> Verdicts:
    """All cases of this page."""
    cases = [*matrix(), *wrong_rewrites(), *traps()]
    verdicts = verify(cases, {home.version: home for home in (target, source)})
    assert [verdict.name for verdict in verdicts] == [each.name for each in cases]
    return {verdict.name: verdict for verdict in verdicts}


@pytest.fixture(scope="module")
def judged_on_target_only(target: Home, verify: Verify) -> Verdicts:
    return {v.name: v for v in verify([*matrix(), *wrong_rewrites()], {target.version: target})}


# --- the verdicts of real releases -----------------------------------------------------------------------


def test_the_matrix_is_equivalent_and_the_trap_is_reported(judged: Verdicts) -> None:
    for each in matrix():
        verdict = judged[each.name]
        if each.name.startswith("none"):
            assert str(verdict) == (
                "equivalent, but megatron-core 0.19.2's own migration of the old text turns graphs on: it captures "
                "full iteration in training, no graphs in inference; the migrated text captures nothing, as 0.17.1 did"
            )
        else:
            assert verdict.verdict == EQUIVALENT, verdict
        assert verdict.notes == ()
        assert [reading.version for reading in verdict.readings] == ["0.17.1", "0.19.2", "0.19.2"]


@pytest.mark.parametrize("each", wrong_rewrites(), ids=lambda each: each.name)
def test_a_wrong_rewrite_is_different(each: Case, judged: Verdicts, judged_on_target_only: Verdicts) -> None:
    assert judged[each.name].verdict == DIFFERENT, judged[each.name]
    # Without the source release cgmigrate's own table of it still shows the difference, but where the target refuses
    # both texts nobody has seen either run.
    alone = judged_on_target_only[each.name]
    refused = alone.readings[1].outcome == alone.readings[2].outcome == REFUSED
    assert alone.verdict == (INCONCLUSIVE if refused else DIFFERENT), alone


@pytest.mark.parametrize("name", TRAPS)
def test_where_the_releases_part_ways(name: str, judged: Verdicts) -> None:
    _, verdict, reason = TRAPS[name]
    assert (judged[name].verdict, reason in judged[name].reason) == (verdict, True), judged[name]


# --- the page --------------------------------------------------------------------------------------------


@from_table
def test_what_the_release_changed_is_seen_in_how_it_reads_the_old_text(
    name: str, changes: tuple[str, ...], judged: Verdicts
) -> None:
    assert changes_of_readings(judged[name]) == changes


def test_the_command_writes_a_page_without_a_gpu(
    source: Home, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both releases read both files; the tutorial below starts them."""
    monkeypatch.setattr(config_level, "read_all", recorded)
    monkeypatch.chdir(tmp_path)
    for name in ("enable.yaml", "none-full-iteration.yaml"):
        text = (EXAMPLES.parent / "verify" / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(text.replace("enable_cuda_graph: true", "enable_cuda_graph: true  # <b>"))
    words = ["--from", "0.17", "--to", "0.19", "--mcore", f"0.17.1={source.paths[0]}", "--report", "page.html"]
    result = CliRunner().invoke(main, ["verify", ".", *words])
    assert result.exit_code == 0, result.output
    made = (tmp_path / "page.html").read_text(encoding="utf-8")
    text = " ".join(re.sub("<[^>]+>", " ", made).split())
    question, scope = "Do the migrated settings capture the same graphs?", "As megatron-core itself reads them."
    assert f"{question} Yes in 2 of 2; one differs between the releases themselves. {scope}" in text
    assert "configuration as the releases read it enable.yaml:8 ✓ equivalent none-full-iteration.yaml:8" in text
    assert "✓ equivalent Δ release changed graphs" in text
    assert "settings enable_cuda_graph= True same as legacy on 0.17.1 cuda_graph_impl= local" in text
    assert "captures nothing full iteration in training, no graphs in inference same as legacy on 0.17.1" in text
    assert "enable_cuda_graph: true # &lt;b&gt;" in text
    assert "eager" not in text.partition("What the words mean")[2]  # nothing ran


def test_what_is_assumed_or_omitted_is_noted(judged: Verdicts) -> None:
    assert judged["parts of experts that another file sets"].notes == (
        "not set beside the settings, so assumed: num_moe_experts=4",
    )
    omitted = judged["recompute that cannot be built alone"].notes
    assert len(omitted) == 2
    assert omitted[0].startswith(
        "megatron-core 0.17.1 read the settings without recompute_granularity, recompute_modules (ValueError: "
    )
    assert "cgmigrate's account of them" in judged["Megatron-Bridge and the full iteration"].notes[0]


def test_the_old_names_left_in_place_are_noted(judged: Verdicts) -> None:
    (note,) = judged["none + full_iteration, left as it was"].notes
    assert note.startswith(
        "megatron-core 0.19.2 still warns of the migrated text: DeprecationWarning: cuda_graph_scope"
    )


def test_without_the_source_release_the_verdict_says_so(judged_on_target_only: Verdicts) -> None:
    missing = "megatron-core 0.17 is not available (`--mcore 0.17.1` fetches it)"
    for each in matrix():
        verdict = judged_on_target_only[each.name]
        assert verdict.verdict == EQUIVALENT_BUT
        if each.name.startswith("none"):
            assert "own migration of the old text turns graphs on" in verdict.reason
            assert verdict.reason.endswith(f"as 0.17 does by cgmigrate's own table, as {missing}")
        else:
            assert verdict.reason == f"only read by 0.19.2: {missing}"


def test_the_verdict_goes_through_json(judged: Verdicts) -> None:
    message = json.loads(json.dumps(judged["experts, COMMAND_LINE"].as_json()))
    assert (message["verdict"], message["name"]) == ("equivalent", "experts, COMMAND_LINE")
    assert message["readings"]["migrated"]["effective"]["modules"] == PARTS
    assert message["readings"]["legacy-source"]["megatron_core"] == "0.17.1"


@pytest.fixture(scope="module")
def judged_files(target: Home, source: Home, cases_in_files: list[Case], verify: Verify) -> list[ConfigVerdict]:
    return verify(cases_in_files, {home.version: home for home in (target, source)})


def test_our_own_files_are_migrated_to_what_the_releases_read_alike(judged_files: list[ConfigVerdict]) -> None:
    own = [verdict for verdict in judged_files if not Path(verdict.name).is_relative_to(CORPUS)]
    assert {v.name: str(v) for v in own if v.verdict in (DIFFERENT, INCONCLUSIVE)} == {}
    # The three files that hold a trap: `none` with full_iteration in two, and a boolean beside a scope that
    # Megatron-Bridge 0.6 clears before megatron-core reads the boolean.
    traps = [Path(v.name).name for v in own if v.verdict == EQUIVALENT_BUT]
    assert traps == ["grpo-math-1b-megatron.yaml:26", "verl-actor.yaml:12", "none-full-iteration.yaml:8"]
    assert len(own) >= 32


def test_real_configurations_are_migrated_to_what_the_releases_read_alike(
    corpus: Path, source: Home, judged_files: list[ConfigVerdict], capsys: pytest.CaptureFixture[str]
) -> None:
    real = [verdict for verdict in judged_files if Path(verdict.name).is_relative_to(corpus)]
    with capsys.disabled():
        print(f"\nreal configurations, {OLD} -> {NEW}: {dict(Counter(verdict.verdict for verdict in real))}")
    for verdict in real:
        # Some recipes came after 0.17.1: they have new names already, or no padded experts, which it demanded.
        late = f"megatron-core {source.version} refuses the old text" in verdict.reason
        assert verdict.verdict == (EQUIVALENT_BUT if late else EQUIVALENT), verdict
        assert not any("please report" in note for note in verdict.notes), verdict
    assert len(real) >= 15


# --- the rule, on readings made by hand ------------------------------------------------------------------

LAYERS, PART, NOTHING = ({IMPL: "local"}, {IMPL: "local", MODULES: ["attn"]}, {})
OLD_TEXT = {IMPL: "local", SCOPE: []}


def read(
    release: Release, effective: ResolvedConfiguration | None, outcome: str = READ, why: str = ""
) -> RequestOutcome:
    return RequestOutcome(Request(CONFIG, OLD_TEXT, release), f"{release}.2", outcome, why, effective)


A17, A19 = ResolvedConfiguration(impl="local"), ResolvedConfiguration(impl="local", inference="layer")
B17, B19 = ResolvedConfiguration(), ResolvedConfiguration(inference="none")


@from_table
def test_the_table_of_verdicts(old: str, own: str, new: str, verdict: str) -> None:
    def made(release: Release, what: str) -> RequestOutcome:
        kept = {"A": A17 if release == OLD else A19, "B": B17 if release == OLD else B19}.get(what)
        return read(release, kept, READ if kept else what, "" if kept else "its own words")

    result = compare_readings(made(OLD, old), made(NEW, own), made(NEW, new))
    assert result.verdict == verdict, result
    assert result.reason and "None" not in result.reason
    assert result.reason.count("(") == result.reason.count(")")


def test_a_release_that_departs_from_cgmigrates_table_is_reported() -> None:
    result = compare_readings(read(OLD, A17), read(NEW, A19), read(NEW, B19))
    (note,) = result.notes
    assert note.startswith("cgmigrate's own table of megatron-core 0.19 says whole layers (local) in training")
    assert note.endswith("please report this")


# --- the process of a release -----------------------------------------------------------------------------


def pretend(tmp_path: Path, script: str) -> Home:
    """A Python that does what the shell script says."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat >/dev/null\n{script}\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    return Home("0.19.2", str(python))


REQUEST = Request(CONFIG, {IMPL: "local"}, NEW)
HELLO = '{"version": "0.19.2", "known": ["cuda_graph_modules"]}'


def test_a_crash_becomes_the_reading_with_its_failure_line(tmp_path: Path) -> None:
    script = "echo 'Traceback (most recent call last):' >&2\necho 'ImportError: libcuda.so.1' >&2\nexit 1"
    (reading,) = read_all([REQUEST], pretend(tmp_path, script))
    assert (reading.outcome, reading.reason) == (UNREAD, "ImportError: libcuda.so.1")


def test_answers_before_a_crash_count(tmp_path: Path) -> None:
    kept = {"cuda_graph_impl": "local", "cuda_graph_modules": ["attn"], "inference_cuda_graph_scope": "layer"}
    answer = {"id": 0, "ok": True, "error": None, "effective": kept, "warnings": [], "omitted": ""}
    script = f"echo '{HELLO}'\necho '{json.dumps(answer)}'\nkill -9 $$"
    other = Request(CONFIG, {IMPL: "none"}, NEW)
    first, again, second = read_all([REQUEST, REQUEST, other], pretend(tmp_path, script))
    assert again == first
    assert first.effective == ResolvedConfiguration(impl="local", modules=("attn",), inference="layer")
    assert (second.outcome, second.reason) == (UNREAD, "the process ended with -9")


def test_another_release_than_requested_is_detected(tmp_path: Path) -> None:
    (reading,) = read_all([REQUEST], pretend(tmp_path, 'echo \'{"version": "0.17.1", "known": []}\''))
    assert reading.reason == "megatron-core 0.17.1 was imported instead of 0.19.2"
    # Megatron-LM's tag 26.04-alpha.rc1 calls itself 0.18.0 and has the old names.
    (reading,) = read_all([REQUEST], pretend(tmp_path, 'echo \'{"version": "0.19.2", "known": []}\''))
    assert reading.reason == ("it calls itself 0.19.2 but does not have `cuda_graph_modules`, which came with 0.18")


def test_a_python_that_does_not_run_is_reported(tmp_path: Path) -> None:
    (reading,) = read_all([REQUEST], Home("0.19.2", str(tmp_path / "absent")))
    assert reading.outcome == UNREAD
    assert reading.reason.startswith(f"{tmp_path / 'absent'} does not run")


def test_neither_the_working_directory_nor_another_release_gets_in(
    target: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout around the working directory is not read; a core without megatron/training borrows none."""
    (tmp_path / "megatron/core").mkdir(parents=True)
    (tmp_path / "megatron/core/__init__.py").write_text("raise RuntimeError('the working directory was imported')")
    monkeypatch.chdir(tmp_path)
    alone = tmp_path / "alone"
    (alone / "megatron").mkdir(parents=True)
    package = next(Path(path) for path in map(str, sys.path) if (Path(path) / mcore.INFO).is_file())
    (alone / "megatron/core").symlink_to(package / "megatron/core")
    config, flags = read_all([REQUEST, Request(FLAGS, {IMPL: "local"}, NEW)], in_folder(alone, "0.19"))
    assert config.outcome == READ
    assert flags.outcome == UNREAD
    assert "holds no megatron/training, which reads command lines" in flags.reason


def python_without(folder: Path, package: str) -> str:
    """A Python in which a package is missing."""
    path = folder / "python"
    path.write_text(f"#!{sys.executable}\nraise ModuleNotFoundError(\"No module named '{package}'\")\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@from_table
def test_a_missing_package_says_what_to_install(tmp_path: Path, package: str, advice: str) -> None:
    python = python_without(tmp_path, package)
    (reading,) = read_all([REQUEST], Home("0.19.2", python))
    assert (reading.outcome, reading.reason) == (UNREAD, f"ModuleNotFoundError: No module named '{package}'{advice}")
    (reading,) = read_all([REQUEST], Home("0.19.2", python, isolated=True))
    name = package.partition(".")[0]
    assert reading.reason.endswith(
        f"; install {name} in the virtual environment of {python}" if advice else package + "'"
    )


def test_each_release_says_when_it_reads_and_when_it_is_done(tmp_path: Path) -> None:
    lines: list[str] = []
    home = Home("0.19.2", python_without(tmp_path, "torch"))
    verify_config([case("a", {"enable_cuda_graph": True}, {IMPL: "local"})], {"0.19.2": home}, lines.append)
    assert lines == ["megatron-core 0.19.2 reads 2 configurations …", "megatron-core 0.19.2: done in 0 s"]


def test_a_release_that_is_not_published_is_not_fetched() -> None:
    hint = "`--mcore 0.20.0=DIR` says where it is; it is not published"
    assert mcore.not_available(Release(0, 20)) == f"megatron-core 0.20 is not available ({hint})"


# --- which releases are available ---------------------------------------------------------------------------


def release(folder: Path, version: str = "0.17.1") -> Path:
    """An unpacked wheel, as far as this needs one."""
    numbers, rest = version.split("rc")[0].split("."), version.partition("rc")[2]
    info = "".join(f"{name} = {number}\n" for name, number in zip(("MAJOR", "MINOR", "PATCH"), numbers, strict=True))
    (folder / "megatron/core").mkdir(parents=True)
    (folder / "megatron/core/__init__.py").touch()
    (folder / mcore.INFO).write_text(f'# Copyright\n{info}PRE_RELEASE = "{"rc" + rest if rest else ""}"\n')
    return folder


def test_a_folder_says_which_release_it_holds(tmp_path: Path) -> None:
    home = in_folder(release(tmp_path / "a"), "0.17.1")
    assert home == Home("0.17.1", sys.executable, (str(tmp_path / "a"),))
    assert home.release == OLD
    assert in_folder(release(tmp_path / "b", "0.18.0rc2"), "0.18").version == "0.18.0rc2"


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    folder = release(tmp_path / "a")
    with pytest.raises(MCoreError, match=r"a holds megatron-core 0\.17\.1, not 0\.17\.0"):
        in_folder(folder, "0.17.0")
    with pytest.raises(MCoreError, match=r"holds neither megatron/core .* nor bin/python"):
        in_folder(tmp_path, "0.17.1")
    with pytest.raises(MCoreError, match="is not a folder"):
        in_folder(tmp_path / "absent", "0.17.1")
    (folder / mcore.INFO).write_text("MAJOR = 0\n")
    with pytest.raises(MCoreError, match="gives no version"):
        in_folder(folder)


def test_a_virtual_environment_is_read_by_its_own_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import venv

    made = tmp_path / "v"
    venv.create(made, with_pip=False, symlinks=True)
    with pytest.raises(MCoreError, match="holds no megatron-core"):
        in_folder(made)
    # An editable install of a checkout.
    checkout = release(tmp_path / "checkout", "0.16.1")
    (packages,) = made.glob("lib/python*/site-packages")
    (packages / "megatron.pth").write_text(f"{checkout}\n")
    # A PYTHONPATH of this process must not hide what the environment holds.
    monkeypatch.setenv("PYTHONPATH", str(release(tmp_path / "other", "0.19.2")))
    home = in_folder(made, "0.16.1")
    assert home == Home("0.16.1", str(made / "bin/python"), isolated=True)
    assert environment(home)["PYTHONPATH"] == ""


def test_the_release_comes_first_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "here:/there")
    variables = environment(Home("0.17.1", "python", ("/release",)))
    assert variables == {"PYTHONPATH": f"/release:{tmp_path / 'here'}:/there", "PYTHONSAFEPATH": "1"}


def test_the_installed_release_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "megatron"]:
        monkeypatch.delitem(sys.modules, name)
    folder = release(tmp_path, "0.15.3")
    (folder / "megatron/core/__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(folder))
    # It is on the path of this process only, so a subprocess needs a variable.
    assert installed() == Home("0.15.3", sys.executable, (str(folder),))
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "megatron", raising=False)
    assert installed() is None


def test_the_newest_patch_of_a_release_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcore, "installed", lambda: Home("0.19.2", "python"))
    versions = ("0.17.0", "0.17.1", "0.17.1rc3", "0.17.10")
    homes = homes_of([f"{version}={release(tmp_path / version, version)}" for version in versions])
    assert sorted(homes) == ["0.17.0", "0.17.1", "0.17.10", "0.17.1rc3", "0.19.2"]
    assert home_for(OLD, homes) == homes["0.17.10"]
    assert home_for(NEW, homes) == Home("0.19.2", "python")
    assert home_for(Release(0, 16), homes) is None


def test_a_release_that_is_named_hides_the_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcore, "installed", lambda: Home("0.19.2", "python"))
    folder = release(tmp_path / "a", "0.19.2")
    assert homes_of([f"0.19.2={folder}"])["0.19.2"].paths == (str(folder),)
    with pytest.raises(MCoreError, match=r"names megatron-core 0\.19\.2 twice"):
        homes_of([f"0.19.2={folder}", f"0.19.2={release(tmp_path / 'b', '0.19.2')}"])


@pytest.mark.parametrize("value", ["", "latest", "0", "--index-url", "0.17.1==0.17.1", "0.17.1; x", "=DIR", "0.17.1="])
def test_what_is_no_version_is_refused(value: str) -> None:
    with pytest.raises(MCoreError, match="expected VERSION=DIR or VERSION, such as"):
        homes_of([value])


@pytest.fixture
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pip that fetches megatron-core 0.17.1 and no other release; the file counts its calls."""
    wheel = tmp_path / "megatron_core-0.17.1-cp312-cp312-linux_x86_64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        folder = release(tmp_path / "wheel")
        for path in folder.rglob("*.py"):
            archive.write(path, path.relative_to(folder))
    calls, program = tmp_path / "calls", tmp_path / "pip"
    program.write_text(
        f'#!/bin/sh\necho "$@" >>{calls}\n'
        'for word; do [ "$last" = -d ] && into=$word; last=$word; done\n'
        f'[ "$last" = megatron-core==0.17.1 ] && cp {wheel} "$into" && exit 0\n'
        'echo "ERROR: Could not find a version" >&2\n'
        'echo "ERROR: No matching distribution found for $last" >&2\nexit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setattr(mcore, "_pip", lambda: [str(program)])
    monkeypatch.setattr(mcore, "installed", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return calls


def test_a_wheel_is_fetched_once_when_the_user_asks_for_it(tmp_path: Path, pip: Path) -> None:
    message: list[str] = []
    kept = tmp_path / "cache/cgmigrate/megatron-core/0.17.1"
    assert homes_of(["0.17.1"], message.append) == {"0.17.1": Home("0.17.1", sys.executable, (str(kept),))}
    # Two numbers mean the last patch; it is there.
    assert homes_of(["0.17"], message.append).keys() == {"0.17.1"}
    assert message == [f"fetching megatron-core 0.17.1 into {kept} …"]
    (call,) = pip.read_text().splitlines()
    assert "--no-deps --only-binary=:all:" in call
    assert [path.name for path in kept.parent.iterdir()] == ["0.17.1"]


def test_a_wheel_that_pip_cannot_fetch_is_reported_in_pips_words(tmp_path: Path, pip: Path) -> None:
    with pytest.raises(MCoreError) as message:
        homes_of(["0.16.1"])
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert str(message.value) == (
        f"pip cannot fetch megatron-core 0.16.1 for Python {running}: No matching distribution found for "
        "megatron-core==0.16.1; give a folder instead (`--mcore 0.16.1=DIR`)"
    )
    assert list((tmp_path / "cache/cgmigrate/megatron-core").iterdir()) == []


def test_a_pip_of_the_users_folder_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker, users = tmp_path / "executed", tmp_path / "users"
    users.mkdir()
    for name in ("pip", "logging"):
        (users / f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write({name!r})\n")
    monkeypatch.chdir(users)
    # As under `python -m cgmigrate`, which has the working directory on its search path.
    monkeypatch.syspath_prepend(str(users))
    subprocess.run([*mcore._pip(), "--help"], capture_output=True, check=False)
    assert not marker.exists(), marker.read_text()
    # A Python that has a pip runs it isolated.
    origin = str(Path(site.getsitepackages()[0]) / "pip/__init__.py")
    monkeypatch.setattr(mcore.importlib.util, "find_spec", lambda name: ModuleSpec(name, None, origin=origin))
    subprocess.run([*mcore._pip(), "--help"], capture_output=True, check=False)
    assert not marker.exists(), marker.read_text()


def test_without_pip_the_message_says_what_to_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcore.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(mcore.shutil, "which", lambda name: None)
    with pytest.raises(MCoreError, match=r"needs pip, which is not installed; give a folder instead"):
        mcore._pip()


# --- what else decides --------------------------------------------------------------------------------------


def test_what_decides_is_taken_from_beside_the_settings() -> None:
    flags = {"--num-experts": 8, "--lr": 0.1, "--te-rng-tracker": True, "--recompute-modules": "[moe_act mlp]"}
    flags |= {"--save": "${SAVE}", "--hidden-dropout": "${DROPOUT}", "--attention-dropout": None}
    assert related_fields(flags, FLAGS) == {
        "--num-experts": 8,
        "--te-rng-tracker": True,
        "--recompute-modules": ["moe_act", "mlp"],
    }
    fields = {"model.num_moe_experts": 8, "enabled": True, "te_rng_tracker": True, "moe_layer_freq": "[0]+[1]*9"}
    fields |= {"recompute_modules": "core_attn,mlp"}
    assert related_fields(fields, CONFIG) == {"num_moe_experts": 8, "recompute_modules": ["core_attn", "mlp"]}


def test_experts_are_assumed_only_where_the_settings_need_them() -> None:
    parts = [{SCOPE: "attn,moe_router"}, {MODULES: ["attn", "moe_router"]}]
    assert assumed_fields({}, parts, CONFIG) == {"num_moe_experts": 4}
    assert assumed_fields({"--expert-model-parallel-size": 8}, [{}], FLAGS) == {"num_moe_experts": 32}
    assert assumed_fields({"--num-experts": 8}, parts, FLAGS) == {}
    assert assumed_fields({}, [{SCOPE: "attn,mlp"}], CONFIG) == {}
    assert assumed_fields({"num_layers": 3}, [{SCOPE: "[moe mlp]"}], CONFIG) == {
        "num_moe_experts": 4,
        "moe_expert_capacity_factor": 1.0,
        "moe_pad_expert_input_to_capacity": True,
        "moe_token_dispatcher_type": "alltoall",
        "moe_layer_freq": [0, 1, 1],
    }


# --- pages ----------------------------------------------------------------------------------------


def test_the_tutorial_shows_what_verify_prints(source: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs/tutorial-nemo-rl.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    subprocess.run(["git", "init", "-q"], check=True)
    for path, text in re.findall(r"Write `([^`]+)`:\n\n```\w+\n(.*?)```", page, re.DOTALL):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    subprocess.run(["git", "add", "."], check=True)
    (shown,) = re.findall(
        r"```console\n\$ cgmigrate verify --mcore 0.17.1 --mcore 0.19.2 \.\n(.*?)```", page, re.DOTALL
    )
    result = CliRunner().invoke(main, ["verify", "--mcore", f"0.17.1={source.paths[0]}", "."])
    summary = [line for line in result.stderr.splitlines() if line.startswith("Compared")]
    assert result.exit_code == 0
    assert [*result.stdout.splitlines(), *summary] == shown.splitlines()
