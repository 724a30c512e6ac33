"""The value that a table with `discard` has for each key, and which files change little of it (paper 003).

A file is discarded when its weighted data error, |cv - v| / |cv| * def, is at most mwde for all its keys; cv
is what is stored, v the newest in the file. It is decided when the file is found, and looked at once more
when it is consumed. For what was to be stored before it may have been put aside meanwhile, or older records
may have come: whatever happened, no key is ever further from what is stored than was allowed.
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

# About 25 MB. Of more keys those that were loaded longest ago are forgotten.
KEYS_MAX: Final = 100_000
# So many values of files that wait are kept, a few times as much; a file beyond that is loaded in any case.
WAITING_MAX: Final = 500_000
# A start reads no more of a table to find its values again.
ROWS_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class FileOffer:
    """What a file holds for a table with `discard`; with a limit, it is to be discarded.

    One is another even if it says the same: each waits until it is let go.
    """

    values: KeyValues | None  # None where that could not be told, or is too much to be kept
    limit: DiscardLimit | None = None
    until_us: float = inf  # no record of it is newer


@dataclass(frozen=True, slots=True)
class DiscardLimit:
    """How much may be left out: mwde, a fraction, and the factor (def) that changes are weighted with."""

    error: float
    factor: float

    def bears(self, change: float) -> bool:
        """Whether a relative change is small enough."""
        # Not 0 times infinity: what cannot be compared is never left out.
        return change != inf and change * self.factor <= self.error


class LastValues:
    """One table's values. `watch` asks what to expect, tracks decide; hence the lock."""

    def __init__(self, keys_max: int = KEYS_MAX, waiting_max: int = WAITING_MAX) -> None:
        self._keys_max = keys_max
        self._waiting_max = waiting_max
        self._lock = threading.Lock()
        self._stored: dict[bytes, NewestValue] = {}  # the last loaded last
        # A key that is not known may have a record of up to then: an older one says nothing of it.
        self._forgotten_us: float = -inf
        self._coming: dict[bytes, NewestValue] = {}  # of files that were found and are not loaded yet
        self._offers: set[FileOffer] = set()  # what those files hold
        self._waiting = 0  # how many values that are

    def __len__(self) -> int:
        return len(self._stored)

    @property
    def waiting(self) -> int:
        """How many values of files that are not loaded yet are kept."""
        return self._waiting

    def offered(self, values: KeyValues | None, limit: DiscardLimit, until_us: float = inf) -> FileOffer:
        """A file was found: it is to be discarded if that is right once all before it are loaded."""
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
        """Its file waits no longer: it was consumed, put aside or overwritten, or no table wants it."""
        with self._lock:
            self._let_go(offer)

    def discarded(self, offers: Iterable[FileOffer]) -> list[bool]:
        """Which files of a job are discarded, one after the other as they stand there."""
        meanwhile: dict[bytes, NewestValue] = {}
        found, certain = [], True
        with self._lock:
            for offer in offers:
                certain = certain and offer.values is not None
                if not certain or offer.values is None:
                    found.append(False)  # what was stored may have been replaced by something unknown
                    continue
                views = meanwhile, self._stored
                found.append(offer.limit is not None and offer.limit.bears(_change(offer.values, views)))
                if not found[-1]:
                    self._put(meanwhile, offer.values)
        return found

    @contextmanager
    def storing(self, offers: Sequence[FileOffer], discarded: Sequence[bool]) -> Iterator[None]:
        """While it is open a job's files are consumed, and those of them that are not discarded are stored.

        Until that is done, and for ever if it ends with an error, it is unknown which value their keys have:
        the commit may have come before the error. What is to be loaded once more then is compared with
        nothing.
        """
        loaded = [offer for offer, is_discarded in zip(offers, discarded, strict=True) if not is_discarded]
        with self._lock:
            after = self._doubt(loaded)
        yield
        with self._lock:
            for key, newest in after.items():
                if key in self._stored:  # and was not forgotten meanwhile
                    self._stored[key] = newest
            for offer in offers:
                self._let_go(offer)

    def forget(self, until_us: float) -> None:
        """Something unknown was stored; no record of it is newer than that."""
        with self._lock:
            self._forget([*self._stored], until_us)

    def _doubt(self, loaded: Sequence[FileOffer]) -> dict[bytes, NewestValue]:
        """Makes the values uncertain that are about to change; what they will be then."""
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
        """What the file has will be the newest of its keys, as far as that can be told."""
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
        """Finds values again in a table's newest files; keys that are not in those are unknown.

        So are those that have no newer record than the files that were left out: these may have one.
        """
        if any(file.newest is None for file in table.files):
            self._forgotten_us = inf  # a foreign writer's: what is in it is not known
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
    """No row of it is newer. Statistics of other writers are cut to milliseconds."""
    return inf if file.newest is None else file.newest + 999


def _change(values: KeyValues, views: Sequence[Mapping[bytes, NewestValue]]) -> float:
    """The greatest relative change of all keys; infinite where one cannot be compared, or is an older one."""
    if values.odd or not values.newest:
        return inf
    greatest = 0.0
    for key, found in values.newest.items():
        # Of two of one instant the one of the first view counts: it was loaded later.
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
    """The newest of each key. Which of two of one instant was loaded last cannot be told."""
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
