"""Which files change too little to be loaded: how much that is now, and what is offered to which table."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from threading import Lock
from typing import Final

from freshline.base.duration import SECOND
from freshline.definitions.sections.discard import discard_columns
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.requests.request import RequestPart
from freshline.kernel.requests.service import service_of
from freshline.landing.key_values import KeyValues
from freshline.storage.delta.last_values import DiscardLimit, FileOffer, LastValues
from freshline.storage.delta.stored_table import StoredTable

# By so much a second the factor of a table that is not read falls (paper 003, section 4.1).
_FALL: Final = 0.1


class DataErrorFactor:
    """By how much errors of a table's data weigh (def): as for the class that read it, less and less since.

    >>> factor = DataErrorFactor(least=1.0)
    >>> factor.read(3.0, 0)
    >>> factor.at(0), factor.at(10_000_000), factor.at(60_000_000)
    (3.0, 2.0, 1.0)
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._last = least
        self._read_at = 0

    def at(self, now_us: int) -> float:
        return max(self._least, self._last - _FALL * max(0, now_us - self._read_at) / SECOND)

    def read(self, factor: float, now_us: int) -> None:
        """A request of a class with that factor reads the table."""
        self._last = max(self.at(now_us), factor)
        self._read_at = now_us


class DiscardControl:
    """Tables that do without files which change little.

    The driver's thread says how large mwde is and which class reads what, `watch` asks: hence the lock.
    """

    def __init__(self, warehouse: Warehouse) -> None:
        self._tables = {name: table for name, table in warehouse.tables.items() if table.discard is not None}
        self._columns = {
            name: discard_columns(table, warehouse.feeds[table.feed])
            for name, table in self._tables.items()
            if table.feed is not None
        }
        self.last_values = {name: LastValues() for name in self._tables}
        least = min((float(each.data_error_factor) for each in warehouse.classes.values()), default=1.0)
        self._factors = {name: DataErrorFactor(least) for name in self._tables}
        self._mwde: dict[str, float] = {}  # by pool
        self._lock = Lock()

    def recall(self, tables: Mapping[str, StoredTable]) -> None:
        """What tables have stored, found again when a run begins."""
        for name, values in self.last_values.items():
            discard = self._tables[name].discard
            assert discard is not None
            key, value = self._columns[name]
            values.recall(tables[name], key._replace(name=discard.key), value._replace(name=discard.value))

    def columns(self, feed: str) -> dict[str, tuple[str, str]]:
        """By table that loads a feed: which columns of its files are compared."""
        of_feed = {name: self._columns[name] for name, table in self._tables.items() if table.feed == feed}
        return {name: (key.name, value.name) for name, (key, value) in of_feed.items()}

    def look(self, now_us: int, kernel: Kernel) -> None:
        """What policies have decided, and what is being read. Before each call of the kernel: a part that has
        ended runs still, as far as it knows.
        """
        if not self._tables:
            return
        for pool in kernel.pools:
            service = service_of(pool)
            if service is None:
                continue
            self.limit(pool.name, service.mwde)
            for job in pool.running.values():
                if isinstance(job, RequestPart):
                    factor = service.data_error_factor(job.request.class_name)
                    for table in job.request.tables:
                        self.read(table, factor, now_us)

    def limit(self, pool: str, mwde: float) -> None:
        """A pool's policy has said how much may be left out of its tables."""
        with self._lock:
            self._mwde[pool] = mwde

    def read(self, table: str, factor: float, now_us: int) -> None:
        """A request of a class with that factor reads a table."""
        with self._lock:
            if table in self._factors:
                self._factors[table].read(factor, now_us)

    def offers(
        self, found: Mapping[str, KeyValues | None], now_us: int, until_us: int | None = None
    ) -> dict[str, FileOffer]:
        """What becomes of a file that was found, by table. No record of it is newer than `until_us`."""
        with self._lock:
            limits = {
                name: DiscardLimit(
                    self._mwde.get(self._tables[name].pool, 0.0), self._factors[name].at(now_us)
                )
                for name in found
            }
        until = inf if until_us is None else until_us
        return {
            name: self.last_values[name].offered(values, limits[name], until)
            for name, values in found.items()
        }
