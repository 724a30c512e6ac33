"""A derived table equals its query over its sources' rows that are not late, up to its own freshness."""

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

from freshline.base.instants import utc
from freshline.definitions.load import load
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.storage.delta.snapshot import read_snapshot
from patience import PATIENCE_US

# Time is short here, so that no test waits for a period: a file every 200 ms.
STEP_US = 200_000
NEAR = (
    "SELECT greatest(a.ts, b.ts) AS ts, a.k, a.v, b.w FROM a JOIN b "
    "ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '0.4' SECOND AND b.ts + INTERVAL '0.2' SECOND"
)
AGAIN = "SELECT c.ts, c.k, c.n, x.v FROM counts c JOIN near x ON c.ts = x.ts AND c.k = x.k"
# By table: its keys, its sources, and its query as Spark and as DuckDB have it.
DERIVED = {
    "near": ("lookback: 400ms, ", ("a", "b"), NEAR, NEAR),
    "counts": (
        "align: 400ms, ",
        ("a",),
        "SELECT window.start AS ts, k, count(*) AS n FROM a GROUP BY window(ts, '400 milliseconds'), k",
        "SELECT time_bucket(INTERVAL 400 MILLISECOND, ts) AS ts, k, count(*) AS n FROM a GROUP BY 1, 2",
    ),
    "totals": (
        "align: 600ms, ",
        ("near",),
        "SELECT window.start AS ts, sum(v * w) AS total FROM near GROUP BY window(ts, '600 milliseconds')",
        "SELECT time_bucket(INTERVAL 600 MILLISECOND, ts) AS ts, sum(v * w) AS total FROM near GROUP BY 1",
    ),
    "again": ("", ("counts", "near"), AGAIN, AGAIN),
}
# An edge of all windows, so that records at whole steps are often at an edge.
START = datetime(2026, 1, 1, tzinfo=UTC)


class History:
    """Two feeds, a file a step each: some records late, some files in the wrong order, and an outage."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.rng = random.Random(f"derived:{seed}")
        self.step = 0
        self.held_back: list[tuple[str, int]] = []  # files on their way
        self.file = folder / "freshline.yml"
        self.file.write_text(self._project(), encoding="utf-8")
        for feed in "ab":
            (folder / "landing" / feed).mkdir(parents=True)

    def _project(self) -> str:
        lines = ["name: equality", "pools: {updates: {tracks: 2}}", "feeds:"]
        for feed, form, value in (("a", "csv", "v"), ("b", "json", "w")):
            lateness = self.rng.choice(["0s", "150ms"])
            lines.append(f"  {feed}: {{path: landing/{feed}, format: {form}, timestamp: ts, period: 200ms,")
            lines.append(f'    lateness: {lateness}, schema: "ts timestamp, k string, {value} long"}}')
        lines.append("tables:")
        lines += [f"  {feed}: {{feed: {feed}, cost: {{startup: 50ms}}}}" for feed in "ab"]
        for name, (keys, _, query, _) in DERIVED.items():
            period_ms = self.rng.choice([600, 800, 1400])
            lines.append(f"  {name}: {{period: {period_ms}ms, {keys}cost: {{startup: 50ms}},")
            lines.append(f'    sql: "{query}"}}')
        return "\n".join([*lines, ""])

    def go_on(self, steps: int, silent: str | None) -> None:
        """Some steps pass; of the feed that is silent nothing comes before the next time."""
        due, self.held_back = self.held_back, []
        for _ in range(steps):
            self.step += 1
            for feed in "ab":
                on_its_way = feed == silent or self.rng.random() < 0.15
                (self.held_back if on_its_way else due).append((feed, self.step))
        for feed, step in due:
            self._write(feed, step)

    def _write(self, feed: str, step: int) -> None:
        rows = [(self._moment(step), self.rng.choice("xyz"), self.rng.randrange(10)) for _ in range(5)]
        target = self.folder / "landing" / feed / f"{step}.{'csv' if feed == 'a' else 'json'}"
        if feed == "a":
            lines = ["ts,k,v", *(f"{ts},{k},{v}" for ts, k, v in rows)]
        else:
            lines = [json.dumps({"ts": ts, "k": k, "w": w}) for ts, k, w in rows]
        target.write_text("\n".join([*lines, ""]), encoding="utf-8")

    def _moment(self, step: int) -> str:
        """In the file's own time, at its very edges now and then; or up to four steps before it."""
        rng = self.rng
        offset_us = rng.choice([0, 1, STEP_US // 2, STEP_US - 1, STEP_US, rng.randrange(STEP_US)])
        if rng.random() < 0.2:
            offset_us -= rng.randrange(4 * STEP_US)
        return (START + timedelta(microseconds=step * STEP_US + offset_us)).isoformat()


def drain(history: History, spark) -> None:
    storage = history.folder / "warehouse"
    with Runner(load(history.file), history.folder, storage, RunOptions(session=spark, drain=True)) as runner:
        runner.run(PATIENCE_US)
    assert runner.stopped_because == "nothing is left to load"


def check(storage: Path) -> Counter:
    """Compares every commit of every derived table; how many rows were compared, by table."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    compared: Counter = Counter()
    for name in ("a", "b", *DERIVED):
        connection.register(f"all_{name}", DeltaTable(storage / "tables" / name).to_pyarrow_table())
    for name, (_, sources, _, query) in DERIVED.items():
        path = storage / "tables" / name
        for version in range(1, DeltaTable(path).version() + 1):
            then = DeltaTable(path, version=version)
            freshness = read_snapshot(path, "ts", then).freshness
            assert freshness is not None
            for source in sources:
                late = " AND NOT _late" if source in "ab" else ""
                connection.execute(
                    f"CREATE OR REPLACE TEMP VIEW {source} AS SELECT * FROM all_{source} "
                    f"WHERE ts <= TIMESTAMPTZ '{utc(freshness).isoformat()}'{late}"
                )
            connection.register("found", then.to_pyarrow_table())
            columns = ", ".join(field.name for field in then.schema().fields)
            found, expected = (
                connection.sql(f"SELECT {columns} FROM {rows} ORDER BY ALL").to_arrow_table().to_pylist()
                for rows in ("found", f"({query})")
            )
            assert found == expected, f"{name} at {utc(freshness)}"
            compared[name] += len(found)
    return compared


@pytest.mark.soak  # in `make test`, test_old_data.py compares every commit too
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_derived_table_is_its_query_at_every_commit_of_a_random_history(tmp_path, spark, seed):
    history = History(tmp_path, seed)
    for steps, silent in ((4, None), (5, "b"), (4, None)):
        history.go_on(steps, silent)
        drain(history, spark)
    history.go_on(0, None)  # what was still on its way
    drain(history, spark)
    compared = check(tmp_path / "warehouse")
    assert all(compared[name] for name in DERIVED), compared
    table = DeltaTable(tmp_path / "warehouse" / "tables" / "a").to_pyarrow_table()
    assert table.num_rows == 13 * 5
    assert any(table["_late"].to_pylist())
