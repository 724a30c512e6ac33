"""A table that is computed whole equals its query at every commit, over the versions that it read."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from freshline.base.instants import utc
from freshline.definitions.load import load
from freshline.live.maintain.verify import verify
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.storage.delta import log
from freshline.storage.delta.snapshot import read_snapshot
from patience import PATIENCE_US
from whole_statements import STATEMENTS

STEP_US = 200_000
START = datetime(2026, 1, 1, 23, 59, 58, tzinfo=UTC)  # midnight comes after ten files
CLOCK = {"now()": "TIMESTAMP '{}'", "current_date()": "DATE '{:.10}'", "current_date": "DATE '{:.10}'"}


class Facts:
    """Two feeds, a file a step each: some records late, and one feed silent for a while."""

    def __init__(self, folder: Path, seed: int, statements: dict[str, str]) -> None:
        self.folder = folder
        self.rng = random.Random(f"whole:{seed}")
        self.step = 0
        self.held_back: list[tuple[str, int]] = []
        self.file = folder / "freshline.yml"
        lines = ["name: whole", "pools: {updates: {tracks: 2}}", "feeds:"]
        for feed, value in (("a", "v"), ("b", "w")):
            (folder / "landing" / feed).mkdir(parents=True)
            lines.append(f"  {feed}: {{path: landing/{feed}, format: csv, timestamp: ts, period: 200ms,")
            lines.append(f'    schema: "ts timestamp, k string, {value} long"}}')
        lines += ["tables:", *(f"  {feed}: {{feed: {feed}, cost: {{startup: 50ms}}}}" for feed in "ab")]
        for name, sql in statements.items():
            period_ms = self.rng.choice([600, 800, 1400])
            lines.append(f"  {name}: {{period: {period_ms}ms, cost: {{startup: 50ms}},")
            lines.append(f'    sql: "{sql}"}}')
        self.file.write_text("\n".join([*lines, ""]), encoding="utf-8")

    def go_on(self, steps: int, silent: str | None = None) -> None:
        due, self.held_back = self.held_back, []
        for _ in range(steps):
            self.step += 1
            for feed in "ab":
                (self.held_back if feed == silent else due).append((feed, self.step))
        for feed, step in due:
            rows = [
                f"{self._moment(step)},{self.rng.choice('xyz')},{self.rng.randrange(10)}" for _ in range(5)
            ]
            text = "\n".join([f"ts,k,{'v' if feed == 'a' else 'w'}", *rows, ""])
            (self.folder / "landing" / feed / f"{step}.csv").write_text(text, encoding="utf-8")

    def _moment(self, step: int) -> str:
        offset_us = self.rng.choice([0, 1, STEP_US // 2, STEP_US - 1, self.rng.randrange(STEP_US)])
        if self.rng.random() < 0.2:
            offset_us -= self.rng.randrange(4 * STEP_US)
        return (START + timedelta(microseconds=step * STEP_US + offset_us)).isoformat()

    def drain(self, spark) -> None:
        storage = self.folder / "warehouse"
        options = RunOptions(session=spark, drain=True)
        with Runner(load(self.file), self.folder, storage, options) as runner:
            runner.run(PATIENCE_US)
        assert runner.stopped_because == "nothing is left to load"


def rows_of(frame) -> Counter:
    return Counter(tuple(row) for row in frame.collect())


def check(spark, folder: Path) -> Counter:
    """Compares every commit of every table with plain Spark; how many commits had rows, by table."""
    session = spark.newSession()
    tables = folder / "warehouse" / "tables"
    compared: Counter = Counter()
    for name, definition in load(folder / "freshline.yml").tables.items():
        if definition.feed is not None:
            continue
        assert definition.refresh == "full", name
        path = tables / name
        for version in range(1, DeltaTable(path).version() + 1):
            told = log.commit_information(path, version)
            if "read" not in told:
                continue
            then = DeltaTable(path, version=version)
            freshness = read_snapshot(path, definition.timestamp or "", then).freshness
            assert freshness is not None
            assert {*told["read"]} == {*definition.sources}
            for source, read in told["read"].items():
                _view(session, tables / source, source, read, freshness)
            instant = utc(freshness).isoformat()
            sql = definition.sql
            for call, literal in CLOCK.items():
                sql = sql.replace(call, literal.format(instant))
            expected = session.sql(sql)
            if definition.timestamp is not None:
                expected = expected.where(f"ts IS NULL OR ts <= TIMESTAMP '{instant}'")
            found = session.createDataFrame(then.to_pyarrow_table(), expected.schema)
            assert rows_of(found) == rows_of(expected), f"{name} at version {version}, {instant}"
            compared[name] += found.count() > 0
    return compared


def _view(session, path: Path, name: str, version: int, freshness: int) -> None:
    stored = DeltaTable(path, version=version).to_pyarrow_table()
    frame = session.read.parquet(*DeltaTable(path, version=version).file_uris()) if stored.num_rows else None
    if frame is None:
        frame = session.createDataFrame([], session.read.parquet(str(path / "data" / "*")).schema)
    if "_late" in frame.columns:
        frame = frame.where("NOT _late").drop("_late")
    if "ts" in frame.columns:
        frame = frame.where(f"ts IS NULL OR ts <= TIMESTAMP '{utc(freshness).isoformat()}'")
    frame.createOrReplaceTempView(name)


def check_history(
    folder: Path, spark, seed: int, statements: dict[str, str], *drains: tuple[int, str | None]
) -> None:
    facts = Facts(folder, seed, statements)
    for steps, silent in drains:
        facts.go_on(steps, silent)
        facts.drain(spark)
    compared = check(spark, folder)
    assert {*compared} == {*statements}
    assert [name for name in statements if not compared[name]] == []
    for name in ("by_key", "open_hour"):
        assert verify(spark, load(facts.file), folder / "warehouse", name).is_equal


def test_a_table_that_is_computed_whole_is_its_query_at_every_commit(tmp_path, spark):
    names = ("by_key", "open_hour", "shifted", "undated", "recent", "late_again")
    check_history(tmp_path, spark, 1, {name: STATEMENTS[name] for name in names}, (4, None), (5, "b"))


@pytest.mark.soak
@pytest.mark.parametrize("seed", [2, 3])
def test_all_statements_are_their_queries_at_every_commit(tmp_path, spark, seed):
    check_history(tmp_path, spark, seed, STATEMENTS, (4, None), (5, "b"), (4, None))
