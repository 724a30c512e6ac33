"""Recoveries as a running warehouse tells of them: by when they must be over, and how that compared."""

from collections.abc import Mapping
from io import StringIO

from rich.console import Console

from freshline.base.duration import SECOND, format_duration
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.core.events import Start
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.tables.events import DataFile, FileArrived, UpdateFinished
from freshline.kernel.tables.update import Update
from freshline.live.loop.messages import FileFound, JobEnded
from freshline.live.status.status import WarehouseStatus
from freshline.live.status.summary import show_summary
from freshline.live.status.view import render
from freshline.live.tables.run_records import RunRecords
from freshline.live.tables.table_status import TableStatus
from freshline.planning.plan.make import make_plan
from freshline.spark.loading.load_result import LoadResult
from freshline.testing.builder import Builder


class Run:
    """A warehouse whose jobs end when the test says so, and whose clock it sets."""

    def __init__(
        self, builder: Builder, started_s: int = 0, fresh_s: Mapping[str, int] | None = None
    ) -> None:
        plan = make_plan(builder.build())
        started = started_s * SECOND
        freshness = None if fresh_s is None else {name: at_s * SECOND for name, at_s in fresh_s.items()}
        self.kernel = assemble(plan, started, freshness)
        self.said: list[WarehouseStatus] = []
        self.keeper = RunRecords(plan.warehouse, plan, "run-1", started, self.stopped)
        self.observation = self.keeper.observation
        self.observation.resume(self.kernel)
        self.running: list[Update] = []

    def stopped(self, why: str) -> None:
        raise AssertionError(why)

    def handle(self, at_s: float, *events: FileArrived | UpdateFinished) -> None:
        now = round(at_s * SECOND)
        for instruction in self.kernel.handle(now, events):
            assert isinstance(instruction, Start)
            self.running.append(instruction.job)
        self.look(now)

    def look(self, now: int) -> None:
        self.said.append(self.keeper.look(now, self.kernel))

    def land(self, at_s: int, tables: str, *timestamps_s: int, waited: bool = False) -> None:
        files = [(table, DataFile(second * SECOND, second)) for table in tables for second in timestamps_s]
        for table, file in files:
            self.observation.landed(FileFound(table, file, frozenset({table}), at_s * SECOND, waited))
        self.handle(at_s, *(FileArrived(table, file) for table, file in files))

    def end(self, at_s: float) -> None:
        """The job that has run for the longest ends well."""
        job = self.running.pop(0)
        now = round(at_s * SECOND)
        finished = JobEnded(job, update(job), now, self.keeper.judge).event(self.observation, now)
        assert isinstance(finished, UpdateFinished)
        self.handle(at_s, finished)

    def work_off(self, at_s: float, cost_s: float, until_s: int = 10_000) -> float:
        """Lets jobs run one after the other while any is there; when the last one ended."""
        while True:
            while self.running:
                at_s += cost_s
                self.end(at_s)
            if not self.kernel.wake_at < until_s * SECOND:
                return at_s
            at_s = max(at_s, self.kernel.wake_at / SECOND)
            self.handle(at_s)

    def table(self, name: str) -> TableStatus:
        return next(table for table in self.said[-1].tables if table.name == name)


def update(job: Update) -> LoadResult:
    return LoadResult(job.loaded_to, rows=1, rows_late=0, version=job.number, consumed=())


def two_tables() -> Builder:
    """Both could have all that is spare, so one waits for the other; a is the heavier one."""
    builder = Builder(policy="aus")
    builder.files("a", period=10, phase=10, cost=3, weight=2)
    return builder.files("b", period=10, phase=10, cost=3)


AFTER_AN_OUTAGE = tuple(range(10, 101, 10))


def test_a_table_in_recovery_says_by_when_it_must_be_over():
    run = Run(two_tables())
    run.land(100, "ab", *AFTER_AN_OUTAGE)
    a = run.table("a")
    rule = run.kernel.tasks[0].rule
    assert isinstance(rule, AdaptiveRelease)
    assert rule.recovery is not None
    assert a.state == "RECOVERING"
    assert a.recovery_due_us == rule.recovery.due
    assert not a.recovery_estimated
    assert run.said[-1].recoveries[0].startswith("a: recovering, over in at most ")


def test_a_table_that_waits_has_an_estimate_that_adds_those_ahead():
    run = Run(two_tables())
    run.land(100, "ab", *AFTER_AN_OUTAGE)
    a, b = run.table("a"), run.table("b")
    rule = run.kernel.tasks[1].rule
    assert isinstance(rule, AdaptiveRelease)
    assert rule.queued
    assert a.recovery_due_us is not None
    taken_us = rule.time_to_recover(100 * SECOND, a.recovery_due_us)
    assert taken_us is not None
    assert (b.state, b.recovery_due_us, b.recovery_estimated) == (
        "LATE",
        a.recovery_due_us + taken_us,
        True,
    )
    assert run.said[-1].recoveries[1].startswith("b: late, waits for others, over in about ")


def test_of_several_that_wait_each_counts_those_ahead_of_it_and_their_last_period():
    run = Run(two_tables().files("c", period=10, phase=10, cost=1, weight=0.5))
    run.land(100, "abc", *AFTER_AN_OUTAGE)
    b, c = run.table("b"), run.table("c")
    assert b.recovery_estimated
    assert c.recovery_estimated
    rule = run.kernel.tasks[2].rule
    assert isinstance(rule, AdaptiveRelease)
    assert b.recovery_due_us is not None
    turn = b.recovery_due_us + 10 * SECOND
    assert c.recovery_due_us == turn + (rule.time_to_recover(100 * SECOND, turn) or 0)


def test_what_was_promised_is_compared_when_the_recovery_is_over():
    run = Run(two_tables())
    run.land(100, "a", *AFTER_AN_OUTAGE)
    promised = run.table("a").recovery_due_us
    assert promised is not None
    ended = run.work_off(100, 3)
    assert ended * SECOND < promised
    a = run.table("a")
    assert (a.state, a.recovery_due_us, a.backlog) == ("SILENT", None, 0)
    rule = run.kernel.tasks[0].rule
    assert isinstance(rule, AdaptiveRelease)
    assert rule.recovery is not None
    assert rule.recovery.in_time
    # p^[r] = 3 / 0.7: the last of ten jobs begins after nine of these, and takes 3 s.
    in_all = format_duration(promised - 100 * SECOND)
    assert run.said[-1].recoveries == (f"a: recovered in 41.6s, promised {in_all} (at +2m 22s)",)


def test_with_average_provisioning_nothing_is_promised_but_expected():
    builder = Builder(policy="aus", provisioning="average")
    run = Run(builder.files("a", period=10, phase=10, cost=3, variability=0.1))
    run.land(100, "a", *AFTER_AN_OUTAGE)
    run.work_off(100, 3)
    assert run.table("a").expected
    (line,) = run.said[-1].recoveries
    assert ", expected " in line


def test_a_recovery_that_outlasts_its_promise_says_by_how_much():
    run = Run(two_tables())
    run.land(100, "a", *AFTER_AN_OUTAGE)
    due = run.table("a").recovery_due_us
    assert due is not None
    run.look(due + 5 * SECOND)
    assert run.said[-1].recoveries == ("a: recovering, should have been over 5s ago",)


def test_without_a_recovery_mode_nothing_is_said_of_recoveries():
    run = Run(Builder().files("a", period=10, phase=10, cost=3))
    run.land(100, "a", *AFTER_AN_OUTAGE)
    assert (run.table("a").recovery_due_us, run.said[-1].recoveries) == (None, ())


def test_a_certificate_that_is_given_up_is_a_broken_assumption():
    builder = Builder(policy="aus-slack").files("a", period=10, phase=10, cost=2, rate=0.1)
    run = Run(builder.files("b", period=100, phase=100, cost=3))
    run.land(100, "a", *AFTER_AN_OUTAGE)
    assert len(run.running[0].files) > 1
    run.end(150)
    fell_back = [note for note in run.said[-1].broken_assumptions if "fell back" in note]
    assert fell_back == [
        "+2m 30s pool updates fell back to aus, 1 in all: an update of a cost more than was assumed"
    ]
    run.look(151 * SECOND)
    assert sum("fell back" in note for note in run.said[-1].broken_assumptions) == 1


def test_a_job_of_several_files_may_cost_as_much_as_they():
    builder = Builder(policy="aus-slack").files("a", period=10, phase=10, cost=2, rate=0.1)
    run = Run(builder.files("b", period=100, phase=100, cost=3))
    run.land(100, "a", *AFTER_AN_OUTAGE)
    job = run.running[0]
    assert job.worst_case_us > job.task.worst_case_us
    run.end(100 + job.worst_case_us / SECOND)
    assert not [note for note in run.said[-1].broken_assumptions if "assumed" in note]


def on_screen() -> Console:
    return Console(width=80, file=StringIO(), color_system=None)


def test_the_view_and_the_summary_show_recoveries():
    run = Run(two_tables())
    run.land(100, "ab", *AFTER_AN_OUTAGE)
    status = run.said[-1]
    for show in (
        lambda screen: screen.print(render(status, status.at_us)),
        lambda screen: show_summary(screen, status, 0, status.at_us),
    ):
        screen = on_screen()
        show(screen)
        shown = screen.file.getvalue()
        assert "Recoveries" in shown
        assert "a: recovering, over in at most " in shown
        assert "b: late, waits for others, over in about " in shown


def test_the_status_says_in_how_many_seconds_a_recovery_is_due():
    run = Run(two_tables())
    run.land(100, "ab", *AFTER_AN_OUTAGE)
    a, b = (table.record(101 * SECOND) for table in run.said[-1].tables)
    assert a["recovery_due"] * SECOND == (run.table("a").recovery_due_us or 0) - 101 * SECOND
    assert [row["recovery_estimated"] for row in (a, b)] == [False, True]
    assert WarehouseStatus.from_json(run.said[-1].to_json()) == run.said[-1]


def test_an_expected_bound_that_was_exceeded_is_not_called_a_bug():
    builder = Builder(policy="aus", provisioning="average")
    run = Run(builder.files("a", period=10, phase=10, cost=3, variability=0.1))
    run.land(5, "a", 5)
    run.end(8)
    run.observation.feeds["a"].last_arrival = 200 * SECOND
    run.look(200 * SECOND)
    a = run.table("a")
    assert (a.staleness_max_us or 0) > (a.staleness_bound_us or 0)
    assert run.said[-1].broken_assumptions == ()
    screen = on_screen()
    show_summary(screen, run.said[-1], 0, 200 * SECOND)
    assert "bug" not in screen.file.getvalue()


def test_the_log_says_by_when_a_recovery_must_be_over_and_how_that_compared(caplog):
    run = Run(two_tables())
    run.land(100, "a", *AFTER_AN_OUTAGE)
    (begun,) = caplog.messages
    assert begun == run.said[-1].recoveries[0]
    run.work_off(100, 3)
    assert caplog.messages[1:] == list(run.said[-1].recoveries)
    run.look(500 * SECOND)
    assert len(caplog.messages) == 2


def test_a_promise_that_comes_after_its_recovery_began_is_logged_too(caplog):
    run = Run(Builder(policy="aus").files("a", period=10, phase=10, cost=3))
    run.land(10, "a", 10)
    run.land(12, "a", *range(20, 101, 10))  # while its first file is loaded
    assert caplog.messages == ["a: recovering"]
    run.work_off(12, 1)
    _, promised, compared = caplog.messages
    assert promised.startswith("a: recovering, over in at most ")
    assert compared == run.said[-1].recoveries[0]


def test_a_promise_that_another_outage_moves_is_logged_again_and_a_little_later_is_not(caplog):
    run = Run(Builder(policy="aus").files("a", period=10, phase=10, cost=3))
    run.land(500, "a", *range(10, 501, 10))
    run.land(600, "a", *range(510, 601, 10))  # after another outage, and its first job still runs
    first, moved = caplog.messages
    assert first.startswith("a: recovering, over in at most ")
    assert moved == f"{run.said[-1].recoveries[0]}, later than promised before"
    due = run.table("a").recovery_due_us
    run.land(611, "a", 611)  # and a third one, that hardly matters
    assert (run.table("a").recovery_due_us or 0) > (due or 0)
    assert len(caplog.messages) == 2


def test_a_table_that_has_caught_up_while_it_waited_is_no_longer_said_to_wait():
    run = Run(two_tables().files("c", period=10, phase=10, cost=1, weight=0.5, late_after=80))
    run.land(100, "abc", *AFTER_AN_OUTAGE)
    assert [line[0] for line in run.said[-1].recoveries if "waits for others" in line] == ["b", "c"]
    run.work_off(100, 1, 131)
    rule = run.kernel.tasks[2].rule
    assert isinstance(rule, AdaptiveRelease)
    assert not rule.is_late(131 * SECOND)
    assert [line[0] for line in run.said[-1].recoveries if "waits for others" in line] == ["b"]
    assert run.table("c").recovery_due_us is None


def base_and_derived() -> Builder:
    return Builder(tracks=2).files("a", period=10, cost=1).derived("b", ["a"], period=10, cost=1)


def summed_up(run: Run) -> str:
    screen = on_screen()
    show_summary(screen, run.said[-1], 0, run.said[-1].at_us, run.observation.asserted_max_us)
    return " ".join(screen.file.getvalue().split())


def restarted() -> Run:
    """Ten periods after the last run, with all files there that came meanwhile; caught up since."""
    run = Run(base_and_derived(), 500, {"a": 400, "b": 400})
    run.land(500, "a", *range(410, 501, 10), waited=True)
    go_on(run, 500, 600)
    return run


def go_on(run: Run, from_s: int, to_s: int) -> None:
    """A file comes every ten seconds, and all is loaded."""
    for at_s in range(from_s, to_s, 10):
        if at_s > from_s:
            run.land(at_s, "a", at_s)
        run.work_off(at_s, 0.2, at_s + 10)


def test_what_piled_up_before_the_run_is_observed_but_breaks_no_bound():
    run = restarted()
    assert run.said[-1].broken_assumptions == ()
    for name, table in zip("ab", run.said[-1].tables, strict=True):
        assert (table.state, table.lag_us) == ("HEALTHY", 0)
        asserted_us, bound_us = run.observation.asserted_max_us[name], table.staleness_bound_us
        assert asserted_us is not None
        assert bound_us is not None
        assert 5 * SECOND < asserted_us < bound_us < 100 * SECOND <= (table.staleness_max_us or 0)
    shown = summed_up(run)
    assert "bug" not in shown
    assert "Above the bound, but not since first fresh in this run: a, b." in shown


def test_after_a_restart_a_table_that_was_fresh_and_exceeds_its_bound_is_a_bug():
    run = restarted()
    for at_s in range(600, 700, 10):
        run.land(at_s, "a", at_s)  # and no job ends any more
    assert run.said[-1].broken_assumptions == ()
    assert "while every assumption held: a, b. This is a bug of Freshline" in summed_up(run)


def test_while_a_feed_is_down_and_until_what_came_is_loaded_no_bound_is_asserted():
    run = restarted()
    for at_s in range(591, 750):
        run.look(at_s * SECOND)
    run.land(750, "a", *range(600, 751, 10))
    go_on(run, 750, 800)
    assert all(name in run.observation.asserted for name in run.observation.tables)
    for table in run.said[-1].tables:
        assert (table.staleness_max_us or 0) > 150 * SECOND
        assert (run.observation.asserted_max_us[table.name] or 0) < (table.staleness_bound_us or 0)


def test_a_table_that_fails_and_those_that_read_it_are_not_held_to_their_bounds():
    run = restarted()
    run.land(600, "a", 600)
    job = run.running.pop(0)
    assert all(name in run.observation.asserted for name in run.observation.tables)
    ended = JobEnded(job, OSError("disk full"), 601 * SECOND, run.keeper.judge)
    run.handle(601, ended.event(run.observation, 601 * SECOND))
    assert not any(name in run.observation.asserted for name in run.observation.tables)
    run.work_off(601, 0.5, 610)
    assert all(name in run.observation.asserted for name in run.observation.tables)


def test_data_that_is_old_when_it_comes_breaks_no_bound():
    run = Run(Builder().files("a", period=10, cost=1), 1_000_000, {"a": 5})
    for number in range(10):
        run.land(1_000_000 + 10 * number, "a", 10 + 10 * number)
        run.work_off(1_000_000 + 10 * number, 1, 1_000_000)
    (note,) = run.said[-1].broken_assumptions
    assert note == (
        "+10s feed a: the newest record of a file was 11d 14h old when it came, timestamp_jitter says at "
        "most 0s"
    )
    assert (run.table("a").jobs, run.observation.asserted_max_us) == (10, {"a": None})


def test_data_that_grows_old_breaks_no_bound_and_is_noted_once():
    """A file comes every ten seconds, and its timestamps move by one."""
    run = restarted()
    asserted_us = run.observation.asserted_max_us
    for number in range(1, 31):
        run.land(590 + 10 * number, "a", 590 + number)
        run.work_off(590 + 10 * number, 0.2, 600 + 10 * number)
    (note,) = run.said[-1].broken_assumptions
    assert note == (
        "+1m 40s feed a: the newest record of a file was 9s old when it came, timestamp_jitter says at most "
        "0s"
    )
    assert (run.table("a").staleness_max_us or 0) > 200 * SECOND
    assert run.observation.asserted_max_us == asserted_us
    assert "bug" not in summed_up(run)


def test_a_backlog_that_is_found_in_pieces_is_no_sign_of_old_data():
    run = restarted()
    for number, timestamp in enumerate(
        range(610, 691, 10)
    ):  # down until 690; found a tenth of a second apart
        run.land(690 + number / 10, "a", timestamp)
        run.work_off(690 + number / 10, 0.02, 690 + (number + 1) / 10)
    go_on(run, 690, 720)
    assert [note for note in run.said[-1].broken_assumptions if "old" in note] == []


def test_late_files_are_no_sign_of_old_data():
    run = restarted()
    for number in range(1, 6):
        run.land(590 + 10 * number, "a", 590 + 10 * number, 300 + number)
        run.work_off(590 + 10 * number, 0.2, 600 + 10 * number)
    assert run.said[-1].broken_assumptions == ()


def test_files_found_in_another_order_than_told_do_not_make_their_feed_silent():
    run = Run(Builder().files("a", period=10, cost=1), 1_000, {"a": 5})
    for timestamp, arrival_s in ((900, 1_030), (990, 1_012)):
        file = DataFile(timestamp * SECOND, timestamp)
        run.observation.landed(FileFound("a", file, frozenset({"a"}), arrival_s * SECOND))
    run.look(1_030 * SECOND)
    assert run.said[-1].broken_assumptions == ()
    assert run.table("a").state != "SILENT"
