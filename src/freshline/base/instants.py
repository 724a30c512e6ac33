"""Instants as people and programs read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def utc(at_us: int) -> datetime:
    """An instant as a datetime, exact to the microsecond (a float of seconds would lose some digits)."""
    return _EPOCH + timedelta(microseconds=at_us)


def epoch_us(instant: datetime) -> int:
    """Microseconds since the Unix epoch; an instant without a time zone is in UTC."""
    return ((instant if instant.tzinfo else instant.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def written(at_us: int | None) -> str | None:
    """An instant as ISO text."""
    return None if at_us is None else utc(at_us).isoformat(timespec="microseconds")
