"""Rules against the release that judges them: what is reported and accepted, refused and missed, for each rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Judged:
    """A configuration, what the release says to it (empty if it accepts it), and the rules that report it."""

    case: str
    said: str
    codes: frozenset[str]


@dataclass(frozen=True)
class Comparison:
    """Many of them. ``texts`` are what the release says to what a rule reports."""

    judge: str
    rows: Sequence[Judged]
    texts: Mapping[str, Sequence[str]]

    def says(self, rule: str, row: Judged) -> bool:
        """Return whether the release says what this rule reports. It says the first thing only that it refuses."""
        return any(text in row.said for text in self.texts[rule])

    @property
    def false(self) -> list[str]:
        """What a rule reports and the release accepts."""
        return [f"{code}: {row.case}" for row in self.rows for code in sorted(row.codes) if not row.said]

    @property
    def missed(self) -> list[str]:
        """What the release refuses with the text of a rule that does not report it."""
        return [
            f"{code}: {row.case} ({row.said})"
            for row in self.rows
            for code in self.texts
            if code not in row.codes and self.says(code, row)
        ]

    @property
    def refused(self) -> set[str]:
        """The texts that the release says to some."""
        return {text for texts in self.texts.values() for text in texts for row in self.rows if text in row.said}

    def table(self) -> str:
        """Return a line for each rule: its precision and recall."""
        lines = [f"\n{self.judge}: {len(self.rows)} configurations, {sum(map(bool, self._said))} refused"]
        lines.append("rule   reported  refused  precision  its text  reported  recall")
        for code in sorted(self.texts):
            reported = [row for row in self.rows if code in row.codes]
            right = [row for row in reported if row.said]
            texts = [row for row in self.rows if self.says(code, row)]
            caught = [row for row in texts if code in row.codes]
            if reported or texts:
                precision, recall = _share(right, reported), _share(caught, texts)
                line = f"{code}  {len(reported):8}  {len(right):7}  {precision:>9}"
                lines.append(f"{line}  {len(texts):8}  {len(caught):8}  {recall:>6}")
        return "\n".join(lines)

    @property
    def _said(self) -> list[str]:
        return [row.said for row in self.rows]


JUDGED: dict[str, list[tuple[bool, bool]]] = {}
"""By rule: whether it reports a configuration, and whether the code of the package does what the rule says."""


def assert_judged(rule: str, reported: bool, refused: bool) -> None:
    """Fail where a rule and the executed code of its package differ; both are counted for ``table_of_judged``."""
    JUDGED.setdefault(rule, []).append((reported, refused))
    assert reported is refused, rule


def table_of_judged() -> str:
    """Return a line for each rule that was judged one configuration at a time; empty if none was."""
    lines = ["rule    cases  reported  refused  precision  recall"] if JUDGED else []
    for code, rows in sorted(JUDGED.items()):
        reported, refused = [row for row in rows if row[0]], [row for row in rows if row[1]]
        both = [row for row in rows if all(row)]
        precision, recall = _share(both, reported), _share(both, refused)
        lines.append(f"{code}  {len(rows):6}  {len(reported):8}  {len(refused):7}  {precision:>9}  {recall:>6}")
    return "\n".join(lines)


def _share(part: Sequence[object], whole: Sequence[object]) -> str:
    return f"{len(part) / len(whole):.3f}" if whole else "-"
