"""The value of each key in a table with `discard`, and which files change these little (paper 003).

A file is discarded when its weighted data error, |cv - v| / |cv| * def, is at most mwde for all its keys; cv
is the stored value, v the newest in the file. The decision is made when the file is found and checked again
when it is consumed: meanwhile an earlier file may have gone to quarantine, or older records may have come. In
all cases the error of every key stays within the limit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from freshline.landing.key_values import KeyValues, NewestValue, arrow_type, digest, number
from freshline.landing.timestamps import instants_of
from freshline.sql.columns import Column
from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.stored_table import StoredTable

# About 25 MB. Beyond that, the keys that were loaded longest ago are forgotten.
KEYS_MAX: Final = 100_000
# The limit for values of waiting files; a file beyond it is loaded in any case.
WAITING_MAX: Final = 500_000
# The most rows that a start reads to find a table's values again.
ROWS_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class FileOffer:
    """The content of a file for a table with `discard`; with a limit, the file is to be discarded.

    Offers compare by identity: each waits until it is let go.
    """

    values: KeyValues | None  # None if unknown, or too many to keep
    limit: DiscardLimit | None = None
    until_us: float = inf  # no record of the file is newer


@dataclass(frozen=True, slots=True)
class DiscardLimit:
    """The largest error to tolerate: mwde, a fraction, and the weight of changes (def)."""

    error: float
    factor: float

    def bears(self, change: float) -> bool:
        # Avoids 0 times infinity: a value that cannot be compared is never discarded.
        return change != inf and change * self.factor <= self.error


class LastValues:
    """One table's values. The file watch and the tracks use them in several threads; hence the lock."""

    def __init__(self, keys_max: int = KEYS_MAX, waiting_max: int = WAITING_MAX) -> None:
        self._keys_max = keys_max
        self._waiting_max = waiting_max
        self._lock = threading.Lock()
        self._stored: dict[bytes, NewestValue] = {}  # in the order of loading
        # A key that is not known may have a record up to this time, so an older record cannot be compared.
        self._forgotten_us: float = -inf
        self._coming: dict[bytes, NewestValue] = {}  # of files that were found but not loaded yet
        self._offers: set[FileOffer] = set()  # the content of those files
        self._waiting = 0  # the number of their values

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def waiting(self) -> int:
        """The number of kept values of files that are not loaded yet."""
        return self._waiting

    def offered(self, values: KeyValues | None, limit: DiscardLimit, until_us: float = inf) -> FileOffer:
        """Offers a found file. It is to be discarded if it changes little after all files before it."""
        with self._lock:
            if values is None or self._waiting + len(values.newest) > self._waiting_max:
                return FileOffer(None, until_us=until_us)
            little = limit.bears(_change(values, (self._coming, self._stored)))
            offer = FileOffer(values, limit) if little else FileOffer(values)
            self._offers.add(offer)
            self._waiting += len(values.newest)
            if not little:
                self._put(self._coming, values)
            return offer

    def let_go(self, offer: FileOffer) -> None:
        """Drops an offer: its file was consumed, quarantined or overwritten, or no table needs it."""
        with self._lock:
            self._let_go(offer)

    def discarded(self, offers: Iterable[FileOffer]) -> list[bool]:
        """For each file of a job, in order, whether it is discarded."""
        meanwhile: dict[bytes, NewestValue] = {}
        found, certain = [], True
        with self._lock:
            for offer in offers:
                certain = certain and offer.values is not None
                if not certain or offer.values is None:
                    found.append(False)  # an unknown value may have replaced the stored one
                    continue
                views = meanwhile, self._stored
                found.append(offer.limit is not None and offer.limit.bears(_change(offer.values, views)))
                if not found[-1]:
                    self._put(meanwhile, offer.values)
        return found

    @contextmanager
    def storing(self, offers: Sequence[FileOffer], discarded: Sequence[bool]) -> Iterator[None]:
        """Within this context a job consumes its files and stores those that are not discarded.

        Until it ends, the values of their keys are unknown. They stay unknown after an error: the commit may
        have come before it. A file that is then loaded again is compared with nothing.
        """
        loaded = [offer for offer, is_discarded in zip(offers, discarded, strict=True) if not is_discarded]
        with self._lock:
            after = self._doubt(loaded)
        yield
        with self._lock:
            for key, newest in after.items():
                if key in self._stored:  # it may have been forgotten meanwhile
                    self._stored[key] = newest
            for offer in offers:
                self._let_go(offer)

    def forget(self, until_us: float) -> None:
        """Notes that unknown records were stored; none of them is newer than that."""
        with self._lock:
            self._forget([*self._stored], until_us)

    def _doubt(self, loaded: Sequence[FileOffer]) -> dict[bytes, NewestValue]:
        """Makes the values unknown that are about to change; returns the new ones."""
        after: dict[bytes, NewestValue] = {}
        for offer in loaded:
            if offer.values is None:
                self._forget([*self._stored], offer.until_us)
                after.clear()
                continue
            for key, found in offer.values.newest.items():
                known = after.get(key, self._stored.get(key))
                if known is None and found.at_us <= self._forgotten_us:
                    continue  # there may be a newer one
                after[key] = found if known is None or known.at_us <= found.at_us else known
                self._stored.pop(key, None)
                self._stored[key] = NewestValue(after[key].at_us, None)
        self._trim()
        return after

    def _let_go(self, offer: FileOffer) -> None:
        if offer.values is None or offer not in self._offers:
            return
        self._offers.remove(offer)
        self._waiting -= len(offer.values.newest)
        for key, found in offer.values.newest.items():
            if self._coming.get(key) is found:
                del self._coming[key]

    def _trim(self) -> None:
        self._forget([*self._stored][: max(0, len(self._stored) - self._keys_max)])

    def _put(self, view: dict[bytes, NewestValue], values: KeyValues) -> None:
        """Puts a file's values into the view, where they are the newest of their keys."""
        for key, found in values.newest.items():
            before = view.get(key)
            if before is None and key not in self._stored and found.at_us <= self._forgotten_us:
                continue  # there may be a newer one
            if before is None or before.at_us <= found.at_us:
                view[key] = found

    def _forget(self, keys: Iterable[bytes], until_us: float = -inf) -> None:
        self._forgotten_us = max(self._forgotten_us, until_us)
        for key in keys:
            self._forgotten_us = max(self._forgotten_us, self._stored.pop(key).at_us)

    def recall(self, table: StoredTable, key: Column, value: Column, rows_max: int = ROWS_MAX) -> None:
        """Reads values from a table's newest files; other keys are unknown.

        A key is unknown too if the files that were not read may have a newer record of it.
        """
        if any(file.newest is None for file in table.files):
            self._forgotten_us = inf  # a foreign writer's file: its content is not known
            return
        files = sorted((file for file in table.files if file.rows), key=end_us, reverse=True)
        found: dict[bytes, NewestValue] = {}
        left_out_us = -inf
        for number_read, file in enumerate(files):
            rows_max -= file.rows
            if rows_max < 0 and number_read:
                left_out_us = end_us(file)
                break
            _read(found, table, file.path, key, value)
        known = sorted(found.items(), key=lambda each: each[1].at_us)
        with self._lock:
            self._stored = dict(known)
            old = [key for key, each in known if each.at_us <= left_out_us]
            self._forget(old, left_out_us)
            self._trim()


def end_us(file: LiveFile) -> float:
    """The time that no row of the file exceeds. Other writers cut statistics to milliseconds."""
    return inf if file.newest is None else file.newest + 999


def _change(values: KeyValues, views: Sequence[Mapping[bytes, NewestValue]]) -> float:
    """The largest relative change of all keys; infinite if a value cannot be compared or is older."""
    if values.odd or not values.newest:
        return inf
    greatest = 0.0
    for key, found in values.newest.items():
        # Of two values with the same time, the first view's counts: it was loaded later.
        stored = max((view[key] for view in views if key in view), key=lambda each: each.at_us, default=None)
        if stored is None or stored.value is None or found.value is None or stored.at_us > found.at_us:
            return inf
        if stored.value != found.value:
            if stored.value == 0:
                return inf
            before: Any = stored.value  # of one column, so of one type
            greatest = max(greatest, float(abs(before - found.value)) / float(abs(before)))
    return greatest


def _read(found: dict[bytes, NewestValue], table: StoredTable, path: str, key: Column, value: Column) -> None:
    columns = [table.timestamp, key.name, value.name]
    with pq.ParquetFile(table.path / path) as file:
        for batch in file.iter_batches(columns=columns, use_threads=False):
            part = pa.Table.from_batches([batch]).select(columns).combine_chunks()
            if part.num_rows:
                at_us, keys, values = part.columns
                _remember(found, instants_of(at_us).to_numpy(), keys.cast(arrow_type(key)), values, value)


def _remember(found: dict[bytes, NewestValue], at_us: Any, keys: Any, values: Any, value: Column) -> None:
    """Adds the newest value of each key. Two different values with the same time make it unknown."""
    encoded = keys.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
    newest = np.full(len(encoded.dictionary) + 1, np.iinfo(np.int64).min)
    np.maximum.at(newest, codes, at_us)
    places = np.flatnonzero((at_us == newest[codes]) & (codes < len(encoded.dictionary)))
    digests = [digest(key) for key in encoded.dictionary.to_pylist()]
    chosen = values.take(pa.array(places)).to_pylist()
    for place, each in zip(places.tolist(), chosen, strict=True):
        key, seen = digests[codes[place]], NewestValue(int(at_us[place]), number(each, value))
        before = found.get(key)
        if before is None or before.at_us < seen.at_us:
            found[key] = seen
        elif before.at_us == seen.at_us and before.value != seen.value:
            found[key] = NewestValue(seen.at_us, None)
