"""What the host gave to others, as the system tells it."""

import time
from pathlib import Path

import pytest

from freshline.experiments import stolen
from freshline.experiments.stolen import WINDOW, Stolen
from patience import PATIENCE_S


def write(stat: Path, busy: int, stolen_ticks: int) -> None:
    # Guests, the last two, are in user's time already.
    stat.write_text(f"cpu {busy} 0 0 0 0 0 0 {stolen_ticks} {busy} 0\ncpu0 1 2 3\n")


def test_the_share_of_all_the_time_and_the_worst_of_it(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    seen = Stolen(stat)
    busy = taken = 0
    start = time.time()
    for second in range(10):
        busy, taken = busy + 100, taken + (100 if second in (4, 5, 6) else 0)
        write(stat, busy, taken)
        seen._look()
    # From the first look to the last 900 ticks of work and 300 stolen; in the worst three, as many of each.
    assert seen.share(start, start) is None  # nobody looked before
    first, last = (seen._looks[number][0] for number in (3, 6))
    assert seen.share(first, last) == 0.5
    assert seen.sentence(start) == (
        "of the processors' time the host gave 25% to others, at worst 50% (second 0 to 0)"
    )


def test_it_looks_by_itself_while_it_is_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stolen, "_EVERY_S", 0.01)
    write(tmp_path / "stat", 100, 0)
    with Stolen(tmp_path / "stat") as seen:
        give_up_at = time.monotonic() + PATIENCE_S
        while len(seen._looks) <= WINDOW:
            assert time.monotonic() < give_up_at, "it does not look"
            time.sleep(0.01)
        write(tmp_path / "stat", 200, 100)
    assert seen.sentence(time.time()).startswith("of the processors' time the host gave 50% to others")


@pytest.mark.parametrize("text", ["", "cpu 1 2 3\n", "something else entirely, in words\n"])
def test_where_the_system_does_not_say_it_nothing_is_claimed(tmp_path: Path, text: str) -> None:
    (tmp_path / "stat").write_text(text)
    with Stolen(tmp_path / "stat") as seen:
        pass
    assert seen.sentence(0).endswith("is not known")
