"""Notes about a run for its users."""

import threading

from freshline.base.duration import SECOND
from freshline.kernel.assembly.assemble import assemble
from freshline.live.loop.run_notes import RunNotes
from freshline.planning.plan.make import make_plan
from freshline.testing.builder import Builder
from patience import PATIENCE_S


def test_notes_are_told_by_when_they_were_made_and_only_the_latest_are_kept():
    notes = RunNotes(100 * SECOND)
    notes.note(103 * SECOND, "second")
    notes.note(101 * SECOND, "first")
    assert notes.lines == ["+1s first", "+3s second"]
    for number in range(60):
        notes.note((200 + number) * SECOND, str(number))
    assert len(notes.lines) == 50
    assert notes.lines[-1] == "+2m 39s 59"


def test_a_file_put_aside_is_noted_by_the_clock_that_is_given_and_counted_until_counted_anew():
    notes = RunNotes(0, now=lambda: 7 * SECOND)
    notes.refused("orders", "1.csv", "no such column")
    assert notes.lines == ["+7s orders: 1.csv put into quarantine: no such column"]
    assert notes.quarantined == 1
    notes.counted(0)
    assert notes.quarantined == 0


def test_only_what_took_longer_than_assumed_is_noted_as_of_the_worst():
    notes = RunNotes(0)
    for at_s, took_s in enumerate((1, 3, 2, 5, 4), start=1):
        notes.took("a", took_s * SECOND, 2 * SECOND, at_s * SECOND)
    assert notes.lines == ["+4s a: 3 updates took longer than assumed, at worst 5s instead of 2s"]


def test_certificates_that_were_given_up_are_one_note_a_pool():
    kernel = assemble(make_plan(Builder(policy="aus-slack").files("a", period=10, cost=1).build()))
    notes = RunNotes(0)
    for at_s in (3, 5):
        kernel.pools[0].order.broken.append((at_s * SECOND, f"because of {at_s}"))
        notes.look(kernel)
        notes.look(kernel)
    assert notes.lines == ["+5s pool updates fell back to aus, 2 in all: because of 5"]


def test_all_threads_may_note_at_once_while_the_notes_are_read():
    notes, threads, each = RunNotes(0), 4, 2_000
    begin = threading.Barrier(threads + 1, timeout=PATIENCE_S)
    broken: list[BaseException] = []

    def write(number: int) -> None:
        try:
            begin.wait()
            for at in range(each):
                notes.note(at, f"{number}")
                notes.refused(f"{number}", "name", "reason")
                notes.took(f"{number}-{at % 7}", 2, 1, at)
        except BaseException as error:
            broken.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(threads)]
    for writer in writers:
        writer.start()
    begin.wait()
    while any(writer.is_alive() for writer in writers):
        assert all(line.startswith("+") for line in notes.lines)
    assert broken == []
    assert notes.quarantined == threads * each
    counts = [line for line in notes.lines if "updates took longer" in line]
    assert len(counts) == 7 * threads


def test_a_run_after_one_that_died_says_how_long_nothing_was_loaded() -> None:
    notes = RunNotes(100 * SECOND)
    notes.died(60 * SECOND, 101 * SECOND)
    assert notes.lines == [
        "+1s the run before died: nothing was loaded for 41s, and what came meanwhile waited"
    ]
