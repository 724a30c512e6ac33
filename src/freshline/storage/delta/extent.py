"""Which records an update is to have, and which it has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from freshline.storage.delta.statistics import Footer, in_delta_words


class OtherRecords(Exception):  # noqa: N818  (it is what was found)
    """Of an update's files Spark read other records than had been found in them."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How many records there are, and from when to when, None where that is not known."""

    records: int
    oldest: int | None
    newest: int | None

    def check(self, read: Extent) -> None:
        """What is found in files and what Spark reads of them are two programs' work: they must agree."""
        if read.records != self.records:
            raise OtherRecords(f"Spark reads {read.records} records, and {self.records} were found")
        if None not in (self.oldest, self.newest) and read != self:
            raise OtherRecords(f"Spark reads records from {read.times()}, and {self.times()} was found")

    def times(self) -> str:
        return f"{_said(self.oldest)} to {_said(self.newest)}"


def extent_of(footers: Iterable[Footer]) -> Extent:
    """Of the rows in files."""
    known = list(footers)
    oldest = min((footer.oldest for footer in known if footer.oldest is not None), default=None)
    newest = max((footer.newest for footer in known if footer.newest is not None), default=None)
    return Extent(sum(footer.rows for footer in known), oldest, newest)


def _said(instant_us: int | None) -> str:
    return "nothing" if instant_us is None else in_delta_words(instant_us, with_zone=True) or str(instant_us)
