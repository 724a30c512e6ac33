"""What others took of the processors' time, as the system tells it."""

import os
import time
from pathlib import Path

import pytest

from freshline_lab.experiments import noise
from freshline_lab.experiments.noise import WINDOW, Noise
from patience import PATIENCE_S

TICKS_A_S = os.sysconf("SC_CLK_TCK")


def write(proc: Path, busy: int, stolen: int, own: int = 0, waited_ns: int = 0) -> None:
    """The run is this process and one below it that has had all its ticks and did all its waiting."""
    # Guests, the last two, are in user's time already.
    (proc / "stat").write_text(f"cpu {busy} 0 0 0 0 0 0 {stolen} {busy} 0\ncpu0 1 2 3\n")
    me, child, stranger = os.getpid(), 4_000_001, 4_000_002
    for pid, parent, ticks, waited in ((me, 1, 0, 0), (child, me, own, waited_ns), (stranger, 1, 77, 10**12)):
        thread = proc / str(pid) / "task" / str(pid)
        thread.mkdir(parents=True, exist_ok=True)
        (thread / "schedstat").write_text(f"5 {waited} 3\n")
        before = "S " + f"{parent} " + "0 " * 9  # a name may hold anything
        (proc / str(pid) / "stat").write_text(f"{pid} (a) b (c) {before}{ticks} 0 0 0 20 0\n")


def test_the_share_of_all_the_time_and_the_worst_of_it(tmp_path: Path) -> None:
    seen = Noise(tmp_path)
    busy = stolen = 0
    start = time.time()
    for second in range(10):
        busy, stolen = busy + 100, stolen + (100 if second in (4, 5, 6) else 0)
        write(tmp_path, busy, stolen, own=busy)
        seen._look()
    # From the first look to the last 900 ticks of work and 300 stolen; in the worst three, as many of each.
    assert seen.beside(start, start) == ""  # nobody looked before
    first, last = (seen._looks[number].at for number in (3, 6))
    assert seen.beside(first, last) == (
        "; the host gave 50% to others; other processes kept up to 0% of the processors from it"
    )
    at = [f"{look.at - start:.0f}" for look in seen._looks]
    assert seen.sentence(start) == (
        f"of the processors' time the host gave 25% to others, at worst 50% (second {at[3]} to {at[6]}); "
        f"other processes kept up to 0% of it from the run, at worst 0% (second {at[6]} to {at[9]})"
    )


@pytest.mark.parametrize(
    ("own", "waited_s", "kept"),
    [
        (40, 5.0, 60),  # all that others had: the run waited for longer than that
        (40, 0.1 / TICKS_A_S, 0),  # they took what was left over
        (40, 20 / TICKS_A_S, 20),  # as long as the run waited
        (100, 5.0, 0),  # its threads waited for one another
    ],
)
def test_a_neighbour_keeps_from_the_run_what_it_ran_while_the_run_waited(
    tmp_path: Path, own: int, waited_s: float, kept: int
) -> None:
    """Of 100 ticks of work in a second."""
    seen = Noise(tmp_path)
    for second in range(WINDOW + 2):
        write(tmp_path, second * 100, 0, second * own, second * round(waited_s * 1e9))
        seen._look()
    first, last = seen._looks[0].at, seen._looks[-1].at
    assert seen.beside(first, last, least=0.01) == (
        f"; other processes kept up to {kept}% of the processors from it" if kept else ""
    )


def test_it_looks_by_itself_while_it_is_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "_EVERY_S", 0.01)
    write(tmp_path, 100, 0)
    with Noise(tmp_path) as seen:
        give_up_at = time.monotonic() + PATIENCE_S
        while len(seen._looks) <= WINDOW:
            assert time.monotonic() < give_up_at, "it does not look"
            time.sleep(0.01)
        write(tmp_path, 200, 100)
    assert seen.sentence(time.time()).startswith("of the processors' time the host gave 50% to others")


def test_on_this_system_a_run_that_works_alone_is_not_told_of_more_than_there_is() -> None:
    with Noise() as seen:
        sum(range(10**6))
        seen._look()
    assert 0 <= seen._looks[-1].kept <= seen._looks[-1].total - seen._looks[0].total


@pytest.mark.parametrize("text", ["", "cpu 1 2 3\n", "something else entirely, in words\n"])
def test_where_the_system_does_not_say_it_nothing_is_claimed(tmp_path: Path, text: str) -> None:
    (tmp_path / "stat").write_text(text)
    with Noise(tmp_path) as seen:
        pass
    assert seen.sentence(0).endswith("is not known")
