"""What was proved before is used again only while all is the same on which it depends."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.linking.python.proofs import Proofs
from cgmigrate.lint import proof_cache, python_objects
from cgmigrate.lint.proof_cache import Outcome, key_of, load, store
from cgmigrate.megatron.releases import NEWEST
from cgmigrate.project.checkout import code_of
from tests.support.checkouts import project_of
from tests.support.paths import ROOT

RECIPE = ("recipes/a.py", 0)
READER = ("recipes/b.py", 2)
OUTCOME = Outcome((frozenset((RECIPE, READER)), frozenset()), {RECIPE: 1}, {("recipes/c.py", 1): "a test reads it"})


def test_a_result_is_kept_as_it_is() -> None:
    store("key", OUTCOME, [])

    assert load("key") == OUTCOME
    assert load("another") is None


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"key": "key", "others": 1}', '{"key": "key", "others": {}, "groups": [[1]]}', "\0"]
)
def test_what_cannot_be_read_is_no_result(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGMIGRATE_CACHE_DIR", str(tmp_path))
    store("key", OUTCOME, [])
    (tmp_path / "proofs/key.json").write_text(text)

    assert load("key") is None


def as_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")


def of_another_user(path: Path) -> None:
    as_root()
    os.chown(path, 12345, 12345)


def behind_a_link(path: Path) -> None:
    elsewhere = path.with_name(f"elsewhere-{path.name}")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def moved(path: Path) -> None:
    """Somebody gave the result of another proof this name."""
    store("another", Outcome((), {}, {}), [])
    os.replace(path.with_name("another.json"), path)


FORGED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a file of another user": ("proofs/key.json", of_another_user),
    "a folder of another user": ("proofs", of_another_user),
    "a file that others may read": ("proofs/key.json", lambda path: path.chmod(0o644)),
    "a file that the group may write": ("proofs/key.json", lambda path: path.chmod(0o620)),
    "a file that everybody may write": ("proofs/key.json", lambda path: path.chmod(0o602)),
    "a folder that others may read": ("proofs", lambda path: path.chmod(0o755)),
    "a folder that the group may write": ("proofs", lambda path: path.chmod(0o770)),
    "a folder that everybody may write": ("proofs", lambda path: path.chmod(0o1777)),
    "a link to a file": ("proofs/key.json", behind_a_link),
    "a link to a folder": ("proofs", behind_a_link),
    "a result of another proof": ("proofs/key.json", moved),
}


@pytest.mark.parametrize(("name", "forge"), FORGED.values(), ids=FORGED.keys())
def test_what_others_may_have_written_is_no_result(
    name: str, forge: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CGMIGRATE_CACHE_DIR", str(tmp_path))
    store("key", OUTCOME, [])
    assert load("key") == OUTCOME
    forge(tmp_path / name)
    assert load("key") is None


def test_a_folder_that_others_could_write_is_made_private_with_the_next_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CGMIGRATE_CACHE_DIR", str(tmp_path))
    (tmp_path / "proofs").mkdir()
    (tmp_path / "proofs").chmod(0o777)
    (tmp_path / "proofs/key.json").write_text("{}")
    store("key", OUTCOME, [])
    assert load("key") == OUTCOME
    assert [path.stat().st_mode & 0o777 for path in (tmp_path / "proofs", tmp_path / "proofs/key.json")] == [
        0o700,
        0o600,
    ]


@pytest.mark.parametrize("make", [of_another_user, behind_a_link])
def test_nothing_is_written_to_a_folder_of_others(
    make: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CGMIGRATE_CACHE_DIR", str(tmp_path))
    (tmp_path / "proofs").mkdir()
    make(tmp_path / "proofs")
    store("key", OUTCOME, [])
    assert list(tmp_path.glob("**/*.json")) == []


def test_a_file_beside_those_of_the_key_has_to_be_the_same(tmp_path: Path) -> None:
    (tmp_path / "there.py").write_text("A = 1\n")
    others = [str(tmp_path / "there.py"), str(tmp_path / "missing.py")]
    store("key", OUTCOME, others)
    assert load("key") == OUTCOME

    (tmp_path / "missing.py").touch()
    assert load("key") is None
    store("key", OUTCOME, others)
    (tmp_path / "there.py").write_text("A = 2\n")
    assert load("key") is None


def test_a_key_is_of_all_that_a_proof_depends_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text("A = 1\n")
    files = [str(tmp_path / "a.py")]
    keys = [key_of(["0.17", "0.19"], files), key_of(["0.17", "0.18"], files), key_of(["0.17", "0.19"], [])]
    (tmp_path / "a.py").write_text("A = 2\n")
    keys.append(key_of(["0.17", "0.19"], files))
    monkeypatch.setattr(proof_cache, "_tool", lambda: "another")
    keys.append(key_of(["0.17", "0.19"], files))

    assert len(set(keys)) == len(keys)


def test_links_and_ignored_files_are_part_of_a_key(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("own.py\nbuild/\n")
    for folder in ("one", "two", "build"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text(f"A = {folder!r}\n")
    (tmp_path / "current").symlink_to("one")
    keys = [key_of([], code_of(str(tmp_path)))]

    (tmp_path / "current").unlink()
    (tmp_path / "current").symlink_to("two")
    keys.append(key_of([], code_of(str(tmp_path))))
    for text in ("A = 1\n", "A = 2\n"):
        (tmp_path / "own.py").write_text(text)
        keys.append(key_of([], code_of(str(tmp_path))))

    names = [os.path.relpath(one, tmp_path) for one in code_of(str(tmp_path))]
    assert sorted(names) == ["build", "current", "one/a.py", "own.py", "two/a.py"]
    assert len(set(keys)) == len(keys)


def test_the_last_results_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CGMIGRATE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(proof_cache, "_KEPT", 2)
    for key in "abc":
        store(key, OUTCOME, [])

    assert len(list((tmp_path / "proofs").iterdir())) == 2
    assert load("c") == OUTCOME


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CGMIGRATE_CACHE_DIR", str(tmp_path / "file"))
    store("key", OUTCOME, [])

    assert load("key") is None


def test_a_second_run_proves_nothing_and_writes_the_same(
    tmp_path: Path, cgmigrate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = []
    components = Proofs.components

    def counted(self: Proofs) -> Any:
        attempts.append(1)
        return components(self)

    monkeypatch.setattr(Proofs, "components", counted)
    monkeypatch.setattr(python_objects, "_WORTH_KEEPING", -1)
    project = project_of(ROOT / "tests/fixtures/linking/base-recipe", tmp_path)
    run = ("fix", "--from", "0.17", "--to", str(NEWEST), "--diff")

    first, second = (cgmigrate(*run, str(project)).output for _ in range(2))
    assert "\n+" in first
    assert (second, len(attempts)) == (first, 1)

    recipe = next(project.glob("megatron/bridge/recipes/base.py"))
    recipe.write_text(f"{recipe.read_text()}\n\nA = 1\n")
    cgmigrate(*run, str(project))
    assert len(attempts) == 2
    assert json.loads(next(Path(proof_cache.cache_folder(), "proofs").iterdir()).read_bytes())["groups"]


def test_a_forged_result_makes_no_fix_safe(
    tmp_path: Path, cgmigrate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result says that all is proved, in a file that anybody may have written."""
    monkeypatch.setattr(python_objects, "_WORTH_KEEPING", -1)
    project = project_of(ROOT / "tests/fixtures/linking/base-recipe", tmp_path)
    run = ("fix", "--from", "0.17", "--to", str(NEWEST), "--diff", str(project))
    honest = cgmigrate(*run).output
    (kept,) = Path(proof_cache.cache_folder(), "proofs").iterdir()
    data = json.loads(kept.read_bytes())
    assert data["groups"], "something is proved"
    kept.write_text(json.dumps({**data, "groups": [], "forms": [], "failed": []}))
    forged = cgmigrate(*run).output
    assert forged != honest, "as a file of this user it is used"
    kept.chmod(0o666)
    assert cgmigrate(*run).output == honest
