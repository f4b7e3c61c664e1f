"""Where the repository is, its folders that several tests read, and what may lie beside it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/configs"
FIXTURES = ROOT / "tests/fixtures"
FETCHED = ROOT / ".corpus"
"""Released packages, if .ci/run has fetched them."""
CORPUS = ROOT.parent / "shared/corpus"
"""Public YAML configurations, if they lie beside the checkout."""
TRUTH = ROOT.parent / "shared/reference/truth"
"""Tables of what releases of megatron-core did when they were executed, if they lie beside the checkout."""
MEGATRON_LM = ROOT.parent / "real/mlm"
"""A clone of Megatron-LM with its history, if it lies beside the checkout."""
NEMO_RL = ROOT.parent / "real/rl"
"""A clone of NeMo-RL of August 2026, if it lies beside the checkout."""
MEGATRON_BRIDGE = ROOT.parent / "real/bridge"
"""A clone of Megatron-Bridge of August 2026, if it lies beside the checkout."""
