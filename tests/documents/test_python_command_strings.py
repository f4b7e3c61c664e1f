"""Command lines in strings of Python files: which are read, what a fix writes, and what stays."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.sites import Use
from cgmigrate.documents.syntax import Syntax, document_of
from cgmigrate.documents.uses import appearances_in
from cgmigrate.megatron.catalogue import load
from tests.support.fixed_files import Run, check_passes, check_rewritten, with_safe_fixes
from tests.support.nightly import examples
from tests.support.shell_judges import is_valid, recorded, without_settings

TRAIN = "torchrun pretrain_gpt.py"
LOCAL = "--cuda-graph-impl local"
OLD = f"{TRAIN} {LOCAL} --cuda-graph-scope attn mlp"
NEW = f"{TRAIN} {LOCAL} --cuda-graph-modules attn mlp"
IMPORTS = "import os\nimport shlex\nimport subprocess\n\n"

FORMS = {
    "a shell": (
        f'subprocess.run("{TRAIN} {LOCAL} --cuda-graph-scope full", shell=True, check=True)  # x\n',
        f'subprocess.run("{TRAIN} {LOCAL}", shell=True, check=True)  # x\n',
    ),
    "other functions that start a shell": (
        f"os.system('cd /x && {OLD}')\nos.popen('{OLD}')\nsubprocess.getoutput('{OLD}')\n",
        f"os.system('cd /x && {NEW}')\nos.popen('{NEW}')\nsubprocess.getoutput('{NEW}')\n",
    ),
    "an imported name": (
        f'from os import system as sh\n\nsh("{TRAIN} --enable-cuda-graph")\n',
        f'from os import system as sh\n\nsh("{TRAIN} {LOCAL}")\n',
    ),
    "a long string with escaped line breaks": (
        f'os.system("""\n    {TRAIN} \\\\\n        {LOCAL} \\\\\n'
        '        --cuda-graph-scope full \\\\\n        --bf16\n""")\n',
        f'os.system("""\n    {TRAIN} \\\\\n        {LOCAL} \\\\\n        --bf16\n""")\n',
    ),
    "a raw string": (
        f"os.system(r'''{TRAIN} \\\n  {LOCAL} \\\n  --cuda-graph-scope full''')\n",
        f"os.system(r'''{TRAIN} \\\n  {LOCAL}''')\n",
    ),
    "lines that Python joins": (
        f'os.system("""\\\n{TRAIN} \\\n  {LOCAL} --cuda-graph-scope attn \\\n  --bf16""")\n',
        f'os.system("""\\\n{TRAIN} \\\n  {LOCAL} --cuda-graph-modules attn \\\n  --bf16""")\n',
    ),
    "line breaks of Windows": (
        f'os.system("""\r\n{TRAIN} \\\\\r\n  {LOCAL} \\\\\r\n  --cuda-graph-scope full\r\n""")\r\n',
        f'os.system("""\r\n{TRAIN} \\\\\r\n  {LOCAL}\r\n""")\r\n',
    ),
    "a string of several literals": (
        f'os.system(\n    "{TRAIN} "\n    "{LOCAL} "\n    "--cuda-graph-scope full "\n    "--bf16"\n)\n',
        f'os.system(\n    "{TRAIN} "\n    "{LOCAL} "\n    "--bf16"\n)\n',
    ),
    "the last of several literals": (
        f"os.system('{TRAIN} '  # x\n          '{LOCAL} ' \\\n          u'--cuda-graph-scope full')\n",
        f"os.system('{TRAIN} '  # x\n          '{LOCAL} ')\n",
    ),
    "flags of one literal and the next": (
        f'os.system("{TRAIN}"\n          " --external-cuda-graph"\n          " --cuda-graph-scope attn")\n',
        f'os.system("{TRAIN}"\n          " --cuda-graph-impl transformer_engine"\n'
        '          " --cuda-graph-modules attn")\n',
    ),
    "escapes": (
        f'os.system("cd /x\\n{TRAIN} --a \\"b c\\" --external-cuda-graph\\nls\\t\\\\n")\n',
        f'os.system("cd /x\\n{TRAIN} --a \\"b c\\" --cuda-graph-impl transformer_engine\\nls\\t\\\\n")\n',
    ),
    "a script of bash -c": (
        f'subprocess.check_call(["/bin/bash", "-lc", "cd /x && {OLD}"], cwd="/")\n',
        f'subprocess.check_call(["/bin/bash", "-lc", "cd /x && {NEW}"], cwd="/")\n',
    ),
    "words that are divided for a process": (
        f'subprocess.run("{OLD} --p {{x}} $HOME".split())\nsubprocess.run(shlex.split("{OLD} --p \'a b\'"))\n',
        f'subprocess.run("{NEW} --p {{x}} $HOME".split())\nsubprocess.run(shlex.split("{NEW} --p \'a b\'"))\n',
    ),
    "words on lines of their own": (
        f'subprocess.run("""\n    {TRAIN}\n    {LOCAL}\n    --cuda-graph-scope full\n    --bf16\n""".split())\n',
        f'subprocess.run("""\n    {TRAIN}\n    {LOCAL}\n    --bf16\n""".split())\n',
    ),
    "a variable that is used once": (
        f'def main():\n    cmd = "{OLD}"\n    print(1)\n    return subprocess.Popen(cmd, shell=True)\n',
        f'def main():\n    cmd = "{NEW}"\n    print(1)\n    return subprocess.Popen(cmd, shell=True)\n',
    ),
    "a variable that is printed": (
        f'def f(log):\n    cmd = "{OLD}"\n    print(f"+ {{cmd}}")\n    log.info(cmd)\n    os.system(cmd)\n',
        f'def f(log):\n    cmd = "{NEW}"\n    print(f"+ {{cmd}}")\n    log.info(cmd)\n    os.system(cmd)\n',
    ),
    "an argument with a name": (
        f'subprocess.run(shell=True, args="{OLD}")\n',
        f'subprocess.run(shell=True, args="{NEW}")\n',
    ),
    "a variable beside a condition that is closed": (
        f'if x:\n    def main():\n        if y:\n            cmd = "{OLD}"\n            os.system(cmd)\n',
        f'if x:\n    def main():\n        if y:\n            cmd = "{NEW}"\n            os.system(cmd)\n',
    ),
    "words in quotes": (
        f'subprocess.run(shlex.split(\'{TRAIN} {LOCAL} "--cuda-graph-scope" "attn" mlp\'))\n',
        f"subprocess.run(shlex.split('{TRAIN} {LOCAL} --cuda-graph-modules \"attn\" mlp'))\n",
    ),
    "letters of other languages": (
        f'n = "é"; os.system("echo é; {OLD}")  # é\n',
        f'n = "é"; os.system("echo é; {NEW}")  # é\n',
    ),
    "settings of a model beside a command": (
        "from megatron.core.transformer import TransformerConfig as T\n\n"
        f'x = T(cuda_graph_impl="local", cuda_graph_scope=["attn"])\nos.system("{OLD}")\n',
        "from megatron.core.transformer import TransformerConfig as T\n\n"
        f'x = T(cuda_graph_impl="local", cuda_graph_modules=["attn"])\nos.system("{NEW}")\n',
    ),
}
SILENT = {
    "newer flags": f'os.system("{NEW}")\n',
    "Megatron-Bridge's harness": 'os.system("python run.py --cuda_graph_scope attn,mlp")\n',
    "a comment in a script": f'os.system("""\n# {OLD}\nls\n""")\n',
    "a message": 'os.system("echo use --cuda-graph-scope attn")\n',
}
"""Code with nothing to change."""
UNREAD = {
    "a text that nothing runs": f'x = "{OLD}"\nos.system("ls")\n',
    "an f-string": f'os.system(f"{OLD} {{1}}")\n',
    "a format": f'os.system("{OLD} {{}}".format(1))\nos.system("{OLD} %s" % 1)\n',
    "a sum": f'os.system("{OLD} " + x)\n',
    "no shell": f'subprocess.run("{OLD}")\nsubprocess.run("{OLD}", shell=x)\n',
    "another program as the shell": f'subprocess.run("{OLD}", shell=True, executable="/bin/x")\n',
    "no words of a shell": f'subprocess.run(["python", "-c", "{OLD}"])\n',
    "words between other characters": f'subprocess.run("{OLD}".split(" "))\n',
    "a function of another name": f'def run(x, shell): ...\nrun("{OLD}", shell=True)\n',
    "a name that is no longer the module's": f'os = other()\nos.system("{OLD}")\n',
    "a variable that is changed": f'def f():\n    cmd = "{OLD}"\n    cmd += " --x"\n    os.system(cmd)\n',
    "a variable that is printed and nothing else": f'def f():\n    cmd = "{OLD}"\n    print(cmd)\n',
    "a variable that is used twice": f'def f():\n    cmd = "{OLD}"\n    os.system(cmd)\n    g(cmd)\n',
    "a condition around the use": f'def f():\n    cmd = "{OLD}"\n    if old():\n        os.system(cmd)\n',
    "a condition between": f'def f():\n    cmd = "{OLD}"\n    if new():\n        return\n    os.system(cmd)\n',
    "a parameter": f'def f(cmd="{OLD}"):\n    os.system(cmd)\n',
    "a variable of another function": f'def f():\n    def g():\n        cmd = "{OLD}"\n    os.system(cmd)\n',
    "rare escapes": f'os.system("{TRAIN} \\x2d-lr 1 --cuda-graph-scope attn")\n',
    "a flag in quotes": f"subprocess.run(shlex.split('{TRAIN} \"--cuda-graph-scope=attn mlp\"'))\n",
}
"""Forms in which nothing is reported: the file does not import Megatron, and the text is not read."""
UNSAFE = {
    "a program that is not known": ('os.system("torchrun train.py --cuda-graph-scope attn")\n', "is not known as"),
    "a name of the module": (f'CMD = "{OLD}"\n\n\ndef f():\n    os.system(CMD)\n', "which other files can import"),
    "a list that others may get": (f'args = "{OLD}".split()\n', "other code may add arguments"),
    "a list that is added to another": (f'cmd.extend(shlex.split("{OLD}"))\n', "other code may add arguments"),
    "a test of the words": (
        f'os.system("{OLD}")\nassert "--cuda-graph-scope" in run.call_args\n',
        "line 6 looks for `--cuda-graph-scope`",
    ),
    "a release that ends the program": (
        f'import megatron.core\nif megatron.core.__version__ >= "0.18":\n    sys.exit(1)\nos.system("{OLD}")\n',
        "so it is written for several releases",
    ),
    "a release that is asserted": (
        f'import megatron.core\nassert megatron.core.__version__ < "0.18"\nos.system("{OLD}")\n',
        "so it is written for several releases",
    ),
    "a release that selects a case": (
        f'import megatron.core\nmatch megatron.core.__version__:\n    case "0.17.1":\n        os.system("{OLD}")\n',
        "so it is written for several releases",
    ),
    "a command that is compared": (f'os.system("{OLD}")\nassert got == ["{OLD}"]\n', "line 6 looks for"),
    "a test": (f'import pytest\nos.system("{OLD}")\nassert "attn mlp" in got\n', "the file is a test"),
    "a name of a class": (f'class A:\n    CMD = "{OLD}"\n    os.system(CMD)\n', "which other files can import"),
    "a test of the words of a list": (
        f"subprocess.run({OLD.split()})\ni = cmd.index('--cuda-graph-scope')\n",
        "line 6 looks for `--cuda-graph-scope`",
    ),
}
LEFT = {
    "a script with options of its own": f'subprocess.run(["bash", "train.sh", "-c", "{OLD}"])\n',
    "a script with parameters": f'subprocess.run(["bash", "-c", "{OLD} $@", "_", "--bf16"])\n',
    "a parameter of the module's name": f'def f(os):\n    os.system("{OLD}")\n',
    "a module's name that is bound again": f'with fake() as subprocess:\n    subprocess.run("{OLD}", shell=True)\n',
    "a function that is replaced": f'os.system = fake\nos.system("{OLD}")\n',
    "names that a star imports": f'from tools import *\nos.system("{OLD}")\n',
    "a text that is written to a file": f'def f():\n    c = "{OLD}"\n    print(c, file=log)\n    os.system(c)\n',
    "names that are read by their texts": f'def f():\n    c = "{OLD}"\n    log(locals())\n    os.system(c)\n',
    "a character that divides no words for a shell": f'os.system("{TRAIN}\x0c{LOCAL}\x0c--cuda-graph-scope full")\n',
}
"""Code whose command lines other code may change, or that runs something else."""
STAYS = {
    "an option of the file's own": (
        f'p.add_argument("--cuda-graph-scope")\np.parse_args("{OLD}".split())\n',
        "line 5 defines `--cuda-graph-scope` as an option of its own",
    ),
    "an option of the file's own in a list": (
        f'p.add_argument("--cuda-graph-scope")\np.parse_args(args={OLD.split()})\n',
        "line 5 defines `--cuda-graph-scope` as an option of its own",
    ),
    "a check of the release": (
        f'import megatron.core\nif megatron.core.__version__ < "0.18":\n    os.system("{OLD}")\n',
        "it is written for several releases",
    ),
    "a test of the deprecation": (
        f'def test_legacy_flags():\n    os.system("{OLD}")\n',
        "tests deprecated settings",
    ),
    "a scope twice": (f'os.system("{OLD} --cuda-graph-scope full")\n', "written twice"),
    "a value that is computed": (f'os.system("{TRAIN} {LOCAL} --cuda-graph-scope $S")\n', "$S"),
}


def fixed(text: str) -> str:
    """Return the file with all safe fixes."""
    return with_safe_fixes(document_of("/p/a.py", text, Syntax.PYTHON, load()))


def other_code(text: str) -> list[Any]:
    """Return the tree of a file as text, with its strings as words without the flags of settings."""
    tree = ast.parse(text)
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    words = []
    for node in strings:
        words.append(without_settings(str(node.value).replace("\\\n", " ").split()))
        node.value = ""
    return [ast.dump(tree), words]


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_what_is_no_command_line_passes(project: Path, cgmigrate: Run, text: str) -> None:
    check_passes(project / "a.py", IMPORTS + text, cgmigrate)


@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD)
def test_a_flag_in_another_text_is_reported_and_stays(project: Path, cgmigrate: Run, text: str) -> None:
    path = project / "a.py"
    path.write_text(IMPORTS + text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1
    assert "CG604" in result.output, result.output
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == IMPORTS + text


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_each_form_is_rewritten_where_it_is(project: Path, cgmigrate: Run, before: str, after: str) -> None:
    check_rewritten(project / "a.py", IMPORTS + before, IMPORTS + after, cgmigrate)


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_python_reads_all_else_as_before(before: str, after: str) -> None:
    if "TransformerConfig" not in before:
        assert other_code(before) == other_code(after)


@pytest.mark.parametrize(("before", "after"), FORMS.values(), ids=FORMS)
def test_the_settings_afterwards_are_read_at_the_same_places(before: str, after: str) -> None:
    old, new = (document_of("/p/a.py", IMPORTS + one, Syntax.PYTHON, load()).sites for one in (before, after))
    assert [site.path for site in old] == [site.path for site in new]
    assert not any(load().deprecated & site.own.keys() for site in new)


@pytest.mark.parametrize(("text", "why"), UNSAFE.values(), ids=UNSAFE)
def test_what_other_code_may_see_is_an_unsafe_fix(project: Path, cgmigrate: Run, text: str, why: str) -> None:
    path = project / "a.py"
    path.write_text(IMPORTS + text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1
    assert why in result.output, result.output
    cgmigrate("fix", ".")
    assert path.read_text() == IMPORTS + text
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert "--cuda-graph-modules" in path.read_text()


@pytest.mark.parametrize("text", LEFT.values(), ids=LEFT)
def test_what_may_be_another_command_line_is_left(project: Path, cgmigrate: Run, text: str) -> None:
    path = project / "a.py"
    path.write_text(IMPORTS + text)
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == IMPORTS + text


@pytest.mark.parametrize(("text", "why"), STAYS.values(), ids=STAYS)
def test_what_is_not_certain_is_reported_and_stays(project: Path, cgmigrate: Run, text: str, why: str) -> None:
    path = project / "a.py"
    path.write_text(IMPORTS + text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1
    assert why in result.output, result.output
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == IMPORTS + text


def test_reads_with_a_fix_and_command_lines_are_rewritten_in_one_run(project: Path, cgmigrate: Run) -> None:
    """The fix of a read has a number behind those of all sites, also of those in strings."""
    before = (
        "import os\n\nfrom megatron.core.transformer.enums import CudaGraphScope\n\n\n"
        f'def f(self):\n    os.system("{OLD}")\n    x = CudaGraphScope.attn in self.config.cuda_graph_scope\n'
        f'    os.system("{OLD}")\n'
    )
    path = project / "a.py"
    path.write_text(before)
    cgmigrate("fix", "--unsafe-fixes", ".")
    after = before.replace(OLD, NEW).replace("CudaGraphScope", "CudaGraphModule")
    assert path.read_text() == after.replace("config.cuda_graph_scope", "config.cuda_graph_modules")
    assert cgmigrate("check", ".").exit_code == 0


def test_a_file_that_copies_keys_is_read_without_its_command_lines(project: Path, cgmigrate: Run) -> None:
    text = (
        'import os\n\nNAMES = ["cuda_graph_impl", "cuda_graph_scope"]\n\n\ndef f(config, model):\n'
        "    for name in NAMES:\n        if name in config:\n            setattr(model, name, config[name])\n"
        f'    os.system("{OLD}")\n'
    )
    (project / "a.py").write_text(text)
    cgmigrate("fix", ".")
    assert OLD in (project / "a.py").read_text()


@pytest.mark.parametrize("text", [before for before, _ in FORMS.values()], ids=FORMS)
def test_written_suppressions_keep_the_strings(project: Path, cgmigrate: Run, text: str) -> None:
    path = project / "a.py"
    path.write_bytes((IMPORTS + text).encode())
    result = cgmigrate("check", ".", "--add-ignore")
    assert result.exit_code == 0, result.output
    assert ast.dump(ast.parse(path.read_bytes())) == ast.dump(ast.parse((IMPORTS + text).encode()))
    assert cgmigrate("check", ".").exit_code == 0


# --- generated files ---------------------------------------------------------------------------------

SETTINGS = st.sampled_from(
    [
        "--enable-cuda-graph",
        "--external-cuda-graph",
        "--cuda-graph-scope full",
        "--cuda-graph-scope attn mlp",
        "--cuda-graph-scope=attn",
        "--cuda-graph-impl local",
        "--cuda-graph-impl=transformer_engine",
    ]
)
OTHERS = st.sampled_from(
    ["--bf16", "--lr 1", "--p 'a b'", '--q "a  b"', "--n $HOME", "--u é", "--w a#b", "--m {x}", "--z \\\\ --y"]
)
SEPARATORS = [" ", "  ", "\t", " \\\n  ", " \\\n", "\n", "\n    "]
CALLS = [
    "os.system({})",
    "subprocess.run({}, shell=True)",
    "subprocess.run(shlex.split({}))",
    "subprocess.run({}.split())",
    "subprocess.run(['bash', '-c', {}])",
    "print({})",
]


@st.composite
def command_lines(draw: st.DrawFn) -> str:
    words = draw(st.lists(st.one_of(SETTINGS, OTHERS), min_size=1, max_size=7))
    separators = st.sampled_from(SEPARATORS)
    start = draw(st.sampled_from([TRAIN, "python pretrain_gpt.py", "cd / && python pretrain_gpt.py", "\n  " + TRAIN]))
    return start + "".join(draw(separators) + word for word in words) + draw(st.sampled_from(["", "\n", " \n  "]))


@st.composite
def literals(draw: st.DrawFn) -> str:
    """A command line as a string literal; some are no valid Python."""
    text, quote = draw(command_lines()), draw(st.sampled_from(['"', "'", '"""', "'''"]))
    form = draw(st.sampled_from(["raw", "joined", "escaped", "repr"]))
    if form == "repr":
        return repr(text)
    if form == "escaped":
        text = text.replace("\\", "\\\\").replace(quote, "\\" + quote[0])
    if len(quote) == 1 and form == "escaped":
        text = text.replace("\n", "\\n")
    start = draw(st.sampled_from(["", "\\\n"])) if form != "raw" else ""
    return f"{'r' if form == 'raw' else ''}{quote}{start}{text}{quote}"


@st.composite
def files(draw: st.DrawFn) -> str:
    lines = [draw(st.sampled_from(CALLS)).format(draw(literals())) for _ in range(draw(st.integers(1, 3)))]
    text = IMPORTS + "  # y\n".join(lines) + "\n"
    return text if draw(st.booleans()) else text.replace("\n", "\r\n")


def strings_of(text: str) -> list[str] | None:
    """Return the strings in a file, None if it is no valid Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def divided(text: str) -> list[str] | None:
    try:
        return without_settings(shlex.split(text))
    except ValueError:
        return None


@settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=files())
def test_only_flags_change_in_generated_files(text: str) -> None:
    old, after = strings_of(text), fixed(text)
    new = strings_of(after)
    assert fixed(after) == after
    if old is None or new is None:
        assert text == after
        return
    joined = [(one.replace("\\\n", " "), other.replace("\\\n", " ")) for one, other in zip(old, new, strict=True)]
    assert [without_settings(one.split()) for one, _ in joined] == [without_settings(two.split()) for _, two in joined]
    assert [divided(one) for one, _ in joined] == [divided(two) for _, two in joined]
    assert other_code(text)[0] == other_code(after)[0]
    assert after.count("\r\n") == after.count("\n") or "\r\n" not in text


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=files())
def test_a_real_bash_runs_generated_strings_as_before(text: str) -> None:
    old, new = strings_of(text), strings_of(fixed(text))
    for one, other in zip(old or [], new or [], strict=True):
        if one != other and is_valid(one):
            assert is_valid(other)
            assert [*map(without_settings, recorded(one))] == [*map(without_settings, recorded(other))]


PIECES = st.sampled_from(
    [
        *(
            "os.system(",
            "subprocess.run(",
            "shlex.split(",
            ")",
            ".split()",
            "shell=True",
            "[",
            "]",
            ",",
            "cmd",
            "=",
            "+",
        ),
        *(
            '"',
            "'",
            '"""',
            "r'",
            "f'",
            "\\",
            "\\\\",
            "\\\n",
            "\n",
            "\r\n",
            "    ",
            " ",
            "é",
            "bash",
            "-c",
            "$S",
            "#",
            "(",
        ),
        *("torchrun pretrain_gpt.py ", "--enable-cuda-graph", "--cuda-graph-scope attn", "--cuda-graph-impl local"),
        *("def f():\n    ", "import os, subprocess, shlex\n", "if x: ", "return "),
    ]
)
CALLED = st.tuples(st.sampled_from(CALLS), st.lists(PIECES, max_size=8).map("".join)).map(
    lambda one: one[0].format(f'"""{one[1]}"""')
)


@settings(max_examples=examples(400), deadline=None, suppress_health_check=list(HealthCheck))
@given(text=st.lists(st.one_of(PIECES, CALLED), max_size=20).map("".join))
def test_no_text_raises(text: str) -> None:
    text = IMPORTS + text
    document = document_of("/p/a.py", text, Syntax.PYTHON, load())
    after = fixed(text)
    assert fixed(after) == after
    document.comments()
    document.joined_lines()
    plain = PythonDocument(text, "/p/a.py", load())
    names = [one.span.start for one in appearances_in(text, load())]
    assert _known(names, plain.uses) <= _known(names, document.uses)


def _known(names: Sequence[int], uses: Sequence[Use]) -> set[int]:
    """Return the names that are in a use."""
    return {name for name in names if any(use.span.start <= name < use.span.end for use in uses)}
