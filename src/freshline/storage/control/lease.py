"""The right to write to a storage: one runner at a time has it, until it stops or dies.

The lease is a folder of numbered files. The runner that wrote the highest number holds the lease. A runner
takes the lease over by making the next number, which the file system grants to one runner only. Released
leases stay, so numbers only go up. If two runners held the lease by mistake, their commits would conflict:
the lease saves work, not data.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from freshline.base.errors import InputError
from freshline.base.processes import process_start

STALE_AFTER_S: Final = 10.0
_POLL_S: Final = 0.25
# Process numbers mean nothing in another container, even on the same host.
_NAMESPACE: Final = Path("/proc/self/ns/pid")

Clock = Callable[[], float]  # seconds since the Unix epoch
ProcessTable = Callable[[int], str | None]  # the start of a process, in any format; None: no such process


class StorageInUse(InputError):  # noqa: N818  (it is what was found)
    """Another runner holds the storage."""


class LeaseLost(Exception):  # noqa: N818  (it is what happened)
    """Another runner has taken the storage over because it saw no heartbeat of this one."""


@dataclass(frozen=True, slots=True)
class Identity:
    """One run of one process."""

    host: str
    pid: int
    started: str
    run: str

    @classmethod
    def mine(cls, run: str) -> Identity:
        """The identity of a run of this process."""
        pid = os.getpid()
        space = f" {os.readlink(_NAMESPACE)}" if _NAMESPACE.exists() else ""
        return cls(socket.gethostname() + space, pid, process_start(pid) or "", run)


@dataclass(frozen=True, slots=True)
class _Holder:
    identity: Identity
    since: float
    heartbeat: float
    released: bool = False


class Lease:
    """A lease that this run holds. The run calls `renew` every two seconds."""

    def __init__(
        self, folder: Path, number: int, holder: _Holder, clock: Clock, died_at: float | None = None
    ) -> None:
        self.died_at = died_at  # the last heartbeat of the holder before, if it did not release the lease
        self._folder = folder
        self._number = number
        self._holder = holder
        self._clock = clock

    @classmethod
    def acquire(
        cls,
        path: Path,
        identity: Identity,
        *,
        clock: Clock = time.time,
        wait: Callable[[float], None] = time.sleep,
        process_table: ProcessTable = process_start,
    ) -> Lease:
        """Takes the lease. If its holder may be dead, it waits to find out; a live holder is an error."""
        path.mkdir(parents=True, exist_ok=True)
        while True:
            number = _highest(path)
            _await_end(path, number, identity, clock, wait, process_table)
            now, before = clock(), _read(path, number)
            died_at = None if before is None or before.released else before.heartbeat
            lease = cls(path, number + 1, _Holder(identity, now, now), clock, died_at)
            if lease._claim():
                return lease

    def renew(self) -> None:
        """Gives a heartbeat."""
        self._check()
        self._holder = replace(self._holder, heartbeat=self._clock())
        _write(self._folder, self._number, self._holder)
        self._check()

    def release(self) -> None:
        """Gives the lease back, so the next run need not wait. Does nothing if another run has taken it."""
        if _highest(self._folder) == self._number:
            _write(self._folder, self._number, replace(self._holder, released=True))

    def _check(self) -> None:
        number = _highest(self._folder)
        if number != self._number:
            other = _read(self._folder, number)
            raise LeaseLost(f"taken over by {_words(other)}" if other else "the lease's files are gone")

    def _claim(self) -> bool:
        """Makes the file of our number; False if another runner was first."""
        draft = _draft(self._folder, self._holder)
        try:
            os.link(draft, _file(self._folder, self._number))
        except FileExistsError:
            return False
        finally:
            draft.unlink()
        if _highest(self._folder) != self._number:
            # Other runners have made higher numbers meanwhile and removed this one.
            _file(self._folder, self._number).unlink(missing_ok=True)
            return False
        for number in _numbers(self._folder):
            if number < self._number:
                _file(self._folder, number).unlink(missing_ok=True)
        return True


def holding_run(
    path: Path,
    identity: Identity,
    *,
    clock: Clock = time.time,
    wait: Callable[[float], None] = time.sleep,
    process_table: ProcessTable = process_start,
) -> str | None:
    """The run that holds the lease, or None. If the holder may be dead, it waits as `acquire` does."""
    number = _highest(path)
    holder = _read(path, number)
    try:
        _await_end(path, number, identity, clock, wait, process_table)
    except StorageInUse:
        return None if holder is None else holder.identity.run
    return None


def _await_end(
    folder: Path,
    number: int,
    identity: Identity,
    clock: Clock,
    wait: Callable[[float], None],
    process_table: ProcessTable,
) -> None:
    """Returns once no live run holds that number; raises StorageInUse if its holder is alive."""
    holder = _read(folder, number)
    if holder is None or holder.released:
        return
    if holder.identity.host == identity.host:
        if process_table(holder.identity.pid) != holder.identity.started:
            return
        if clock() - holder.heartbeat < STALE_AFTER_S:
            raise _in_use(holder)
    _watch(folder, number, holder, wait)


def _watch(folder: Path, number: int, holder: _Holder, wait: Callable[[float], None]) -> None:
    """Returns once the holder has missed its heartbeats or released the lease; raises if it gives one.

    The heartbeat is watched instead of compared with our clock. The clocks of two hosts may differ, and ours
    may have gone on while the holder's machine slept.
    """
    waited = 0.0
    while waited < STALE_AFTER_S:
        wait(_POLL_S)
        waited += _POLL_S
        now = _read(folder, number)
        if now is None or now.released:
            return
        if now.heartbeat != holder.heartbeat:
            raise _in_use(now)


def _in_use(holder: _Holder) -> StorageInUse:
    return StorageInUse(
        f"the storage is in use by {_words(holder)}", "Stop that run, or give this one another storage"
    )


def _words(holder: _Holder) -> str:
    since = datetime.fromtimestamp(holder.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    identity = holder.identity
    return f"process {identity.pid} on {identity.host.split(' ')[0]} (run {identity.run}), since {since}"


def _numbers(folder: Path) -> list[int]:
    return [int(path.stem) for path in folder.glob("*.json") if path.stem.isdecimal()]


def _highest(folder: Path) -> int:
    return max(_numbers(folder), default=0)


def _file(folder: Path, number: int) -> Path:
    return folder / f"{number:09d}.json"


def _read(folder: Path, number: int) -> _Holder | None:
    """The holder that wrote that number; None if there is no readable file."""
    try:
        content = json.loads(_file(folder, number).read_bytes())
        return _Holder(**{**content, "identity": Identity(**content["identity"])})
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def _write(folder: Path, number: int, holder: _Holder) -> None:
    _draft(folder, holder).replace(_file(folder, number))


def _draft(folder: Path, holder: _Holder) -> Path:
    """The content in a file of its own, so that no reader sees half of it."""
    draft = folder / f".{uuid.uuid4().hex}"
    draft.write_text(json.dumps(asdict(holder)))
    return draft
