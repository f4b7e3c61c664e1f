"""Nothing outside of the paths is written, whatever links and configurations of the tree say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.checkouts import staged
from tests.support.reports import places_in

Command = Callable[..., Result]

LEGACY = "MODEL_ARGS:\n  --bf16: true\n  --enable-cuda-graph: true\n"
MIGRATED = "MODEL_ARGS:\n  --bf16: true\n  --cuda-graph-impl: local\n"


@pytest.fixture
def victim(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file outside of the project."""
    path = tmp_path_factory.mktemp("outside") / "victim.yaml"
    path.write_text(LEGACY)
    return path


def lead_to(victim: Path, project: Path, how: str) -> str:
    """Make a name in the project that leads to the victim."""
    if how == "link":
        (project / "a.yaml").symlink_to(victim)
        return "a.yaml"
    if how == "chain":
        (project / "z").symlink_to(victim)
        (project / "a.yaml").symlink_to("z")
        return "a.yaml"
    # Git lists a tracked file although its folder became a link.
    (project / "conf").mkdir()
    (project / "conf/victim.yaml").write_text(LEGACY)
    (project / ".git/HEAD").unlink()
    staged(project)
    (project / "conf/victim.yaml").unlink()
    (project / "conf").rmdir()
    (project / "conf").symlink_to(victim.parent)
    return "conf/victim.yaml"


@pytest.mark.parametrize("how", ["link", "chain", "folder"])
@pytest.mark.parametrize(
    "words",
    [("fix",), ("fix", "--unsafe-fixes"), ("fix", "--interactive"), ("fix", "--diff"), ("check", "--add-ignore")],
)
def test_a_link_out_of_the_tree_is_reported_and_not_written(
    project: Path, victim: Path, cgmigrate: Command, words: tuple[str, ...], how: str
) -> None:
    name = lead_to(victim, project, how)
    done = cgmigrate(*words, ".")
    assert victim.read_text() == LEGACY
    assert done.exit_code == 1, done.output
    assert "+  --" not in done.stdout
    if words != ("fix", "--diff"):
        assert str(victim) in done.output
        assert f"{name}:3:3: CG101" in places_in(done.stdout)


def test_such_a_link_is_named_with_what_to_do(project: Path, victim: Path, cgmigrate: Command) -> None:
    lead_to(victim, project, "link")
    done = cgmigrate("check", ".")
    assert f"blocked by: a link that leads out of the paths: the file is {victim}" in done.stdout
    assert "help: give the path of the file itself, or of this link" in done.stdout
    (diagnostic,) = json.loads(cgmigrate("check", "--format", "json", ".").stdout)["findings"]
    assert diagnostic["fix"] is None


@pytest.mark.parametrize("name", ["a.yaml", "VICTIM", "FOLDER", "link"])
def test_a_path_of_the_command_line_is_written(project: Path, victim: Path, cgmigrate: Command, name: str) -> None:
    lead_to(victim, project, "link")
    (project / "link").symlink_to(victim.parent)
    words = [{"VICTIM": str(victim), "FOLDER": str(victim.parent)}.get(name, name)]
    done = cgmigrate("fix", *words)
    assert (done.exit_code, victim.read_text()) == (0, MIGRATED), done.output


def test_a_link_that_stays_in_the_tree_is_followed(project: Path, cgmigrate: Command) -> None:
    (project / "real").write_text(LEGACY)
    (project / "a.yaml").symlink_to("real")
    assert cgmigrate("fix", ".").exit_code == 0
    assert (project / "real").read_text() == MIGRATED and (project / "a.yaml").is_symlink()


@pytest.mark.parametrize("how", ["path", "link"])
@pytest.mark.parametrize("option", ["--write-baseline", "--prune-baseline"])
def test_a_baseline_of_a_configuration_is_not_written_outside(
    project: Path, victim: Path, cgmigrate: Command, how: str, option: str
) -> None:
    content = json.dumps({"version": 2, "diagnostics": {"gone.yaml": {"CG101": ["a"]}}})
    victim.write_text(content)
    (project / "a.yaml").write_text(LEGACY)
    if how == "link":
        (project / "known.json").symlink_to(victim)
    name = "known.json" if how == "link" else str(victim)
    (project / "cgmigrate.toml").write_text(f'baseline = "{name}"\n')
    done = cgmigrate("check", option, ".")
    assert (done.exit_code, victim.read_text()) == (2, content), done.output
    assert "is outside of its project" in done.stderr and str(victim) in done.stderr
    assert cgmigrate("check", option, "--baseline", name, ".").exit_code in (0, 1)
    assert victim.read_text() != content
