"""Code that loads a mapping: what copies its entries sees nothing of another name, what looks at all of them does."""

from __future__ import annotations

import pytest

from cgmigrate.linking.whole_mappings import whole_uses_in

NAMES = ("enable_cuda_graph", "cuda_graph_impl")
LOADED = "import os, yaml\nmodel = yaml.safe_load(open('conf.yaml'))['model']\n"


def _uses(code: str, keys: tuple[str, ...] = ("model",)) -> list[int]:
    return [line for line, _ in whole_uses_in(LOADED + code, keys, NAMES, "conf.yaml")]


@pytest.mark.parametrize(
    "code",
    [
        "TransformerConfig(**model)",
        "TransformerConfig(**{**model, 'num_layers': 2})",
        "for key, value in model.items():\n    setattr(config, key, value)",
        "for key, value in sorted(model.items()):\n    print(f'{key}={value}')",
        "print(', '.join(f'{key}={value}' for key, value in model.items()))",
        "other = {key: model[key] for key in model if model[key] is not None}",
        "for key, value in model.items():\n    if hasattr(config, key):\n        setattr(config, key, value)",
        "for key, value in model.items():\n    if value is not None:\n        setattr(config, key, value)",
        "for key, value in model.items():\n    if isinstance(value, dict):\n        model[key] = convert(value)",
        "for key, value in model.items():\n    if key not in IGNORED:\n        copy[key] = value",
        "copy = {key: value for key, value in model.items()}",
        "model.update(more)",
        "layers = model.get('num_layers', model['layers'])",
        "value = model[name]",
        "value = model[f'{part}_size']",
        "has_experts = 'num_moe_experts' in model",
        "other = yaml.safe_load(open('other.yaml'))['model']\nprint(len(other))",
        "sizes = [len(one) for one in rows]",
    ],
)
def test_code_that_gives_entries_on(code: str) -> None:
    assert _uses(code) == []


@pytest.mark.parametrize(
    "code",
    [
        "print(len(model))",
        "name = '_'.join(f'{key}-{value}' for key, value in sorted(model.items()))",
        "count = sum(1 for key in model if model[key] is True)",
        "for name, part in yaml.safe_load(open('conf.yaml')).items(): print(len(part))",
        "row = Model(*model.values())",
        "name, value = model.popitem()",
        "*_, impl, scope = model.values()",
        "last = list(model.values())[-1]",
        "row = dict(zip(HEADER, model.values()))",
        "assert True in model.values()",
        "assert model == {'num_layers': 2}",
        "extra = set(model) - KNOWN",
        "print({key: float(value) for key, value in model.items()})",
        "print([key for key, value in model.items() if value])",
        "short = {key.rsplit('_', 1)[-1]: value for key, value in model.items()}",
        "graphs = [value for key, value in model.items() if 'graph' in key]",
        "flags = [key for key in model if key.startswith('enable_')]",
        "flags = [f'--{key}' for key in model]",
        "for key, value in model.items():\n    os.environ[key.upper()] = str(value)",
        "for key in model:\n    assert key[0] in KNOWN",
        "for value in model.values():\n    self.assertNotIsInstance(value, str)",
        "value = model['_'.join(['enable', 'cuda', 'graph'])]",
        "value = model.get(f'enable_{kind}')",
    ],
)
def test_code_that_looks_at_all(code: str) -> None:
    assert _uses(code) == [3]


def test_the_mapping_is_followed_into_functions_of_the_file() -> None:
    assert _uses("def count(settings):\n    return len(settings)\ncount(model)\n") == [4]
    assert _uses("def load(path):\n    return yaml.safe_load(open(path))\nlen(load(PATH)['model'])\n") == [5]


def test_functions_that_call_themselves_end() -> None:
    assert _uses("def walk(part):\n    return walk(part['model'])\nwalk(model)\n") == []
    assert (
        _uses("def one(part):\n    return other(part)\ndef other(part):\n    return one(part)\nlen(one(model))\n") == []
    )


def test_a_mapping_below_other_keys_is_another_one() -> None:
    assert _uses("print(len(model))", ("policy", "model")) == []
    assert _uses("print(len(model))", ("model", "transformer")) == []
