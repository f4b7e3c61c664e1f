"""The layers of a GPT model in each stage of its pipeline, in the order of the layers.

Of a rank with several (virtual) stages, one stage is as many stages behind the other as there are ranks.

Sources: megatron-core 0.19.2, get_num_layers_to_build of transformer_block.py and pipeline_parallel_layer_layout.py;
Megatron-LM core_v0.19.0, validate_args.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TIMES = (re.compile(r"\(([^)]+)\)\*(\d+)"), re.compile(r"(.)\*(\d+)"))
_MOST = 100_000
"""The longest layout that is written out."""


class LayoutError(Exception):
    """Megatron-LM rejects the pipeline; the text says why."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layers in each stage. ``multi_token`` are those of multi-token prediction, where a layout places them."""

    stages: Sequence[int]
    multi_token: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a command line says of the stages of some layers on ``size`` ranks.

    ``ends`` are the layers of the first and of the last rank, where they are given; ``accounted`` says whether the
    embedding and the loss count as layers.
    """

    size: int = 1
    text: str | None = None
    layers_per_stage: int | None = None
    stages: int | None = None
    ends: tuple[int | None, int | None] = (None, None)
    accounted: tuple[bool, bool] = (False, False)

    def layout(self, count: int) -> Layout:
        """Return the layout of a number of layers. Raises LayoutError."""
        self._check()
        if self.text is not None:
            return self._of_text(self.text, count)
        per_rank = self._per_rank(count + sum(self.accounted))
        stages = self._virtual_stages(per_rank[0])
        if stages < 1 or any(number % stages for number in per_rank):
            raise LayoutError("Megatron-LM rejects layers that the virtual pipeline stages do not divide")
        if stages > 1 and self.size == 1:
            raise LayoutError("Megatron-LM rejects virtual stages without a pipeline")
        counts = [number // stages for _ in range(stages) for number in per_rank]
        counts[0] -= self.accounted[0]
        counts[-1] -= self.accounted[1]
        if min(counts) < 0:
            raise LayoutError("megatron-core rejects a stage that has fewer layers than count for it")
        return Layout(counts)

    def _check(self) -> None:
        """Check what is written against what else is written."""
        is_virtual = self.layers_per_stage is not None or self.stages is not None
        is_uneven = self.ends != (None, None)
        if self.size < 1:
            raise LayoutError("Megatron-LM rejects the size of the pipeline")
        if self.text is not None and is_virtual:
            raise LayoutError("Megatron-LM rejects a pipeline layout with other virtual stages")
        if is_uneven and any(self.accounted):
            raise LayoutError("megatron-core rejects an embedding or a loss that counts in an uneven pipeline")
        if is_uneven and self.layers_per_stage is not None and self.stages is None:
            raise LayoutError("Megatron-LM rejects `--num-layers-per-virtual-pipeline-stage` with an uneven pipeline")

    def _virtual_stages(self, per_rank: int) -> int:
        """Return the number of virtual stages of a rank, 0 if the layers do not divide its own."""
        if self.stages is not None:
            return self.stages
        if (size := self.layers_per_stage) is None:
            return 1
        return per_rank // size if size > 0 and per_rank % size == 0 else 0

    def _per_rank(self, count: int) -> list[int]:
        """Return the number of layers of each rank."""
        first, last = ([] if one is None else [one] for one in self.ends)
        left, middle = count - sum(first) - sum(last), self.size - len(first) - len(last)
        is_possible = left >= 0 and all(one > 0 for one in (*first, *last))
        # A pipeline that is even has no middle of its own.
        is_divided = left % middle == 0 and (left > 0 or not (first or last)) if middle > 0 else left == middle == 0
        if not is_possible or not is_divided:
            raise LayoutError("Megatron-LM rejects layers that the pipeline stages do not divide")
        return [*first, *([left // middle] * middle if middle else []), *last]

    def _of_text(self, text: str, count: int) -> Layout:
        """Return the layout that a text such as ``Ettt|(tt|)*2tL`` describes."""
        written = text.replace(",", "")
        for pattern in _TIMES:
            if sum(int(match[2]) * len(match[1]) for match in pattern.finditer(written)) > _MOST:
                raise LayoutError("the pipeline layout is longer than that of any model")
            written = pattern.sub(lambda match: match[1] * int(match[2]), written)
        parts = written.split("|")
        is_in_order = re.fullmatch(r"Et*m*L", "".join(parts)) is not None
        if not is_in_order or written.count("t") != count or len(parts) % self.size or self.size == 1 < len(parts):
            raise LayoutError("Megatron-LM rejects the pipeline layout")
        return Layout([part.count("t") for part in parts], [part.count("m") for part in parts])
