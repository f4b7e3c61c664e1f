"""Other files that the settings of a YAML file concern: those it is merged with, and code that reads its keys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cgmigrate.documents.syntax import Syntax
from cgmigrate.project.inputs import Source
from cgmigrate.project.seeds import SeedsOf

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Document
    from cgmigrate.lint.relations import Relations


@dataclass(slots=True)
class RelatedFiles:
    """The related files of a run's files, looked for only if a file is to be rewritten."""

    sources: Sequence[Source]
    """All files of the run that contain a seed word."""
    seeds: SeedsOf
    _merged_into: dict[str, str] | None = None
    _key_readers: dict[str | None, Mapping[str, str]] = field(default_factory=dict)

    def of(self, path: str, document: Document) -> Relations:
        """Return the relations of a YAML file."""
        from cgmigrate.documents.yaml import YamlDocument
        from cgmigrate.linking.chains import files_named
        from cgmigrate.lint.relations import Relations

        assert isinstance(document, YamlDocument)
        named = files_named(path, document.top_level_words)
        return Relations(
            builds_on=document.builds_on or ", ".join(f"{key}: {word}" for key, word in named),
            merged_into=self._all_merged_into().get(path, ""),
            key_readers=self._readers_of_keys(path),
        )

    def _all_merged_into(self) -> dict[str, str]:
        """Return path → the file that is merged over it, for files of this run."""
        if self._merged_into is None:
            from cgmigrate.linking.chains import builds_on, children_around, merged_into

            yaml = [source for source in self.sources if source.syntax is Syntax.YAML]
            children = {source.path: builds_on(source.path, source.data) for source in yaml}
            children |= {
                path: names for path, names in children_around(children, self.seeds).items() if path not in children
            }
            with_parents = {path: names for path, names in children.items() if names}
            self._merged_into = merged_into(with_parents, [source.path for source in self.sources])
        return self._merged_into

    def _readers_of_keys(self, path: str) -> Mapping[str, str]:
        """Return old name → the place of code that reads it by name, in the project around a file.

        That is the folder that pins megatron-core for the file, or else the checkout: a folder with a pin of its own
        (one benchmark of many, a set of examples) runs apart from the rest of the checkout.
        """
        from pathlib import Path

        from cgmigrate.linking.key_readers import readers_of_keys
        from cgmigrate.project.checkout import checkout_of
        from cgmigrate.project.pins.search import pinned_folder

        folder = os.path.realpath(os.path.dirname(path))
        pinned = pinned_folder(Path(folder))
        top = str(pinned) if pinned else checkout_of(folder)
        if top not in self._key_readers:
            sources = [(item.path, item.data) for item in self.sources if item.syntax is Syntax.PYTHON]
            below = [item for item in sources if top is None or os.path.realpath(item[0]).startswith(top + os.sep)]
            self._key_readers[top] = readers_of_keys(top, below)
        return self._key_readers[top]
