"""A syntax is one class and one entry in the registry: a toy one is read, reported, suppressed, fixed and checked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from cgmigrate.documents import syntax
from cgmigrate.documents.changes import Add, Remove, Rename, Revalue, changes
from cgmigrate.documents.comments import CommentForm
from cgmigrate.documents.sites import Document, Site, Use
from cgmigrate.documents.syntax import Syntax, register, syntax_of
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import FIELDS, Missing, Settings
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

TOY = Syntax("toy", ("toy",), f"{__name__}:ToyDocument")
LINE = re.compile(r"^(?P<key>\w+) = (?P<value>[^;\n]*?)[ ]*(?P<comment>;[^\n]*)?$", re.MULTILINE)


class ToyDocument(Document):
    """Lines such as ``cuda_graph_impl = local ; a comment``: one file is one site."""

    comment_form = CommentForm(";")

    def __init__(self, text: str, path: str = "", catalogue: Catalogue | None = None) -> None:
        super().__init__(text, path, catalogue)
        self.skipped: list[tuple[Use, str]] = []
        self.lines = {match["key"]: match for match in LINE.finditer(text)}
        written = tuple(
            Use(key, key, plain(match["value"]), Span(match.start(), match.end("value")))
            for key, match in self.lines.items()
            if key in FIELDS
        )
        neighbours = {key: plain(match["value"]) for key, match in self.lines.items() if key not in FIELDS}
        self.sites = [Site(0, ("model",), Span(0, len(text)), written, neighbours=neighbours)] if written else []

    @property
    def uses(self) -> Sequence[Use]:
        return [use for site in self.sites for use in site.written]

    def value_beside(self, _index: int, section: Sequence[str], keys: Sequence[str], /) -> object:
        match = self.lines.get(".".join(keys)) if not section else None
        return plain(match["value"]) if match else Missing.ABSENT

    def variable_at(self, _offset: int, _name: str, /) -> object:
        return Missing.ABSENT

    def _read_comments(self) -> tuple[list[Span], list[Span]]:
        return [Span(*match.span()) for match in re.finditer(r";[^\n]*", self.text)], []

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        return [edit for own in rewrites.values() for edit in self._edits(own)]

    def _edits(self, own: Settings) -> Iterator[Edit]:
        for change in changes(self.sites[0].own, own, self.catalogue):
            match change:
                case Rename(old=old, new=new, value=value):
                    yield Edit(self.lines[old].start(), self.lines[old].end("value"), line(new, value))
                case Revalue(name=name, value=value):
                    yield Edit(self.lines[name].start("value"), self.lines[name].end("value"), spelled(value))
                case Remove(name=name):
                    yield Edit(self.lines[name].start(), self.lines[name].end() + 1, "")
                case Add(name=name, value=value, after=after):
                    end = self.lines[after].end() + 1
                    yield Edit(end, end, line(name, value) + "\n")

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        again = self._again = ToyDocument(edited)
        expected = rewrites.get(0, self.sites[0].own if self.sites else {})
        read = again.sites[0].own if again.sites else {}
        return "" if dict(read) == dict(expected) else "other settings"

    def spelled(self, _site: int, name: str, value: object) -> str:
        return line(name, value)


def plain(text: str) -> object:
    """The value of a text: a boolean, a list of names, or the text."""
    if text in ("true", "false"):
        return text == "true"
    return text[1:-1].split() if text.startswith("[") else text


def spelled(value: object) -> str:
    if isinstance(value, list):
        return f"[{' '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def line(name: str, value: object) -> str:
    return f"{name} = {spelled(value)}"


@pytest.fixture(autouse=True)
def toy_syntax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "_BY_SUFFIX", dict(syntax._BY_SUFFIX))
    known = list(syntax.SYNTAXES)
    register(TOY)
    yield
    syntax.SYNTAXES[:] = known


LEGACY = "cuda_graph_impl = transformer_engine\ncuda_graph_scope = [attn] ; a remark\nhidden_size = 4096\n"
FIXED = LEGACY.replace("scope", "modules")


def test_the_registry_knows_its_files() -> None:
    assert syntax_of("conf/a.toy") is TOY
    assert syntax_of("a.toys") is None


def test_its_settings_are_reported(project: Path, cgmigrate) -> None:
    (project / "a.toy").write_text(LEGACY)
    result = cgmigrate("check", ".", "--output-format", "concise")
    assert "a.toy:2:1: CG106 [*]" in result.stdout, result.output


def test_its_settings_are_fixed_and_the_rest_of_the_text_stays(project: Path, cgmigrate) -> None:
    (project / "a.toy").write_text(LEGACY)
    assert cgmigrate("fix", ".").exit_code == 0
    assert (project / "a.toy").read_text() == FIXED


def test_its_comments_suppress(project: Path, cgmigrate) -> None:
    suppressed = LEGACY.replace("; a remark", "; cgmigrate: ignore[CG106] it stays")
    (project / "a.toy").write_text(suppressed)
    assert cgmigrate("fix", ".").exit_code == 0
    assert (project / "a.toy").read_text() == suppressed


def test_comments_are_written_in_its_form(project: Path, cgmigrate) -> None:
    (project / "a.toy").write_text(LEGACY.replace(" ; a remark", ""))
    assert cgmigrate("check", ".", "--add-ignore").exit_code == 0
    assert "cuda_graph_scope = [attn]  ; cgmigrate: ignore[CG106]\n" in (project / "a.toy").read_text()
    assert cgmigrate("check", ".").exit_code == 0


def test_a_comment_of_another_syntax_does_not_suppress(project: Path, cgmigrate) -> None:
    (project / "a.toy").write_text(LEGACY.replace("; a remark", "# cgmigrate: ignore[CG106]"))
    assert cgmigrate("check", ".").exit_code == 1


def test_a_file_that_is_not_utf_8_is_suppressed_by_a_comment_of_the_syntax(project: Path, cgmigrate) -> None:
    (project / "a.toy").write_bytes(b"; cgmigrate: ignore-file\ncuda_graph_scope = \xff\n")
    assert cgmigrate("check", ".").exit_code == 0
    (project / "a.toy").write_bytes(b"# cgmigrate: ignore-file\ncuda_graph_scope = \xff\n")
    assert cgmigrate("check", ".").exit_code == 1
