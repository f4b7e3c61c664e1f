"""Write what is generated under docs/: a page a rule, their table, references, and the output that pages show.

Run ``python docs/build.py`` after changing a rule or what the command prints; ``python docs/build.py --check``
(in the tests) says which pages are out of date and exits with 1.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from api_reference import with_reference
from capture_pages import captures_page
from command_pages import with_commands
from configuration_schema import schema
from coverage_pages import coverage_page
from follow import follow
from format_examples import with_examples
from indexes import index, settings_page
from navigation import with_rules
from release_pages import release_pages
from rule_pages import page
from terminal import picture

from cgmigrate.lint.rules import load
from cgmigrate.megatron import catalogue
from cgmigrate.megatron.releases import NEWEST, OLDEST, UPSTREAM
from cgmigrate.megatron.rule_data import rules_folder, upgrade_rules

DOCS = Path(__file__).parent
PAGES = DOCS / "rules"
SCHEMA = rules_folder() / "schema.json"
SITE = DOCS.parent / "zensical.toml"
"""The configuration of the site."""
WORKED = tuple(
    DOCS / name for name in ("migrate.md", "tutorial-nemo-rl.md", "tutorial-megatron-lm.md", "writing-rules.md")
)
"""Pages that are written by hand and show commands with what they print."""
FORMATS = DOCS / "formats.md"
COMMANDS = DOCS / "commands.md"
API = DOCS / "api.md"
_NAMES = ("configuration.md", "design.md")
MENTIONING = (DOCS.parent / "README.md", *(DOCS / name for name in _NAMES))
"""Pages that are written by hand and name the known releases, each between two comments."""
RELEASES = {"oldest": OLDEST, "newest": NEWEST, "main": UPSTREAM}
_MENTION = re.compile(r"(<!--(?P<name>oldest|newest|main)-->)[^<]*(<!--/(?P=name)-->)")


# --- the schema -------------------------------------------------------------------------------------


def with_names(schema: str, names: Iterable[str]) -> str:
    """The schema of rules with the settings that ship, which editors suggest."""
    text, count = re.subn(r'(?<="examples": )\[.*\](?=\n)', json.dumps([*names]), schema)
    assert count == 1, "the schema lists the names of settings once"
    return text


# --- writing them -----------------------------------------------------------------------------------


def files() -> dict[Path, str]:
    """Every page with the text that it should have."""
    rules = load([Path(upgrade_rules())])
    pages = {PAGES / "README.md": index(rules)}
    pages[DOCS / "captures.md"] = captures_page()
    pages[DOCS / "coverage.md"] = coverage_page(rules)
    pages[SITE] = with_rules(SITE.read_text(encoding="utf-8"), rules)
    pages[SCHEMA] = with_names(SCHEMA.read_text(encoding="utf-8"), catalogue.load().settings)
    pages[DOCS / "settings.md"] = settings_page(catalogue.load().settings.values())
    pages |= {PAGES / f"{rule.id}.md": page(rule) for rule in rules.values()}
    pages |= {DOCS / "releases" / f"{release}.md": text for release, text in release_pages(rules).items()}
    pages |= {path: path.read_text(encoding="utf-8") for path in MENTIONING if path.exists()}
    pages |= {path: follow(path.read_text(encoding="utf-8")).text for path in WORKED}
    pages[DOCS / "configuration.schema.json"] = schema(
        _with_releases((DOCS / "configuration.md").read_text(encoding="utf-8"))
    )
    pages[DOCS / "terminal.svg"] = picture()
    pages[COMMANDS] = with_commands(COMMANDS.read_text(encoding="utf-8"))
    pages[API] = with_reference(API.read_text(encoding="utf-8"))
    pages[FORMATS] = with_examples(FORMATS.read_text(encoding="utf-8"))
    return {path: _with_releases(text) for path, text in pages.items()}


def _with_releases(page: str) -> str:
    """Return the page with the releases between its comments, as in ``<!--newest-->0.18<!--/newest-->``."""
    return _MENTION.sub(lambda match: f"{match[1]}{RELEASES[match['name']]}{match[3]}", page)


def main() -> int:
    """Write the pages, or with --check say which differ."""
    pages = files()
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    stale += [path for path in PAGES.glob("*.md") if path not in pages]
    if "--check" in sys.argv:
        for path in stale:
            print(f"{path.name} is out of date; run python docs/build.py")
        return bool(stale)
    PAGES.mkdir(exist_ok=True)
    for path in stale:
        if path in pages:
            path.parent.mkdir(exist_ok=True)
            path.write_text(pages[path], encoding="utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
