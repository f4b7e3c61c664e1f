"""Code that uses a section of a configuration as a whole: it gets other settings once one has moved to another section.

`cfg["train"]["eval_iters"]` and `cfg.train.eval_iters` name a key, which is a place of its own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from cgmigrate.linking.name_places import CODE
from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.linking.text_tools import TextPlace
from cgmigrate.megatron.source_trees import is_part_of_megatron


def uses_of_sections(texts: ProjectTexts, sections: Collection[str]) -> Iterator[TextPlace]:
    """Yield the places of code with an attribute or a string that is the name of a section, but of no key in it."""
    names = "|".join(sorted(sections))
    whole = re.compile(rf"\.(?:{names})\b(?![.(=])|[\"'](?:{names})[\"'](?!\][\[.])")
    for path in texts.holding(sorted(sections)):
        text = texts.text(path) if path.endswith(CODE) and not is_part_of_megatron(path) else ""
        yield from ((path, text.count("\n", 0, match.start()) + 1, match.group()) for match in whole.finditer(text))
