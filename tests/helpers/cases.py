"""How many generated cases a test tries: some of them in `make test`, all of them in `make soak`."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

Test = TypeVar("Test", bound=Callable[..., Any])


def is_soak() -> bool:
    """Whether all cases are tried: `make soak` names this profile."""
    return settings.get_current_profile_name() == "soak"


def cases(count: int, one_in: int = 5) -> int:
    """So many in `make soak`, and one of so many of them in `make test`."""
    return count if is_soak() else max(1, count // one_in)


def sampled(count: int, one_in: int = 5, **options: Any) -> Callable[[Test], Test]:
    """Settings for a property; `make soak` runs it with `count` examples."""
    chosen = settings(max_examples=cases(count, one_in), **options)
    return lambda test: pytest.mark.sampled(chosen(test))


def rest_in_soak(cases_of_one: Iterable[Any], first: int = 1) -> list[Any]:
    """Parameters for cases of one promise: the first ones in `make test`, the others in `make soak`."""
    listed = list(cases_of_one)
    soaked = (each if isinstance(each, tuple) else (each,) for each in listed[first:])
    return [*listed[:first], *(pytest.param(*each, marks=pytest.mark.soak) for each in soaked)]
