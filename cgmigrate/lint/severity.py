"""How severe a diagnostic is: what happens if nothing is done about it."""

from __future__ import annotations

from cgmigrate.text.words import WordEnum


class Severity(WordEnum):
    """The severities, the most severe first."""

    ERROR = "error"
    """The job stops, or computes something else."""
    WARNING = "warning"
    """A setting is deprecated, has no effect, or captures nothing."""
    NOTE = "note"
    """It is good to know; a run with notes only passes."""

    @property
    def rank(self) -> int:
        """The position among the severities, 0 for the most severe."""
        return list(Severity).index(self)

    def reaches(self, least: Severity) -> bool:
        """Return whether it is at least as severe as another one."""
        return self.rank <= least.rank
