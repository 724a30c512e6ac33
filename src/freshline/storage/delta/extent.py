"""The number and time range of an update's records, as expected and as read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from freshline.storage.delta.statistics import Footer, in_delta_words


class OtherRecords(Exception):  # noqa: N818  (it is what was found)
    """Spark read other records from an update's files than the intake had found in them."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The number of records and their oldest and newest time; None if not known."""

    records: int
    oldest: int | None
    newest: int | None

    def check(self, read: Extent) -> None:
        """Raises OtherRecords if Spark read other records: two programs read the files and must agree."""
        if read.records != self.records:
            raise OtherRecords(f"Spark read {read.records} records, but {self.records} were found")
        if None not in (self.oldest, self.newest) and read != self:
            raise OtherRecords(f"Spark read records from {read.times()}, but {self.times()} was found")

    def times(self) -> str:
        return f"{_said(self.oldest)} to {_said(self.newest)}"


def extent_of(footers: Iterable[Footer]) -> Extent:
    """The extent of all rows in files with these footers."""
    known = list(footers)
    oldest = min((footer.oldest for footer in known if footer.oldest is not None), default=None)
    newest = max((footer.newest for footer in known if footer.newest is not None), default=None)
    return Extent(sum(footer.rows for footer in known), oldest, newest)


def _said(instant_us: int | None) -> str:
    return "nothing" if instant_us is None else in_delta_words(instant_us, with_zone=True) or str(instant_us)
