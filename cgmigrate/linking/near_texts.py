"""The texts that can be about a file: those of its project, and programs outside of it that have its name."""

from __future__ import annotations

import os
from dataclasses import dataclass

from cgmigrate.linking.name_places import may_run
from cgmigrate.linking.project_texts import ProjectTexts, project_around
from cgmigrate.linking.text_tools import names_from_outside
from cgmigrate.project.file_search import FileSearch
from cgmigrate.project.paths import is_below, is_test
from cgmigrate.text.remembered import remembered


@dataclass(eq=False)
class NearTexts:
    """The texts of a checkout by the file that they can be about; files that the same ones can be about share them."""

    whole: ProjectTexts

    @remembered
    def of(self, own: str) -> ProjectTexts:
        """Return the texts that can be about a file: all, unless it is of a project that is a part of the checkout."""
        top = self.whole.top
        project = project_around(os.path.dirname(own), top)
        if project == top or not is_below(project, top):
            return self.whole
        outside = (one for one in self._programs(project) if names_from_outside(self.whole.text(one), own, top))
        return self._of_part(project, tuple(outside))

    @remembered
    def _of_part(self, project: str, programs: tuple[str, ...]) -> ProjectTexts:
        return ProjectTexts(self.whole.top, FileSearch(project), self.whole.rule_folders, programs)

    @remembered
    def _programs(self, project: str) -> list[str]:
        """Return the programs outside of a project that is a part of the checkout."""
        every = (one for one in self.whole.paths() if may_run(one) and not is_test(one))
        return [one for one in every if not is_below(one, project)]
