"""The examples in the docstrings run."""

import doctest
import importlib
from pathlib import Path

import pytest

import freshline

ROOT = Path(freshline.__file__).parent
MODULES = [
    ".".join(("freshline", *file.relative_to(ROOT).with_suffix("").parts))
    for file in sorted(ROOT.rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_hold(name: str) -> None:
    failed, attempted = doctest.testmod(importlib.import_module(name))
    assert attempted > 0
    assert failed == 0


def test_every_part_that_shows_examples_is_looked_at() -> None:
    parts = {name.split(".")[1] for name in MODULES}
    assert parts >= {"planning", "definitions", "testing"}
