"""A derived table equals its query over its sources' rows that are not late, up to its own freshness."""

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable

from freshline.definitions.load import load
from freshline.live.runner import Runner
from freshline.live.status import utc
from freshline.storage.snapshot import read_snapshot

# By table: its sources, and its query as Spark and as DuckDB have it.
NEAR = (
    "SELECT greatest(a.ts, b.ts) AS ts, a.k, a.v, b.w FROM a JOIN b "
    "ON a.k = b.k AND a.ts BETWEEN b.ts - INTERVAL '2' SECOND AND b.ts + INTERVAL '1' SECOND"
)
COUNTS = "count(*) AS n, sum(v) AS v FROM a GROUP BY"
DERIVED = {
    "near": (("a", "b"), NEAR, NEAR),
    "counts": (
        ("a",),
        f"SELECT window.start AS ts, k, {COUNTS} window(ts, '2 seconds'), k",
        f"SELECT time_bucket(INTERVAL 2 SECOND, ts) AS ts, k, {COUNTS} 1, 2",
    ),
    "totals": (
        ("near",),
        "SELECT window.start AS ts, k, sum(v * w) AS total FROM near GROUP BY window(ts, '3 seconds'), k",
        "SELECT time_bucket(INTERVAL 3 SECOND, ts) AS ts, k, sum(v * w) AS total FROM near GROUP BY 1, 2",
    ),
    "again": (
        ("counts", "near"),
        *2 * ("SELECT c.ts, c.k, c.n, x.v FROM counts c JOIN near x ON c.ts = x.ts AND c.k = x.k",),
    ),
}
KEYS = {"counts": "align: 2s, ", "near": "lookback: 2s, ", "totals": "align: 3s, ", "again": ""}
# Multiples of 2 and 3 s since 1970, so that whole seconds are often windows' edges.
START = datetime(2026, 1, 1, tzinfo=UTC)


class History:
    """Two feeds, a file a second each: some records late, some files in the wrong order, and an outage."""

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
        lateness = self.rng.choice(["0s", "700ms"])
        tables = "".join(
            f'  {name}: {{sql: "{spark}", period: {self.rng.choice([3, 4, 7])}s, {KEYS[name]}cost: {{startup: 1s}}}}\n'
            for name, (_, spark, _) in DERIVED.items()
        )
        return (
            "name: equality\npools: {updates: {tracks: 2}}\nfeeds:\n"
            '  a: {path: landing/a, format: csv, schema: "ts timestamp, k string, v long", timestamp: ts, period: 1s}\n'
            '  b: {path: landing/b, format: json, schema: "ts timestamp, k string, w long", timestamp: ts, period: 1s, '
            f"lateness: {lateness}}}\n"
            f"tables:\n  a: {{feed: a, cost: {{startup: 1s}}}}\n  b: {{feed: b, cost: {{startup: 1s}}}}\n{tables}"
        )

    def go_on(self, steps: int, silent: str | None) -> None:
        """Some seconds pass; of the feed that is silent nothing comes before the next time."""
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
        """In the file's own second, at its very edges now and then; or up to four seconds before it."""
        offset_us = self.rng.choice([0, 1, 500_000, 999_999, 1_000_000, self.rng.randrange(1_000_000)])
        if self.rng.random() < 0.2:
            offset_us -= self.rng.randrange(4_000_000)
        return (START + timedelta(seconds=step, microseconds=offset_us)).isoformat()


def drain(history: History, spark) -> None:
    storage = history.folder / "warehouse"
    with Runner(load(history.file), history.folder, storage, session=spark, drain=True) as runner:
        runner.run(60_000_000)
    assert runner.stopped_because == "nothing is left to load"


def check(storage: Path) -> Counter:
    """Compares every commit of every derived table; how many rows were compared, by table."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    compared: Counter = Counter()
    for name in ("a", "b", *DERIVED):
        connection.register(f"all_{name}", DeltaTable(storage / "tables" / name).to_pyarrow_table())
    for name, (sources, _, query) in DERIVED.items():
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
            found = connection.sql(f"SELECT {columns} FROM found ORDER BY ALL").fetchall()
            assert found == connection.sql(f"SELECT {columns} FROM ({query}) ORDER BY ALL").fetchall(), (
                f"{name} at {utc(freshness)}"
            )
            compared[name] += len(found)
    return compared


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
