"""YAML documents: which settings are read from a text, and what becomes of the text when they change."""

from __future__ import annotations

import inspect
import sys
import time
from textwrap import dedent

import pytest
import yaml

from cgmigrate.documents.sites import CannotEditError, ProblemKind, Site
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.megatron.settings import MergedValue, Settings, Undecided
from cgmigrate.text.edits import apply
from cgmigrate.text.encoding import decode, encode
from tests.support.paths import FIXTURES
from tests.support.tables import from_table

CASES = FIXTURES / "yaml"

SCOPE, MODULES, IMPL = "cuda_graph_scope", "cuda_graph_modules", "cuda_graph_impl"
ENABLE, EXTERNAL, INFERENCE = "enable_cuda_graph", "external_cuda_graph", "inference_cuda_graph_scope"
UNDECIDED = object()


def text_of(source: str) -> str:
    return dedent(source).removeprefix("\n")


def sites(source: str) -> list[Site]:
    document = YamlDocument(text_of(source))
    assert not [problem for problem in document.problems if problem.kind is not ProblemKind.WRITTEN_TWICE]
    return document.sites


def own(source: str) -> dict[str, object]:
    """The settings of the only site of a text; undecided ones without their reasons."""
    (site,) = sites(source)
    return {name: UNDECIDED if isinstance(value, Undecided) else value for name, value in site.own.items()}


def rewritten(text: str, rewrites: dict[int, Settings]) -> str:
    document = YamlDocument(text)
    result = apply(text, document.edits(rewrites))
    assert document.check(result, rewrites) == ""
    again = YamlDocument(result)
    assert again.edits({}) == []
    return result


def assert_rewritten(before: str, after: str, *settings: Settings) -> None:
    """The sites of a text, in order, get these settings of their own."""
    assert rewritten(text_of(before), dict(enumerate(settings))) == text_of(after)


def without(name: str, site: Site) -> Settings:
    return {other: value for other, value in site.own.items() if other != name}


def assert_removed(name: str, before: str, after: str) -> None:
    """A setting goes from every site that has it."""
    assert_rewritten(before, after, *(without(name, site) for site in sites(before)))


def assert_refused(source: str, settings: Settings, reason: str) -> None:
    with pytest.raises(CannotEditError, match=reason):
        YamlDocument(text_of(source)).edits({0: settings})


# --- reading ----------------------------------------------------------------------------------------


class TestWhatIsASetting:
    @from_table
    def test_in_every_form(self, line: str) -> None:
        (site,) = YamlDocument(line).sites
        assert site.own == {SCOPE: "attn"}
        (written,) = site.written
        assert line[written.span.start : written.span.end].startswith(("cuda", "'cuda", '"cuda', "--cuda"))

    @from_table
    def test_other_names_and_places_are_not(self, line: str) -> None:
        assert not YamlDocument(line).sites

    def test_an_alias_as_key_is_read_but_not_edited(self) -> None:
        text = "k: &k cuda_graph_scope\nm:\n  *k : attn\n"
        assert own(text) == {SCOPE: "attn"}
        assert_refused(text, {}, "the key is an alias")

    def test_dotted_keys_are_sites_by_prefix(self) -> None:
        first, second = sites("a.cuda_graph_scope: attn\nb.c.cuda_graph_scope: mlp\na.cuda_graph_impl: local\n")
        assert (first.path, first.own) == (("a",), {SCOPE: "attn", IMPL: "local"})
        assert (second.path, second.own) == (("b", "c"), {SCOPE: "mlp"})

    def test_neighbours_have_the_same_prefix(self) -> None:
        first, second = sites("a.enable_cuda_graph: true\na.x: 1\nb.kernel_inject: true\nb.enable_cuda_graph: true\n")
        assert first.neighbours == {"a.x": 1}
        assert second.neighbours == {"b.kernel_inject": True}

    def test_neighbours_are_also_those_with_lists_and_mappings(self) -> None:
        (site,) = sites("enable_cuda_graph: true\nbatch_sizes: [1]\nkv_cache_config: {x: 1}\n")
        assert list(site.neighbours) == ["batch_sizes", "kv_cache_config"]

    def test_neighbours_come_through_merges(self) -> None:
        _, site = sites("a: &a {kernel_inject: true, enable_cuda_graph: true}\nb: {<<: *a, enable_cuda_graph: false}\n")
        assert site.neighbours == {"kernel_inject": True}


class TestValues:
    @from_table
    def test_booleans_are_those_of_yaml_1_1(self, value: str) -> None:
        line = f"enable_cuda_graph: {value}"
        assert own(line) == {ENABLE: bool(yaml.safe_load(line)[ENABLE])}

    @pytest.mark.parametrize("value", ["y", "n", "tRUE", "'true'", '"0"', "'no'", "2", "1.0", "maybe", "!!str true"])
    def test_what_is_no_boolean_stays_undecided(self, value: str) -> None:
        assert own(f"enable_cuda_graph: {value}") == {ENABLE: UNDECIDED}

    def test_text_of_a_flag_is_what_the_command_line_gets(self) -> None:
        assert own('--enable-cuda-graph: "true"') == {ENABLE: True}
        assert own("--enable-cuda-graph:") == {ENABLE: True}

    @from_table
    def test_names_are_read_as_pyyaml_does(self, value: str) -> None:
        line = f"cuda_graph_scope: {value}"
        assert own(line) == yaml.safe_load(line)

    @from_table
    def test_what_reading_cannot_decide(self, value: str) -> None:
        assert own(f"cuda_graph_scope: {value}") == {SCOPE: UNDECIDED}

    def test_aliases_are_followed(self) -> None:
        text = "t: &t yes\nl: &l [attn, *n]\n".replace("[attn, *n]", "[attn]")
        assert own(text + "m: {enable_cuda_graph: *t, cuda_graph_scope: *l}\n") == {ENABLE: True, SCOPE: ["attn"]}

    def test_an_alias_of_its_own_parent_is_undecided(self) -> None:
        assert own("m: &m {cuda_graph_scope: *m}") == {SCOPE: UNDECIDED}
        assert own("cuda_graph_scope: &s [attn, *s]") == {SCOPE: UNDECIDED}

    def test_a_setting_written_twice_is_reported_and_not_edited(self) -> None:
        document = YamlDocument("m:\n  cuda_graph_scope: attn\n  cuda_graph_scope: mlp\n")
        assert [problem.kind for problem in document.problems] == [ProblemKind.WRITTEN_TWICE]
        assert "line 2; YAML keeps the last" in document.problems[0].message
        assert document.sites[0].own == {SCOPE: "mlp"}
        assert document.sites[0].blocked_by

    def test_as_flag_and_as_name_is_twice_as_well(self) -> None:
        document = YamlDocument("--cuda-graph-scope: attn\ncuda_graph_scope: mlp\n")
        assert "written as `--cuda-graph-scope` on line 1" in document.problems[0].message


class TestMerging:
    @pytest.mark.parametrize(("merge", "inherits"), [("<<: [*a, *b]", (0, 1)), ("<<: *a\n  <<: *b", (1, 0))])
    def test_of_several_mappings_none_has_precedence(self, merge: str, inherits: tuple[int, ...]) -> None:
        text = f"a: &a {{cuda_graph_scope: attn}}\nb: &b {{cuda_graph_scope: mlp}}\nc:\n  {merge}\n"
        *_, child = sites(text)
        assert (child.inherits, child.unordered) == (inherits, 2)

    @pytest.mark.parametrize("merge", ["<<: *b", "<<: [*b]", "<<: [*x, *b]"])
    def test_one_mapping_with_settings_has_an_order(self, merge: str) -> None:
        *_, child = sites(f"x: &x {{y: 1}}\nb: &b {{cuda_graph_scope: mlp}}\nc: {{{merge}}}\n")
        assert (child.inherits, child.unordered) == ((0,), 0)

    def test_neighbours_that_differ_are_not_known(self) -> None:
        text = (
            "a: &a {cuda_graph_impl: local, layers: 1, size: 4}\nb: &b {layers: 2, size: 4}\nc: {<<: [*a, *b], x: 3}\n"
        )
        child = sites(text)[-1]
        assert isinstance(child.neighbours["layers"], MergedValue)
        assert child.neighbours["layers"].text == "1 or 2"
        assert (child.neighbours["size"], child.neighbours["x"]) == (4, 3)

    def test_an_alias_of_a_list_of_mappings(self) -> None:
        *_, child = sites("a: &a {cuda_graph_scope: attn}\nl: &l [*a]\nc: {<<: *l}\n")
        assert child.inherits == (0,)

    def test_a_mapping_written_in_place_is_part_of_the_outer_path(self) -> None:
        outer, inner = sites("m: {<<: {cuda_graph_scope: attn}, x: 1}\n")
        assert (outer.path, outer.inherits) == (("m",), (1,))
        assert inner.path == ("m",)

    def test_a_quoted_merge_key_is_a_name(self) -> None:
        (site,) = sites("a: &a {cuda_graph_scope: attn}\nb: {'<<': *a}\n")
        assert site.alias_paths == (("b", "<<"),)

    def test_dotted_settings_come_through_several_merges(self) -> None:
        a, b, c, *_ = (
            site
            for site in sites(
                "a: &a {m.cuda_graph_impl: local}\nb: &b {<<: *a}\nc: {<<: *b, m.cuda_graph_scope: full}\n"
            )
            if site.path[-1:] == ("m",)
        )
        assert (b.inherits, c.inherits) == ((a.index,), (b.index,))

    @pytest.mark.parametrize("text", ["m: &m {cuda_graph_scope: attn, <<: {<<: *m}}", "m: &m {x: &x {<<: *m}, <<: *x}"])
    def test_a_mapping_that_merges_itself_ends(self, text: str) -> None:
        read = sites(text)
        assert any(site.blocked_by == "it merges a mapping that holds it" for site in read)
        indices = {site.index: site.inherits for site in read}
        assert not any(index in indices[source] for index, sources in indices.items() for source in sources)

    def test_paths_of_aliases_in_what_is_aliased(self) -> None:
        (site,) = sites("a: &a {cuda_graph_scope: attn}\nb: &b {m: *a}\nc: [[*b]]\nd: *b\n")
        assert site.path == ("a",)
        assert set(site.alias_paths) == {("b", "m"), ("c", "m"), ("d", "m")}

    def test_a_text_used_everywhere_is_not_edited(self) -> None:
        bomb = "a: &a0 {cuda_graph_scope: full}\n" + "".join(
            f"b{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
        )
        started = time.process_time()
        (site,) = sites(bomb)
        assert "more than 1,000 places" in site.blocked_by
        assert time.process_time() - started < 2


class TestWhatCannotBeRead:
    @pytest.mark.parametrize(
        ("text", "at", "kind"),
        [
            ("a: *nowhere\n", 3, ProblemKind.INVALID_YAML),
            ("é: \x01\n", 3, ProblemKind.INVALID_YAML),
            ("a: [${x}]\n", 5, ProblemKind.INVALID_YAML),
            ("\ufeffa: [\n", 6, ProblemKind.INVALID_YAML),
            ("{% if x %}\na: 1\n", 0, ProblemKind.TEMPLATE),
            ("a: \ud800", 3, ProblemKind.INVALID_YAML),
        ],
    )
    def test_is_a_problem_with_its_place(self, text: str, at: int, kind: ProblemKind) -> None:
        (problem,) = YamlDocument(text).problems
        assert (problem.kind, problem.span.start) == (kind, at)

    @pytest.mark.parametrize("brackets", ["{a: |}", "[|]"])
    def test_depth_costs_no_stack(self, brackets: str) -> None:
        left, right = brackets.split("|")
        before = left * 850 + "{x: 1, cuda_graph_scope: attn}" + right * 850
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(len(inspect.stack()) + 200)
        try:
            assert rewritten(before, {0: {MODULES: "attn"}}) == before.replace(SCOPE, MODULES)
        finally:
            sys.setrecursionlimit(limit)

    @pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 1200, "- " * 1100 + "x", "[" * 950 + "]" * 950])
    def test_absurd_depth_is_a_problem(self, text: str) -> None:
        """Whichever refuses it first: PyYAML before 6.0.4 has no limit of its own."""
        (problem,) = YamlDocument(text + "\n# cuda_graph_scope\n").problems
        assert problem.kind is ProblemKind.TOO_COMPLEX
        assert problem.message == "the nesting depth of this YAML is more than 900 levels, so it is not examined"


# --- writing: names and values -----------------------------------------------------------------------


class TestRename:
    @from_table
    def test_keeps_the_value_as_it_is_written(self, before: str, after: str) -> None:
        (site,) = YamlDocument(before).sites
        assert rewritten(before, {0: {MODULES: site.own[SCOPE]}}) == after

    @from_table
    def test_with_a_new_value_in_the_style_of_the_old(self, before: str, after: str) -> None:
        assert rewritten(before, {0: {IMPL: "local"}}) == after

    def test_a_key_alone_in_a_flow_mapping_gets_a_colon(self) -> None:
        assert rewritten("{cuda_graph_scope, x: 1}", {0: {MODULES: []}}) == "{cuda_graph_modules: [], x: 1}"

    def test_a_word_that_needs_quotes_gets_them(self) -> None:
        assert rewritten("{cuda_graph_scope: [a]}", {0: {MODULES: "attn,mlp"}}) == '{cuda_graph_modules: "attn,mlp"}'
        assert rewritten("cuda_graph_scope: a", {0: {MODULES: "attn,mlp"}}) == "cuda_graph_modules: attn,mlp"
        assert rewritten("cuda_graph_scope: a", {0: {MODULES: "[attn mlp]"}}) == 'cuda_graph_modules: "[attn mlp]"'
        assert rewritten("cuda_graph_scope: a", {0: {MODULES: "on"}}) == 'cuda_graph_modules: "on"'


class TestLists:
    @from_table
    def test_items_go_and_the_others_stay_as_written(self, before: str, after: str) -> None:
        key = "cuda_graph_modules: "
        assert rewritten(key + before, {0: {MODULES: ["attn"]}}) == key + after

    @from_table
    def test_an_emptied_list_is_written_with_brackets(self, before: str, after: str) -> None:
        assert rewritten("cuda_graph_modules:" + before, {0: {MODULES: []}}) == "cuda_graph_modules:" + after

    def test_a_list_becomes_a_word(self) -> None:
        assert_rewritten(
            """
            cuda_graph_scope:  # all
              - full_iteration
            x: 1
            """,
            """
            inference_cuda_graph_scope: block  # all
            x: 1
            """,
            {INFERENCE: "block"},
        )

    def test_other_names_replace_the_list(self) -> None:
        assert rewritten("cuda_graph_modules: ['a', b]", {0: {MODULES: ["mlp"]}}) == "cuda_graph_modules: ['mlp']"


# --- writing: pairs that come and go --------------------------------------------------------------------


class TestRemove:
    def test_a_line_with_its_comment(self) -> None:
        assert_removed(
            SCOPE,
            """
            # the model
            m:
              a: 1  # one
              # cuda_graph_scope: what is captured,
              # all of it
              cuda_graph_scope: full  # whole layers
              # b is two
              b: 2
            """,
            """
            # the model
            m:
              a: 1  # one
              # b is two
              b: 2
            """,
        )

    @from_table
    def test_a_comment_that_is_not_plainly_its_own_stays(self, comment: str) -> None:
        text = f"a: 1\n{comment}\ncuda_graph_scope: full\nb: 1\n"
        assert rewritten(text, {0: {}}) == f"a: 1\n{comment}\nb: 1\n".replace("\n\nb", "\n\nb")

    def test_a_line_of_a_text_above_is_no_comment(self) -> None:
        text = 'a: "x\n# cuda_graph_scope"\ncuda_graph_scope: full\n'
        assert rewritten(text, {0: {}}) == 'a: "x\n# cuda_graph_scope"\n'

    def test_of_two_blank_lines_that_meet_one_goes(self) -> None:
        assert rewritten("a: 1\n\ncuda_graph_scope: full\n\nb: 1\n", {0: {}}) == "a: 1\n\nb: 1\n"

    def test_the_last_line_of_a_file_without_final_line_break(self) -> None:
        assert rewritten("a: 1\r\ncuda_graph_scope: full", {0: {}}) == "a: 1"

    def test_the_last_lines_of_two_sites_without_final_line_break(self) -> None:
        text = "x: 1\nm:\n  a: 1\n  cuda_graph_scope: full\ncuda_graph_scope: full"
        assert rewritten(text, {0: {}, 1: {}}) == "x: 1\nm:\n  a: 1"

    def test_the_lines_of_a_block_list(self) -> None:
        text = "a: 1\ncuda_graph_scope:  # x\n- full\n# still\n- attn # y\n# b\nb: 1\n"
        assert rewritten(text, {0: {}}) == "a: 1\n# b\nb: 1\n"

    @pytest.mark.parametrize("style", ["|", "|+", ">-"])
    def test_the_lines_of_a_block_of_text(self, style: str) -> None:
        assert rewritten(f"a: 1\ncuda_graph_scope: {style}\n  full\n\nb: 1\n", {0: {}}) == "a: 1\n\nb: 1\n"

    @from_table
    def test_what_loses_all_its_pairs_is_an_empty_mapping(self, before: str, after: str) -> None:
        assert rewritten(before, {0: {}}) == after


class TestAdd:
    @from_table
    def test_below_or_behind_what_it_replaces_in_its_style(self, before: str, after: str) -> None:
        (site,) = YamlDocument(before).sites
        assert rewritten(before, {0: {MODULES: site.own[SCOPE], INFERENCE: "block"}}) == after

    def test_in_the_place_of_what_goes(self) -> None:
        before = '{\n  "cuda_graph_impl": "local",\n  "enable_cuda_graph": false\n}'
        after = '{\n  "cuda_graph_impl": "local",\n  "inference_cuda_graph_scope": "block"\n}'
        assert rewritten(before, {0: {IMPL: "local", INFERENCE: "block"}}) == after

    def test_below_a_list_whose_last_item_goes(self) -> None:
        assert_rewritten(
            """
            cuda_graph_scope:
              - attn
              - full_iteration_inference""",
            """
            cuda_graph_modules:
              - attn
            inference_cuda_graph_scope: block""",
            {MODULES: ["attn"], INFERENCE: "block"},
        )


class TestRefusals:
    @from_table
    def test_say_why(self, text: str, settings: Settings, reason: str) -> None:
        assert_refused(text, settings, reason)


class TestBytes:
    @pytest.mark.parametrize(
        "case", ["crlf", "bom", "mixed-line-ends", "lone-cr", "rare-line-breaks", "no-final-break"]
    )
    def test_are_those_of_the_fixture(self, case: str) -> None:
        text, bom = decode((CASES / case / "before.yaml").read_bytes())
        document = YamlDocument(text)
        rewrites = {
            site.index: {IMPL: "local", MODULES: ["attn"], INFERENCE: "block"} if IMPL in site.own else {}
            for site in document.sites
        }
        assert encode(rewritten(text, rewrites), bom) == (CASES / case / "after.yaml").read_bytes()

    @from_table
    def test_stay_when_no_rewrite_changes_them(self, text: str) -> None:
        document = YamlDocument(text)
        assert document.edits({}) == []
        assert document.edits({site.index: site.own for site in document.sites}) == []
        assert document.check(text, {site.index: site.own for site in document.sites}) == ""


class TestManySites:
    @staticmethod
    def seconds(count: int, line: str) -> float:
        text = "{\n" + "".join(line.replace("N", str(number)) for number in range(count)) + "}\n"
        started = time.process_time()
        document = YamlDocument(text)
        rewrites = {site.index: {**without(SCOPE, site), MODULES: "attn"} for site in document.sites}
        assert len(rewrites) == count
        edited = apply(text, document.edits(rewrites))
        assert document.check(edited, rewrites) == ""
        assert SCOPE not in edited
        return time.process_time() - started

    @pytest.mark.parametrize(
        "line",
        ["sN: {cuda_graph_impl: local, cuda_graph_scope: attn},\n", "pN.cuda_graph_scope: attn,\nxN: 1,\n"],
    )
    def test_cost_in_proportion(self, line: str) -> None:
        self.seconds(50, line)
        # Ten times the sites; a quadratic step would take a hundred times as long.
        assert self.seconds(5_000, line) < 40 * max(self.seconds(500, line), 0.05)


# --- the guard ------------------------------------------------------------------------------------------

GUARDED = text_of(
    """
    base: &base {x: 1, y: [a, b]}
    m:
      cuda_graph_impl: local
      cuda_graph_scope: attn  # comment
      size: 12
      on: "yes"
      name: &n text
      again: *n
      tagged: !t [1]
      <<: *base
    other:
      cuda_graph_scope: mlp
    ---
    second: &n 1
    third: *n
    """
)


class TestCheck:
    REWRITES = {0: {IMPL: "local", MODULES: "attn"}}  # noqa: RUF012

    def edited(self) -> tuple[YamlDocument, str]:
        document = YamlDocument(GUARDED)
        assert document.sites[0].path == ("m",)
        return document, apply(GUARDED, document.edits(self.REWRITES))

    @from_table
    def test_notices_damage(self, old: str, new: str) -> None:
        document, edited = self.edited()
        assert edited.count(old) == 1
        assert document.check(edited, self.REWRITES) == ""
        assert document.check(edited.replace(old, new), self.REWRITES) != ""

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("  # comment", ""),
            ("size: 12", "size:   12 # c"),
            ("\n", "\r\n"),
        ],
    )
    def test_lets_pass_what_reads_the_same(self, old: str, new: str) -> None:
        document, edited = self.edited()
        assert document.check(edited.replace(old, new), self.REWRITES) == ""

    def test_notices_that_a_setting_was_not_changed(self) -> None:
        assert YamlDocument(GUARDED).check(GUARDED, self.REWRITES) != ""

    @from_table
    def test_notices_another_value_where_none_can_be_decided(self, value: str, other: str) -> None:
        text = f"m:\n  cuda_graph_scope: {value}\n"
        document = YamlDocument(text)
        assert isinstance(document.sites[0].own[SCOPE], Undecided)
        rewrites = {0: {MODULES: document.sites[0].own[SCOPE]}}
        edited = apply(text, document.edits(rewrites))
        assert edited == f"m:\n  cuda_graph_modules: {value}\n"
        assert document.check(edited, rewrites) == ""
        assert document.check(edited.replace(value, other), rewrites) != ""

    def test_notices_new_input_error_in_a_file_that_had_some(self) -> None:
        text = "a: {cuda_graph_scope: x, cuda_graph_scope: y}\nb: {cuda_graph_scope: x}\n"
        document = YamlDocument(text)
        assert document.check(text, {}) == ""
        assert document.check(text + "[", {}).startswith("it would no longer be read")
        assert document.check(text.replace("b: {", "b: {cuda_graph_scope: x, "), {}) != ""

    def test_says_on_which_line(self) -> None:
        document, edited = self.edited()
        assert document.check(edited.replace("12", "13"), self.REWRITES).endswith("(line 5)")


# --- values that are blocks of text, comments on the first line -----------------------------------------------


@pytest.mark.parametrize("style", ["|", "|-", ">", ">-", ">+", "|2-"])
def test_a_block_of_text_gets_no_other_value(style: str) -> None:
    source = f"model:\n  {SCOPE}: {style}\n    full\n  num_layers: 2\n"
    assert_refused(source, {SCOPE: []}, "the value is a block of text")
    assert_refused(source, {MODULES: ["attn"]}, "the value is a block of text")
    assert rewritten(source, {0: {}}) == "model:\n  num_layers: 2\n"


def test_a_comment_on_the_first_line_goes_with_its_key() -> None:
    text = "# cuda_graph_scope: what is captured\ncuda_graph_scope: attn\nnum_layers: 2\n"
    assert rewritten(text, {0: {}}) == "num_layers: 2\n"
    text = "# A model of ours\ncuda_graph_scope: attn\nnum_layers: 2\n"
    assert rewritten(text, {0: {}}) == "# A model of ours\nnum_layers: 2\n"


@from_table
def test_the_reason_why_a_value_is_not_known_is_its_form_or_its_tag(value: str, reason: str) -> None:
    unknown = YamlDocument(f"m:\n  cuda_graph_scope: {value}\n").sites[0].own[SCOPE]
    assert isinstance(unknown, Undecided) and unknown.reason == reason
