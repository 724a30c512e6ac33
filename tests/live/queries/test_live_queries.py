"""Queries of a running warehouse on Spark: answers, and queries that come and go while it runs."""

import json
import subprocess
from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from commands import freshline
from freshline.base.clock import clock
from freshline.base.errors import InputError
from freshline.definitions.load import load
from freshline.live.queries.query_work import QueryWork
from freshline.live.queries.result_files import ResultFiles
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from freshline.service.client import ask
from freshline.storage.control.history import History
from live_project import START, LiveProject
from patience import wait_until

SUMS = "SELECT item, sum(price) AS price, count(*) AS n, avg(price) AS mean FROM orders GROUP BY item"
PROJECT = f"""\
name: shop
pools:
  updates: {{tracks: 1}}
  exact: {{tracks: 1, policy: rm, preemptive: true}}
  shedding: {{tracks: 1, policy: lrm}}
feeds:
  orders: {{path: landing, format: csv, schema: "ts timestamp, item string, price long", timestamp: ts, period: 10s}}
tables:
  orders: {{feed: orders, cost: {{startup: 5s}}, slices: {{by: item}}}}
queries:
  sums: {{sql: "{SUMS}", window: 1h, stride: 2s, pool: exact, cost: {{startup: 400ms}}, into: all_sums}}
"""  # noqa: E501
DEAR = 'dear: {sql: "SELECT item, price FROM orders WHERE price > 90", window: 1h, stride: 2s, pool: shedding, cost: {startup: 400ms}}'  # noqa: E501
COUNTS = 'counts: {sql: "SELECT count(*) AS n FROM orders", window: 1h, stride: 3s, pool: shedding, cost: {startup: 400ms}}'  # noqa: E501
HUGE = 'huge: {sql: "SELECT count(*) AS n FROM orders", window: 1h, stride: 3s, part: 1s, pool: shedding, cost: {startup: 100s}}'  # noqa: E501


class Shop(LiveProject):
    """A project whose file is edited while it runs."""

    def __init__(self, folder: Path, spark) -> None:
        super().__init__(folder, spark)
        self.rows: list[tuple[datetime, str, int]] = []
        self.define()

    def define(self, *queries: str, text: str = PROJECT) -> None:
        (self.folder / "freshline.yml").write_text("\n  ".join([text.rstrip(), *queries]), encoding="utf-8")

    def land(self, number: int, count: int = 500) -> None:
        rows = [
            (START + timedelta(seconds=10 * number + 10 * each / count), f"item{each % 37}", each % 101)
            for each in range(count)
        ]
        self.put(number, rows)
        self.rows += rows

    def apply(self) -> subprocess.CompletedProcess[str]:
        return freshline("apply", "--json", "-p", self.folder)

    def queries(self) -> dict[str, dict[str, Any]]:
        return {query["name"]: query for query in ask(self.control.service, "GET", "/v1/status")["queries"]}

    def answers(self, query: str) -> int:
        return self.queries().get(query, {}).get("iterations", 0)

    def result(self, query: str) -> dict[str, Any]:
        return ResultFiles(self.control.results).read(query) or {"keep": -1, "window": [0, 0]}

    def expected_sums(self, window: list[float]) -> dict[str, tuple[int, int, float]]:
        prices = defaultdict(list)
        for at, item, price in self.rows:
            if window[0] < at.timestamp() <= window[1]:
                prices[item].append(price)
        return {item: (sum(each), len(each), sum(each) / len(each)) for item, each in prices.items()}


@pytest.fixture
def shop(tmp_path: Path, spark) -> Shop:
    return Shop(tmp_path, spark)


def test_answers_over_the_whole_window_are_exact_and_are_kept(shop: Shop) -> None:
    shop.land(0)
    shop.land(1)
    last = START + timedelta(seconds=10 + 10 * 499 / 500)
    with shop.running():
        wait_until(lambda: shop.result("sums")["window"][1] == last.timestamp())
        wait_until(lambda: shop.answers("sums") >= 3)
        found = shop.result("sums")
        asked = ask(shop.control.service, "GET", "/v1/results/sums")
        with pytest.raises(InputError, match="404"):
            ask(shop.control.service, "GET", "/v1/results/others")
    assert asked.keys() == found.keys()
    assert (found["keep"], found["rows_seen"], found["estimates"]) == (1.0, 1_000, [])
    assert found["window"][1] - found["window"][0] == 3600
    assert found["deadline"] == found["released"] + 2
    assert found["released"] % 2 == 0
    assert found["met"] == (found["finished"] <= found["deadline"])
    rows = {row["item"]: (row["price"], row["n"], row["mean"]) for row in found["rows"]}
    assert rows == shop.expected_sums(found["window"])
    kept = DeltaTable(shop.layout.table("all_sums")).to_pyarrow_table()
    newest = kept.filter([at.timestamp() == found["window"][1] for at in kept["_window_to"].to_pylist()])
    assert {row["item"]: (row["price"], row["n"], row["mean"]) for row in newest.to_pylist()} == rows
    assert set(kept["_keep"].to_pylist()) == {1.0}
    assert shop.replayed()[1] is None
    with History(shop.control.history, read_only=True) as history:
        assert history._rows("SELECT count(*) FROM parts WHERE slices > 0", ())[0][0] > 0


def test_queries_come_and_go_while_others_are_answered(shop: Shop) -> None:
    shop.land(0)
    shop.define(DEAR)
    with shop.running() as runner:
        wait_until(lambda: shop.answers("sums") >= 1 and shop.answers("dear") >= 1)
        shop.define(COUNTS, HUGE)
        applied = shop.apply()
        assert applied.returncode == 1, applied
        answer = json.loads(applied.stdout)
        (refused,) = answer.pop("refused")
        assert answer == {"admitted": ["counts"], "removed": ["dear"], "unchanged": ["sums"]}
        assert refused["name"] == "huge"
        assert refused["reason"].startswith("even at the least costs, 1m 40s of its own, ")
        assert refused["period_least"] >= 100
        wait_until(lambda: shop.queries().get("huge", {}).get("state") == "REFUSED")
        answered = shop.answers("sums")
        wait_until(lambda: shop.answers("counts") >= 1)
        wait_until(lambda: "dear" not in shop.queries())
        wait_until(lambda: shop.answers("sums") > answered)
        again = shop.apply()
        assert json.loads(again.stdout)["unchanged"] == ["sums", "counts"]
        # Edited, it is another one: the old one goes, and its answers are counted anew.
        shop.define(COUNTS.replace("3s", "6s"))
        edited = json.loads(shop.apply().stdout)
        assert edited == {"admitted": ["counts"], "refused": [], "removed": ["counts"], "unchanged": ["sums"]}
        wait_until(lambda: shop.queries()["counts"]["stride"] == 6 and shop.answers("counts") >= 1)
        assert shop.queries()["counts"]["state"] == "RUNNING"
        shop.define()
        assert json.loads(shop.apply().stdout)["removed"] == ["counts"]
        wait_until(lambda: list(shop.queries()) == ["sums"])
        assert not runner.lost
    calls, difference = shop.replayed()
    assert difference is None
    assert calls > 0


def test_what_is_wrong_is_refused_with_a_sentence_and_the_others_are_answered(shop: Shop) -> None:
    shop.land(0)
    with shop.running():
        wait_until(lambda: shop.answers("sums") >= 1)
        for wrong in (
            'odd: {sql: "SELECT DISTINCT item FROM orders", window: 1h, stride: 2s, pool: shedding}',
            'odd: {sql: "SELECT item FROM nowhere", window: 1h, stride: 2s, pool: shedding}',
            'odd: {sql: "SELECT item FROM orders", window: 1h, stride: 2s, deadline: 3s, pool: shedding}',
            'odd: {sql: "SELECT item FROM orders", window: 1h, stride: 2s, weight: 0, pool: shedding}',
            'odd: {sql: "SELECT item FROM orders", window: 1h, stride: 2s, pool: updates}',
            'odd: {sql: "SELECT item + ts AS x FROM orders", window: 1h, stride: 2s, pool: shedding}',
        ):
            shop.define(wrong)
            refused = shop.apply()
            assert refused.returncode == 2, (wrong, refused)
            assert "odd" in refused.stderr
            assert "Traceback" not in refused.stderr
            body = (shop.folder / "freshline.yml").read_bytes()
            with pytest.raises(InputError):  # without a check before, the error is the same
                ask(shop.control.service, "POST", "/v1/apply", body)
        shop.define(
            text=PROJECT.replace("feed: orders, cost: {startup: 5s}", "feed: orders, cost: {startup: 6s}")
        )
        refused = shop.apply()
        assert refused.returncode == 2
        assert (
            "only `queries` can change while a warehouse runs, but `tables.orders.cost` differs"
            in refused.stderr
        )
        assert list(shop.queries()) == ["sums"]
        answered = shop.answers("sums")
        wait_until(lambda: shop.answers("sums") > answered)


def test_a_query_that_fails_says_why_and_goes_on(shop: Shop) -> None:
    shop.land(0)
    shop.define(
        'odd: {sql: "SELECT CAST(item AS int) AS n FROM orders", window: 1h, stride: 2s, pool: shedding}'
    )
    with shop.running():
        wait_until(lambda: (shop.queries()["odd"]["last_error"] or "").startswith("[CAST_INVALID_INPUT]"))
        failed = shop.queries()["odd"]
        assert failed["misses"] >= 1
        assert "failed" in failed["missed_because"]
        answered = shop.answers("sums")
        wait_until(lambda: shop.answers("odd") > failed["iterations"] and shop.answers("sums") > answered)


PRICES = """\
  prices: {path: prices, format: csv, schema: "ts timestamp, item string, paid long", timestamp: ts, period: 2h}
tables:
  prices: {feed: prices, pool: updates, cost: {startup: 5s}, slices: {by: item}}
"""  # noqa: E501
JOINED = 'joined: {sql: "SELECT count(*) AS n FROM orders o JOIN prices p ON o.item = p.item", window: 1h, stride: 2s, pool: exact, cost: {startup: 400ms}}'  # noqa: E501


def test_a_table_that_is_far_behind_holds_answers_back_and_is_named(shop: Shop, caplog) -> None:
    text = PROJECT.replace("tables:\n", PRICES)
    shop.define(JOINED, text=text)
    (shop.folder / "prices").mkdir()
    shop.land(0)
    with shop.running() as runner:
        wait_until(lambda: shop.queries()["joined"]["held_back_by"] == "prices")
        assert shop.queries()["joined"]["behind"] is None, "nothing was loaded into it yet"
        rows = "ts,item,paid\n2025-12-31T22:00:00Z,item1,5\n"
        (shop.folder / "prices" / "a.csv").write_text(rows, encoding="utf-8")
        wait_until(lambda: shop.result("joined").get("behind") is not None)
        found, told = shop.result("joined"), shop.queries()
        wait_until(lambda: "holds it back" in caplog.text)
    behind_s = 2 * 3600 + 10 * 499 / 500
    assert (found["held_back_by"], found["behind"]) == ("prices", behind_s)
    assert (found["state"], found["met"] == (found["finished"] <= found["deadline"])) == ("ANSWERED", True)
    assert found["window"][1] == START.timestamp() - 2 * 3600
    assert (told["joined"]["held_back_by"], told["joined"]["behind"]) == ("prices", behind_s)
    assert (told["sums"]["held_back_by"], shop.result("sums")["held_back_by"]) == (None, None)
    said, *_ = runner.said
    assert said.startswith("query joined answers about the time that prices has reached, up to ")
    assert "prices holds it back: it is 2h" in freshline("status", "-p", shop.folder).stdout
    assert "prices holds it back: it is 2h" in freshline("results", "joined", "-p", shop.folder).stdout


def test_nothing_is_released_before_queries_are_warm(shop: Shop, monkeypatch) -> None:
    """What was due while they were warmed up would be answered late, all of it."""
    warm_at = []
    monkeypatch.setattr(QueryWork, "warm_up", lambda side: warm_at.append(clock()))
    runner = Runner(
        load(shop.folder / "freshline.yml"),
        shop.folder,
        shop.folder / "warehouse",
        RunOptions(session=shop.spark),
    )
    runner._setup = replace(runner._setup, warm="first")
    with runner:
        assert warm_at[0] <= runner.kernel.now
        assert runner.kernel.wake_at >= warm_at[0]
