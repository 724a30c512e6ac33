"""A warehouse on the screen: while it runs, and at the end of a run."""

import dataclasses
import re
from io import StringIO
from pathlib import Path
from typing import get_args

from rich.console import Console, RenderableType

from freshline.kernel.tables.state import TableState
from freshline.live.status.screen_table import count
from freshline.live.status.section import ROWS_MAX
from freshline.live.status.status import PoolStatus, TrackStatus, WarehouseStatus
from freshline.live.status.summary import show_summary
from freshline.live.status.view import render
from freshline.live.tables.staleness_picture import draw_staleness
from freshline.live.tables.table_status import STYLES, TableStatus

S = 1_000_000
NOW = 1_763_245_473 * S  # 2025-11-15 22:24:33


def table(name: str, state: TableState = "HEALTHY", **changed: object) -> TableStatus:
    usual = TableStatus(
        name=name,
        state=state,
        freshness_us=NOW - 4 * S,
        trailing_edge_us=NOW - 2 * S,
        staleness_bound_us=12_340_000,
        target_lag_us=20 * S,
        period_us=3 * S,
        backlog=1,
        loaded_rows=123_456,
        late_rows=3,
        jobs=41,
        message=None,
        staleness_max_us=9 * S,
        lag_max_us=3 * S,
        running_on=None,
    )
    return dataclasses.replace(usual, **changed)


NOTHING = {
    "freshness_us": None, "trailing_edge_us": None, "staleness_bound_us": None, "target_lag_us": None,
    "backlog": 0, "loaded_rows": 0, "late_rows": 0, "jobs": 0, "staleness_max_us": None, "lag_max_us": None,
}  # fmt: skip
STATUS = WarehouseStatus(
    name="network",
    run_id="run-1",
    host="here",
    pid=4711,
    at_us=NOW,
    started_us=NOW - 200 * S,
    tracks=(TrackStatus(0, "updates", "packets", NOW - 300_000), TrackStatus(1, "updates", None, None)),
    broken_assumptions=("packets: job 12 took 3.1s, assumed at most 800ms",),
    quarantined=2,
).changed(
    tables=(
        table("packets"),
        table("flows", "FAILED", message="no [red]such[/] column `bytez`\nat line 1"),
        table("traffic", "UPSTREAM_FAILED", freshness_us=NOW - 26 * 3600 * S, staleness_bound_us=3599 * S),
        table("a_name_that_is_far_too_long_for_a_line", "EMPTY", **NOTHING),
    )
)


def lines(shown: RenderableType) -> list[str]:
    screen = Console(width=80, file=StringIO(), color_system=None)
    screen.print(shown)
    return [line.rstrip() for line in screen.file.getvalue().splitlines()]


def test_the_view_shows_tables_tracks_and_trouble_in_80_columns():
    assert lines(render(STATUS, NOW)) == [
        "network at 22:24:33 UTC, up 3m 20s, process 4711 on here",
        "",
        "table       state          freshness   lag staleness   bound target backlog rows",
        "packets     HEALTHY         22:24:29    2s        4s   12.4s    20s       1 123k",
        "flows       FAILED          22:24:29    2s        4s   12.4s    20s       1 123k",
        "traffic     UPSTREAM_FA… 11-14 20:24 1d 2h     1d 2h 59m 59s    20s       1 123k",
        "a_name_tha… EMPTY                  -     -         -       -      -       0    0",
        "",
        "Messages",
        "  flows: no [red]such[/] column `bytez`\\nat line 1",
        "",
        "track pool    runs    since",
        "    0 updates packets 300ms",
        "    1 updates idle",
        "",
        "Broken assumptions",
        "  packets: job 12 took 3.1s, assumed at most 800ms",
        "",
        "2 files are in quarantine: `freshline quarantine list` says why.",
    ]


def test_a_pool_that_behaves_as_another_policy_for_want_of_a_bound_is_named():
    pools = (PoolStatus("updates", "aus-slack", "edf"), PoolStatus("reports", "aus", "aus"))
    shown = lines(render(STATUS.changed(pools=pools), NOW))
    assert shown[7] == "Pool updates (aus-slack): no bound: behaves as edf."
    assert not any("reports" in line for line in shown)


def test_what_is_left_out_is_counted():
    tables = (table("few", discarded_files=12), table("cars", shed_rows=34_567), table("all"))
    shown = lines(render(STATUS.changed(tables=tables), NOW))
    place = shown.index("Left out")
    assert shown[place + 1 : place + 3] == [
        "  few: 12 files, which changed too little to be loaded",
        "  cars: 34.6k rows, which gave way to others of their window",
    ]
    assert "Left out" not in lines(render(STATUS, NOW))


def test_a_runner_that_has_gone_is_said_to_have_gone_and_its_figures_stand_still():
    shown = lines(render(STATUS, NOW + 180 * S, running=False))
    assert shown[0] == "network is not running: figures of 3m ago, 2025-11-15 22:24:33 UTC"
    assert shown[2:7] == lines(render(STATUS, NOW))[2:7]
    assert not any(line.startswith("track") for line in shown)


def test_of_many_tables_the_troubled_ones_are_shown_and_the_rest_is_counted():
    states: list[TableState] = ["HEALTHY", "BEHIND", "SILENT", "FAILED"]
    tables = [table(f"t{number}", states[number % 4]) for number in range(40)]
    tables.append(table("stale", freshness_us=NOW - 21 * S))
    shown = lines(render(STATUS.changed(tables=tuple(tables)), NOW))
    names = [line.split()[0] for line in shown[3 : 3 + ROWS_MAX]]
    assert names == ["stale", *(f"t{n}" for first in (3, 2, 1) for n in range(first, 40, 4))][:ROWS_MAX]
    assert shown[3 + ROWS_MAX] == "... and 16 more, less troubled."


def test_of_many_tracks_the_busy_ones_are_shown():
    tracks = [TrackStatus(n, "updates", "packets" if n >= 20 else None, None) for n in range(24)]
    shown = lines(render(STATUS.changed(tracks=tuple(tracks)), NOW))
    first = shown.index("track pool    runs    since") + 1
    assert [line.split()[0] for line in shown[first : first + 5]] == ["20", "21", "22", "23", "0"]
    assert "4 of 24 tracks are busy." in shown


def test_staleness_is_coloured_by_what_it_exceeds():
    seen = []
    for age_s in (4, 13, 21):
        screen = Console(
            width=80, file=StringIO(), color_system="standard", force_terminal=True, no_color=False
        )
        late = table("packets", freshness_us=NOW - age_s * S)
        screen.print(render(STATUS.changed(tables=(late,)), NOW))
        cell = next(line for line in screen.file.getvalue().splitlines() if line.startswith("packets"))
        seen.append(re.findall(r"\x1b\[(\d+)m *(\d+s)", cell))
    assert seen == [[], [("33", "13s")], [("31", "21s")]]


def test_every_state_has_its_colour():
    assert set(STYLES) == set(get_args(TableState))


def test_counts_take_at_most_five_characters():
    numbers = [0, 9_999, 10_000, 999_499, 999_500, 1_234_567, 10**9, 5 * 10**14]
    assert [count(n) for n in numbers] == ["0", "9999", "10k", "999k", "1M", "1.23M", "1G", "500T"]


def summary(status: WarehouseStatus) -> list[str]:
    screen = Console(width=80, file=StringIO(), color_system=None)
    show_summary(screen, status, status.started_us, status.at_us)
    return [line.rstrip() for line in screen.file.getvalue().splitlines()]


def test_the_summary_sets_the_worst_staleness_beside_bound_and_target():
    tables = (
        table("packets"),
        table("flows", staleness_max_us=15 * S, target_lag_us=None),
        table("traffic", staleness_max_us=21 * S),
        table("empty", "EMPTY", **NOTHING),
    )
    assert summary(STATUS.changed(tables=tables)) == [
        "network over 3m 20s",
        "table   staleness bound of bound target lag rows late jobs",
        "packets        9s 12.4s      73%    20s  3s 123k    3   41 kept",
        "flows         15s 12.4s     122%      -  3s 123k    3   41 above bound",
        "traffic       21s 12.4s     170%    20s  3s 123k    3   41 exceeded",
        "empty           -     -        -      -   -    0    0    0 nothing came",
        "Exceeded: 1 of 2 targets.",
        "Assumptions that did not hold:",
        "  - packets: job 12 took 3.1s, assumed at most 800ms",
    ]


def test_a_table_that_never_loaded_anything_is_not_called_kept():
    bare = {**NOTHING, "target_lag_us": 20 * S}
    silent = table("silent", "EMPTY", **bare)
    waits = table("waits", "EMPTY", **bare, came_us=NOW - 20 * S)
    failed = table("failed", "FAILED", **bare, came_us=NOW - 21 * S)

    def ending(*tables: TableStatus) -> list[str]:
        status = STATUS.changed(tables=tables, broken_assumptions=())
        rows = [f"{line.split()[0]}: {' '.join(line.split()[9:])}" for line in summary(status)[2:]]
        return [*rows[: len(tables)], *summary(status)[2 + len(tables) :]]

    assert ending(silent) == ["silent: nothing came", "Not loaded: 1 of 1 table with a target."]
    assert ending(table("packets"), silent, waits) == [
        "packets: kept",
        "silent: nothing came",
        "waits: not loaded",
        "Kept: no target of 1 was exceeded.",
        "Not loaded: 2 of 3 tables with a target.",
    ]
    assert ending(failed, waits) == [
        "failed: not loaded",
        "waits: not loaded",
        "Exceeded: 1 of 2 targets.",
        "Not loaded: 2 of 2 tables with a target.",
    ]


def test_a_bound_exceeded_while_all_assumptions_held_is_called_a_bug():
    above = table("packets", staleness_max_us=15 * S)
    shown = " ".join(summary(STATUS.changed(tables=(above,), broken_assumptions=())))
    assert "Kept: no target of 1 was exceeded. A proven bound was exceeded while every assumption" in shown
    assert "held: packets. This is a bug of Freshline" in shown


def test_no_name_of_a_file_commands_the_terminal_or_breaks_a_line():
    name = "esc\x1b[31mRED\x07\x9b2J\n\u202e.csv"
    shown = "esc\\x1b[31mRED\\x07\\x9b2J\\n\\u202e.csv"
    said = (f"packets: {name} is odd",)
    failed = table("flows", "FAILED", message=f"{name} is bad")
    status = STATUS.changed(tables=(failed,), broken_assumptions=said, recoveries=said)
    for screen in (lines(render(status, NOW)), summary(status)):
        assert [f"packets: {shown} is odd" in line for line in screen].count(True) == 2
    assert f"  flows: {shown} is bad" in lines(render(status, NOW))


def test_the_picture_of_a_run_shows_every_table_and_the_spans(tmp_path: Path):
    begin = STATUS.started_us
    samples = {"packets": [(begin + second * S, second % 9 * S) for second in range(200)]}
    spans = [("packets down", begin + 50 * S, begin + 90 * S)]
    pictures = [
        draw_staleness(samples, STATUS, tmp_path / "new" / "marked.png", spans),
        draw_staleness(samples, STATUS, tmp_path / "new" / "plain.png"),
        draw_staleness({}, STATUS, tmp_path / "new" / "empty.png"),
    ]
    drawn = [picture.read_bytes() for picture in pictures]
    assert all(png.startswith(b"\x89PNG") for png in drawn)
    assert len(set(drawn)) == 3
