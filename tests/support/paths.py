"""Where the repository and the real configurations beside it are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT.parent / "shared/corpus"
