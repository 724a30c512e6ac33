"""Decides which files change too little to be loaded: the present limit, and the offers to tables."""

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

# The decrease per second of the factor of a table that is not read (paper 003, section 4.1).
_FALL: Final = 0.1


class DataErrorFactor:
    """The weight of errors in a table's data (def): that of the class that read it, then falling.

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
        """Records that a request of a class with that factor reads the table."""
        self._last = max(self.at(now_us), factor)
        self._read_at = now_us


class DiscardControl:
    """The tables that discard files which change little.

    The driver's thread sets mwde and the classes that read tables, the file watch reads them: hence the lock.
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
        """Reads the stored values of tables when a run begins."""
        for name, values in self.last_values.items():
            discard = self._tables[name].discard
            assert discard is not None
            key, value = self._columns[name]
            values.recall(tables[name], key._replace(name=discard.key), value._replace(name=discard.value))

    def columns(self, feed: str) -> dict[str, tuple[str, str]]:
        """The columns of a feed's files to compare, by table that loads the feed."""
        of_feed = {name: self._columns[name] for name, table in self._tables.items() if table.feed == feed}
        return {name: (key.name, value.name) for name, (key, value) in of_feed.items()}

    def look(self, now_us: int, kernel: Kernel) -> None:
        """Takes over the policies' decisions and the running requests.

        It comes before each call of the kernel, to which a part that has just ended still runs.
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
        """Sets the limit that a pool's policy has decided for its tables."""
        with self._lock:
            self._mwde[pool] = mwde

    def read(self, table: str, factor: float, now_us: int) -> None:
        """Records that a request of a class with that factor reads a table."""
        with self._lock:
            if table in self._factors:
                self._factors[table].read(factor, now_us)

    def offers(
        self, found: Mapping[str, KeyValues | None], now_us: int, until_us: int | None = None
    ) -> dict[str, FileOffer]:
        """The offers of a found file, by table. None of its records is newer than `until_us`."""
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
