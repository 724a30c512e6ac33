"""Warns of a feed whose rows come late: derived tables lack them until a rebuild."""

from __future__ import annotations

from typing import Final

from freshline.base.duration import MILLISECOND, SECOND, format_duration

# A larger share of late rows is no accident: the feed's `lateness` is too short.
_SHARE_MAX: Final = 0.001


def is_much_late(late: int, rows: int, lateness_us: int) -> bool:
    """Whether more than one in a thousand rows was late, by a known time."""
    return lateness_us > 0 and late > rows * _SHARE_MAX


def late_sentence(table: str, feed: str, late: int, rows: int, lateness_us: int) -> str:
    """What is lost by late rows, and the `lateness` that would have caught them."""
    unit = SECOND if lateness_us > SECOND else MILLISECOND
    enough = format_duration(-(-lateness_us // unit) * unit)
    return (
        f"{table}: {late:,} of {rows:,} rows ({late / rows:.1%}) came late, and derived tables lack them "
        f"until `freshline rebuild`: `lateness: {enough}` of feed {feed} would have caught them"
    )
