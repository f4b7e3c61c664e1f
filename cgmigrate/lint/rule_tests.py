"""Tests of rules: their examples, run through schema, plan and soundness check."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cgmigrate.documents.sites import Document
from cgmigrate.documents.syntax import Syntax, document_of
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Applicability, Context, LintDiagnostic
from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.plan import Plan, UnwritableError, plan_alone
from cgmigrate.lint.rules import Rule, RuleKind, load, of_entries, read
from cgmigrate.lint.run import Run
from cgmigrate.megatron import catalogue
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.data_schema import line_of
from cgmigrate.megatron.entry_checks import check_together
from cgmigrate.megatron.releases import LAST_OLD, NEWEST
from cgmigrate.megatron.rule_data import RuleError, rules_folder, text_of, upgrade_rules
from cgmigrate.megatron.versions import parse_release
from cgmigrate.project.options import RunOptions
from cgmigrate.text.diff import unified_diff

# --- examples of whole files ----------------------------------------------------------------------

KEYS = ("encoding", "size", "repeat", "beside")
"""What an example says of its file."""
_SUFFIXES = {"python": ".py", "yaml": ".yaml", "markdown": ".md", "shell": ".sh", "toml": ".toml"}


@dataclass(frozen=True, slots=True)
class FileExample:
    """An example, and the folders of rules that apply to it beside those that ship."""

    example: Mapping[str, Any]
    rule_folders: tuple[str, ...] = ()

    def checked(self, text: str, unsafe: bool = False) -> FileResult:
        """Return the file with a text in place of that of the example, after its fixes. Raises RuleError."""
        source = parse_release(self.example["from"]) if "from" in self.example else LAST_OLD
        target = parse_release(self.example["to"]) if "to" in self.example else NEWEST
        options = RunOptions(min(source, target), target, unsafe=unsafe, preview=True, rule_folders=self.rule_folders)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"example{_SUFFIXES[self.example['syntax']]}"
            path.write_bytes(self.content(text))
            for name, beside in self.example.get("beside", {}).items():
                (Path(folder) / name).write_text(beside, encoding="utf-8")
            checked = [item for item in Run([folder], options) if isinstance(item, FileResult)]
        own = next((item for item in checked if Path(item.path).name == path.name), None)
        return own or FileResult(str(path), self.content(text), text, ())

    def content(self, text: str) -> bytes:
        """Return a text as the file has it."""
        for repeated, times in self.example.get("repeat", {}).items():
            text = text.replace(repeated, repeated * times, 1)
        content = text.encode(self.example.get("encoding", "utf-8"))
        return content.ljust(self.example.get("size", 0), b"#")


# --- rule tests ------------------------------------------------------------

OURS = "CG"
"""The beginning of the codes of the rules that ship."""

_SYNTAXES = {
    "yaml": Syntax.YAML,
    "python": Syntax.PYTHON,
    "markdown": Syntax.MARKDOWN,
    "shell": Syntax.SHELL,
    "toml": Syntax.TEXT,
}
"""By the name that an example has for them."""


@dataclass(frozen=True, slots=True)
class Tested:
    """The result of one rule file: its failures, each with file and line; none if all its examples pass."""

    path: str
    title: str
    examples: int = 0
    failures: tuple[str, ...] = ()


def run_folder(folder: Path) -> Iterator[Tested]:
    """Test every rule of a folder, beside the rules that ship.

    Raises RuleError when there is no such folder, or no rule in it.
    """
    if folder.resolve() == rules_folder().resolve():
        yield from run_shipped()
        return
    if not folder.is_dir():
        raise RuleError(f"{folder}: not a folder of rules")
    paths = sorted(folder.glob("*.yaml"))
    entries = [(Path(rule.path), rule) for rule in of_entries(folder, (folder,))]
    if not paths and not entries:
        raise RuleError(f"{folder}: no rules in it (a rule is a file NAME.yaml)")
    rules = load()
    read_or_wrong = [*((path, _read(path, rules)) for path in paths), *entries]
    # One wrong file must not hide the failures of the others.
    own = {rule.id: rule for _, rule in reversed(read_or_wrong) if isinstance(rule, Rule)}
    together = dict(sorted({**rules, **own}.items()))
    for path, rule in read_or_wrong:
        if isinstance(rule, str):
            yield Tested(str(path), path.name, failures=(rule,))
        elif own[rule.id] is not rule:
            yield Tested(
                str(path), path.name, failures=(f"{path}:1: {rule.id} is already defined in {own[rule.id].path}",)
            )
        else:
            yield _test(path, rule, together, (str(folder),))
    for path in sorted(folder.glob("*.yml")):
        yield Tested(str(path), path.name, failures=(f"{path}:1: not read, since rules are named *.yaml",))


def run_shipped() -> Iterator[Tested]:
    """Test every rule and entry that ships. Raises RuleError for one that cannot be read or contradicts a table."""
    settings = catalogue.load((upgrade_rules(),)).settings
    check_together(settings, [name for name, one in settings.items() if Path(one.path).stem == name])
    for path in sorted(rules_folder().glob("*.yaml")):
        try:
            read(path)
        except RuleError as error:
            yield Tested(str(path), path.name, failures=(str(error),))
            return
    rules = load()
    for rule in rules.values():
        yield _test(Path(rule.path), rule, rules)
    yield from run_folder(Path(upgrade_rules()))


def _read(path: Path, shipped: Mapping[str, Rule]) -> Rule | str:
    try:
        rule = read(path, folders=(path.parent,))
    except RuleError as error:
        return str(error)
    if rule.id in shipped:
        return f"{path}:1: {rule.id} is already defined in {shipped[rule.id].path}"
    if rule.id.startswith(OURS):
        return f"{path}:1: {rule.id}: codes that begin with {OURS} are cgmigrate's own; choose another beginning"
    return rule


def _test(path: Path, rule: Rule, rules: Mapping[str, Rule], folders: tuple[str, ...] = ()) -> Tested:
    text = text_of(path)
    failures = [f"{path}:1: {missing}" for missing in _missing_examples(rule)]
    for number, example in enumerate(rule.examples):
        where = f"{path}:{line_of(text, ['examples', number])}: example {number + 1}"
        failures += [f"{where}: {said}" for said in failures_of(rule, example, rules, folders)]
    return Tested(str(path), f"{rule.id} {rule.name}", len(rule.examples), tuple(failures))


def _missing_examples(rule: Rule) -> Iterator[str]:
    reported = [example.get("reported", True) for example in rule.examples]
    if True not in reported:
        yield f"no example shows what {rule.id} does; write one under `examples:`"
    if False not in reported:
        yield f"no example shows what {rule.id} does not report; write one with `reported: false`"


# --- one example ----------------------------------------------------------------------------------


def failures_of(
    rule: Rule, example: Mapping[str, Any], rules: Mapping[str, Rule], folders: tuple[str, ...] = ()
) -> list[str]:
    """Compare what an example of a rule says with what happens; return what differs.

    ``folders`` are those of ``rules`` that do not ship.
    """
    # The example of another rule is no example of a GPT model that becomes a hybrid model.
    rules = {code: one.with_fixes(defaults=True, hybrid=code == rule.id) for code, one in rules.items()}
    # What a rule says of a file as a whole does not show in its text alone.
    is_file = rule.kind is RuleKind.FILE or any(key in example for key in KEYS)
    try:
        outcome = _file_outcome(FileExample(example, folders)) if is_file else _text_outcome(example, rules, folders)
    except UnwritableError as error:
        return [f"the text cannot be rewritten: {error}"]
    after = example.get("after", example["before"])
    failures = []
    if outcome.safe != after:
        failures.append(f"`fix` does not give `after`{_difference(after, outcome.safe)}{outcome.reasons(rule)}")
    elif outcome.unsafe != example.get("unsafe-after", after):
        expected = example.get("unsafe-after", after)
        difference = _difference(expected, outcome.unsafe) + outcome.reasons(rule)
        failures.append(f"`fix --unsafe-fixes` does not give `unsafe-after`{difference}")
    elif outcome.again != outcome.safe:
        failures.append(f"a second `fix` changes the result{_difference(outcome.safe, outcome.again)}")
    return failures + _reported(rule, example, outcome)


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What happens to an example: its text after fixes, its diagnostics, and the other owners of its settings."""

    safe: str
    unsafe: str
    again: str
    """The text after a second run of safe fixes."""
    diagnostics: Sequence[LintDiagnostic]
    owners: frozenset[str]

    def reasons(self, rule: Rule) -> str:
        """Return why fixes are not applied, in the words of reports; the rule's own first."""
        withheld = sorted(self.diagnostics, key=lambda diagnostic: diagnostic.rule != rule.id)
        return "".join(
            dict.fromkeys(
                f"\n    {one.rule} is not fixed; {label}: {text}" for one in withheld for label, text in one.reasons
            )
        )


def _text_outcome(example: Mapping[str, Any], rules: Mapping[str, Rule], folders: tuple[str, ...]) -> _Outcome:
    """Return what happens to the text of an example. Raises UnwritableError."""
    context = _context(example, rules, folders)
    plan = plan_alone("", _document(example, example["before"], context.catalogue), context)
    (result,) = plan.files
    safe = _rewritten(plan, Applicability.SAFE)
    again = _rewritten(plan_alone("", _document(example, safe, context.catalogue), context), Applicability.SAFE)
    owners = frozenset(owner for _, owner in result.skipped)
    return _Outcome(safe, _rewritten(plan, *Applicability), again, result.diagnostics, owners)


def _file_outcome(file: FileExample) -> _Outcome:
    """Return what happens to the file of an example. Raises RuleError."""
    before = file.example["before"]
    checked = file.checked(before)
    safe = before if checked.after is None else checked.after
    unsafe = file.checked(before, unsafe=True).after
    again = None if safe == before else file.checked(safe).after
    owners = frozenset(owner for _, _, owner in checked.skipped)
    return _Outcome(safe, unsafe or safe, again or safe, checked.diagnostics, owners)


def _reported(rule: Rule, example: Mapping[str, Any], outcome: _Outcome) -> list[str]:
    reported = {diagnostic.rule for diagnostic in outcome.diagnostics}
    if example.get("reported", True) == (rule.id in reported):
        return []
    if rule.id in reported:
        return [f"{rule.id} is reported, and `reported: false` says that it is not"]
    others = f"; reported is {', '.join(sorted(reported))}" if reported else ""
    owners = outcome.owners
    alone = f"; the settings are left alone, since they belong to {', '.join(sorted(owners))}" if owners else ""
    return [f"{rule.id} is not reported{others}{alone}"]


def _context(example: Mapping[str, Any], rules: Mapping[str, Rule], folders: tuple[str, ...] = ()) -> Context:
    source = parse_release(example["from"]) if "from" in example else LAST_OLD
    target = parse_release(example["to"]) if "to" in example else NEWEST
    settings = catalogue.load(folders)
    owners = ecosystems.with_settings(ecosystems.load(), settings)
    return Context(min(source, target), target, rules, owners, settings)


def _document(example: Mapping[str, Any], text: str, settings: Catalogue | None = None) -> Document:
    return document_of("", text, _SYNTAXES[example["syntax"]], settings or catalogue.load())


def _rewritten(plan: Plan, *applied: Applicability) -> str:
    """Return the text of the only file of a plan with some of its fixes applied. Raises UnwritableError."""
    texts = plan.edited([fix.id for fix in plan.fixes if fix.applicability in applied])
    return texts[0].text if texts else plan.files[0].document.text


def _difference(expected: str, got: str) -> str:
    """Return the lines that differ between the example and the actual text."""
    lines = unified_diff("", expected, got).splitlines()[2:]
    legend = " (- what the example says, + what comes out):\n"
    return legend + "\n".join(f"    {line}" for line in lines if not line.startswith("@@"))
