"""Shorter waits for a live run in this process: most of a small run's time would be waiting."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from freshline.base import back_off
from freshline.base.duration import SECOND
from freshline.live.loop import driver
from freshline.live.tables import file_watch


@contextmanager
def short_waits() -> Iterator[None]:
    """What is done stays the same: only looks, ticks and retries follow each other several times as fast."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_watch, "_EVERY_MAX_S", 0.05)  # a run drains after five looks without a file
        patch.setattr(driver, "_TICK_US", SECOND // 10)
        patch.setattr(back_off, "_FIRST_US", SECOND // 20)
        yield
