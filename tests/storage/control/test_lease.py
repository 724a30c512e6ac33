"""One runner a storage: taken, refused, taken over, lost."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from freshline.base.errors import InputError
from freshline.base.processes import process_start
from freshline.storage.control.lease import Identity, Lease, LeaseLost, StorageInUse

ME = Identity("here", 100, "boot 1", "run-a")
OTHER = Identity("here", 200, "boot 2", "run-b")
ELSEWHERE = Identity("there", 100, "boot 1", "run-c")


class World:
    """A clock that goes on by waiting, and a process table. `each_wait` happens at each wait."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0
        self.waited = 0.0
        self.processes = {100: "boot 1", 200: "boot 2"}
        self.each_wait = lambda: None

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.waited += seconds
        self.each_wait()

    def acquire(self, path: Path, identity: Identity) -> Lease:
        return Lease.acquire(
            path, identity, clock=lambda: self.now, wait=self.wait, process_table=self.processes.get
        )


@pytest.fixture
def world() -> World:
    return World()


def test_a_free_storage_is_taken_at_once(tmp_path: Path, world: World) -> None:
    world.acquire(tmp_path / "lease", ME).renew()
    assert world.waited == 0
    (only,) = (tmp_path / "lease").iterdir()
    assert json.loads(only.read_text()) == {
        "identity": {"host": "here", "pid": 100, "started": "boot 1", "run": "run-a"},
        "since": 1_700_000_000.0,
        "heartbeat": 1_700_000_000.0,
        "released": False,
    }


def test_a_second_runner_on_the_host_is_refused_with_the_firsts_identity(
    tmp_path: Path, world: World
) -> None:
    lease = world.acquire(tmp_path, ME)
    with pytest.raises(StorageInUse) as caught:
        world.acquire(tmp_path, OTHER)
    assert isinstance(caught.value, InputError)
    assert str(caught.value) == (
        "the storage is in use by process 100 on here (run run-a), since 2023-11-14 22:13:20 UTC. "
        "Stop that run, or give this one another storage."
    )
    assert world.waited == 0
    lease.renew()


def test_a_released_storage_is_free(tmp_path: Path, world: World) -> None:
    world.acquire(tmp_path, ME).release()
    lease = world.acquire(tmp_path, OTHER)
    lease.renew()
    lease.release()
    lease.release()
    lease = world.acquire(tmp_path, ME)
    lease.renew()
    assert lease.died_at is None
    assert world.waited == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000000003.json"]


@pytest.mark.parametrize("now", [None, "boot 7"], ids=["process gone", "process number used again"])
def test_a_dead_holder_on_the_host_is_taken_over_at_once(
    tmp_path: Path, world: World, now: str | None
) -> None:
    old = world.acquire(tmp_path, ME)
    world.processes = {200: "boot 2"} if now is None else {100: now, 200: "boot 2"}
    world.now += 30
    lease = world.acquire(tmp_path, OTHER)
    assert world.waited == 0
    assert lease.died_at == 1_700_000_000.0, "its last heartbeat"
    with pytest.raises(LeaseLost, match=r"taken over by process 200 on here \(run run-b\)"):
        old.renew()
    old.release()  # no longer ours: does nothing
    lease.renew()


def test_a_silent_holder_elsewhere_is_waited_for_and_taken_over(tmp_path: Path, world: World) -> None:
    world.acquire(tmp_path, ELSEWHERE)
    world.now -= 86_400  # the clocks of two hosts need not agree
    world.acquire(tmp_path, ME).renew()
    assert world.waited == 10


def test_a_holder_elsewhere_that_lives_is_refused_as_soon_as_it_shows(tmp_path: Path, world: World) -> None:
    held = world.acquire(tmp_path, ELSEWHERE)
    world.each_wait = lambda: held.renew() if world.waited >= 2 else None
    with pytest.raises(StorageInUse, match="process 100 on there"):
        world.acquire(tmp_path, ME)
    assert world.waited == 2


def test_a_holder_elsewhere_that_stops_meanwhile_is_not_waited_for_longer(
    tmp_path: Path, world: World
) -> None:
    held = world.acquire(tmp_path, ELSEWHERE)
    world.each_wait = lambda: held.release() if world.waited >= 1 else None
    world.acquire(tmp_path, ME).renew()
    assert world.waited == 1


def test_a_hung_holder_on_the_host_is_watched_before_it_is_taken_over(tmp_path: Path, world: World) -> None:
    held = world.acquire(tmp_path, ME)
    world.now += 3_600
    world.each_wait = lambda: held.renew() if world.waited == 4 else None  # the machine had slept
    with pytest.raises(StorageInUse):
        world.acquire(tmp_path, OTHER)
    world.now += 3_600
    world.waited = 5
    world.acquire(tmp_path, OTHER).renew()
    assert world.waited == 15
    with pytest.raises(LeaseLost):
        held.renew()


def test_an_unreadable_lease_is_nobodys(tmp_path: Path, world: World) -> None:
    (tmp_path / "000000005.json").write_text("{")
    world.acquire(tmp_path, ME).renew()
    assert [path.name for path in tmp_path.iterdir()] == ["000000006.json"]


def test_a_lease_whose_files_are_gone_is_lost(tmp_path: Path, world: World) -> None:
    lease = world.acquire(tmp_path, ME)
    (tmp_path / "000000001.json").unlink()
    with pytest.raises(LeaseLost, match="files are gone"):
        lease.renew()


def test_a_starter_that_slept_cannot_take_a_number_that_others_went_beyond(
    tmp_path: Path, world: World
) -> None:
    world.acquire(tmp_path, ELSEWHERE)

    def others() -> None:
        world.each_wait = lambda: None
        (tmp_path / "000000001.json").unlink()
        (tmp_path / "000000002.json").write_text("taken, and tidied away below")
        winner.append(world.acquire(tmp_path, OTHER))

    winner: list[Lease] = []
    world.each_wait = others
    with pytest.raises(StorageInUse, match="run run-b"):
        world.acquire(tmp_path, ME)
    winner[0].renew()
    assert [path.name for path in tmp_path.iterdir()] == ["000000003.json"]


def start_at_once(folder: Path, world: World, pids: list[int]) -> tuple[list[Lease], int]:
    """The leases that these processes got, and how many were refused."""
    won: list[Lease] = []
    refused: list[StorageInUse] = []
    barrier = threading.Barrier(len(pids))

    def start(pid: int) -> None:
        barrier.wait()
        try:
            won.append(world.acquire(folder, Identity("here", pid, "boot", f"run-{pid}")))
        except StorageInUse as error:
            refused.append(error)

    threads = [threading.Thread(target=start, args=(pid,)) for pid in pids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return won, len(refused)


@pytest.mark.parametrize("left", ["nothing", "a dead holder's lease"])
def test_of_many_starters_at_once_exactly_one_wins(tmp_path: Path, world: World, left: str) -> None:
    for round_ in range(20):
        world.processes = {999: "boot 1"}
        if left != "nothing":
            world.acquire(tmp_path / str(round_), replace(ME, pid=999))
        world.processes = dict.fromkeys(range(8), "boot")
        won, refused = start_at_once(tmp_path / str(round_), world, list(world.processes))
        assert (len(won), refused) == (1, 7)
        won[0].renew()


def test_a_killed_process_leaves_a_lease_that_is_taken_over_at_once(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path;"
        "from freshline.storage.control.lease import Identity, Lease;"
        "Lease.acquire(Path(sys.argv[1]), Identity.mine('killed')); print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(StorageInUse, match=f"process {holder.pid} on "):
                Lease.acquire(tmp_path, Identity.mine("second"))
        finally:
            holder.kill()
            holder.wait()
        Lease.acquire(tmp_path, Identity.mine("second")).renew()


def test_the_start_of_a_process_identifies_it() -> None:
    assert process_start(os.getpid()) == process_start(os.getpid()) == Identity.mine("x").started
    assert process_start(1) != process_start(os.getpid())
    assert process_start(2**22 + 1) is None
