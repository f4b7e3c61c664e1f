"""What `explain` says of configurations, against what the release captures or refuses."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cgmigrate.megatron.capture import capture_of_resolved
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.types import Rejected, ResolvedConfiguration
from sweeping.cases import READERS, Case, Reader

Lacks = Callable[[Reader, str, argparse.Namespace], str]
Chosen = Callable[[Reader, str, argparse.Namespace], list[tuple[Case, dict[str, Any]]]]


def captured(effective: dict[str, Any], release: str, of_gpt: bool) -> str:
    """What a validated configuration captures, in the words of `explain`."""
    modules = tuple(effective["modules"])
    configuration = ResolvedConfiguration(effective["impl"], "full", modules, effective["inference"])
    major, minor = release.split(".")
    capture = capture_of_resolved(configuration, Release(int(major), int(minor)))
    assert not isinstance(capture, Rejected), capture
    return "nothing" if of_gpt and _of_other_layers(effective) else capture.describe_briefly(modules=True)


def _of_other_layers(effective: dict[str, Any]) -> bool:
    """Whether no layer of a GPT model has the modules: Mamba's, or the router that `local` captures in hybrid models.

    Executed with 0.17.1 and 0.19.2: the layers were built, and no graph manager was made.
    """
    modules = set(effective["modules"])
    others = {"mamba", "moe_router", "moe_preprocess"} if effective["impl"] == "local" else {"mamba"}
    return effective["impl"] in ("local", "transformer_engine") and bool(modules) and modules <= others


def stated(folder: Path, case: Case, release: str) -> list[str]:
    """What `explain` says that the settings of a file do."""
    (folder / case.name).write_text(case.text, encoding="utf-8")
    command = [sys.executable, "-m", "cgmigrate", "explain", "--from", release, "--to", release]
    command += ["--output-format", "json", str(folder / case.name)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if not ran.stdout.startswith("{"):
        return []
    return [_as_written(one["text"], shown) for shown in json.loads(ran.stdout)["objects"] for one in shown["captures"]]


def _as_written(text: str, shown: dict[str, Any]) -> str:
    """A statement without what is captured after an unsafe fix: no other fix may change what is captured."""
    is_unsafe = shown["edit_set"] is not None and shown["edit_set"]["safety"] == "unsafe"
    return re.sub(r" in 0\.\d+ before; .*", "", text) if is_unsafe else text


def agrees(text: str, verdict: dict[str, Any], release: str, of_gpt: bool) -> bool:
    """Whether a statement is what the release does. A failure at the capture is not seen by the judge of the start."""
    if text.startswith("fails when captured") and not verdict["refused"]:
        return True
    if verdict["refused"]:
        return text.startswith("is refused by")
    expected = captured(verdict["effective"], release, of_gpt)
    stripped = re.sub(r",? in 0\.\d+ before and in 0\.\d+ after$", "", text).removeprefix("captures ")
    parts = re.compile(r", modules [a-z_+]+")
    # `explain` shows the modules of `local` where they matter.
    return stripped in (expected, parts.sub("", expected)) or parts.sub("", stripped) == parts.sub("", expected)


def compare(options: argparse.Namespace, lacks: Lacks, chosen: Chosen) -> int:
    """Print how many statements are equal to the release, and those that are not."""
    differs: dict[tuple[str, str], list[str]] = defaultdict(list)
    pairs = [(reader, release) for reader in READERS for release in reader.releases]
    # What NeMo-RL captures is not compared: it has no validated configuration without a GPU.
    pairs = [one for one in pairs if one[0].judge != "nemo-rl" and not lacks(*one, options)]
    options.count = -(-options.statements // len(pairs))
    total = 0
    for reader, release in pairs:
        for case, verdict in chosen(reader, release, options):
            if "--perform-rl-step" in case.settings:
                continue  # In rollouts and in training, graphs are turned on and off later than the judge looks.
            total += 1
            of_gpt = reader.judge == "arguments"  # pretrain_gpt.py; a call does not show the model
            with tempfile.TemporaryDirectory() as folder:
                texts = stated(Path(folder), case, release)
            nothing = not verdict["refused"] and captured(verdict["effective"], release, of_gpt) == "nothing"
            if (texts or nothing) and all(agrees(text, verdict, release, of_gpt) for text in texts):
                continue
            real = (
                f"refused: {verdict['refused'][:90]}"
                if verdict["refused"]
                else captured(verdict["effective"], release, of_gpt)
            )
            differs["; ".join(texts) or "nothing", real].append(f"{reader.name} {release}\n{case.text}")
    for (text, real), names in sorted(differs.items(), key=lambda item: -len(item[1])):
        print(f"{len(names)}: explain: {text}\n    release: {real}\n    {names[0]}")
    print(f"{total - sum(map(len, differs.values()))} of {total} statements equal what the release captures or refuses")
    return bool(differs)
