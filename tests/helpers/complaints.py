"""A file that is right, what is put into it, and what is then said about it."""

import pytest

from freshline.base.errors import DefinitionErrors, InputError
from freshline.definitions.load import loads

HEAD = """\
name: network
pools:
  updates: {tracks: 2}
feeds:
  packets: {period: 5m}
  flows: {arrival: continuous}
  beats: {arrival: continuous, period: 1s}
tables:
  packets: {feed: packets}
  beats: {feed: beats}
"""


def complaints(text: str) -> list[str]:
    """The errors of a text, one by one."""
    with pytest.raises(InputError) as raised:
        loads(text)
    error = raised.value
    return [str(each) for each in error.errors] if isinstance(error, DefinitionErrors) else [str(error)]


def with_pool(pool: str) -> list[str]:
    """The errors with another definition of the only pool, on line 3."""
    return complaints(HEAD.replace("updates: {tracks: 2}", f"updates: {pool}"))


def with_feed(feed: str) -> list[str]:
    """The errors with one more feed, `extra` on line 5."""
    return complaints(HEAD.replace("feeds:\n", f"feeds:\n  extra: {feed}\n"))


def with_tables(*tables: str) -> list[str]:
    """The errors with more tables, from line 11 on."""
    return complaints(HEAD + "".join(f"  {table}\n" for table in tables))
