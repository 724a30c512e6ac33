"""Old data, and long times without any: derived tables jump over what no source has rows of."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

from freshline.base.duration import SECOND
from freshline.base.instants import utc
from freshline.definitions.load import load
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.live.maintain.rebuild import rebuild
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.live.tables.observation import ObservedTable
from freshline.storage.delta.snapshot import read_snapshot
from patience import PATIENCE_US

NEAR = (
    "SELECT greatest(a.ts, b.ts) AS ts, a.k, b.w FROM a JOIN b "
    "ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '4' SECOND AND b.ts + INTERVAL '2' SECOND"
)
# By table: its keys, its sources, and its query as Spark and as DuckDB have it.
DERIVED = {
    "copies": ("", ("a",), "SELECT ts, k FROM a", "SELECT ts, k FROM a"),
    "near": ("lookback: 4s, ", ("a", "b"), NEAR, NEAR),
    "counts": (
        "align: 1s, ",
        ("a",),
        "SELECT window.start AS ts, count(*) AS n FROM a GROUP BY window(ts, '1 second')",
        "SELECT time_bucket(INTERVAL 1 SECOND, ts) AS ts, count(*) AS n FROM a GROUP BY 1",
    ),
    "again": ("", ("counts",), "SELECT ts, n + 1 AS n FROM counts", "SELECT ts, n + 1 AS n FROM counts"),
}
OLD = datetime(2015, 3, 4, 5, 6, 7, tzinfo=UTC)
NEW = datetime(2026, 1, 1, tzinfo=UTC)


class Project:
    """Two feeds with a file every two seconds; rows are (ts, k)."""

    def __init__(self, folder: Path, spark, policy: str = "edf") -> None:
        self.folder, self.spark = folder, spark
        lines = ["name: gaps", f"pools: {{updates: {{tracks: 2, policy: {policy}}}}}", "feeds:"]
        for feed, value in (("a", "v"), ("b", "w")):
            lines.append(f"  {feed}: {{path: landing/{feed}, format: json, timestamp: ts, period: 2s,")
            lines.append(f'    schema: "ts timestamp, k string, {value} long"}}')
            (folder / "landing" / feed).mkdir(parents=True)
        lines.append("tables:")
        lines += [f"  {feed}: {{feed: {feed}, cost: {{startup: 100ms}}}}" for feed in "ab"]
        for name, (keys, _, query, _) in DERIVED.items():
            lines += [f"  {name}: {{period: 2s, {keys}cost: {{startup: 100ms}},", f'    sql: "{query}"}}']
        (folder / "freshline.yml").write_text("\n".join([*lines, ""]), encoding="utf-8")
        self._files = 0
        self._newest = dict.fromkeys("ab", datetime(1970, 1, 1, tzinfo=UTC))

    def land(self, *moments: datetime, feeds: str = "ab") -> None:
        """A file of each feed with a record at each of these moments."""
        self._files += 1
        for feed, value in (("a", "v"), ("b", "w")):
            if feed in feeds:
                rows = [json.dumps({"ts": ts.isoformat(), "k": "x", value: 1}) for ts in moments]
                file = self.folder / "landing" / feed / f"{self._files}.json"
                file.write_text("\n".join([*rows, ""]), encoding="utf-8")
                self._newest[feed] = max(self._newest[feed], *moments)

    @property
    def storage(self) -> Path:
        return self.folder / "warehouse"

    def run(self, until: Iterable[str] = DERIVED, **options: bool) -> dict[str, ObservedTable]:
        """Runs until the derived tables are as fresh as their sources allow; what is noted of each table."""
        wanted = [*until]
        with Runner(
            load(self.folder / "freshline.yml"),
            self.folder,
            self.storage,
            RunOptions(session=self.spark, **options),
        ) as runner:

            def look(status) -> None:
                rows = {row.name: row for row in status.tables}
                loaded = all(
                    row.freshness_us is not None and row.backlog == 0 and utc(row.freshness_us) >= newest
                    for row, newest in ((rows[feed], newest) for feed, newest in self._newest.items())
                )
                if loaded and all(rows[name].lag_us == 0 for name in wanted):
                    runner.stop("all is loaded")

            runner.on_status = look
            runner.run(PATIENCE_US)
        assert runner.stopped_because == "all is loaded"
        journal = (self.storage / f"_freshline/logs/{runner.run_id}.jsonl").read_text(encoding="utf-8")
        log = [json.loads(line) for line in journal.splitlines()]
        _, difference = replay(kernel_of(log[0]), log[1:])
        assert difference is None
        return runner.records.observation.tables

    def freshness(self, name: str, version: int | None = None) -> int:
        path = self.storage / "tables" / name
        freshness = read_snapshot(path, "ts", DeltaTable(path, version=version)).freshness
        assert freshness is not None
        return freshness

    def check(self) -> dict[str, int]:
        """Compares every commit of every derived table with its query; how many rows each has in the end."""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        counts = {}
        for name in ("a", "b", *DERIVED):
            path = self.storage / "tables" / name
            connection.register(f"all_{name}", DeltaTable(path).to_pyarrow_table())
        for name, (_, sources, _, query) in DERIVED.items():
            path = self.storage / "tables" / name
            for version in range(1, DeltaTable(path).version() + 1):
                until = utc(self.freshness(name, version)).isoformat()
                for source in sources:
                    late = " AND NOT _late" if source in "ab" else ""
                    connection.execute(
                        f"CREATE OR REPLACE TEMP VIEW {source} AS SELECT * FROM all_{source} "
                        f"WHERE ts <= TIMESTAMPTZ '{until}'{late}"
                    )
                connection.register("found", DeltaTable(path, version=version).to_pyarrow_table())
                found, expected = (
                    connection.sql(f"SELECT * FROM {rows} ORDER BY ALL").to_arrow_table().to_pylist()
                    for rows in ("found", f"({query})")
                )
                assert found == expected, f"{name} at {until}"
                counts[name] = len(found)
        return counts


def seconds(*offsets: float) -> list[datetime]:
    return [NEW + timedelta(seconds=offset) for offset in offsets]


@pytest.mark.parametrize(
    "policy", ["aus", *(pytest.param(each, marks=pytest.mark.soak) for each in ("edf", "aus-slack"))]
)
def test_a_record_of_2015_and_then_of_today_are_a_handful_of_updates(tmp_path, spark, policy):
    project = Project(tmp_path, spark, policy)
    project.land(OLD)
    project.run()
    project.land(*seconds(0, 0.4, 0.9))
    project.land(*seconds(1.5, 2.2))
    books = project.run()
    assert all(books[name].jobs <= 12 for name in DERIVED), books
    assert project.check() == {"copies": 6, "near": 25, "counts": 3, "again": 3}


def test_rows_in_the_gap_are_loaded_and_late_ones_are_not(tmp_path, spark):
    project = Project(tmp_path, spark)
    project.land(OLD)
    project.run()
    years = [OLD + timedelta(days=365 * year) for year in range(1, 6)]
    project.land(*years[:2])
    project.land(*seconds(0))
    project.land(*years[2:], *seconds(1.2))  # late: what they are between is loaded already
    books = project.run(batches=False)
    assert all(books[name].jobs <= 20 for name in DERIVED), books
    assert project.check()["copies"] == 5
    # Windows are whole: what is fresh ends with one, and what had none in between is passed over.
    versions = range(1, DeltaTable(project.storage / "tables/counts").version() + 1)
    assert all((project.freshness("counts", version) + 1) % SECOND == 0 for version in versions)


@pytest.mark.soak
def test_a_gap_between_two_runs_is_jumped_over_and_a_run_may_end_in_the_middle(tmp_path, spark):
    project = Project(tmp_path, spark)
    project.land(OLD)
    project.run()
    project.land(*seconds(0, 0.5))
    project.run(until=["copies"])  # the others are left in 2015, or wherever they are
    week = 7 * 24 * 3_600
    project.land(*seconds(week))
    project.land(*seconds(2 * week))
    books = project.run()
    assert all(books[name].jobs <= 16 for name in DERIVED), books
    assert project.check() == {"copies": 5, "near": 7, "counts": 3, "again": 3}


def test_a_source_that_is_behind_holds_a_table_back_and_no_row_is_passed_over(tmp_path, spark):
    project = Project(tmp_path, spark)
    project.land(OLD)
    project.run()
    project.land(*seconds(0))
    project.land(*seconds(86_400), feeds="a")
    project.run()
    assert project.freshness("near") == project.freshness("b") < project.freshness("copies")
    project.land(*seconds(1_800, 86_400 + 1), feeds="b")
    project.run()
    assert project.check() == {"copies": 3, "near": 2, "counts": 2, "again": 2}


def test_records_of_before_1970_are_late_and_freeze_nothing(tmp_path, spark):
    """Time begins with 1970: such a record makes a table as fresh as that, and nothing fresher."""
    project = Project(tmp_path, spark)
    project.land(datetime(1960, 1, 1, tzinfo=UTC))
    books = project.run(until=["copies"])
    assert books["a"].rows_late == 1
    project.land(*seconds(0, 1.5))
    books = project.run()
    assert books["a"].rows_late == 0
    assert all(books[name].jobs <= 8 for name in DERIVED), books
    assert project.check() == {"copies": 2, "near": 4, "counts": 1, "again": 1}
    base = DeltaTable(project.storage / "tables/a").to_pyarrow_table(columns=["ts", "_late"]).sort_by("ts")
    assert base["_late"].to_pylist() == [True, False, False]
    assert rebuild(spark, load(tmp_path / "freshline.yml"), project.storage, "copies") == 3
