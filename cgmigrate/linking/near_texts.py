"""The texts that can be about a file: those of its project, and programs outside of it that have its name."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from cgmigrate.linking.name_places import may_run
from cgmigrate.linking.project_texts import ProjectTexts, is_of_project
from cgmigrate.linking.text_tools import names_from_outside
from cgmigrate.project.paths import is_test
from cgmigrate.text.remembered import remembered


@dataclass(eq=False)
class NearTexts(ProjectTexts):
    """The texts of a checkout that can be about a file, which has the real path ``own``."""

    whole: ProjectTexts = field(kw_only=True)
    own: str = field(kw_only=True)

    def holding(self, words: Iterable[str]) -> list[str]:
        """Return the real paths of those files that contain one of some words, in any case."""
        return [path for path in self.whole.holding(words) if self._is_near(path)]

    def text(self, path: str) -> str:
        """Return the text of a file, empty for one that cannot be read."""
        return self.whole.text(path)

    @remembered
    def _is_near(self, path: str) -> bool:
        if is_of_project(path, self.own, self.top):
            return True
        return may_run(path) and not is_test(path) and names_from_outside(self.text(path), self.own, self.top)


def near_texts(whole: ProjectTexts, own: str) -> ProjectTexts:
    """Return the texts that can be about a file: all, unless it is of a project that is a part of the checkout."""
    if is_of_project(os.path.join(whole.top, "any"), own, whole.top):
        return whole
    return NearTexts(whole.top, whole.search, whole.rule_folders, whole=whole, own=own)
