"""Pages of documentation as documents: their blocks, the way from a block to the page, and edits."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgmigrate.documents.pages import MarkdownDocument, PageDocument, ReStructuredTextDocument
from cgmigrate.documents.pages.blocks import language_of
from cgmigrate.documents.pages.markdown import markdown_blocks
from cgmigrate.documents.sites import CannotEditError, ProblemKind
from cgmigrate.megatron.settings import IMPL, MODULES
from cgmigrate.text.edits import apply
from tests.support.nightly import examples
from tests.support.tables import from_table

YAML = "model:\n  cuda_graph_impl: local\n  cuda_graph_scope: attn\n"
NEW = {IMPL: "local", MODULES: "attn"}


def fence(code: str, language: str = "yaml", mark: str = "```") -> str:
    return f"{mark}{language}\n{code}{mark}\n"


def codes(page: str, blocks=markdown_blocks) -> list[tuple[str, str]]:
    """The language and the code of each block of a page that is code."""
    snippets = ((block.language, block.code(page)) for block in blocks(page))
    return [(language, snippet.text) for language, snippet in snippets if snippet is not None]


def rewritten(document: PageDocument) -> str:
    """The page after all of its sites got the new names; its check has to agree."""
    rewrites = {site.index: NEW for site in document.sites}
    after = apply(document.text, document.edits(rewrites))
    assert document.check(after, rewrites) == ""
    return after


# --- blocks ---------------------------------------------------------------------------------------


@from_table
def test_the_words_behind_a_fence_name_its_language(info: str, language: str) -> None:
    assert language_of(info) == language


@from_table
def test_a_block_is_its_code_wherever_it_is(page: str) -> None:
    assert codes(page) == [("yaml", YAML)]
    after = rewritten(MarkdownDocument(page))
    assert after == page.replace("cuda_graph_scope", "cuda_graph_modules")


@from_table
def test_other_text_is_no_block_with_settings(page: str) -> None:
    document = MarkdownDocument(page + "\nmegatron\n")
    assert not document.sites and document.problems


def test_only_commands_behind_a_prompt_are_code() -> None:
    page = fence(
        "(env) $ run --cuda-graph-scope \\\n>   attn\ncuda_graph_scope: attn\nme@host:~# ls\n# done\n", "console"
    )
    assert codes(page) == [("console", "run --cuda-graph-scope \\\n  attn\nls\n".replace("\n  attn", "\nattn"))]
    assert codes(fence("run --cuda-graph-scope attn\n", "console")) == []
    assert codes(fence("# a comment\nrun --cuda-graph-scope attn\n", "bash"))[0][1].startswith("# a comment\nrun")
    assert codes(fence(">>> a = (1,\n... 2)\n>>> b\nb\n", "python")) == [("python", "a = (1,\n2)\nb\n")]


def test_the_names_of_restructuredtext_are_mentioned() -> None:
    page = ReStructuredTextDocument("Megatron\n\n.. code-block:: yaml\n\n   cuda_graph_scope: attn\n")
    assert not page.sites and [problem.kind for problem in page.problems] == [ProblemKind.NAME_IN_DOCUMENTATION]


# --- edits ----------------------------------------------------------------------------------------


def test_a_deleted_line_takes_what_is_in_front_of_it_along_and_a_new_one_gets_it() -> None:
    page = "".join(f"> {line}\r\n" for line in fence(YAML).splitlines())
    document = MarkdownDocument(page)
    for own, lines in (
        ({MODULES: "attn"}, "> model:\r\n>   cuda_graph_modules: attn\r\n"),
        (
            {IMPL: "local", MODULES: ["attn"], "inference_cuda_graph_scope": "block"},
            "> model:\r\n>   cuda_graph_impl: local\r\n>   cuda_graph_modules: [attn]\r\n"
            ">   inference_cuda_graph_scope: block\r\n",
        ),
    ):
        after = apply(page, document.edits({0: own}))
        assert document.check(after, {0: own}) == ""
        assert sorted(after.splitlines()) == sorted(f"> ```yaml\r\n{lines}> ```\r\n".splitlines())


def test_the_last_setting_of_a_block_is_not_deleted() -> None:
    page = fence("cuda_graph_scope: attn\n")
    document = MarkdownDocument(page)
    after = apply(page, document.edits({0: {}}))
    assert document.check(after, {0: {}}) == "an example would set nothing any more"


def test_an_edit_outside_of_the_planned_ones_is_refused() -> None:
    page = f"text\n\n{fence(YAML)}\n{fence(YAML)}\n"
    document = MarkdownDocument(page)
    after = apply(page, document.edits({0: NEW}))
    assert document.check(after, {0: NEW}) == ""
    assert document.check(after.replace("text", "test"), {0: NEW}) != ""
    assert (
        document.check(after.replace("impl: local\n  cuda_graph_scope", "impl: none\n  cuda_graph_scope"), {0: NEW})
        != ""
    )
    assert document.check(after + "\n```\n", {0: NEW}) != ""


PREFIXES = st.lists(st.sampled_from(["> ", ">", "- ", "1. ", "  > "]), max_size=3)
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "text `cuda_graph_impl`", "# Title", "| a | b |", "---", "<div>", "</div>", "    code", "\tx"]
        ),
        st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="`~\r\n"), max_size=20),
    ),
    max_size=6,
)


@st.composite
def pages(draw: st.DrawFn) -> str:
    """A page with blocks in lists and quotations, between texts of any kind."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 3))):
        lines += [*draw(TEXTS), ""]
        first, rest = "", ""
        for prefix in draw(PREFIXES):
            first += prefix
            rest += prefix if ">" in prefix else " " * len(prefix)
        code = fence(YAML, mark=draw(st.sampled_from(["```", "~~~", "`````"]))).splitlines()
        lines += [f"{first if number == 0 else rest}{line}" for number, line in enumerate(code)]
        lines.append("")
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    return ending.join(lines) + ending


def test_a_line_at_the_top_that_nothing_ends_is_no_front_matter() -> None:
    page = "---\r\n" + "text\r\n" * 60 + f"\r\n{fence(YAML)}"
    assert len(MarkdownDocument(page).sites) == 1


@settings(max_examples=examples(100), deadline=None)
@given(pages())
def test_only_the_names_change(page: str) -> None:
    document = MarkdownDocument(page)
    rewrites = {site.index: NEW for site in document.sites if not site.blocked_by and len(site.written) == 2}
    after = apply(page, document.edits(rewrites))
    assert document.check(after, rewrites) == ""
    names = [use.span for site in document.sites if site.index in rewrites for use in site.written]
    values = [span for span in names if page[span.start : span.end].startswith("cuda_graph_scope")]
    expected, end = "", 0
    for span in values:
        expected += page[end : span.start] + page[span.start : span.end].replace("scope", "modules")
        end = span.end
    assert after == expected + page[end:]
    again = MarkdownDocument(after)
    assert {site.own[IMPL] for site in again.sites} <= {"local"}


@given(st.text(alphabet="`~>- \t\n\r#ab:.$|<!{}/*", max_size=80))
def test_no_text_is_too_strange(text: str) -> None:
    page = f"{text}\n```yaml\n{YAML}```\n"
    document = MarkdownDocument(page)
    rewrites = {site.index: NEW for site in document.sites if not site.blocked_by and len(site.written) == 2}
    assert document.comments() is not None
    try:
        after = apply(page, document.edits(rewrites))
    except CannotEditError:
        return
    assert document.check(after, rewrites) == "" or after != page


# --- time -----------------------------------------------------------------------------------------


def seconds(page: str) -> float:
    start = time.process_time()
    document = MarkdownDocument(page)
    rewrites = {site.index: NEW for site in document.sites if len(site.written) == 2}
    document.check(apply(page, document.edits(rewrites)), rewrites)
    return time.process_time() - start


@pytest.mark.parametrize(
    "part",
    [
        fence(YAML) + "\ntext\n\n",
        "> > > - ```yaml\n",
        "paragraph with cuda_graph_scope\n",
        "| cuda_graph_scope | 1 |\n",
        "<!-- ",
        "- " * 3 + "x\n",
        "[a]: b\n",
        "# cuda_graph_scope\n",
    ],
)
def test_a_page_takes_time_in_proportion_to_its_length(part: str) -> None:
    seconds(part * 10)
    small = min(seconds(part * 300) for _ in range(2))
    large = min(seconds(part * 1200) for _ in range(2))
    assert large < max(small, 0.02) * 12, f"{small:.3f} s and {large:.3f} s"


def test_a_page_without_deprecated_names_is_not_parsed(tmp_path: Path) -> None:
    import subprocess
    import sys

    (tmp_path / "a.md").write_text(fence("model:\n  cuda_graph_impl: local\n") + "cgmigrate: text\n")
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom cgmigrate.cli.commands import main\n"
        f"CliRunner().invoke(main, ['check', {str(tmp_path)!r}])\n"
        "sys.exit('markdown_it' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
