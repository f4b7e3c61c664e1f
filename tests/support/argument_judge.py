"""A program that says what Megatron-LM's validation of arguments says of command lines, one in JSON a line."""

from __future__ import annotations

from textwrap import indent

_PROGRAM = """
import contextlib, io, json, logging, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from megatron.training import arguments
arguments.is_te_min_version = lambda *_, **__: True
model = "{model}--hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --bf16"
run = "--micro-batch-size 1 --global-batch-size 8 --tokenizer-type NullTokenizer --vocab-size 9 --lr 1"
out = sys.stdout
for line in sys.stdin:
    sys.argv = ["pretrain_gpt.py", *model.split(), *run.split(), *json.loads(line)]
    errors, said = io.StringIO(), ""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            args = arguments.parse_args()
            args.world_size, args.rank = 8, 0
            arguments.validate_args(args)
{then}
        except SystemExit:
            said = errors.getvalue()
        except Exception as error:
            said = type(error).__name__ + " " + str(error)
    print(" ".join(said.split()), file=out)
"""


def argument_judge(then: str, model: str = "") -> str:
    """Return the program. ``model`` are more arguments; ``then`` is code that judges ``args`` and may set ``said``."""
    return _PROGRAM.format(model=f"{model} " if model else "", then=indent(then, " " * 12))
