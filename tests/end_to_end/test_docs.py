"""The documentation: what is generated is current, what is shown is what happens, every link leads somewhere."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cgmigrate.lint.rules import Rule, load
from cgmigrate.megatron.releases import OLDEST
from tests.support.nightly import nightly_only
from tests.support.paths import ROOT
from tests.support.scripts import module_at
from tests.support.tables import from_table

DOCS = ROOT / "docs"
RULES = load()


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run with the package of this checkout, whichever is installed."""
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, *command], cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_generated_pages_and_shown_output_are_current() -> None:
    done = run("docs/build.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


@nightly_only
def test_a_page_that_is_out_of_date_is_named(tmp_path: Path) -> None:
    shutil.copytree(DOCS, tmp_path / "docs")
    for name in ("zensical.toml", "CHANGELOG.md"):
        shutil.copy(DOCS.parent / name, tmp_path)
    page = tmp_path / "docs/rules/CG101.md"
    page.write_text(page.read_text().replace("Severity", "Severty"))
    (tmp_path / "docs/rules/CG999.md").write_text("# CG999\n")
    guide = tmp_path / "docs/migrate.md"
    guide.write_text(guide.read_text().replace("nothing found", "something found"))
    done = run(str(tmp_path / "docs/build.py"), "--check")
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["CG101.md", "migrate.md", "CG999.md"]
    assert run(str(tmp_path / "docs/build.py")).returncode == 0
    assert run(str(tmp_path / "docs/build.py"), "--check").returncode == 0
    assert page.read_bytes() == (DOCS / "rules/CG101.md").read_bytes()


@from_table
def test_the_commands_of_a_page_end_as_it_says(page: str, statuses: tuple[int, ...]) -> None:
    assert module_at(DOCS / "follow.py").follow((DOCS / f"{page}.md").read_text(encoding="utf-8")).statuses == statuses


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_the_page_of_a_rule_says_all_that_its_file_says(rule: Rule) -> None:
    page = (DOCS / f"rules/{rule.id}.md").read_text(encoding="utf-8")
    parts = dict(re.findall(r"^## (.*?)\n\n(.*?)(?=\n## |\Z)", page, re.M | re.S))
    assert list(parts) == [
        *(["What it says"] if rule.cases else []),
        *("Why", "Fix safety"),
        *(["Before and after"] if rule.examples else []),
        "Sources",
    ]
    title, badges, summary, severity, *_ = page.split("\n\n")
    assert (title, summary) == (f"# {rule.id}: {rule.name}", f"{rule.summary}.")
    assert f'"badge severity">{rule.severity}<' in badges
    assert severity.startswith(f"Severity: {rule.severity}. ")
    since = (
        "Applies to every release" if rule.since == OLDEST and rule.until is None else f" megatron-core {rule.since}"
    )
    assert since in page
    assert parts["Why"].strip() == rule.explanation.strip()
    assert all(source in parts["Sources"] for source in rule.sources)
    for case in rule.cases:
        assert (case.fix.unsafe if case.fix else case.decide) in parts["Fix safety"]
    texts = [example.get(key, "") for example in rule.examples for key in ("before", "after", "unsafe-after")]
    assert all(text.rstrip() in parts["Before and after"] for text in texts)
    assert "{" not in re.sub(r"```.*?```", "", parts.get("What it says", "") + parts["Fix safety"], flags=re.S)


def test_every_rule_is_in_the_table_once() -> None:
    listed = re.findall(r"^\| \[(CG\d+)\]\(\1\.md\)", (DOCS / "rules/README.md").read_text(), re.M)
    assert sorted(listed) == list(RULES)


def test_the_forms_of_an_example_are_rewritten_by_the_tool() -> None:
    """The Python and the command line of a rule's page come from the first example in YAML."""
    page = (DOCS / "rules/CG104.md").read_text(encoding="utf-8")
    python, line = (page.split(f"### The first example {form}\n")[1] for form in ("in Python", "on a command line"))
    for text, flag in ((python, 'cuda_graph_impl="full_iteration"'), (line, "--cuda-graph-impl full_iteration")):
        before, after = re.findall(r"```\w+\n(.*?)```", text, re.S)[:2]
        assert "scope" in before.lower()
        assert "scope" not in after
        assert flag in after


# --- the site -------------------------------------------------------------------------------------


def build(root: Path) -> subprocess.CompletedProcess[str]:
    return run("-m", "zensical", "build", "--strict", cwd=root)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("root")
    shutil.copytree(DOCS, root / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "zensical.toml", root)
    done = build(root)
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "site"


def test_the_site_has_the_pages_of_its_navigation_and_no_other(site: Path) -> None:
    listed = re.findall(r'= "([\w./-]+\.md)"', (ROOT / "zensical.toml").read_text(encoding="utf-8"))
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    built = [name for name in pages if (site / name.replace("README", "index")).with_suffix(".html").exists()]
    assert sorted(listed) == sorted(built)
    assert not [path for path in site.rglob("*") if path.suffix in (".md", ".py", ".yaml")]


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//[^"]+', text)
        assert not loaded, page.name


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text("# Home\n\n[a rule](rules/CG303.md) [a part](index.md#nothing)\n")
    configuration = (ROOT / "zensical.toml").read_text(encoding="utf-8")
    nav = re.sub(r"nav = \[.*?\n\]\n", 'nav = [{ "Home" = "index.md" }]\n', configuration, flags=re.S)
    (tmp_path / "zensical.toml").write_text(nav)
    done = build(tmp_path)
    shown = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
    assert done.returncode == 1
    assert "page does not exist" in shown
    assert "anchor does not exist" in shown
