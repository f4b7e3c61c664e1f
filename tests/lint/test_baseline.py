"""A gate on old code: what is known is not reported, what is new is, and what is fixed is listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmigrate.lint.baseline import Baseline, load, save, total
from cgmigrate.lint.diagnostics import LintDiagnostic
from cgmigrate.text.spans import Span
from tests.support.files import write
from tests.support.nightly import NIGHTLY
from tests.support.reports import RELEASES, places_in
from tests.support.tables import from_table

LEGACY = "model:\n  external_cuda_graph: true\n  hidden_size: 8\n"
TWO = "a:\n  external_cuda_graph: true\nb:\n  external_cuda_graph: true\n"
FIXED = "model:\n  cuda_graph_impl: transformer_engine\n  hidden_size: 8\n"
KNOWN = ("--baseline", "known.json")


def places(path: Path) -> dict[str, dict[str, list[str]]]:
    return json.loads(path.read_text(encoding="utf-8"))["diagnostics"]


def write_legacy(project: Path, files: int) -> list[Path]:
    """Write files with four legacy diagnostics each, and the name of a baseline; return the files."""
    text = "".join(f"m{at}:\n  external_cuda_graph: true\n" for at in range(4))
    write(project / "pyproject.toml", '[tool.cgmigrate]\nbaseline = "known.json"\n')
    return [write(project / f"conf/d{number % 10}/{number:03}.yaml", text) for number in range(files)]


def test_a_repository_with_many_legacy_diagnostics(project: Path, cgmigrate) -> None:
    files = 250 if NIGHTLY else 25
    write_legacy(project, files)
    written = cgmigrate("check", "--write-baseline", ".")
    assert (written.exit_code, written.stdout) == (0, "")
    # On a slow machine the progress is printed, too.
    assert written.stderr.endswith(f"Wrote known.json: {files * 4} diagnostics in {files} files.\n")

    gated = cgmigrate("check", ".")
    assert (gated.exit_code, gated.stdout) == (0, "")
    note = f"note: {files * 4} known diagnostics of known.json not shown\n"
    assert gated.stderr.endswith(f"Checked {files} files: nothing found.\n{note}{RELEASES}")


def test_what_is_fixed_is_pruned_and_new_if_it_comes_back(project: Path, cgmigrate) -> None:
    files = sorted(write_legacy(project, 25))
    cgmigrate("check", "--write-baseline", ".")
    size = (project / "known.json").stat().st_size

    write(project / "conf/new.yaml", LEGACY)
    new = cgmigrate("check", ".")
    assert new.exit_code == 1
    assert places_in(new.stdout) == ["conf/new.yaml:2:3: CG102"]
    (project / "conf/new.yaml").unlink()

    files[0].write_text("clean: true\n")
    files[1].unlink()
    files[2].write_text(files[2].read_text().replace("external_cuda_graph: true", "x: 1", 2))
    result = cgmigrate("check", ".")
    assert result.exit_code == 0
    assert "note: known.json contains diagnostics that are fixed (remove them with --prune-baseline):" in result.stderr
    assert "  conf/d0/000.yaml: 4 CG102\n  conf/d0/010.yaml: 4 CG102\n  conf/d0/020.yaml: 2 CG102\n" in result.stderr

    pruned = cgmigrate("check", "--prune-baseline", ".")
    assert pruned.exit_code == 0
    assert "Pruned known.json: 10 fixed, 90 diagnostics in 23 files left." in pruned.stderr
    assert (project / "known.json").stat().st_size < size
    again = cgmigrate("check", ".")
    assert (again.exit_code, "diagnostics that are fixed" in again.stderr) == (0, False)
    # What was fixed and comes back is new.
    files[2].write_text("".join(f"m{at}:\n  external_cuda_graph: true\n" for at in range(4)))
    assert cgmigrate("check", ".").exit_code == 1


def test_only_what_is_new_is_shown_also_beside_what_is_known(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", TWO + "c:\n  cuda_graph_impl: local\n  cuda_graph_scope: attn\n")
    cgmigrate("check", "--write-baseline", *KNOWN, ".")
    path.write_text("# lines\n# move\n" + path.read_text())
    assert cgmigrate("check", *KNOWN, ".").exit_code == 0
    path.write_text("new:\n  external_cuda_graph: true\n" + path.read_text())
    result = cgmigrate("check", *KNOWN, ".")
    assert (result.exit_code, places_in(result.stdout)) == (1, ["a.yaml:2:3: CG102"])


def test_a_diagnostic_stays_known_when_its_value_changes(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", "c:\n  cuda_graph_impl: local\n  cuda_graph_scope: attn\n")
    cgmigrate("check", "--write-baseline", *KNOWN, ".")
    path.write_text(path.read_text().replace("attn", "[attn, mlp]"))
    assert cgmigrate("check", *KNOWN, ".").exit_code == 0
    path.write_text(path.read_text().replace("c:", "d:"))
    assert cgmigrate("check", *KNOWN, ".").exit_code == 1, "another model"


def test_the_file_is_sorted_and_the_same_wherever_it_is_written_from(
    project: Path, cgmigrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("z.yaml", "sub/b.yaml", "sub/a.yaml"):
        write(project / name, LEGACY)
    cgmigrate("check", "--write-baseline", "--baseline", "sub/known.json", ".")
    text = (project / "sub/known.json").read_text()
    entry = '": {\n      "CG102": [\n        "model.external_cuda_graph"\n      ]\n    }'
    files = ",\n".join(f'    "{name}{entry}' for name in ("../z.yaml", "a.yaml", "b.yaml"))
    assert text == '{\n  "diagnostics": {\n' + files + '\n  },\n  "version": 2\n}\n'
    monkeypatch.chdir(project / "sub")
    assert cgmigrate("check", "--baseline", "known.json", str(project)).exit_code == 0
    cgmigrate("check", "--write-baseline", "--baseline", "known.json", str(project))
    assert (project / "sub/known.json").read_text() == text


def test_a_run_over_some_files_or_rules_says_nothing_of_the_others(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", LEGACY)
    write(project / "b.yaml", LEGACY + "  cuda_graph_scope: attn\n")
    cgmigrate("check", "--write-baseline", *KNOWN, ".")
    everything = places(project / "known.json")
    of_b = {"CG102": ["model.external_cuda_graph"], "CG106": ["model.cuda_graph_scope"]}
    assert everything == {"a.yaml": {"CG102": ["model.external_cuda_graph"]}, "b.yaml": of_b}
    for words in (["a.yaml"], ["--select", "CG1", "a.yaml"], ["--select", "CG106", "."], ["--ignore", "CG106", "."]):
        result = cgmigrate("check", *KNOWN, "--prune-baseline", *words)
        assert (result.exit_code, places(project / "known.json")) == (0, everything), words
        assert "nothing to prune" in result.stderr
    write(project / "a.yaml", FIXED)
    cgmigrate("check", *KNOWN, "--write-baseline", "--select", "CG102", "b.yaml")
    assert places(project / "known.json") == everything
    cgmigrate("check", *KNOWN, "--write-baseline", "a.yaml")
    assert places(project / "known.json") == {"b.yaml": of_b}


def test_a_file_that_is_excluded_now_is_pruned(project: Path, cgmigrate) -> None:
    write(project / "old/a.yaml", LEGACY)
    cgmigrate("check", "--write-baseline", *KNOWN, ".")
    write(project / "cgmigrate.toml", 'extend-exclude = ["old/"]\n')
    cgmigrate("check", "--prune-baseline", *KNOWN, ".")
    assert places(project / "known.json") == {}


def test_fix_rewrites_what_is_known_and_asks_about_what_is_new_only(project: Path, cgmigrate) -> None:
    undecided = "model:\n  cuda_graph_impl: graphs\n"
    sound = write(project / "a.yaml", LEGACY)
    write(project / "b.yaml", undecided)
    cgmigrate("check", "--write-baseline", *KNOWN, ".")
    result = cgmigrate("fix", *KNOWN, ".")
    assert (result.exit_code, result.stdout, sound.read_text()) == (0, "", FIXED)
    write(project / "c.yaml", undecided)
    result = cgmigrate("fix", *KNOWN, ".")
    assert (result.exit_code, places_in(result.stdout)) == (1, ["c.yaml:2:3: CG206"])


def test_what_is_known_gets_no_comment(project: Path, cgmigrate) -> None:
    old = write(project / "a.yaml", LEGACY)
    cgmigrate("check", "--write-baseline", *KNOWN, ".")
    new = write(project / "b.yaml", LEGACY)
    assert cgmigrate("check", *KNOWN, "--add-ignore", ".").exit_code == 0
    assert (old.read_text(), "cgmigrate: ignore[CG102]" in new.read_text()) == (LEGACY, True)


@from_table
def test_a_baseline_that_cannot_be_used_is_an_error(
    project: Path, cgmigrate, content: str | None, message: str
) -> None:
    write(project / "a.yaml", LEGACY)
    if content is not None:
        write(project / "known.json", content)
    result = cgmigrate("check", *KNOWN, ".")
    assert (result.exit_code, result.stdout, message in result.stderr) == (2, "", True), result.stderr


def test_usage(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", LEGACY)
    assert "no baseline is set: add --baseline FILE" in cgmigrate("check", "--prune-baseline", ".").stderr
    assert cgmigrate("check", *KNOWN, "--write-baseline", "--prune-baseline", ".").exit_code == 2
    assert cgmigrate("check", "--write-baseline", "--baseline", "nowhere/known.json", ".").exit_code == 2


def rules_of(known: st.SearchStrategy[object]) -> st.SearchStrategy[dict[str, dict[str, object]]]:
    rules = st.dictionaries(st.sampled_from(["CG101", "CG102", "CG301"]), known, min_size=1)
    return st.dictionaries(st.sampled_from(["a.yaml", "b/c.py", "d.yml"]), rules)


PLACES = st.sets(st.sampled_from("klmn"), min_size=1).map(sorted).map(tuple)
KNOWN_BEFORE = NOW = rules_of(PLACES)


def part(baseline: Baseline, now: dict[str, dict[str, tuple[str, ...]]]) -> list[tuple[str, str, str]]:
    """What is shown of diagnostics at these places."""
    shown: list[tuple[str, str, str]] = []
    for name, rules in now.items():
        diagnostics = [
            LintDiagnostic(rule, "warning", Span(0, 1), "", place=place) for rule, at in rules.items() for place in at
        ]
        new, known = baseline.part(baseline.file_of(name), diagnostics)
        assert len(new) + len(known) == len(diagnostics)
        shown += [(name, diagnostic.rule, diagnostic.place) for diagnostic in new]
    return shown


def always(_name: str, _rule: str) -> bool:
    return True


@given(KNOWN_BEFORE, NOW)
def test_what_is_shown_is_what_is_new(known, now) -> None:
    expected = [
        (name, rule, place)
        for name, rules in now.items()
        for rule, at in rules.items()
        for place in at
        if place not in known.get(name, {}).get(rule, ())
    ]
    assert part(Baseline("known.json", known), now) == expected


@given(KNOWN_BEFORE, NOW)
def test_pruning_shrinks_and_writing_settles(tmp_path_factory, known, now) -> None:
    baseline = Baseline("known.json", known)
    shown = part(baseline, now)
    fixed = baseline.fixed(always)
    pruned = Baseline("known.json", baseline.pruned(always))
    assert total(pruned.known) == total(known) - total(fixed)
    assert part(pruned, now) == shown, "pruning hides nothing and shows nothing"
    assert pruned.fixed(always) == {}
    path = str(tmp_path_factory.mktemp("known") / "known.json")
    save(path, baseline.renewed(always))
    assert load(path).known == now
    assert part(Baseline("known.json", load(path).known), now) == []


@pytest.mark.parametrize("words", [("fix",), ("check", "--add-ignore")])
def test_what_is_left_when_the_new_is_settled_is_what_was_known(
    project: Path, cgmigrate, words: tuple[str, ...]
) -> None:
    undecided = "a:\n  enable_cuda_graph: true\n  external_cuda_graph: true\n"
    path = write(project / "a.yaml", undecided)
    cgmigrate("check", "--write-baseline", "--baseline", "known.json", ".")
    path.write_text(undecided + "b:\n  external_cuda_graph: true\n")
    assert cgmigrate("check", "--baseline", "known.json", ".").exit_code == 1
    result = cgmigrate(*words, "--baseline", "known.json", ".")
    again = cgmigrate("check", "--baseline", "known.json", ".")
    assert (result.exit_code, result.stdout, again.exit_code) == (0, "", 0)
    # Only the new CG102 gets a fix or a comment.
    assert "diagnostics that are fixed" not in result.stderr + again.stderr
