"""Old settings in random places of real configurations: each leaf captures after ``fix`` what it captured before.

A file that others build on, and that nothing names, is no entry point. Those that capture otherwise are counted.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.megatron.settings import FIELDS
from cgmigrate.megatron.types import Reader, Rejected
from tests.support.capture_judges import captured_before, captured_by_newest, fix, names_old
from tests.support.loaders import load_nemo_rl
from tests.support.nightly import NIGHTLY, generated
from tests.support.sown_corpus import CONFIGS, Corpus, mappings, sown

SEEDS = range(generated(10, 100))

pytestmark = pytest.mark.skipif(not CONFIGS.is_dir(), reason="the corpus is not beside the checkout")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus.copied_to(tmp_path_factory.mktemp("sown").resolve() / "configs")


Settings = dict[tuple[Path, tuple[str, ...]], dict[str, Any]]


def settings_in(config: dict[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    return {
        place: {name: value for name, value in mapping.items() if name in FIELDS} for place, mapping in mappings(config)
    }


def settings_of(corpus: Corpus) -> Settings:
    return {(path, place): own for path in corpus.texts for place, own in settings_in(corpus.load(path)).items()}


def is_decided(settings: dict[str, Any]) -> bool:
    return not any("${" in str(value) for value in settings.values())


def same(old: dict[str, Any], new: dict[str, Any]) -> bool:
    if old == new:
        return True
    if not is_decided(old) or not is_decided(new):
        return False
    first, second = captured_before(old, Reader.NEMO_RL), captured_by_newest(new, Reader.NEMO_RL)
    return first == second or (isinstance(first, Rejected) and isinstance(second, Rejected))


def test_the_loader_of_these_tests_is_nemo_rls(corpus: Corpus) -> None:
    for path in [*corpus.texts][::40]:
        real = load_nemo_rl(path, resolve=False)
        ours = corpus.load(path)
        assert settings_in(real) == settings_in(ours)


def test_what_each_file_captures_stays_the_same(corpus: Corpus, capsys: pytest.CaptureFixture[str]) -> None:
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in SEEDS:
        corpus.restore()
        changed = sown(corpus, seed)
        texts = {path: path.read_text(encoding="utf-8") for path in changed}
        if not any(names_old(text) for text in texts.values()):
            continue
        wrong += judged(corpus, seed, texts, counts, reasons)
    corpus.restore()
    with capsys.disabled():
        print(f"\n{len(SEEDS)} seeds:", dict(sorted(counts.items())))
        for reason, count in reasons.most_common(40 if NIGHTLY else 8):
            print(f"  {count:5} {reason}")
    assert not wrong, "\n".join(wrong)


def judged(corpus: Corpus, seed: int, texts: dict[Path, str], counts: Counter[str], reasons: Counter[str]) -> list[str]:
    """Fix one sown corpus, count what became of it, and return what is wrong."""
    before = settings_of(corpus)
    done = fix(corpus.folder)
    after = settings_of(corpus)
    parents = {parent for path in corpus.texts for parent in corpus.parents(path)}
    differ = [at for at, settings in after.items() if not same(before[at], settings)]
    wrong = [
        f"seed {seed}: {path.name} {place}: {before[path, place]} became {after[path, place]}"
        for path, place in differ
        if path not in parents
    ]
    counts["files that others build on, and that capture otherwise"] += len(differ) - len(wrong)
    wrong += [f"seed {seed}: {len(before)} mappings became {len(after)}"] if before.keys() != after.keys() else []
    others = done.written - set(map(str, texts))
    counts["files written that had no old settings"] += len(others)
    stays = [path for path in texts if names_old_key(corpus, path)]
    remaining = [(checked.path, one) for checked in done.results for one in checked.remaining]
    reported = {path for path, one in remaining} | {place.path for _, one in remaining for place in one.related}
    wrong += [
        f"seed {seed}: {path.name} keeps old names without a diagnostic" for path in stays if str(path) not in reported
    ]
    files = "one file" if len(texts) == 1 else "several files"
    counts[f"{files}: {'withheld' if stays else 'rewritten'}"] += 1
    if stays:
        reasons.update({f"{files}: {reason}": count for reason, count in done.reasons.items()})
    return wrong


def names_old_key(corpus: Corpus, path: Path) -> bool:
    own = corpus._parsed(path)
    return any(names_old(name) for _, mapping in mappings(own) for name in mapping)
