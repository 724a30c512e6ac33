"""Shorter waits for a live run in this process: most of a small run's time would be waiting."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from freshline.base.back_off import back_off_us
from freshline.base.duration import SECOND
from freshline.live.loop import driver, failures
from freshline.live.tables import file_watch

_RETRY_US = SECOND // 20


@contextmanager
def short_waits() -> Iterator[None]:
    """The run does the same; only looks, ticks and retries follow each other several times as fast."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_watch, "_EVERY_MAX_S", 0.05)  # a run drains after five looks without a file
        patch.setattr(driver, "_TICK_US", SECOND // 10)
        patch.setattr(failures, "back_off_us", lambda attempts: back_off_us(attempts, _RETRY_US))
        # Without an effect on retries the tests would pass, and take minutes more.
        assert failures.FailureStreak(attempts=1).retry_at(0) == _RETRY_US
        yield
