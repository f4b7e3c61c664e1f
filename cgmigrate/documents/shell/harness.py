"""Options of Megatron-Bridge's performance harness, which are spelled with underscores and which it checks itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cgmigrate.documents.shell.fragments import Fragment
from cgmigrate.documents.shell.words import Word
from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.text.spans import Span

_PROGRAMS = ("setup_experiment.py", "run_script.py")
_IMPLEMENTATION, _SCOPE = "--cuda_graph_impl", "--cuda_graph_scope"
_IMPLEMENTATIONS = ("none", "local", "transformer_engine")
_WHOLE = "full_iteration"
_SCOPES = (_WHOLE, "attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba")
_WHOLE_ADVICE = "write `--cuda_graph_impl local --cuda_graph_scope full_iteration`"


def harness_problems(fragments: Iterable[Fragment]) -> Iterator[Problem]:
    """Yield the values of options that the harness refuses, in commands that start it."""
    for fragment in fragments:
        if fragment.program in _PROGRAMS:
            values = {name: (text, span) for name, text, span in _options(fragment.words)}
            for name, (text, span) in values.items():
                message, advice = _refusal(name, text, values)
                if message:
                    yield Problem(ProblemKind.HARNESS_OPTION, span, message, advice=advice)


def _options(words: Iterable[Word]) -> Iterator[tuple[str, str, Span]]:
    """Yield the options about graphs, each with its value and where that is."""
    option = ""
    for word in words:
        name, sign, value = (word.text or "").partition("=")
        if name in (_IMPLEMENTATION, _SCOPE) and sign:
            yield name, value, Span(word.end - len(value), word.end)
        elif option and word.text:
            yield option, word.text, word.span
        option = name if name in (_IMPLEMENTATION, _SCOPE) and not sign else ""


def _refusal(name: str, text: str, values: dict[str, tuple[str, Span]]) -> tuple[str, str]:
    """Return what is wrong with the value of an option, and what to write; empty if the harness takes it."""
    if name == _IMPLEMENTATION:
        if text in _IMPLEMENTATIONS:
            return "", ""
        known = ", ".join(f"`{one}`" for one in _IMPLEMENTATIONS)
        advice = _WHOLE_ADVICE if text == _WHOLE else f"write one of {known}"
        return f"the harness does not take `{text}` as an implementation", advice
    scopes = text.split(",")
    if unknown := [one for one in scopes if one not in _SCOPES]:
        return f"the harness does not take `{unknown[0]}` as a scope", f"write some of {', '.join(_SCOPES)}"
    if _WHOLE in scopes and len(scopes) > 1:
        return f"the harness refuses `{_WHOLE}` beside other scopes", "write one or the other"
    if _WHOLE in scopes and values.get(_IMPLEMENTATION, ("",))[0] == "transformer_engine":
        return f"the harness refuses `{_WHOLE}` with `transformer_engine`", _WHOLE_ADVICE
    return "", ""
