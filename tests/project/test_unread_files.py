"""Files of kinds that are not read: a run reports those that set a setting, and says nothing of the others."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from time import process_time

import pytest

from cgmigrate.documents.unread import UnreadDocument
from tests.support.files import write
from tests.support.tables import from_table

SCOPE = '{"model": {"cuda_graph_scope": "full"}}\n'


def reported(cgmigrate, *words: str) -> list[str]:
    shown = cgmigrate("check", "--output-format", "concise", *(words or ["."])).stdout
    return [line.partition(" ")[0] for line in shown.splitlines() if " CG014 " in line]


@pytest.mark.parametrize("in_git", [True, False])
def test_a_setting_in_a_file_that_is_not_read_fails_the_gate(project: Path, cgmigrate, in_git: bool) -> None:
    if in_git:
        (project / ".git/HEAD").unlink()
        subprocess.run(["git", "init", "-q", "."], check=True)
    write("conf/a.json", SCOPE)
    write("conf/run.sh.j2", "python pretrain_gpt.py \\\n  --cuda-graph-scope {{ scope }}\n")
    result = cgmigrate("check", "--output-format", "concise", ".")
    assert result.exit_code == 1
    assert result.stdout == (
        "conf/a.json:1:13: CG014 sets `cuda_graph_scope`; cgmigrate does not read this kind of file\n"
        "conf/run.sh.j2:2:3: CG014 sets `--cuda-graph-scope`; cgmigrate does not read this kind of file\n"
    )


@from_table
def test_every_kind_of_text_is_searched(project: Path, cgmigrate, name: str) -> None:
    write(name, "run pretrain_gpt.py --cuda-graph-scope attn\n")
    assert reported(cgmigrate) == reported(cgmigrate, name) == [f"{name}:1:21:"]
    assert cgmigrate("fix", "--unsafe-fixes", ".").exit_code == 1
    assert Path(name).read_text() == "run pretrain_gpt.py --cuda-graph-scope attn\n"


def test_a_script_of_pbs_is_read(project: Path, cgmigrate) -> None:
    write("job.pbs", "#PBS -l ncpus=8\ntorchrun pretrain_gpt.py --external-cuda-graph\n")
    cgmigrate("fix", ".")
    assert "--cuda-graph-impl transformer_engine" in Path("job.pbs").read_text()


@from_table
def test_what_looks_like_a_setting_is_one(line: str) -> None:
    assert len(UnreadDocument(line, "/p/a.cfg").problems) == 1


@from_table
def test_other_text_is_none(line: str) -> None:
    assert UnreadDocument(f"x\n{line}\n", "/p/a.cfg").problems == []


def test_each_name_is_reported_once_a_file(project: Path, cgmigrate) -> None:
    write("a.cfg", "cuda_graph_scope = a\ncuda_graph_scope = b\nexternal_cuda_graph = true\n")
    assert reported(cgmigrate) == ["a.cfg:1:1:", "a.cfg:3:1:"]


QUIET = {
    "a log": ("a.log", SCOPE),
    "a patch": ("a.patch", SCOPE),
    "a table": ("a.csv", SCOPE),
    "a page": ("a.html", SCOPE),
    "a changelog": ("CHANGELOG", SCOPE),
    "bytes": ("a.dat", f"\0{SCOPE}"),
    "a generated file": ("a.cfg", f"# @generated\n{SCOPE}"),
    "a result": ("outputs/config.json", SCOPE),
}


@pytest.mark.parametrize(("name", "text"), QUIET.values(), ids=QUIET)
def test_files_that_only_quote_settings_are_not_reported(project: Path, cgmigrate, name: str, text: str) -> None:
    write(name, text)
    assert reported(cgmigrate) == []


def test_a_file_may_have_any_size_and_encoding(project: Path, cgmigrate) -> None:
    write("a.json", " " * (5 * 1024 * 1024) + SCOPE)
    Path("b.cfg").write_bytes("# größe\ncuda_graph_scope = attn\n".encode("latin-1"))
    assert reported(cgmigrate) == [f"a.json:1:{5 * 1024 * 1024 + 13}:", "b.cfg:2:1:"]


def test_an_excluded_file_and_one_that_git_ignores_are_not_reported(project: Path, cgmigrate) -> None:
    write("out/a.json", SCOPE)
    write("b.json", SCOPE)
    write(".gitignore", "out/\n")
    assert reported(cgmigrate, "--exclude", "b.json", ".") == []


def test_a_comment_and_a_baseline_settle_it(project: Path, cgmigrate) -> None:
    write("a.cfg", "cuda_graph_scope = attn  # cgmigrate: ignore[CG014] reason: read by our own tool\n")
    write("b.cfg", "cuda_graph_scope = attn\n")
    assert reported(cgmigrate) == ["b.cfg:1:1:"]
    cgmigrate("check", "--write-baseline", "--baseline", "known.json", ".")
    assert cgmigrate("check", "--baseline", "known.json", ".").exit_code == 0


def test_no_comment_is_added(project: Path, cgmigrate) -> None:
    write("a.json", SCOPE)
    cgmigrate("check", "--add-ignore", ".")
    assert Path("a.json").read_text() == SCOPE


def test_baselines_and_reports_of_cgmigrate_are_not_reported(project: Path, cgmigrate) -> None:
    write("a.yaml", "m:\n  external_cuda_graph: true\n")
    cgmigrate("check", "--write-baseline", "--baseline", "known.json", ".")
    for name in ("json", "sarif", "gitlab", "rdjson"):
        cgmigrate("check", "--output-format", name, "--output-file", f"{name}.json", "a.yaml")
    assert len(list(project.glob("*.json"))) == 5
    assert reported(cgmigrate) == []


def test_a_setting_that_the_release_does_not_deprecate_is_none(project: Path, cgmigrate) -> None:
    write("a.cfg", "cuda_graph_scope = attn\n")
    assert reported(cgmigrate, "--from", "0.17", "--to", "0.17", ".") == []


def test_programs_get_it_too(project: Path, cgmigrate) -> None:
    write("a.json", SCOPE)
    (one,) = json.loads(cgmigrate("check", "--output-format", "json", ".").stdout)["findings"]
    assert (one["rule"], one["severity"], one["fix"]) == ("CG014", "warning", None)


def test_the_search_takes_time_linear_in_the_text() -> None:
    def seconds(count: int) -> float:
        text = "my cuda_graph_scope  " * count + " " * count * 100 + '"cuda_graph_scope": 1'
        start = process_time()
        UnreadDocument(text, "/p/a.json")
        return process_time() - start

    seconds(10)
    assert seconds(20_000) < 8 * seconds(5_000) + 0.2
