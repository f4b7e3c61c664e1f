"""The command as users meet it: output, exit status, and every kind of bad input."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cgmigrate.megatron.releases import NEWEST
from cgmigrate.megatron.versions import KNOWN_RANGE
from tests.support.files import write
from tests.support.reports import RELEASES, places_in
from tests.support.tables import from_table

LEGACY = "MODEL_ARGS:\n  --bf16: true\n  --enable-cuda-graph: true\n"
CLEAN = "MODEL_ARGS:\n  --bf16: true\n  --enable-cuda-graph: true\n".replace(
    "enable-cuda-graph: true", "cuda-graph-impl: local"
)


def test_check_shows_place_rule_reason_line_and_fix(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", LEGACY)
    result = cgmigrate("check", "a.yaml")
    assert result.stdout == (
        "warning[CG101] enable-cuda-graph: `--enable-cuda-graph` is deprecated since megatron-core 0.15; "
        "`--cuda-graph-impl` sets the implementation\n"
        "  --> a.yaml:3:3\n"
        "   |\n"
        " 2 |   --bf16: true\n"
        " 3 |   --enable-cuda-graph: true\n"
        "   |   ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "   |\n"
        "help: write `--cuda-graph-impl: local` "
        f"(safe: 0.17: whole layers (local) -> {NEWEST}: the same)\n"
        " 3 -   --enable-cuda-graph: true\n"
        " 3 +   --cuda-graph-impl: local\n\n"
    )
    assert result.stderr == (
        "Found 1 diagnostic (1 warning) in 1 of 1 file.\n"
        f"For more information, run `cgmigrate explain CG101`.\n{RELEASES}Fixes: 1 safe\nNext: cgmigrate fix a.yaml\n"
    )
    assert result.exit_code == 1


def test_the_place_for_which_most_fixes_wait_is_shown_once_for_all(project: Path, cgmigrate) -> None:
    model = "model: {num_layers: 2, hidden_size: 64, num_attention_heads: 4, enable_cuda_graph: true}\n"
    for name in ("a.yaml", "b.yaml"):
        write(project / name, model)
        assert "First:" not in cgmigrate("check", ".").stderr
    write(project / "show.py", 'import re, sys\nprint(re.findall(r"enable_cuda_graph: (.*)", sys.stdin.read()))\n')
    lines = cgmigrate("check", ".").stderr.splitlines()
    first = [line for line in lines if line.startswith("First:")]
    assert first[0].startswith("First: show.py:2 also uses `enable_cuda_graph` and may set")
    assert first[0].endswith("; 2 fixes wait for it") and len(first) == 1
    assert lines.index(first[0]) < lines.index("Fixes: 2 unsafe (--unsafe-fixes)")


def test_fix_writes_what_check_announced_and_a_second_fix_nothing(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", LEGACY)
    diff = cgmigrate("fix", "--diff", "a.yaml")
    assert (diff.exit_code, path.read_text()) == (1, LEGACY)
    assert "-  --enable-cuda-graph: true\n+  --cuda-graph-impl: local\n" in diff.stdout
    first = cgmigrate("fix", "a.yaml")
    assert (first.exit_code, path.read_text()) == (0, CLEAN)
    assert first.stderr == "rewrote a.yaml (1 diagnostic)\nFixed 1 diagnostic in 1 file of 1 file.\n" + RELEASES
    second = cgmigrate("fix", "a.yaml")
    assert (second.exit_code, second.stdout, path.read_text()) == (0, "", CLEAN)
    assert second.stderr == "Checked 1 file: nothing to do.\n" + RELEASES
    assert cgmigrate("check", "a.yaml").exit_code == 0


def test_the_diff_is_a_patch(project: Path, cgmigrate) -> None:
    path = write(project / "sub/a.yaml", LEGACY.replace("\n", "\r\n") + "# Ende\u00e4".replace("\n", "\r\n"))
    patch = cgmigrate("fix", "--diff", ".").stdout_bytes
    done = subprocess.run(["git", "apply", "-"], input=patch, cwd=project, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    by_patch = path.read_bytes()
    assert b"--cuda-graph-impl: local\r\n" in by_patch
    write(path, LEGACY.replace("\n", "\r\n") + "# Ende\u00e4")
    cgmigrate("fix", ".")
    assert path.read_bytes() == by_patch


def test_what_needs_a_decision_stays_and_is_reported(project: Path, cgmigrate) -> None:
    text = "megatron_cfg:\n  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\n"
    path = write(project / "a.yaml", text)
    result = cgmigrate("fix", "--from", "0.16", "a.yaml")
    assert (result.exit_code, path.read_text()) == (1, text)
    assert "because: megatron-core 0.16 captures full iteration in training, the block in inference" in result.stdout
    assert f"{NEWEST} would capture full iteration in training, no graphs in inference" in result.stdout
    assert "1 diagnostic remains" in result.stderr
    unsafe = cgmigrate("fix", "--from", "0.16", "--unsafe-fixes", "a.yaml")
    assert (unsafe.exit_code, path.read_text()) == (0, "megatron_cfg:\n  cuda_graph_impl: full_iteration\n")


def test_an_older_meaning_is_noted_where_the_source_is_assumed(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", "transformer_config:\n  cuda_graph_impl: local\n  cuda_graph_scope: [attn]\n")
    assumed = cgmigrate("check", "a.yaml").stdout
    assert "note: in megatron-core 0.16 this captured whole layers (local) in training, whole layers" in assumed
    assert "note:" not in cgmigrate("check", "--from", "0.17", "a.yaml").stdout


def test_pins_decide_the_releases(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", LEGACY + "  --cuda-graph-scope: attn\n")
    write(project / "requirements.txt", "megatron-core==0.17.1\n")
    result = cgmigrate("fix", "a.yaml")
    # 0.17 has cuda_graph_impl, but not cuda_graph_modules.
    assert path.read_text() == CLEAN + "  --cuda-graph-scope: attn\n"
    assert (
        f"requirements.txt:1 pins megatron-core==0.17.1, which does not know the new names; give --to {NEWEST}"
        in result.stderr
    )
    cgmigrate("fix", "--to", "0.19", "a.yaml")
    assert path.read_text() == CLEAN + "  --cuda-graph-modules: attn\n"


def test_on_019_settings_with_two_readings_are_reported(project: Path, cgmigrate) -> None:
    write(project / "requirements.txt", "megatron-core==0.19.2\n")
    path = write(
        project / "a.yaml", "transformer_config:\n  cuda_graph_impl: none\n  cuda_graph_scope: full_iteration\n"
    )
    before = path.read_text()
    result = cgmigrate("fix", "a.yaml")
    assert (result.exit_code, path.read_text()) == (1, before)
    assert "CG301" in result.stdout


def test_select_and_ignore_take_prefixes(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", LEGACY + "  --cuda-graph-scope: attn\n")
    selected = ("check", "--output-format", "concise")
    assert "CG106" not in cgmigrate(*selected, "--select", "CG101", "a.yaml").stdout
    assert "CG101" not in cgmigrate(*selected, "--ignore", "cg101", "a.yaml").stdout
    # Both settings are rewritten together, so a part of the rules rewrites neither, and the code to add is named.
    before = path.read_text()
    result = cgmigrate("fix", "--select", "CG101", "a.yaml")
    assert path.read_text() == before and "CG106" in result.stdout
    cgmigrate("fix", "--select", "CG101", "--select", "CG106", "a.yaml")
    assert path.read_text() == CLEAN + "  --cuda-graph-modules: attn\n"


# --- bad input: each is reported, the others are still handled, nothing is half written -------------------


@pytest.mark.parametrize(
    ("content", "rule", "line", "message"),
    [
        ("a: [1\nenable_cuda_graph: true\n", "CG001", 2, "not valid YAML"),
        ("a:\n\t- b\nenable_cuda_graph: true\n", "CG001", 2, "not valid YAML"),
        ("{% if x %}\nenable_cuda_graph: true\n{% endif %}\n", "CG002", 1, "template markup"),
        ("a: {{ x }}\nb: [{{ y }}: ]]\n--enable-cuda-graph: true\n", "CG002", 1, "template markup"),
        (b"# M\xfcller\nenable_cuda_graph: true\n", "CG007", 1, "not UTF-8 (byte 3, line 1"),
        ("enable_cuda_graph: true\n".encode("utf-16"), "CG007", 1, "not UTF-8"),
        (b"enable_cuda_graph: true\x00\x01\n", "CG001", 1, "not valid YAML"),
        (
            "a: &a [x]\nmodel: {enable_cuda_graph: true, enable_cuda_graph: false, num_attention_heads: 1}\n",
            "CG005",
            2,
            "line 2",
        ),
    ],
)
def test_a_file_that_cannot_be_read_is_a_diagnostic(project: Path, cgmigrate, content, rule, line, message) -> None:
    bad = write(project / "bad.yaml", content)
    good = write(project / "good.yaml", LEGACY)
    before = bad.read_bytes()
    result = cgmigrate("fix", ".")
    assert (bad.read_bytes(), good.read_text()) == (before, CLEAN)
    places = places_in(result.stdout)
    assert any(re.match(rf"bad.yaml:{line}:\d+: {rule}$", place) for place in places), result.stdout
    assert message in result.stdout
    assert result.exit_code == 1


def test_an_empty_file_and_one_of_comments_have_no_diagnostic(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", "")
    write(project / "b.yaml", "# enable_cuda_graph is gone\n")
    result = cgmigrate("check", ".")
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "",
        f"Checked 2 files: nothing found.\n{RELEASES}",
    )


def test_a_file_of_50_mb_is_reported_and_not_parsed(project: Path, cgmigrate) -> None:
    path = project / "big.yaml"
    with path.open("wb") as file:
        for _ in range(50):
            file.write(b"a: 1234567890\n" * 75_000)
        file.write(b"enable_cuda_graph: true\n")
    result = cgmigrate("check", ".")
    assert result.exit_code == 1
    assert f"[CG008] file-too-large: the file has {path.stat().st_size:,} bytes" in result.stdout


def test_an_alias_bomb_is_no_input_error(project: Path, cgmigrate) -> None:
    lines = ["a0: &a0 {enable_cuda_graph: true, num_attention_heads: 8}"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    write(project / "bomb.yaml", "\n".join(lines) + "\n")
    result = cgmigrate("check", ".")
    assert result.exit_code == 1 and "CG101" in result.stdout


def test_a_missing_path_is_an_error_and_the_rest_is_done(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", LEGACY)
    result = cgmigrate("fix", "nowhere.yaml", "a.yaml")
    assert result.exit_code == 2
    assert "error: nowhere.yaml: " in result.stderr
    assert path.read_text() == CLEAN


def test_links_that_lead_nowhere_or_round_are_reported(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", LEGACY)
    (project / "dead.yaml").symlink_to("gone.yaml")
    (project / "loop.yaml").symlink_to("loop.yaml")
    result = cgmigrate("check", ".")
    assert "warning: dead.yaml: " in result.stderr and "warning: loop.yaml: " in result.stderr
    assert result.exit_code == 1 and "CG101" in result.stdout
    assert cgmigrate("check", "loop.yaml").exit_code == 2


def test_a_linked_file_is_rewritten_and_stays_a_link(project: Path, cgmigrate) -> None:
    real = write(project / "real/a.yaml", LEGACY)
    (project / "link.yaml").symlink_to("real/a.yaml")
    cgmigrate("fix", "link.yaml")
    assert (project / "link.yaml").is_symlink() and real.read_text() == CLEAN


def test_a_read_only_file_is_reported_and_left(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", LEGACY)
    path.chmod(0o444)
    other = write(project / "b.yaml", LEGACY)
    result = cgmigrate("fix", ".")
    assert result.exit_code == 2
    assert "error: a.yaml is read-only" in result.stderr
    assert (path.read_text(), other.read_text()) == (LEGACY, CLEAN)


def test_a_file_that_changes_meanwhile_is_not_overwritten(project: Path, cgmigrate, monkeypatch) -> None:
    from cgmigrate.project import transaction

    path = write(project / "a.yaml", LEGACY)
    real = transaction.write_set

    def late(*arguments: object) -> None:
        path.write_text(LEGACY + "  --new: 1\n")
        real(*arguments)

    monkeypatch.setattr(transaction, "write_set", late)
    result = cgmigrate("fix", "a.yaml")
    assert result.exit_code == 2
    assert path.read_text() == LEGACY + "  --new: 1\n"


def test_a_folder_without_permission_is_reported(project: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody without permission")
    write(project / "a.yaml", LEGACY)
    write(project / "closed/b.yaml", LEGACY)
    (project / "closed").chmod(0o000)
    for folder in (project, *project.parents):
        if folder.stat().st_uid == 0 and folder != Path("/") and not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o005)
    # The first run, as root, imports what somebody else may not be allowed to read.
    code = (
        "import contextlib, io, os\nfrom cgmigrate.cli.commands import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n    main(['check', '.'])\n"
        "os.setgid(65534); os.setuid(65534)\nmain(['check', '.'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=False)
    (project / "closed").chmod(0o755)
    assert done.returncode == 2, done.stderr
    assert "closed" in done.stderr and "CG101" in done.stdout


def test_an_unknown_kind_of_file_is_reported(project: Path, cgmigrate) -> None:
    write(project / "a.log", "enable_cuda_graph = true\n")
    result = cgmigrate("check", "a.log")
    assert "not a kind of file" in result.stderr


def test_usage_errors_are_status_2(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", LEGACY)
    assert cgmigrate("check").exit_code == 2
    assert cgmigrate("check", "--from", "0.11", "a.yaml").exit_code == 2
    assert KNOWN_RANGE in cgmigrate("check", "--from", "0.11", "a.yaml").stderr
    assert cgmigrate("check", "--from", "0.19", "--to", "0.17", "a.yaml").exit_code == 2
    assert cgmigrate("check", "--bogus", "a.yaml").exit_code == 2
    assert cgmigrate("check", "--rules", "nowhere", "a.yaml").exit_code == 2


def test_the_same_input_gives_the_same_output(project: Path, cgmigrate) -> None:
    for number in range(5):
        write(project / f"d{number}/a.yaml", LEGACY + "  --cuda-graph-scope: attn\n")
    runs = [cgmigrate("check", "."), cgmigrate("check", ".")]
    assert runs[0].stdout == runs[1].stdout
    assert [place.split(":")[0] for place in places_in(runs[0].stdout)] == [
        f"d{number}/a.yaml" for number in range(5) for _ in range(2)
    ]


def test_nothing_heavy_is_imported_where_nothing_is_to_be_done(project: Path) -> None:
    write(project / "a.yaml", "model:\n  num_cuda_graphs: 3\n")
    code = (
        "import sys\nfrom cgmigrate.cli.commands import main\n"
        "try: main(['check', 'a.yaml'])\nexcept SystemExit: pass\n"
        "heavy = {'yaml', 'libcst', 'ruamel', 'torch', 'megatron', 'jsonschema', 'packaging', 'difflib'}\n"
        "heavy |= {'cgmigrate.project.patterns'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- files that are merged ------------------------------------------------------------------------------


PARENT = "policy:\n  megatron_cfg:\n    external_cuda_graph: true\n    cuda_graph_scope: attn\n"


@from_table
def test_a_parent_is_not_rewritten_under_the_feet_of_its_child(project: Path, cgmigrate, child: str) -> None:
    parent = write(project / "configs/base.yaml", PARENT)
    write(project / "configs/child.yaml", child)
    result = cgmigrate("fix", ".")
    assert parent.read_text() == PARENT
    assert (project / "configs/child.yaml").read_text() == child
    assert "configs/base.yaml:3:5: CG010" in places_in(result.stdout)
    assert "merged-into-unresolved-config: the file is merged into `configs/child.yaml`" in result.stdout
    assert result.exit_code == 1


def test_a_child_that_is_not_named_is_found_in_the_checkout(tmp_path: Path, cgmigrate, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    parent = write(tmp_path / "configs/base.yaml", PARENT)
    write(
        tmp_path / "other/child.yaml",
        "defaults: ../configs/base.yaml\npolicy:\n  megatron_cfg:\n    cuda_graph_scope: mlp\n",
    )
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "add", "other"], check=True)
    monkeypatch.chdir(tmp_path / "configs")
    result = cgmigrate("fix", "base.yaml")
    assert (result.exit_code, parent.read_text()) == (1, PARENT)
    assert "base.yaml:3:5: CG102" in places_in(result.stdout)
    child = tmp_path / "other/child.yaml"
    assert f"blocked by: {child}, which has to change with this file" in result.stdout
    assert f"help: run `cgmigrate fix {child} base.yaml`" in result.stdout
    (tmp_path / "other/child.yaml").unlink()
    assert cgmigrate("fix", "base.yaml").exit_code == 0
    assert "cuda_graph_impl: transformer_engine" in parent.read_text()


def test_a_code_that_selects_nothing_is_an_error(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", LEGACY)
    assert "no rule's code begins with CG9" in cgmigrate("check", "--select", "CG9", "a.yaml").stderr
    assert cgmigrate("check", "--select", "CG9", "a.yaml").exit_code == 2
