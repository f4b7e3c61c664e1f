"""The proof of a set for an entry point that has no site of its own: a merged file, or a choice of the command line."""

from __future__ import annotations

from collections.abc import Mapping

from cgmigrate.linking.inheritance import merged as merged_settings
from cgmigrate.linking.merged_files import MergedObject
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.site_examination import source_for
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.settings import Choice, Settings, Undecided
from cgmigrate.megatron.types import Reader, Rejected, describe_both
from cgmigrate.project.paths import display_path


def entry_problem(
    merged: MergedObject,
    before: Mapping[int, Settings],
    after: Mapping[int, Settings],
    reader: Reader,
    context: Context,
) -> str:
    """Return why a set is wrong for one mapping of an entry point, empty if it captures the same before and after.

    ``before`` and ``after`` are what each site has in its file, by index.
    """
    old, new = merged_settings(merged.layers, before), merged_settings(merged.layers, after)
    if old == new:
        return ""
    place = f"{display_path(merged.entry.path)} merges this mapping at `{'.'.join(merged.path) or 'the top level'}`"
    if merged.entry.choice:
        place += f" with `{merged.entry.choice}` on the command line"
    if any(isinstance(value, (Undecided, Choice)) for value in (*old.values(), *new.values())):
        return f"{place}, where another setting is computed at run time"
    source = source_for(old, context)
    was, will = capture_of(old, source, reader), capture_of(new, context.target, reader)
    if was == will or (isinstance(was, Rejected) and isinstance(will, Rejected)):
        return ""
    if isinstance(was, Rejected):
        return f"{place}, and {reader.value} ({source}) already rejects it ({was.reason.rstrip('.')})"
    if isinstance(will, Rejected):
        return f"{place}, and {reader.value} ({context.target}) would reject the result ({will.reason.rstrip('.')})"
    now, then = describe_both(was, will)
    return f"{place}: it captures {now} in {source}, and would capture {then} in {context.target}"
