"""A team's own folder of rules, with entries of the catalogue and a rule for each setting that it deprecates."""

from __future__ import annotations

from pathlib import Path

ENTRY = """\
summary: The kernels that shuffle tokens
kind: choice
owner: our_package.OurConfig
deprecated-in: "0.18"
replaced-by: shuffle_backend
values:
  - {old: fast, new: fused}
  - {old: slow, new: plain}
sources: [our changelog]
"""
PROOF = '  proved-by: "our loader, read_settings: the old name is an alias of the new one"\n'


def write_entries(folder: Path, **entries: str) -> str:
    """Write entries of the catalogue, by name, into a folder of rules; return the folder as text."""
    (folder / "settings").mkdir(parents=True, exist_ok=True)
    for name, text in entries.items():
        (folder / f"settings/{name}.yaml").write_text(text)
    return str(folder)


def rule(name: str, fix: str = PROOF, code: str = "TEAM001") -> str:
    """Return the text of the rule that migrates a setting; ``fix`` are further lines of its fix."""
    return f"""\
id: {code}
name: {name.replace("_", "-").lower()}
kind: deprecated
summary: "`{name}` has a new name, and the old one will go"
fix:
  migrate: {name}
{fix}explanation: |
  The setting has a new name since a release of ours. The old one is read until it is removed.
sources: [our changelog]
"""


def write_team(project: Path, entries: dict[str, str], fix: str = PROOF) -> None:
    """Write the entries of settings, without their sources, and a rule for each deprecated one, and configure them."""
    write_entries(project / "team", **{name: f"{text}sources: [our changelog]\n" for name, text in entries.items()})
    deprecated = [name for name, text in entries.items() if "deprecated-in" in text]
    for number, name in enumerate(deprecated, start=1):
        code = f"TEAM{number:03}"
        (project / f"team/{code}-{name.replace('_', '-')}.yaml").write_text(rule(name, fix, code))
    (project / "pyproject.toml").write_text('[tool.cgmigrate]\nextend-rules = ["team"]\n')
