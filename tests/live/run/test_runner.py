"""The warehouse on Spark: real files, real jobs, real Delta tables."""

import io
import json
from itertools import count

import pytest

from cases import rest_in_soak
from drained_shop import PROJECT, Shop, long_periods
from freshline.base.duration import SECOND
from freshline.definitions.serial import to_record
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.kernel.core.journal import Journal
from freshline.kernel.recovery.events import CostsLearned, LearnedCost
from freshline.kernel.recovery.modes import AdaptiveRelease
from freshline.kernel.tables.events import DataFile, FileArrived, UpdateFinished
from freshline.storage.control.history import History
from freshline.storage.control.lease import StorageInUse
from freshline.testing.builder import Builder
from patience import PATIENCE_US


@pytest.fixture
def shop(tmp_path, spark) -> Shop:
    return Shop(tmp_path, spark)


def test_files_become_tables_and_tables_become_derived_tables(shop):
    shop.orders("1.csv", [(1, "tea", 3), (2, "tea", 4), (2, "cup", 9)])
    shop.clicks("1.json", [(1, "tea"), (2, "cup"), (3, "tea")])
    shop.drain()
    assert shop.rows("orders", "ts, item, price, _late") == [
        (shop.at(1), "tea", 3, False),
        (shop.at(2), "cup", 9, False),
        (shop.at(2), "tea", 4, False),
    ]
    assert shop.rows("revenue", "ts, item, price") == [
        (shop.at(1), "tea", 3),
        (shop.at(2), "cup", 9),
        (shop.at(2), "tea", 4),
    ]
    # Both sources reach to second 2 only: orders end there.
    assert shop.rows("both", "ts, item, price") == [(shop.at(1), "tea", 3), (shop.at(2), "cup", 9)]


def test_running_again_loads_nothing_twice_and_what_is_new_once(shop):
    shop.orders("1.csv", [(1, "tea", 3)])
    shop.drain()
    shop.drain()
    shop.orders("2.csv", [(12, "tea", 5)])
    shop.drain()
    assert shop.rows("orders", "ts, price") == [(shop.at(1), 3), (shop.at(12), 5)]
    assert shop.rows("revenue", "ts, price") == [(shop.at(1), 3), (shop.at(12), 5)]


def test_late_records_are_loaded_and_marked_and_kept_out_of_derived_tables(shop):
    shop.orders("1.csv", [(10, "tea", 1)])
    shop.drain()
    shop.orders("2.csv", [(8, "old", 2), (11, "tea", 3)])
    shop.orders("3.csv", [(9, "older", 4)])
    runner = shop.drain()
    assert shop.rows("orders", "ts, item, _late") == [
        (shop.at(8), "old", True),
        (shop.at(9), "older", True),
        (shop.at(10), "tea", False),
        (shop.at(11), "tea", False),
    ]
    assert shop.rows("revenue", "ts, price") == [(shop.at(10), 1), (shop.at(11), 3)]
    assert runner.status().tables[0].late_rows == 2


def test_a_corrupt_file_goes_to_quarantine_and_its_feed_goes_on(shop):
    shop.orders("1.csv", [(1, "tea", 3)])
    (shop.folder / "landing/orders/2.csv").write_text(
        f"ts,item,price\n{shop.at(2).isoformat()},tea,many\n", encoding="utf-8"
    )
    shop.orders("3.csv", [(3, "tea", 5)])
    runner = shop.drain()
    assert shop.rows("orders", "ts, price") == [(shop.at(1), 3), (shop.at(3), 5)]
    assert runner.status().quarantined == 1
    assert not (shop.folder / "landing/orders/2.csv").exists()
    assert list((shop.storage / "_freshline/quarantine").rglob("2.csv"))


def test_the_same_name_with_other_content_is_put_aside_and_with_the_same_content_dropped(shop):
    shop.orders("1.csv", [(1, "tea", 3)])
    shop.drain()
    shop.orders("1.csv", [(1, "tea", 3)])
    shop.drain()
    assert shop.rows("orders", "ts, price") == [(shop.at(1), 3)]
    shop.orders("1.csv", [(2, "tea", 400)])
    runner = shop.drain()
    assert shop.rows("orders", "ts, price") == [(shop.at(1), 3)]
    assert runner.status().quarantined == 1


def test_an_empty_file_is_consumed_and_loads_nothing(shop):
    shop.orders("0.csv", [])
    shop.orders("1.csv", [(1, "tea", 3)])
    shop.drain()
    assert shop.rows("orders", "ts, price") == [(shop.at(1), 3)]


@pytest.mark.parametrize(("after_load", "left"), [("delete", False), ("archive", False), ("keep", True)])
def test_what_becomes_of_a_loaded_file_is_declared(tmp_path, spark, after_load, left):
    shop = Shop(
        tmp_path,
        spark,
        PROJECT.replace("period: 10s}\n  clicks", f"period: 10s, after_load: {after_load}}}\n  clicks"),
    )
    shop.orders("1.csv", [(1, "tea", 3)])
    shop.drain()
    assert (tmp_path / "landing/orders/1.csv").exists() is left
    assert (shop.storage / "_freshline/archive/orders/1.csv").exists() is (after_load == "archive")
    shop.drain()
    assert shop.rows("orders", "ts, price") == [(shop.at(1), 3)]


def test_a_second_runner_is_refused_with_the_first_ones_identity(shop):
    with (
        shop.runner(drain=True) as first,
        pytest.raises(StorageInUse, match=str(first.status().pid)),
        shop.runner(),
    ):
        pass


def test_the_log_of_a_run_replays_identically(shop):
    for number in range(4):
        shop.orders(f"{number}.csv", [(10 * number + 1, "tea", number)])
    shop.drain()
    header, *calls = log_of(shop)
    assert replay(kernel_of(header), calls) == (len(calls), None)
    started = [start for call in calls for start in call.get("instructions", ())]
    loaded = [name for start in started if start["start"] == "orders" for name in start["files"]]
    assert sorted(loaded) == [f"{number}.csv" for number in range(4)]
    assert {start["start"] for start in started} >= {"orders", "revenue"}


def test_the_log_of_a_run_without_batches_replays_identically(shop):
    for number in range(4):
        shop.orders(f"{number}.csv", [(10 * number + 1, "tea", number)])
    shop.drain(batches=False)
    header, *calls = log_of(shop)
    assert replay(kernel_of(header), calls) == (len(calls), None)
    started = [start for call in calls for start in call.get("instructions", ())]
    assert [len(start["files"]) for start in started if start["start"] == "orders"] == [1, 1, 1, 1]


def log_of(shop: Shop) -> list[dict]:
    (log,) = (shop.storage / "_freshline/logs").iterdir()
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("policy", rest_in_soak(["aus-slack", "prp"]))
def test_the_log_of_a_run_that_learns_its_costs_replays_identically(tmp_path, spark, monkeypatch, policy):
    monkeypatch.setattr("freshline.live.run.learned_plan._LEARN_EVERY_US", 0)
    text = PROJECT.replace(", cost: {startup: 5s}", "").replace("    cost: {startup: 5s}\n", "")
    text = text.replace("period: 10s", "period: 500ms").replace(
        "{tracks: 2}", f"{{tracks: 2, policy: {policy}}}"
    )
    shop = Shop(tmp_path, spark, text)
    seconds, since_learned = count(1), []

    def hear(status) -> None:
        """Files come until every cost is known, from three updates each, and there were a few more."""
        second = next(seconds) / 2
        shop.orders(f"{second}.csv", [(second, "tea", 3)])
        shop.clicks(f"{second}.json", [(second, "tea")])
        updates = [table.jobs for table in status.tables]
        if min(updates) >= 3:
            since_learned.append(sum(updates))
            if since_learned[-1] - since_learned[0] >= 6:
                runner.stop("seen")

    with shop.runner() as runner:
        runner.on_status = hear
        runner.run(PATIENCE_US)
    assert runner.stopped_because == "seen"
    header, *lines = log_of(shop)
    assert header["unknown"] == ["both", "clicks", "orders", "revenue"]
    learned = {
        number: event["learned"]
        for number, line in enumerate(lines)
        for event in line.get("events", ())
        if "learned" in event
    }
    assert sorted({table for tables in learned.values() for table in tables}) == header["unknown"]
    assert any("instructions" in line for line in lines[max(learned) :])
    assert replay(kernel_of(header), lines) == (len(lines), None)
    for task in runner.kernel.tasks:
        assert task.worst_case_of(5) >= task.worst_case_of(1) > 0
    # Where the costs give bounds the kernel goes by them; the status says either.
    (pool,) = runner.status().pools
    bounded = policy == "aus-slack" and all(table.staleness_bound_us for table in runner.plan.tables)
    assert pool.behaves_as == (policy if bounded or policy == "prp" else "edf")
    assert all(isinstance(task.rule, AdaptiveRelease) == bounded for task in runner.kernel.tasks)


HOURLY = """\
name: hourly
pools: {updates: {tracks: 2, policy: %s}}
feeds:
  orders: {path: landing/orders, format: csv, schema: "ts timestamp, item string, price long", timestamp: ts, period: 1h}
  clicks: {path: landing/clicks, format: json, schema: "ts timestamp, item string", timestamp: ts, period: 1h}
tables:
  orders: {feed: orders}
  clicks: {feed: clicks}
"""  # noqa: E501


@pytest.mark.parametrize("policy", rest_in_soak(["aus-slack", "aus"]))
def test_a_run_catches_up_without_bounds_and_has_them_as_soon_as_its_costs_are_known(
    tmp_path, spark, monkeypatch, policy
):
    """Files that wait are loaded at once, not one an hour: as with `edf`, as long as no cost is known."""
    monkeypatch.setattr("freshline.live.run.learned_plan._LEARN_EVERY_US", 0)
    shop = Shop(tmp_path, spark, HOURLY % policy)
    for hour in range(1, 6):
        shop.orders(f"{hour}.csv", [(3600 * hour, "tea", hour)])
        shop.clicks(f"{hour}.json", [(3600 * hour, "tea")])
    behaved = []

    def hear(status) -> None:
        (pool,) = status.pools
        behaved.append(pool.behaves_as)
        if pool.behaves_as == policy:
            runner.stop("bounded")

    with shop.runner() as runner:
        runner.on_status = hear
        runner.run(PATIENCE_US)
    assert runner.stopped_because == "bounded"
    assert (behaved[0], behaved[-1]) == ("edf", policy)
    assert all(isinstance(task.rule, AdaptiveRelease) for task in runner.kernel.tasks)
    assert all(table.staleness_bound_us is not None for table in runner.status().tables)
    header, *lines = log_of(shop)
    assert replay(kernel_of(header), lines) == (len(lines), None)


def test_costs_that_were_learned_are_learned_again_in_a_replay():
    """With prp the dearer of two equally late tables comes second: at first a does, then b."""
    warehouse = Builder(policy="prp").files("a", period=10, cost=3).files("b", period=10, cost=2).build()
    header = {"now": 0, "freshness": None, "unknown": ["b"], "warehouse": to_record(warehouse)}
    stream = io.StringIO()
    journal, kernel = Journal(stream, header), kernel_of(header)
    order = []

    def tell(at_s: int, *events: FileArrived | UpdateFinished | CostsLearned) -> None:
        instructions = kernel.handle(at_s * SECOND, events)
        journal.write(at_s * SECOND, events, instructions)
        order.extend(instruction.job.task.name for instruction in instructions)

    def end(at_s: int) -> None:
        (job,) = [task.job for task in kernel.tasks if task.job]
        tell(at_s, UpdateFinished(job, job.loaded_to))

    for at_s in (10, 20):
        tell(at_s, *(FileArrived(table, DataFile(at_s * SECOND, at_s)) for table in "ab"))
        end(at_s + 2)
        end(at_s + 4)
        tell(at_s + 5, CostsLearned({"b": LearnedCost(5 * SECOND, 4 * SECOND, None, None)}))
    assert order == ["b", "a", "a", "b"]
    assert kernel.tasks[1].worst_case_of(3) == 7 * SECOND
    _, *lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert replay(kernel_of(header), lines) == (8, None)


@pytest.mark.parametrize("policy", rest_in_soak(["aus", "edf"]))
def test_draining_does_not_wait_for_the_release_of_derived_tables_and_leaves_nothing_out(
    tmp_path, spark, policy
):
    shop = long_periods(tmp_path, spark, policy)
    runner = shop.drain()
    expected = [(shop.at(number), number) for number in range(1, 6)]
    assert shop.rows("orders", "ts, price") == expected
    assert shop.rows("revenue", "ts, price") == shop.rows("report", "ts, price") == expected
    assert len({table.freshness_us for table in runner.status().tables}) == 1
    header, *calls = log_of(shop)
    kernel = kernel_of(header)
    assert replay(kernel, calls) == (len(calls), None)
    assert sum("drain" in event for call in calls for event in call.get("events", ())) == 1
    reached = {table.name: table.freshness_us for table in runner.status().tables}
    assert {task.name: task.freshness for task in kernel.tasks} == reached
    shop.orders("6.csv", [(6, "tea", 6)])
    shop.drain()
    assert shop.rows("report", "ts, price") == [*expected, (shop.at(6), 6)]


def test_while_an_unknown_table_has_too_few_runs_the_others_are_not_learned_again(
    tmp_path, spark, monkeypatch
):
    monkeypatch.setattr("freshline.live.run.learned_plan._LEARN_EVERY_US", 0)
    text = PROJECT.replace(", cost: {startup: 5s}", "").replace("    cost: {startup: 5s}\n", "")
    shop = Shop(tmp_path, spark, text)
    for number in range(1, 4):
        shop.orders(f"{number}.csv", [(number, "tea", number)])
    shop.drain(batches=False)
    looked_up, runs = [], History.runs
    monkeypatch.setattr(History, "runs", lambda self, table: looked_up.append(table) or runs(self, table))
    with shop.runner() as runner:
        runner.on_status = lambda status: looked_up.count("clicks") > 3 and runner.stop("seen")
        runner.run(PATIENCE_US)
    assert runner.stopped_because == "seen"
    assert looked_up.count("orders") == 1
