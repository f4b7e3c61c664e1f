"""Edit sets that are withheld: by a suppression, by the selection of rules, or since a file is outside of the paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.lint.diagnostics import LintDiagnostic
from cgmigrate.lint.severity import Severity
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.lint.suppressions import SuppressionComments
    from cgmigrate.megatron.releases import Release


@dataclass(frozen=True, slots=True)
class Support:
    """The releases that a project supports, and what shows it: a requirement or code, with its place.

    ``is_installed`` says that a command of the file installs one of them.
    """

    releases: tuple[Release, ...]
    origin: str
    is_installed: bool = False
    is_requirement: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """What a user allows in one file. ``enabled`` says which rules are reported there.

    ``comments`` are the suppressions of the file, None where there are none or they are ignored. ``outside`` is the
    real path of a file if a link leads out of the paths, empty for others.
    """

    enabled: Callable[[str], bool] = lambda _code: True
    fixable: Callable[[str], bool] = lambda _code: True
    """Says of which rules the fixes may be applied."""
    comments: SuppressionComments | None = None
    outside: str = ""
    is_in_run: bool = True
    """Whether the file is among the paths. No other file is written."""
    command: Callable[[Iterable[str]], str] = "cgmigrate fix {}".format
    """Returns the command that fixes some files."""
    support: Callable[[], Support | None] = lambda: None
    """Returns the older releases that the project has to run on, None if there are none."""
    is_unwritten_page: bool = False
    """Whether the file is documentation, and fixes of documentation are not applied."""
    pinned_up_to: Callable[[str, Release], str] = lambda _package, _newest: ""
    """Returns the pin of a package that admits nothing newer than a release, with its place; empty if there is none."""


@dataclass(frozen=True, slots=True)
class PlaceOfFix:
    """A diagnostic that an edit set settles: its rule and where it is. ``is_rule_of_fix`` is false for a remark."""

    rule: str
    path: str
    line: int
    span: Span
    is_rule_of_fix: bool = True

    def named_from(self, path: str) -> str:
        """Return the rule and the line, with the file where that is another one."""
        return f"{self.rule} on line {self.line}" if path == self.path else f"{self.rule} in {self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Withheld:
    """Why an edit set is not applied: ``causes`` are the diagnostics that prevent it, in the words of ``reason``.

    ``waits`` says that something else has to be decided first: what the fix writes is shown then, too.
    """

    reason: str
    help: str
    causes: tuple[PlaceOfFix, ...] = ()
    waits: bool = False

    def explain(self, diagnostic: LintDiagnostic, path: str) -> LintDiagnostic:
        """Return a diagnostic of the set without its fix."""
        change = " ".join(diagnostic.fix_text.split("\n"))
        help_ = f"{self.help}; then {change}" if change and self.waits else self.help
        if not self.causes:
            return diagnostic.without_fix(self.reason, help_)
        nearest = min(
            self.causes, key=lambda cause: (cause.path != path, abs(cause.span.start - diagnostic.span.start))
        )
        return diagnostic.without_fix(f"{nearest.named_from(path)}, {self.reason}", help_)


def withheld(places: Iterable[tuple[PlaceOfFix, Limits]], is_unsafe: bool = False) -> Withheld | None:
    """Return why an edit set is withheld, None if it may be applied. ``places`` are all that it settles."""
    places = list(places)
    suppressed = tuple(place for place, limits in places if _is_suppressed(place, limits))
    of_fix = [(place, limits) for place, limits in places if place.is_rule_of_fix]
    disabled = tuple(place for place, limits in of_fix if not limits.enabled(place.rule))
    unfixable = tuple(place for place, limits in of_fix if not limits.fixable(place.rule))
    if suppressed:
        reason = "which a comment suppresses and which has to change with it"
        return Withheld(reason, "suppress this diagnostic, too, or delete the comment", suppressed)
    if disabled or unfixable:
        reason = "which is not enabled and has to change with it" if disabled else "whose fixes are turned off"
        return Withheld(reason, _enable(disabled or unfixable, is_selected=not disabled), disabled or unfixable)
    elsewhere = [place for place, limits in places if not limits.is_in_run]
    if elsewhere:
        command = places[0][1].command(dict.fromkeys(place.path for place, _ in places))
        named = ", ".join(dict.fromkeys(place.path for place in elsewhere))
        verb = "has" if named == elsewhere[0].path else "have"
        return Withheld(f"{named}, which {verb} to change with this file", f"run `{command}`")
    if any(limits.is_unwritten_page for _, limits in places):
        command = places[0][1].command(dict.fromkeys(place.path for place, _ in places))
        options = "--docs --unsafe-fixes" if is_unsafe else "--docs"
        advice = f"run `{command.replace(' fix ', f' fix {options} ', 1)}`"
        return Withheld("documentation, which is rewritten only with --docs", advice)
    outside = next((limits.outside for _, limits in places if limits.outside), "")
    if outside:
        advice = "give the path of the file itself, or of this link, to have it rewritten"
        return Withheld(f"a link that leads out of the paths: the file is {outside}", advice)
    return None


def _is_suppressed(place: PlaceOfFix, limits: Limits) -> bool:
    if limits.comments is None or not limits.enabled(place.rule):
        return False
    return bool(limits.comments.of(LintDiagnostic(place.rule, Severity.NOTE, place.span, "")))


def _enable(disabled: Sequence[PlaceOfFix], *, is_selected: bool) -> str:
    codes = sorted({place.rule for place in disabled})
    named = " and ".join(filter(None, [", ".join(codes[:-1]), codes[-1]]))
    options = "`--fixable`, `--unfixable`" if is_selected else "`--select`, `--ignore`"
    return f"enable {named} as well ({options}), to fix them together"
