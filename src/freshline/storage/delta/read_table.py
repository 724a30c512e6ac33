"""The readers' view of a table, whichever run writes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa

from freshline.storage.delta.files import LiveFile
from freshline.storage.delta.snapshot import Snapshot

# Other writers, such as delta-rs itself, cut statistics to milliseconds.
_STATISTICS_GRAIN_US: Final = 999


class ReadTable:
    """A table at the newest known version. Any thread may read it."""

    path: Path
    timestamp: str  # the column; "" if its rows have no time
    schema: pa.Schema

    @property
    def snapshot(self) -> Snapshot:
        """All properties of one version: two calls may return two versions."""
        raise NotImplementedError

    @property
    def version(self) -> int:
        return self.snapshot.version

    @property
    def sequence(self) -> int:
        """The number of committed updates."""
        return self.snapshot.sequence

    @property
    def freshness(self) -> int | None:
        """The newest timestamp loaded, in microseconds; None before the first update."""
        return self.snapshot.freshness

    @property
    def files(self) -> tuple[LiveFile, ...]:
        """The table's files; later commits do not change this tuple."""
        return self.snapshot.files

    def files_between(self, after_us: int | None, to_us: int) -> list[str]:
        """The absolute paths of the files that may have rows with after < timestamp <= to."""
        return [str(self.path / file.path) for file in self.files_with(after_us, to_us)]

    def files_with(self, after_us: int | None, to_us: int) -> list[LiveFile]:
        """The files that may have rows with after < timestamp <= to; None: from the beginning."""
        return files_with(self.files, after_us, to_us)


def files_with(files: Iterable[LiveFile], after_us: int | None, to_us: int) -> list[LiveFile]:
    """Those of the files that may have rows with after < timestamp <= to; None: from the beginning."""
    return [
        file
        for file in files
        if file.rows
        and (file.oldest is None or file.oldest <= to_us)
        and (after_us is None or file.newest is None or file.newest + _STATISTICS_GRAIN_US > after_us)
    ]
