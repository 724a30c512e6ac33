"""Feeds that are down: what comes when, and how long tables are behind."""

import io
import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.definitions.language.policies import PolicyName
from freshline.definitions.sections.feeds import Feed
from freshline.kernel.tables.events import DataFile
from freshline.planning.plan.make import make_plan, what_if
from freshline.simulation.conditions.outages import InterruptedFeed, checked_outages, downstream
from freshline.simulation.lag import lag_points
from freshline.simulation.simulate import SimulationResult, simulate
from freshline.simulation.simulated_run import files_of
from freshline.testing.builder import Builder
from freshline.testing.script import FixedFiles
from freshline_lab.runs.warehouses import WarehouseShape, random_outages, random_warehouse

S = SECOND
seeds = st.integers(min_value=0, max_value=2**32)


def run(
    builder: Builder, end: int, outages: dict[str, list[tuple[int, int]]], records: bool = False
) -> SimulationResult:
    """A run in seconds."""
    in_us = {feed: [(start * S, over * S) for start, over in times] for feed, times in outages.items()}
    return simulate(make_plan(builder.build()), end * S, outages=in_us, keep_records=records)


def recovered(result: SimulationResult) -> list[float | None]:
    times = [table.recovered_at_us for table in result.tables]
    return [None if time is None else time / S for time in times]


def states(result: SimulationResult) -> list[str]:
    return [table.state for table in result.tables]


# -- what comes when ---------------------------------------------------------------------------------------


def test_what_was_missed_comes_at_the_end_each_file_with_its_own_timestamp():
    files = InterruptedFeed(
        FixedFiles([(9, 8), (10, 10), (15, 11), (19, 18), (20, 20), (25, 25)]), [(10, 20)]
    )
    coming = [files.next() for _ in range(7)]
    at_once = [(20, DataFile(at, number)) for number, at in ((2, 10), (3, 11), (4, 18), (5, 20))]
    assert coming == [(9, DataFile(8, 1)), *at_once, (25, DataFile(25, 6)), None]


def test_a_feed_may_be_down_several_times():
    outages = [(15, 25), (30, 31), (32, 35), (60, 90)]
    files = InterruptedFeed(FixedFiles((at, at) for at in range(10, 100, 10)), outages)
    expected = [10, 25, 31, 40, 50, 90, 90, 90, 90]
    assert [coming[0] for coming in iter(files.next, None)] == expected


def test_outages_of_one_feed_that_overlap_or_touch_are_one():
    warehouse = Builder().files("a", period=10).files("b", period=10).build()
    outages = {"b": [(7, 9)], "a": [(30, 40), (1, 5), (3, 4), (5, 9), (35, 50)]}
    assert checked_outages(warehouse, outages) == {"a": ((1, 9), (30, 50)), "b": ((7, 9),)}
    assert checked_outages(warehouse, {"a": []}) == {}


@pytest.mark.parametrize(
    ("outages", "words"),
    [
        ({"w": [(1, 2)]}, "names the feed `w`, which does not exist. Define it under `feeds`, or name `v`"),
        ({"c": [(1, 2)]}, "names the feed `c`, which is continuous. Name a feed of arrival `files`"),
        ({"v": [(1, 2), (5, 5)]}, "of the feed `v` does not end after it begins"),
        ({"v": [(-1, 5)]}, "of the feed `v` does not end after it begins. Give its beginning, 0 or later"),
    ],
)
def test_an_outage_that_cannot_be_is_refused(outages, words):
    plan = make_plan(Builder().files("v", period=10).continuous("c", period=10).build())
    with pytest.raises(InputError, match="an outage") as error:
        simulate(plan, 100 * S, outages=outages)
    assert words in str(error.value)


@given(seeds, st.integers(0, 20_000), st.integers(1, 20_000))
def test_the_files_are_the_same_with_and_without_an_outage(seed, start, length):
    feed = Feed("f", "files", 1_000, phase_us=500, jitter_us=900, timestamp_jitter_us=1_500)
    healthy, interrupted = files_of(feed, seed, ()), files_of(feed, seed, [(start, start + length)])
    for _ in range(60):
        (at, file), (delivered, same) = healthy.next(), interrupted.next()
        assert same == file
        assert delivered == (start + length if start <= at < start + length else at)


def test_the_outage_is_in_the_log_and_in_what_arrives():
    stream = io.StringIO()
    plan = make_plan(Builder().files("v", period=10, phase=10, cost=4).build())
    simulate(plan, 90 * S, 3, outages={"v": [(45 * S, 85 * S)]}, journal_to=stream)
    header, *calls = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert header["outages"] == {"v": [[45_000_000, 85_000_000]]}
    assert "slow" not in header
    arrived = [
        (call["now"] // S, event["timestamp"] // S, event["file"])
        for call in calls
        for event in call.get("events", ())
        if "arrived" in event
    ]
    before = [(10 * number, 10 * number, number) for number in range(1, 5)]
    at_once = [(85, 10 * number, number) for number in range(5, 9)]
    assert arrived == [*before, *at_once, (90, 90, 9)]


@pytest.mark.parametrize("policy", ["edf", "edf-strict", "prp", "fifo"])
def test_the_same_outages_write_the_same_log_byte_for_byte(policy):
    plan = make_plan(what_if(random_warehouse(3), policy, {}))
    outages = random_outages(plan.warehouse, 3, 50 * S)
    logs = []
    for given_outages in (outages, outages, {}):
        stream = io.StringIO()
        simulate(plan, 100 * S, 7, outages=given_outages, journal_to=stream)
        logs.append(stream.getvalue())
    assert logs[0] == logs[1]
    assert logs[0] != logs[2]


# -- when a table has recovered ----------------------------------------------------------------------------


def base(policy: PolicyName = "edf") -> Builder:
    return Builder(policy=policy).files("v", period=10, phase=10, cost=4)


def test_a_table_has_recovered_when_its_lag_falls_to_a_period():
    # The files of 50 to 80 come at 85. That of 50 is loaded by 89, those of 60 and 70 by 93, and then that of
    # 80 together with that of 90, which has come meanwhile: the lag is 20 from 93 on, and 0 at 97.
    result = run(base(), 150, {"v": [(45, 85)]})
    assert recovered(result) == [97]
    assert states(result) == ["HEALTHY"]
    assert result.tables[0].lag_max_us == 40 * S
    assert result.tables[0].staleness_max_us == 49 * S


@pytest.mark.parametrize(
    ("end", "state", "at"),
    [
        (9, "EMPTY", None),
        (44, "HEALTHY", None),
        (45, "SILENT", None),  # all that came is loaded
        (84, "SILENT", None),
        (85, "RECOVERING", None),
        (96, "RECOVERING", None),
        (97, "HEALTHY", 97),
        (110, "HEALTHY", 97),
    ],
)
def test_states_around_an_outage(end, state, at):
    result = run(base(), end, {"v": [(45, 85)]})
    assert (states(result), recovered(result)) == ([state], [at])


def test_a_table_that_stays_behind_has_not_recovered():
    result = run(base("edf-strict"), 400, {"v": [(45, 85)]})
    assert (states(result), recovered(result)) == (["RECOVERING"], [None])


def test_a_feed_that_never_came_up_leaves_its_table_empty():
    result = run(base(), 100, {"v": [(0, 300)]})
    assert (states(result), recovered(result)) == (["EMPTY"], [None])


def test_an_outage_too_short_for_the_lag_to_pass_a_period_needs_no_recovery():
    assert recovered(run(base(), 150, {"v": [(45, 55)]})) == [None]


def test_without_outages_nothing_recovers():
    builder = Builder().continuous("c", period=10, cost=4)  # its lag is 14 just before every completion
    assert recovered(run(builder, 100, {})) == [None]
    assert states(run(builder, 100, {})) == ["HEALTHY"]
    assert states(run(builder, 103, {})) == ["BEHIND"]


def test_only_what_recovered_since_the_first_outage_began_counts():
    # c loads up to 60 by 64 and up to 70 by 74: it is behind in between from 70 on.
    builder = Builder(tracks=2).files("v", period=10, phase=10).continuous("c", period=10, cost=4)
    assert recovered(run(builder, 73, {"v": [(72, 300)]})) == [None, None]
    assert recovered(run(builder, 75, {"v": [(72, 300)]})) == [None, 74]
    assert recovered(run(builder, 75, {"v": [(75, 300)]})) == [None, None]


def test_a_file_that_comes_as_a_job_ends_counts_at_once():
    builder = Builder().files("v", period=10, phase=5, cost=0, rate=Fraction(6, 10))
    outages = {"v": [(44, 75)]}
    # 45 to 75 come at 75, and no two of them cost a period: they are loaded by 81, 87, 93, 99 and 105.
    # At 105 the file of 85 is loaded, and that of 105 comes: the lag stays 20. At 111 it falls to 10.
    assert recovered(run(builder, 105, outages)) == [None]
    assert states(run(builder, 105, outages)) == ["RECOVERING"]
    assert recovered(run(builder, 114, outages)) == [111]


def test_a_derived_table_recovers_after_its_source():
    # v loads 50 by 86, 60 and 70 by 87, 80 by 88, then 90 by 91 and 100 by 101: its lag is 10 from 87 on.
    # d loads 50 by 92, 70 by 98 (lag 20: a period), is behind again from 101 on, and loads 90 by 104.
    builder = Builder(tracks=2).files("v", period=10, phase=10, cost=1).derived("d", ["v"], period=20, cost=6)
    outages = {"v": [(45, 85)]}
    result = run(builder, 200, outages, records=True)
    assert recovered(result) == [87, 104]
    assert states(result) == ["HEALTHY", "HEALTHY"]
    assert result.tables[1].lag_max_us == 50 * S
    assert states(run(builder, 97, outages)) == ["HEALTHY", "RECOVERING"]
    assert recovered(run(builder, 100, outages)) == [87, 98]
    assert states(run(builder, 60, outages)) == ["SILENT", "HEALTHY"]  # only what loads the feed is silent
    of_d = [(at / S, lag / S) for at, lag in lag_points(result, "d") if 86 <= at / S <= 104]
    assert of_d == [
        *[(86, 0), (86, 10), (87, 10), (87, 30), (88, 30), (88, 40), (91, 40), (91, 50)],
        *[(92, 50), (92, 40), (98, 40), (98, 20), (101, 20), (101, 30), (104, 30), (104, 10)],
    ]


@sampled(120)
@given(seeds, st.sampled_from(["edf", "edf-strict", "clustered-edf", "prp", "fifo", "rm"]))
def test_lag_over_time_agrees_with_what_was_observed(seed, policy):
    """The lag is worked out again from the jobs and the files alone, instant by instant."""
    plan = make_plan(what_if(random_warehouse(seed), policy, {}))
    outages = random_outages(plan.warehouse, seed, 60 * S)
    result = simulate(plan, 90 * S, seed, outages=outages, keep_records=True)
    first = min((start for times in outages.values() for start, _ in times), default=None)
    for table in result.tables:
        _, *jumps, (_, lag_us) = lag_points(result, table.plan.name)
        period_us = table.plan.period_us
        falls = [
            at
            for (at, before), (_, after) in zip(jumps[::2], jumps[1::2], strict=True)
            if before > period_us >= after and first is not None and at >= first
        ]
        assert table.lag_max_us == max(lag_us, *(lag for _, lag in jumps), 0)
        assert table.recovered_at_us == (falls[-1] if falls and lag_us <= period_us else None)
        if lag_us > period_us:
            assert table.state in ("RECOVERING", "LATE", "BEHIND", "EMPTY")
        else:
            assert table.state in ("HEALTHY", "SILENT", "EMPTY")


# -- who is affected ---------------------------------------------------------------------------------------


def test_an_outage_affects_what_loads_the_feed_and_what_reads_that():
    builder = Builder(tracks=4).files("a", period=10, phase=10).files("b", period=10, phase=10)
    builder.derived("ab", ["b", "a"], period=20).derived("bb", ["b"], period=20)
    builder.derived("deep", ["ab"], period=40)
    assert downstream(builder.build(), ["a"]) == {"a", "ab", "deep"}
    result = run(builder, 400, {"a": [(45, 385)]})
    unasserted = [table for table in result.tables if table.staleness_max_us != table.asserted_max_us]
    assert [table.plan.name for table in unasserted] == ["a", "ab", "deep"]
    assert all(table.staleness_max_us > table.plan.staleness_bound_us for table in unasserted)
    assert not any(table.exceeded_bound for table in result.tables)
    healthy = run(builder, 200, {"a": [(201, 300)]}).tables
    assert all(table.staleness_max_us == table.asserted_max_us for table in healthy)


@sampled(200)
@given(seeds, st.booleans())
def test_tables_without_an_outage_upstream_keep_their_bounds(seed, crowded):
    crowd = WarehouseShape(tables_max=40, tracks_max=3, pools_max=1)
    plan = make_plan(random_warehouse(seed, crowd if crowded else WarehouseShape()))
    result = simulate(plan, 150 * S, seed, outages=random_outages(plan.warehouse, seed, 100 * S))
    assert not [table.plan.name for table in result.tables if table.exceeded_bound]


# -- random outages ----------------------------------------------------------------------------------------


@given(seeds, st.integers(1, 100 * S))
def test_random_outages_are_what_they_say(seed, horizon):
    warehouse = random_warehouse(seed)
    files = {feed.name: feed.period_us for feed in warehouse.feeds.values() if feed.arrival == "files"}
    outages = random_outages(warehouse, seed, horizon)
    assert outages == random_outages(warehouse, seed, horizon)
    assert outages.keys() <= files.keys()
    assert bool(outages) == bool(files)
    for feed, times in outages.items():
        assert all(0 <= start < horizon for start, _ in times)
        assert all(2 * files[feed] <= end - start <= 30 * files[feed] for start, end in times)
        assert len(checked_outages(warehouse, {feed: times})[feed]) == len(times)
