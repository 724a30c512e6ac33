"""The examples in the docstrings run."""

import doctest
from types import ModuleType

import pytest

from freshline.definitions import duration, graph, sql


@pytest.mark.parametrize("module", [duration, graph, sql])
def test_the_examples_of_a_module_hold(module: ModuleType) -> None:
    failed, attempted = doctest.testmod(module)
    assert attempted > 0
    assert failed == 0
