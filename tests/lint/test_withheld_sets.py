"""A withheld set is one diagnostic with its other places as related ones, in every format and count."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.support.files import write

Command = Callable[..., Result]

BASE = "policy:\n  megatron_cfg:\n    external_cuda_graph: true\n    cuda_graph_scope: attn\n"
CHILD = "defaults: base.yaml\npolicy:\n  megatron_cfg:\n    cuda_graph_scope: {}\n"
IGNORE = "  # cgmigrate: ignore[CG106]"
FORMATS = ("full", "concise", "json", "sarif", "github", "gitlab")


@pytest.fixture
def chain(project: Path) -> Path:
    """A base and two children that change together, in a git checkout; a comment withholds their set."""
    (project / ".git/HEAD").unlink()
    subprocess.run(["git", "init", "-q", "."], check=True)
    write("conf/base.yaml", BASE)
    write("conf/one.yaml", CHILD.format("[attn, mlp]" + IGNORE))
    write("conf/two.yaml", CHILD.format("mlp"))
    subprocess.run(["git", "add", "."], check=True)
    return project


def report(cgmigrate: Command, *words: str) -> dict[str, Any]:
    return dict(json.loads(cgmigrate("check", "--output-format", "json", *words).stdout))


def test_a_set_is_reported_once_with_its_other_places(chain: Path, cgmigrate: Command) -> None:
    data = report(cgmigrate, ".")
    (one,) = data["findings"]
    assert data["summary"]["findings"] == data["summary"]["files_with_findings"] == 1
    assert (one["path"], one["line"], one["rule"]) == ("conf/base.yaml", 3, "CG102")
    assert one["blocked_by"].startswith("CG106 in conf/one.yaml:4, which a comment suppresses")
    assert [(other["path"], other["line"], other["rule"]) for other in one["related"]] == [
        ("conf/base.yaml", 4, "CG106"),
        ("conf/one.yaml", 4, "CG106"),
        ("conf/two.yaml", 4, "CG106"),
    ]


def test_mappings_that_one_of_them_blocks_are_reported_once(chain: Path, cgmigrate: Command) -> None:
    write("conf/one.yaml", CHILD.format("${oc.env:SCOPE,attn}"))
    first, second = report(cgmigrate, ".")["findings"]
    assert (first["path"], first["line"], second["path"], second["rule"]) == (
        "conf/base.yaml",
        3,
        "conf/one.yaml",
        "CG003",
    )
    assert "conf/one.yaml:4, which cannot be rewritten" in first["blocked_by"]
    assert [(other["path"], other["line"]) for other in first["related"]] == [
        ("conf/base.yaml", 4),
        ("conf/two.yaml", 4),
    ]


def test_the_next_command_explains_the_set(chain: Path, cgmigrate: Command) -> None:
    shown = cgmigrate("check", "--to", "0.19", ".")
    command = "cgmigrate explain --to 0.19 conf/base.yaml:3"
    assert f"Next: {command}" in shown.output
    assert "withheld" in cgmigrate(*command.split()[1:]).stdout


def test_related_places_of_sarif_are_locations(chain: Path, cgmigrate: Command) -> None:
    document = json.loads(cgmigrate("check", "--output-format", "sarif", ".").stdout)
    (result,) = document["runs"][0]["results"]
    places = [one["physicalLocation"] for one in result["relatedLocations"]]
    assert [(one["artifactLocation"]["uri"], one["region"]["startLine"]) for one in places] == [
        ("conf/base.yaml", 4),
        ("conf/one.yaml", 4),
        ("conf/two.yaml", 4),
    ]
    assert [one["id"] for one in result["relatedLocations"]] == [1, 2, 3]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_shows_or_counts_the_other_places(chain: Path, cgmigrate: Command, name: str) -> None:
    result = cgmigrate("check", "--output-format", name, ".")
    assert result.exit_code == 1
    shown = "(and 3 more places)" if name == "concise" else "conf/two.yaml"
    assert shown in result.stdout
    also = "conf/base.yaml:4 (CG106), conf/one.yaml:4 (CG106), conf/two.yaml:4 (CG106)"
    assert (f"also: {also}" in result.stdout) is (name in ("full", "github", "gitlab"))


def test_fix_counts_what_check_reports(chain: Path, cgmigrate: Command) -> None:
    checked, fixed = cgmigrate("check", "."), cgmigrate("fix", ".")
    assert "Found 1 diagnostic (1 warning) in 1 of 3 files." in checked.stderr
    assert "; 1 diagnostic remains." in fixed.stderr
    assert (checked.exit_code, fixed.exit_code) == (1, 1)
    assert Path("conf/base.yaml").read_text() == BASE


def test_a_set_is_reported_at_a_file_of_the_run(chain: Path, cgmigrate: Command) -> None:
    write("conf/one.yaml", CHILD.format("[attn, mlp]"))
    (one,) = report(cgmigrate, "conf/two.yaml")["findings"]
    assert one["path"] == "conf/two.yaml"
    assert one["help"] == "run `cgmigrate fix conf/base.yaml conf/one.yaml conf/two.yaml`"
    assert {other["path"] for other in one["related"]} == {"conf/base.yaml", "conf/one.yaml"}


def test_a_set_that_is_applied_has_a_diagnostic_at_each_place(chain: Path, cgmigrate: Command) -> None:
    write("conf/one.yaml", CHILD.format("[attn, mlp]"))
    findings = report(cgmigrate, ".")["findings"]
    assert len(findings) == 4 and all(one["fix"] and not one["related"] for one in findings)


def test_a_baseline_has_each_place_so_that_a_new_one_is_reported(chain: Path, cgmigrate: Command) -> None:
    assert cgmigrate("check", "--baseline", "known.json", "--write-baseline", ".").exit_code == 0
    assert report(cgmigrate, "--baseline", "known.json", ".")["findings"] == []
    write("conf/three.yaml", CHILD.format("attn"))
    subprocess.run(["git", "add", "."], check=True)
    (one,) = report(cgmigrate, "--baseline", "known.json", ".")["findings"]
    assert one["path"] == "conf/three.yaml" and len(one["related"]) == 4


def test_each_place_of_a_set_gets_a_comment(chain: Path, cgmigrate: Command) -> None:
    assert cgmigrate("check", "--add-ignore", ".").exit_code == 0
    assert cgmigrate("check", ".").exit_code == 0
    assert "ignore[CG102]" in Path("conf/base.yaml").read_text()
    assert "ignore[CG106]" in Path("conf/two.yaml").read_text()


def test_lines_of_related_places_are_those_after_other_fixes(chain: Path, cgmigrate: Command) -> None:
    other = "# a\nmodel:\n  megatron:\n    enable_cuda_graph: false\n    # b\n    num_layers: 1\n"
    write("conf/base.yaml", other + BASE)
    result = cgmigrate("fix", "--output-format", "json", ".")
    (one,) = [one for one in json.loads(result.stdout)["findings"] if one["related"]]
    lines = Path("conf/base.yaml").read_text().splitlines()
    assert "external_cuda_graph" in lines[one["line"] - 1]
    assert "cuda_graph_scope" in lines[one["related"][0]["line"] - 1]


def test_an_error_of_a_set_is_the_one_that_is_reported(project: Path, cgmigrate: Command) -> None:
    write(
        "a.yaml",
        "model:\n  megatron:\n    cuda_graph_scope: attn  # cgmigrate: ignore[CG106]\n    enable_cuda_graph: true\n"
        "    cuda_graph_impl: local\n",
    )
    findings = report(cgmigrate, ".")["findings"]
    assert "error" in {one["severity"] for one in findings}
    assert cgmigrate("check", "--fail-on", "error", ".").exit_code == 1


def test_what_a_rule_leaves_to_a_person_is_reported_at_each_place(chain: Path, cgmigrate: Command) -> None:
    write("conf/base.yaml", CHILD.format("full_iteration").partition("\n")[2])
    write("conf/one.yaml", CHILD.format("full_iteration"))
    write("conf/two.yaml", CHILD.format("full_iteration"))
    findings = report(cgmigrate, ".")["findings"]
    assert [(one["path"], one["rule"], one["related"]) for one in findings] == [
        (f"conf/{name}.yaml", "CG301", []) for name in ("base", "one", "two")
    ]
