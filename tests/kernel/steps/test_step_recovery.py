"""Recovery of steps: a backlog gives way, and is loaded in jobs of several files."""

from collections.abc import Sequence
from dataclasses import replace

from freshline.kernel.core.events import Event, JobFailed, Start
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.core.validation import validate
from freshline.kernel.steps.events import StepsCommitted
from freshline.kernel.steps.job import StepJob
from freshline.kernel.steps.orders import order_of
from freshline.kernel.steps.release import OnAdvance
from freshline.kernel.steps.task import StepTask, StepTerms
from freshline.kernel.tables.events import DataFile, FileArrived
from freshline.kernel.tables.remote_table import RemoteAdvanced, RemoteTable


def recovering_node(*terms: StepTerms) -> tuple[Kernel, list[StepTask]]:
    """A node with steps that load the feeds f0, f1 and so on."""
    kernel = Kernel()
    pool = TrackPool("n", 1, 0, order_of("edf"), kernel.touched)
    kernel.pools.append(pool)
    steps = [StepTask(place, f"A{place}", each, []) for place, each in enumerate(terms)]
    for place, step in enumerate(steps):
        step.rule = OnAdvance(step)
        kernel.add(step)
        pool.join(step)
        kernel.readers[f"f{place}"] = [step]
    kernel.begin(0)
    return kernel, steps


def files(feed: str, *timestamps: int) -> list[Event]:
    return [FileArrived(feed, DataFile(at, at)) for at in timestamps]


def begun(kernel: Kernel, now: int, events: Sequence[Event]) -> StepJob:
    """The job that starts."""
    (start,) = kernel.handle(now, events)
    validate(kernel)
    assert isinstance(start, Start)
    assert isinstance(start.job, StepJob)
    return start.job


def nothing_begins(kernel: Kernel, now: int, events: Sequence[Event]) -> bool:
    instructions = kernel.handle(now, events)
    validate(kernel)
    return not instructions


LATE = StepTerms(10, 50, distance_us=100, files_most=3)
USUAL = StepTerms(10, 50, distance_us=100)


def test_a_backlog_gives_way_to_other_files_and_is_loaded_in_jobs_of_several() -> None:
    kernel, (late, usual) = recovering_node(LATE, USUAL)
    oldest = begun(kernel, 990, files("f0", 310, 410, 510, 610, 710, 810, 910))
    assert not oldest.parts[0].instance.recovery  # it would have been no burden to the others
    first = begun(kernel, 1_000, [StepsCommitted(oldest)])
    assert first.record()["parts"] == [
        {"step": "A0", "from": 310, "to": 610, "files": [410, 510, 610], "recovery": True}
    ]
    assert nothing_begins(kernel, 1_001, files("f1", 1_001))
    assert nothing_begins(kernel, 1_005, files("f0", 1_005))  # it is behind the backlog
    beside = begun(kernel, 1_030, [StepsCommitted(first)])
    assert beside.task is usual
    assert not beside.parts[0].instance.recovery
    second = begun(kernel, 1_040, [StepsCommitted(beside)])
    assert [file.name for file in second.parts[0].files] == [710, 810, 910]
    third = begun(kernel, 1_070, [StepsCommitted(second)])
    assert third.parts[0].instance.recovery
    assert nothing_begins(kernel, 1_080, [StepsCommitted(third)])
    assert (late.freshness, late.moved_in_recovery, late.recovering) == (1_005, True, False)
    again = begun(kernel, 1_105, files("f0", 1_105))
    assert not again.parts[0].instance.recovery


def test_of_files_that_come_too_often_some_are_recovery() -> None:
    kernel, (step, _) = recovering_node(LATE, USUAL)
    marks = []
    for at in range(1_000, 1_500, 60):
        job = begun(kernel, at, files("f0", at))
        marks.append(job.parts[0].instance.recovery)
        assert nothing_begins(kernel, at + 10, [StepsCommitted(job)])
    assert marks == [False, True] * 4 + [False]
    assert step.freshness == 1_480


def test_files_may_seem_to_come_sooner_by_the_time_that_finding_takes() -> None:
    kernel, _ = recovering_node(replace(LATE, finding_us=25))
    for at in (1_020, 1_100, 1_224, 1_300, 1_400):
        job = begun(kernel, at, files("f0", at))
        assert not job.parts[0].instance.recovery
        assert nothing_begins(kernel, at + 10, [StepsCommitted(job)])


def test_a_failed_job_of_a_backlog_is_retried_as_it_was() -> None:
    kernel, _ = recovering_node(LATE)
    oldest = begun(kernel, 990, files("f0", 310, 410, 510, 610, 710))
    first = begun(kernel, 1_000, [StepsCommitted(oldest)])
    assert nothing_begins(kernel, 1_010, [JobFailed(first, 1_020)])
    again = begun(kernel, 1_020, [])
    assert again.parts == first.parts


def test_a_job_of_a_backlog_that_drops_its_last_files_ends_earlier() -> None:
    kernel, (step,) = recovering_node(LATE)
    oldest = begun(kernel, 990, files("f0", 310, 410, 510, 610, 710))
    first = begun(kernel, 1_000, [StepsCommitted(oldest)])
    event = StepsCommitted.from_record(StepsCommitted(first, 510).record(), kernel)
    second = begun(kernel, 1_010, [event])
    assert step.freshness == 510
    assert (second.parts[0].loaded_from, second.parts[0].loaded_to) == (510, 710)


def test_what_is_made_of_recovery_is_recovery_here_and_on_other_nodes() -> None:
    kernel, (late, usual) = recovering_node(LATE, USUAL)
    remote = kernel.elsewhere["r"] = RemoteTable("r")
    for name, source in (("B", late), ("C", remote)):
        step = StepTask(len(kernel.tasks), name, USUAL, [source])
        step.rule = OnAdvance(step)
        source.dependents.append(step)
        kernel.add(step)
        usual.pool.join(step)
    first = begun(kernel, 980, files("f0", 310, 410))
    before = begun(kernel, 990, [StepsCommitted(first)])
    assert before.parts[0].name == "B"
    assert not before.parts[0].instance.recovery
    heard = RemoteAdvanced("r", 7, 1, 2, True)
    heard = RemoteAdvanced.from_record(heard.record(), kernel)
    oldest = begun(kernel, 1_000, [StepsCommitted(before), heard])
    assert oldest.parts[0].name == "C"
    assert oldest.parts[0].instance.recovery
    second = begun(kernel, 1_010, [StepsCommitted(oldest)])
    made = begun(kernel, 1_020, [StepsCommitted(second)])
    assert made.parts[0].name == "B"
    assert made.parts[0].instance.recovery
    later = begun(kernel, 1_030, [StepsCommitted(made), RemoteAdvanced("r", 8)])
    assert later.parts[0].name == "C"
    assert not later.parts[0].instance.recovery
