"""What a table's state is, and the status file that another terminal reads."""

import dataclasses
import json
from pathlib import Path

import pytest

from freshline.base.errors import InputError
from freshline.kernel.tables.state import table_state
from freshline.live.status.status import PoolStatus, Progress, TrackStatus, WarehouseStatus
from freshline.live.tables.table_status import TableStatus

S = 1_000_000
PACKETS = TableStatus(
    name="packets",
    state="HEALTHY",
    freshness_us=96 * S,
    trailing_edge_us=98 * S,
    staleness_bound_us=12 * S,
    target_lag_us=20 * S,
    period_us=3 * S,
    backlog=1,
    loaded_rows=600,
    late_rows=2,
    jobs=3,
    message=None,
    staleness_max_us=7 * S,
    lag_max_us=3 * S,
    running_on=0,
)
FLOWS = dataclasses.replace(
    PACKETS,
    name="flows",
    state="EMPTY",
    freshness_us=None,
    trailing_edge_us=None,
    staleness_bound_us=None,
    target_lag_us=None,
    message="no such column: `bytez`",
    staleness_max_us=None,
    lag_max_us=None,
    running_on=None,
)
STATUS = WarehouseStatus(
    name="network",
    run_id="run-1",
    host="here",
    pid=4711,
    at_us=100 * S,
    started_us=40 * S,
    tracks=(TrackStatus(0, "updates", "packets", 99 * S), TrackStatus(1, "updates", None, None)),
    broken_assumptions=("packets: job 2 took 3.1s, assumed at most 1s",),
    quarantined=2,
    recoveries=("packets: recovering, over in at most 2m 10s",),
    pools=(PoolStatus("updates", "aus", "edf"), PoolStatus("reports", "prp", "prp")),
    starting=Progress("warming up plans", 3, 7),
).changed(tables=(PACKETS, FLOWS))


def state(lag_s: float | None = 0, bound_s: int | None = 12, loaded: bool = True, **happened: bool) -> str:
    """The state of a table with a period of 3 s."""
    return table_state(
        loaded=loaded,
        lag_us=None if lag_s is None else round(lag_s * S),
        period_us=3 * S,
        staleness_bound_us=None if bound_s is None else bound_s * S,
        **happened,
    )


def test_a_lag_up_to_the_period_is_healthy_up_to_the_bound_behind_and_then_late():
    assert [state(lag_s) for lag_s in (0, 3, 3.000001, 12, 12.000001)] == [
        "HEALTHY",
        "HEALTHY",
        "BEHIND",
        "BEHIND",
        "LATE",
    ]


def test_beyond_its_target_no_table_is_healthy():
    assert state(0, misses_target=True) == "LATE"
    assert state(0, misses_target=True, silent=True) == "SILENT"
    assert state(4, recovering=True, misses_target=True) == "RECOVERING"


def test_without_a_bound_nothing_is_late():
    assert state(1_000, bound_s=None) == "BEHIND"


def test_a_table_without_rows_is_empty_even_if_its_feed_is_silent_or_it_is_far_behind():
    assert state(None, loaded=False, silent=True, recovering=True) == "EMPTY"


def test_failures_come_before_all_else_its_own_first():
    assert state(99, failed=True, upstream_failed=True, silent=True) == "FAILED"
    assert state(99, upstream_failed=True, loaded=False) == "UPSTREAM_FAILED"


def test_a_lag_that_an_outage_explains_is_recovering_until_it_is_within_a_period():
    assert [state(lag_s, recovering=True) for lag_s in (100, 12, 3)] == [
        "RECOVERING",
        "RECOVERING",
        "HEALTHY",
    ]


def test_a_table_to_which_its_policy_gives_a_larger_share_is_recovering_however_far_it_is_behind():
    assert [state(lag_s, in_recovery=True, silent=True) for lag_s in (100, 3, 1)] == ["RECOVERING"] * 3
    assert state(100, in_recovery=True, failed=True) == "FAILED"


def test_files_that_are_there_and_not_loaded_are_late_even_if_no_more_come():
    assert [state(lag_s, silent=True) for lag_s in (13, 12, 0, None)] == [
        "LATE",
        "SILENT",
        "SILENT",
        "SILENT",
    ]


def test_staleness_and_lag_follow_from_freshness_and_are_unknown_before_the_first_load():
    assert (PACKETS.lag_us, PACKETS.staleness_us(100 * S), PACKETS.staleness_us(90 * S)) == (2 * S, 4 * S, 0)
    assert (FLOWS.lag_us, FLOWS.staleness_us(100 * S)) == (None, None)
    # After a restart the files that are there may not have been looked at yet.
    assert dataclasses.replace(PACKETS, trailing_edge_us=0).lag_us == 0


def test_a_target_is_missed_by_a_staleness_above_it():
    assert [PACKETS.misses_target(now_s * S) for now_s in (100, 116, 117)] == [False, False, True]
    assert not dataclasses.replace(PACKETS, target_lag_us=None).misses_target(999 * S)
    assert not FLOWS.misses_target(999 * S)


def test_a_target_is_missed_by_a_table_without_a_row_once_something_has_waited_for_longer():
    waits = dataclasses.replace(FLOWS, target_lag_us=20 * S, came_us=80 * S)
    assert [waits.misses_target(now_s * S) for now_s in (80, 100, 101)] == [False, False, True]
    assert [waits.unloaded_us(now_s * S) for now_s in (79, 100)] == [0, 20 * S]
    assert not dataclasses.replace(waits, came_us=None).misses_target(999 * S)
    assert PACKETS.unloaded_us(100 * S) is None


def test_a_status_comes_back_from_json_as_it_was():
    assert WarehouseStatus.from_json(STATUS.to_json()) == STATUS
    assert json.loads(STATUS.to_json())["tables"][0]["freshness_us"] == 96 * S


def test_a_status_is_replaced_at_once_and_leaves_nothing_else_behind(tmp_path: Path):
    path = tmp_path / "_freshline" / "status.json"
    STATUS.write(path)
    later = STATUS.changed(at_us=101 * S)
    later.write(path)
    assert WarehouseStatus.read(path) == later
    assert [file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*")] == [
        "_freshline",
        "_freshline/status.json",
    ]


def test_without_a_status_the_remedy_is_to_run(tmp_path: Path):
    with pytest.raises(InputError, match=r"has not run yet\. Start it with `freshline run`\."):
        WarehouseStatus.read(tmp_path / "_freshline" / "status.json")


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"tables": 3}', STATUS.to_json().replace("backlog", "heap")]
)
def test_a_status_of_another_version_is_an_input_error(tmp_path: Path, text: str):
    (tmp_path / "status.json").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="is not a status that this version of Freshline can read"):
        WarehouseStatus.read(tmp_path / "status.json")
