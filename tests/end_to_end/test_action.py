"""The GitHub action and the GitLab include: valid for their vendors, and their shell does what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.support.installing import copy_of_checkout, skip_without_registry
from tests.support.nightly import nightly_only
from tests.support.paths import ROOT
from tests.support.tables import from_table

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((ROOT / "ci/gitlab.yml").read_text(encoding="utf-8"))["cgmigrate"]
README = "".join((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "docs/gates.md"))

LEGACY = "MODEL_ARGS:\n  --bf16: true\n  --enable-cuda-graph: true\n"
MIGRATED = "MODEL_ARGS:\n  --bf16: true\n  --cuda-graph-impl: local\n"

# --- valid for their vendors ----------------------------------------------------------------------


def valid(schema: str, path: Path) -> subprocess.CompletedProcess[str]:
    transform = ["--data-transform", "gitlab-ci"] if schema == "gitlab-ci" else []
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *transform, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def snippet(start: str) -> str:
    """The block of the README, or of the page about gates, that begins with a text; both have the same."""
    (match,) = {block for block in re.findall(r"^```yaml\n(.*?)^```$", README, re.M | re.S) if block.startswith(start)}
    return match


@from_table
def test_what_runs_in_ci_is_valid_there(tmp_path: Path, kind: str, file: str, old: str, new: str) -> None:
    done = valid(kind, ROOT / file)
    assert done.returncode == 0, done.stdout
    wrong = tmp_path / Path(file).name
    wrong.write_text((ROOT / file).read_text().replace(old, new, 1))
    assert valid(kind, wrong).returncode == 1


def test_what_the_readme_gives_to_copy_is_valid(tmp_path: Path) -> None:
    workflow, include = tmp_path / "workflow.yml", tmp_path / ".gitlab-ci.yml"
    workflow.write_text(snippet("name: cgmigrate\n"))
    include.write_text(snippet("include:\n"))
    for schema, path in (("github-workflows", workflow), ("gitlab-ci", include)):
        done = valid(schema, path)
        assert done.returncode == 0, done.stdout
    (job,) = yaml.safe_load(workflow.read_text())["jobs"].values()
    rev = job["steps"][-1]["uses"].partition("/cgmigrate@")[2]
    assert job["permissions"] == {"contents": "read", "security-events": "write"}
    pipeline = yaml.safe_load(include.read_text())
    assert pipeline["include"][0]["remote"].endswith(f"/{rev}/ci/gitlab.yml")
    assert pipeline["variables"]["CGMIGRATE"].endswith(f"@{rev}")


def test_every_input_of_the_action_is_used_and_no_script_contains_an_expression() -> None:
    steps = ACTION["runs"]["steps"]
    used = set(re.findall(r"inputs\.([\w-]+)", json.dumps(steps)))
    assert used == set(ACTION["inputs"])
    # What a pull request may choose must not become shell.
    assert not [step["name"] for step in steps if "${{" in step.get("run", "")]


def test_the_upload_happens_also_on_diagnostics_but_not_for_forks() -> None:
    upload = ACTION["runs"]["steps"][-1]
    assert upload["uses"].startswith("github/codeql-action/upload-sarif@")
    for condition in ("!cancelled()", "!github.event.pull_request.head.repo.fork", "inputs.upload-sarif == 'true'"):
        assert condition in upload["if"]


# --- the steps of the action ----------------------------------------------------------------------


@dataclass
class Runner:
    """A runner of GitHub's with a repository checked out, and a `cgmigrate` where the action installs it."""

    folder: Path
    inputs: dict[str, str]

    def __post_init__(self) -> None:
        (self.folder / "repo").mkdir()
        (self.folder / "temp/cgmigrate/bin").mkdir(parents=True)
        self.install(f'exec env PYTHONPATH="{ROOT}" "{sys.executable}" -m cgmigrate "$@"')

    @property
    def repo(self) -> Path:
        return self.folder / "repo"

    @property
    def summary(self) -> str:
        return (self.folder / "summary").read_text()

    def install(self, script: str) -> None:
        program = self.folder / "temp/cgmigrate/bin/cgmigrate"
        program.write_text(f"#!/usr/bin/env bash\n{script}\n")
        program.chmod(0o755)

    def step(self, name: str, action: Path = ROOT, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run one step as GitHub does: inputs in its environment, bash with -e and pipefail."""
        (step,) = [step for step in ACTION["runs"]["steps"] if step["name"] == name]
        inputs = {key: entry["default"] for key, entry in ACTION["inputs"].items()} | self.inputs
        variables = {
            key: re.sub(r"\${{ inputs\.([\w-]+) }}", lambda m: inputs[m[1]], v) for key, v in step["env"].items()
        }
        files = {"GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary", "RUNNER_TEMP": "temp"}
        env = os.environ | {key: str(self.folder / file) for key, file in files.items()} | variables
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.repo,
            env=env | {"GITHUB_ACTION_PATH": str(action)} | variables,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path, {})


def test_options_and_paths_reach_the_command_as_they_are_meant(runner: Runner) -> None:
    runner.install('printf "<%s>" "$@"')
    runner.inputs = {"args": "--from 0.16  --exclude *.py", "paths": "my conf\n$(id)\n"}
    (runner.repo / "a.py").touch()
    assert (
        runner.step("Check").stdout
        == "<check><--output-format><github><--from><0.16><--exclude><*.py><--><my conf><$(id)>"
    )
    runner.inputs = {"annotate": "false"}
    assert runner.step("Check").stdout == "<check><--output-format><full><--><.>"


def test_an_option_that_cannot_be_used_fails_the_action(runner: Runner) -> None:
    runner.inputs = {"args": "--no-such-option"}
    done = runner.step("Write reports")
    assert done.returncode == 2 and "--no-such-option" in done.stderr


def test_a_summary_is_cut_where_github_would_refuse_it(runner: Runner) -> None:
    runner.install('while [ "$1" != --output-file ]; do shift; done; head -c 2000000 /dev/zero > "$2"')
    assert runner.step("Write reports").returncode == 0
    assert len(runner.summary) == 1_000_000
    assert (runner.folder / "output").read_text() == f"sarif={runner.folder}/temp/cgmigrate.sarif\n"


def test_the_action_reports_uploads_and_fails_on_diagnostics(runner: Runner) -> None:
    (runner.repo / "train.yaml").write_text(LEGACY)
    assert runner.step("Write reports").returncode == 0
    sarif = json.loads((runner.folder / "temp/cgmigrate.sarif").read_text())
    (result,) = sarif["runs"][0]["results"]
    assert result["ruleId"] == "CG101"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "train.yaml"
    assert "CG101" in runner.summary
    done = runner.step("Check")
    assert done.returncode == 1
    assert re.search(r"^::warning .*file=train\.yaml,line=3,", done.stdout, re.M)


def test_the_action_passes_when_nothing_is_found(runner: Runner) -> None:
    (runner.repo / "train.yaml").write_text(MIGRATED)
    assert [runner.step(name).returncode for name in ("Write reports", "Check")] == [0, 0]
    assert json.loads((runner.folder / "temp/cgmigrate.sarif").read_text())["runs"][0]["results"] == []


def test_the_action_installs_itself(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "action").mkdir()
    action = copy_of_checkout(tmp_path / "action")
    runner.inputs = {"python": sys.executable}
    done = runner.step("Install cgmigrate", action)
    if done.returncode != 0:
        skip_without_registry(tmp_path, os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    (runner.repo / "train.yaml").write_text(LEGACY)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    program = runner.folder / "temp/cgmigrate/bin/cgmigrate"
    result = subprocess.run(
        [program, "check", "--output-format", "concise", "."],
        cwd=runner.repo,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1 and "train.yaml:3:3: CG101" in result.stdout


# --- a checkout that is hostile -------------------------------------------------------------------

MODULES = ("venv", "pip", "ensurepip", "logging", "argparse", "click", "yaml", "sitecustomize")

# Builds a wheel without anything from a registry.
BACKEND = """
import zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(f"{folder}/tiny-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "")
        wheel.writestr("tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1\\n")
        wheel.writestr("tiny-1.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\nRoot-Is-Purelib: true\\n")
        wheel.writestr("tiny-1.dist-info/RECORD", "")
    return "tiny-1-py3-none-any.whl"
"""


def hostile(folder: Path) -> Path:
    """Fill a checkout with modules that shadow what an installation imports; return the file that they write."""
    marker = folder.parent / "executed"
    for name in MODULES:
        (folder / f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write({name!r})\n")
    return marker


@pytest.mark.parametrize("search_path", [pytest.param("", marks=nightly_only), "."])
def test_the_installation_runs_no_code_of_the_checkout(runner: Runner, tmp_path: Path, search_path: str) -> None:
    marker = hostile(runner.repo)
    action = tmp_path / "action"
    action.mkdir()
    (action / "backend.py").write_text(BACKEND)
    (action / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    runner.inputs = {"python": sys.executable}
    done = runner.step("Install cgmigrate", action, PYTHONPATH=search_path)
    assert not marker.exists(), marker.read_text()
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("step", ["Write reports", "Check"])
def test_a_check_runs_no_code_of_the_checkout(runner: Runner, step: str) -> None:
    marker = hostile(runner.repo)
    (runner.repo / "train.yaml").write_text(LEGACY)
    program = runner.folder / "temp/cgmigrate/bin/cgmigrate"
    # As pip writes it: a script of Python, whose search path starts with the script's own folder.
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from cgmigrate.cli.commands import main\nmain()\n"
    )
    done = runner.step(step, PYTHONPATH=".")
    assert not marker.exists(), marker.read_text()
    assert done.returncode == (1 if step == "Check" else 0), done.stderr


def test_actions_of_others_are_pinned_by_commit() -> None:
    used = [step["uses"] for step in ACTION["runs"]["steps"] if "uses" in step]
    used += re.findall(r"uses: (actions/\S+)", README)
    assert len(used) == 3
    assert [action for action in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action)] == []


# --- the job of GitLab ----------------------------------------------------------------------------


def job(folder: Path, cgmigrate: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the job's script as GitLab's runner does, with a `pip` that only prints its arguments."""
    (folder / "bin").mkdir(exist_ok=True)
    for name, script in (("pip", 'echo "pip $*"'), ("cgmigrate", cgmigrate)):
        (folder / "bin" / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
        (folder / "bin" / name).chmod(0o755)
    (folder / "repo").mkdir(exist_ok=True)
    env = os.environ | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"} | variables
    command = ["bash", "-eo", "pipefail", "-c", "\n".join(GITLAB["script"])]
    return subprocess.run(command, cwd=folder / "repo", env=env, capture_output=True, text=True, check=False)


def test_the_job_writes_the_report_before_it_fails(tmp_path: Path) -> None:
    say = 'printf "<%s>" "$@"; echo; case "$*" in *--exit-zero*) ;; *) exit 1; esac'
    done = job(tmp_path, say, CGMIGRATE="git+https://example.org/a@v1", CGMIGRATE_ARGS="--from 0.16")
    report = GITLAB["artifacts"]["reports"]["codequality"]
    assert done.stdout.splitlines() == [
        "pip install --quiet --root-user-action=ignore git+https://example.org/a@v1",
        f"<check><--output-format><gitlab><--output-file><{report}><--exit-zero><--from><0.16><--><.>",
        "<check><--from><0.16><--><.>",
    ]
    assert done.returncode == 1
    assert GITLAB["artifacts"]["when"] == "always"


def test_the_job_searches_no_folder_of_the_checkout_for_modules(tmp_path: Path) -> None:
    done = job(tmp_path, 'echo "<${PYTHONPATH-}${PYTHONHOME-}>"', CGMIGRATE="cgmigrate", PYTHONPATH=".")
    assert done.stdout.splitlines()[1:] == ["<>", "<>"]


def test_the_job_says_what_is_not_set(tmp_path: Path) -> None:
    done = job(tmp_path, "true")
    assert done.returncode != 0 and "CGMIGRATE: is to say what pip installs" in done.stderr


@pytest.mark.parametrize(("text", "status", "rules"), [(LEGACY, 1, ["CG101"]), (MIGRATED, 0, [])])
def test_the_job_reports_and_fails_on_diagnostics(tmp_path: Path, text: str, status: int, rules: list[str]) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo/train.yaml").write_text(text)
    run = f'exec env PYTHONPATH="{ROOT}" "{sys.executable}" -m cgmigrate "$@"'
    done = job(tmp_path, run, CGMIGRATE="cgmigrate")
    assert done.returncode == status
    report = json.loads((tmp_path / "repo/gl-code-quality-report.json").read_text())
    assert [entry["check_name"] for entry in report] == rules
