"""Plans are warmed up by threads of their own, while a run goes on or not."""

import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from freshline.definitions.load import load
from freshline.definitions.warehouse import Warehouse
from freshline.live.status.status import WarehouseStatus
from freshline.live.warm_up.warm_plans import WarmPlans
from freshline.live.warm_up.warm_start import plans_to_warm
from freshline.live.warm_up.warm_up_threads import WarmUpThreads
from freshline.spark.loading.same_plan import alike
from freshline.spark.loading.schemas import schemas
from freshline.spark.loading.warm_up import WarmUp
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.ledger import Ledger
from patience import PATIENCE_S
from processes import command

pytestmark = pytest.mark.spark

FORMATS = ("csv", "json", "parquet")
FEEDS = [f"feed{number}" for number in range(6)]


def project(folder: Path, feeds: list[str] = FEEDS) -> Path:
    """Feeds of three formats, so three plans for six base tables; and an aggregate and a filter of each."""
    lines = ["name: many", "pools: {updates: {tracks: 2}}", "feeds:"]
    for number, name in enumerate(feeds):
        lines.append(
            f"  {name}: {{path: landing/{name}, format: {FORMATS[number % 3]}, "
            "schema: 'ts timestamp, n int', timestamp: ts, period: 1s}"
        )
    lines.append("tables:")
    for name in feeds:
        lines.append(f"  {name}: {{feed: {name}}}")
        lines.append(f"  {name}_sum: {{sql: 'SELECT ts, sum(n) AS n FROM {name} GROUP BY ts', period: 1s}}")
        lines.append(f"  {name}_few: {{sql: 'SELECT ts, n FROM {name} WHERE n > 3', period: 1s}}")
    folder.mkdir(exist_ok=True)
    (folder / "freshline.yml").write_text("\n".join([*lines, ""]), encoding="utf-8")
    for name in feeds:
        (folder / "landing" / name).mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def many(spark, tmp_path_factory) -> tuple[Warehouse, dict[str, StructType]]:
    """It, and what columns its tables have, for which Spark is asked of each."""
    warehouse = load(project(tmp_path_factory.mktemp("many")) / "freshline.yml")
    return warehouse, schemas(spark, warehouse)


def put(folder: Path, feed: str) -> None:
    (folder / "landing" / feed / "1.csv").write_text("ts,n\n2026-01-01T00:00:00Z,5\n", encoding="utf-8")


def until(happened: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < give_up_at, "it never happened"
        time.sleep(0.02)


def test_plans_of_tables_with_waiting_files_come_first_then_those_computed_from_them(
    many, tmp_path: Path
) -> None:
    warehouse, columns = many
    project(tmp_path)
    landing = {name: tmp_path / "landing" / name for name in FEEDS}
    put(tmp_path, "feed1")  # as json
    put(tmp_path, "feed2")  # as parquet, and loaded
    with closing(Ledger(tmp_path / "ledger.sqlite")) as ledger:
        ledger.remember("feed2", ConsumedFile("1.csv", 1, 1, "digest"))
        plans = plans_to_warm(warehouse, landing, columns, ledger)
    assert [plan[0] for plan in plans] == ["feed1", "feed0_sum", "feed0_few", "feed0", "feed2"]
    assert "feed1_sum" in plans[1]


class Counted(WarmUp):
    """Runs nothing, but counts for whom it should have."""

    def __init__(self, fails: str | None = None) -> None:
        self.asked: list[str] = []
        self.may_end = threading.Event()
        self._fails = fails

    def run(self, session, name, may_go_on=lambda: True) -> None:
        self.asked.append(name)
        assert self.may_end.wait(PATIENCE_S)
        assert may_go_on()  # a plan that is begun is finished, whatever the tracks do: feeds wait for it
        if name == self._fails:
            raise ValueError("no such rows")


def test_plans_that_are_alike_are_warmed_up_once(spark, many, tmp_path: Path) -> None:
    plans = alike(*many)
    assert sorted(map(len, plans)) == [2, 2, 2, 6, 6]
    warmth, counted = WarmPlans(plans), Counted()
    counted.may_end.set()
    warming = WarmUpThreads(warmth, counted, spark, tmp_path / "scratch", 2)
    warming.start()
    warming.wait(lambda: False)
    assert sorted(counted.asked) == sorted(plan[0] for plan in plans)
    assert warmth.progress() is None


def test_one_thread_goes_on_while_all_tracks_are_busy_and_the_others_once_some_are_idle(
    spark, tmp_path: Path
) -> None:
    warmth, counted = WarmPlans([("a",), ("b",), ("c",)]), Counted()
    idle = 0
    warming = WarmUpThreads(warmth, counted, spark, tmp_path / "scratch", 2)
    warming.mind(lambda: idle)
    warming.start()
    until(lambda: counted.asked == ["a"])
    time.sleep(0.5)  # what must not happen has time to
    assert counted.asked == ["a"]
    idle = 2
    until(lambda: counted.asked == ["a", "b"])
    idle = 0
    counted.may_end.set()
    warming.wait(lambda: False)
    assert counted.asked == ["a", "b", "c"]


def test_a_warm_up_that_fails_stops_nothing(spark, tmp_path: Path) -> None:
    warmth, counted = WarmPlans([("a",), ("b",), ("c",)]), Counted(fails="b")
    counted.may_end.set()
    warming = WarmUpThreads(warmth, counted, spark, tmp_path / "scratch", 1)
    warming.start()
    warming.wait(lambda: False)
    assert counted.asked == ["a", "b", "c"]
    assert warmth.progress() is None
    assert [warmth.was_warm(table, 1 << 60) for table in "abc"] == [True, False, True]
    assert not warmth.is_awaited("b")


def test_closing_ends_it_wherever_it_is_and_leaves_no_files(spark, many, tmp_path: Path) -> None:
    warehouse, columns = many
    warmth, folder = WarmPlans(alike(warehouse, columns)), tmp_path / "scratch"
    warming = WarmUpThreads(warmth, WarmUp(warehouse, columns, folder), spark, folder, 2)
    warming.start()
    until(folder.exists)
    warming.close(lambda: False)
    assert not any(thread.name.startswith("warm-up") for thread in threading.enumerate())
    assert not folder.exists()
    assert spark.range(3).count() == 3  # other jobs are not cancelled


@pytest.mark.soak
def test_a_run_ends_in_order_while_plans_are_warmed_up(tmp_path: Path) -> None:
    put(project(tmp_path / "project", FEEDS[:3]), "feed0")
    status = tmp_path / "project/warehouse/_freshline/status.json"
    doing: set[str] = set()

    def is_warming() -> bool:
        if not status.exists():
            return False
        last = WarehouseStatus.read(status)
        if last.starting is not None:
            doing.add(last.starting.doing)
        return bool(last.tables) and last.starting is not None

    with command("run", "-p", str(tmp_path / "project"), "--json") as run:
        run.wait_until(is_warming)
        code, said = run.end(signal.SIGINT)
        assert code == 0, said
        assert "Traceback" not in said
        assert run.left() == []
    assert doing == {"starting Spark", "opening tables", "warming up plans"}
    assert list((tmp_path / "project/warehouse/_freshline/scratch").iterdir()) == []
