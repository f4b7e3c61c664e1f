"""What a YAML text and its rewritten form must have in common, as ruamel.yaml and comparisons by line see it."""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from ruamel.yaml import YAML

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking.ecosystems import load as load_ecosystems
from cgmigrate.linking.inheritance import components, effective_in
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.examination import settings_of
from cgmigrate.lint.rules import load as load_rules
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import LAST_OLD, NEWEST
from cgmigrate.megatron.settings import FIELDS, IMPL, INFERENCE, MODULES, Settings, Undecided
from cgmigrate.megatron.types import Reader, Rejected
from cgmigrate.text.edits import apply
from tests.support.plans import examine

NAME = re.compile("|".join(word for field in FIELDS for word in (field, field.replace("_", "-"))))
BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")


class Fixed(NamedTuple):
    """One text, fixed: the result, its sites before, the settings that were decided on, and the text of safe fixes."""

    text: str
    before: YamlDocument
    rewrites: dict[int, Settings]
    safe: str = ""


class WrongEditError(AssertionError):
    """A file means something else now, or something beside the settings has changed."""


@functools.cache
def context() -> Context:
    return Context(LAST_OLD, NEWEST, load_rules(), load_ecosystems())


def fix(text: str) -> Fixed:
    document = YamlDocument(text)
    examined = examine(document, context())
    rewrites = {**examined.safe, **examined.unsafe}
    after = apply(text, document.edits(rewrites))
    assert document.check(after, rewrites) == ""
    return Fixed(after, document, rewrites, apply(text, document.edits(examined.safe)))


# --- the judges -------------------------------------------------------------------------------------


def assert_fixed_well(text: str) -> Fixed:
    fixed = fix(text)
    assert_idempotent(fixed)
    assert_lossless(text, fixed)
    assert_ruamel_agrees(text, fixed)
    return fixed


def assert_idempotent(fixed: Fixed) -> None:
    assert fix(fixed.text).text == fixed.text


def assert_lossless(text: str, fixed: Fixed) -> None:
    """Every line that holds no setting and no comment on one is there, in order, with its line break."""
    if not fixed.rewrites:
        assert fixed.text == text
        return
    before = lines_of(text)
    settings_on = lines_with_settings(text, fixed.before)
    kept = [
        line for number, line in enumerate(before) if line[0] and number not in settings_on and not NAME.search(line[0])
    ]
    after = iter(lines_of(fixed.text))
    for content, ending in kept:
        # What becomes the last line takes over whether it has a line break.
        assert any(other == content and {ending, end} in ({ending}, {ending, ""}) for other, end in after), (
            f"{content!r} is missing or changed"
        )


def lines_of(text: str) -> list[tuple[str, str]]:
    """The lines that are not blank, and their line breaks."""
    breaks = list(BREAK.finditer(text))
    starts = [0, *(match.end() for match in breaks)]
    ends = [*(match.start() for match in breaks), len(text)]
    endings = [*(match.group() for match in breaks), ""]
    lines = zip(starts, ends, endings, strict=True)
    return [(essential(text[at:end]), ending) for at, end, ending in lines if text[at:end].strip()]


def essential(line: str) -> str:
    """A line less what may change beside a setting.

    That is a comma or closing bracket in a flow collection, ``{}`` for an emptied mapping, and what moves up
    behind a dash.
    """
    code, hash_, comment = line.rstrip().partition(" #")
    code = re.sub(r"[\s,{}\[\]]+$", "", code)
    code = re.sub(r"[{\[]\s+|\s+(?=[}\]])", lambda match: match.group().strip(), code)
    return re.sub(r"^[\s\-]+", "", code) + hash_ + comment


def lines_with_settings(text: str, document: YamlDocument) -> set[int]:
    """Return the numbers, among the lines that are not blank, of the lines with a setting."""
    numbers: list[int] = []
    number, at, starts = -1, 0, [0, *(match.end() for match in BREAK.finditer(text))]
    for at, end in zip(starts, [*starts[1:], len(text)], strict=True):
        number += bool(text[at:end].strip())
        numbers.append(number)
    spans = [written.span for site in document.sites for written in site.written]
    return {
        numbers[line]
        for span in spans
        for line, at in enumerate(starts)
        if at < span.end and (starts[line + 1] if line + 1 < len(starts) else len(text) + 1) > span.start
    }


def ruamel(text: str) -> list[Any]:
    loader = YAML(typ="safe", pure=True)
    loader.allow_duplicate_keys = True
    return list(loader.load_all(text))


def without_settings(data: Any, above: tuple[int, ...] = ()) -> Any:
    """Loaded data less the settings; where it contains itself, how many levels up."""
    if isinstance(data, (dict, list)) and id(data) in above:
        return f"<{len(above) - above.index(id(data))} levels up>"
    above = (*above, id(data))
    match data:
        case dict():
            return {
                key: without_settings(value, above)
                for key, value in data.items()
                if not (isinstance(key, str) and is_setting(key))
            }
        case list():
            return [without_settings(item, above) for item in data]
    return data


def is_setting(key: str) -> bool:
    return key.rpartition(".")[2] in FIELDS or (key.startswith("--") and key[2:].replace("-", "_") in FIELDS)


def assert_ruamel_agrees(text: str, fixed: Fixed) -> None:
    try:
        before = ruamel(text)
    except Exception:
        return  # not for ruamel.yaml, which raises all sorts: custom tags, wrong merges, `!!bool` of nothing
    after = ruamel(fixed.text)
    assert repr(without_settings(before)) == repr(without_settings(after))
    assert_captures_agree(before, ruamel(fixed.safe), fixed.before)
    settled: dict[int, Settings] = {}
    for component in components(fixed.before.sites):
        settled |= effective_in(fixed.before.sites, component, fixed.rewrites)
    for site in fixed.before.sites:
        mapping = at_path(after, site.path) if len(after) == 1 and site.path else None
        decided = settled[site.index]
        if mapping is None or site.blocked_by or any(isinstance(value, Undecided) for value in decided.values()):
            continue
        assert settings_in(mapping) == decided


def assert_captures_agree(before: list[Any], after: list[Any], document: YamlDocument) -> None:
    """Refuse safe fixes after which a mapping, merged as ruamel.yaml merges it, captures something else."""
    readers = {document.sites[index].path: reader for index, (reader, _) in settings_of(document, context()).items()}
    for path, reader in readers.items() if len(before) == 1 else ():
        was, now = at_path(before, path), at_path(after, path)
        if path and was is not None:
            assert now is not None, path
            same_capture(settings_in(was), settings_in(now), reader, "/".join(path))


def same_capture(before: Settings, after: Settings, reader: Reader, where: str) -> None:
    """Refuse settings that do not capture what they captured before."""
    if before == after:
        return
    new = MODULES in before or INFERENCE in before or before.get(IMPL) == "full_iteration"
    was = capture_of(before, NEWEST if new else LAST_OLD, reader)
    will = capture_of(after, NEWEST, reader)
    if isinstance(was, Rejected) or isinstance(will, Rejected) or was != will:
        raise WrongEditError(f"{where}: {before} captured {was}; {after} captures {will}")


def at_path(documents: list[Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    data = documents[0]
    for name in path:
        if not isinstance(data, dict) or name not in data:
            return None
        data = data[name]
    return data if isinstance(data, dict) else None


def settings_in(mapping: dict[str, Any]) -> dict[str, Any]:
    settings = {}
    for key, value in mapping.items():
        name = str(key).lstrip("-").replace("-", "_") if str(key).startswith("--") else str(key)
        if name in FIELDS:
            boolean = name in FIELDS[:2]
            flag = str(key).startswith("--")
            # ruamel.yaml reads YAML 1.2, where `yes` and `no` are words.
            value = {"yes": True, "on": True, "no": False, "off": False}.get(str(value).lower(), value)
            settings[name] = (flag if value is None else bool(value)) if boolean else value
    return settings
