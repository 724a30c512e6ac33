"""The oldest and the newest of a batch of timestamps."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from freshline.base.arrow_instants import in_microseconds
from freshline.base.instants import epoch_us
from freshline.landing.records import UnreadableFile

_KINDS: Final = (pa.timestamp("us"), pa.timestamp("us", "UTC"))


class Span(NamedTuple):
    """The oldest and the newest time of some records, in microseconds since the Unix epoch."""

    oldest_us: int
    newest_us: int


def union(spans: Iterable[Span]) -> Span | None:
    both = list(spans)
    if not both:
        return None
    return Span(min(span.oldest_us for span in both), max(span.newest_us for span in both))


def span_of_texts(texts: Any) -> Span:
    """The span of timestamps in ISO 8601."""
    return span_of(instants_of_texts(texts))


def instants_of_texts(texts: Any) -> Any:
    """ISO 8601 timestamps as microseconds; UTC without a zone. Fastest if all or none have a zone."""
    require_all(texts.null_count)
    for kind in _KINDS:
        try:
            return texts.cast(kind).cast(pa.int64())
        except pa.ArrowInvalid:
            continue
    return pa.chunked_array([[_instant_us(text) for text in texts.to_pylist()]], pa.int64())


def span_of(instants: Any) -> Span:
    """The span of instants in whole microseconds."""
    extremes = pc.min_max(instants)
    return Span(extremes["min"].as_py(), extremes["max"].as_py())


def instants_of(timestamps: Any) -> Any:
    """Timestamps of Parquet files in microseconds."""
    require_all(timestamps.null_count)
    return in_microseconds(timestamps)


def require_all(missing: int) -> None:
    """Refuses records without a timestamp, because no derived table would ever read them."""
    if missing:
        raise UnreadableFile("a record has no timestamp")


def _instant_us(text: str) -> int:
    require_all(0 if text.strip() else 1)
    try:
        return epoch_us(datetime.fromisoformat(text.strip()))
    except ValueError:
        raise UnreadableFile(f"{text[:100]!r} is not a timestamp") from None
