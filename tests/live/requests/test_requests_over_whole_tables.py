"""Requests over tables that are computed whole, with and without a time, while they are replaced."""

from collections import Counter

from asked_shop import OPEN, PROJECT, Shop
from live_project import LiveProject
from patience import wait_until

TABLES = """\
  totals:
    pool: updates
    period: 10s
    cost: {startup: 2s, per_row: 1us}
    slices: {by: item}
    sql: SELECT item, sum(price) AS price, count(*) AS n FROM orders GROUP BY item
  minutes:
    pool: updates
    period: 10s
    cost: {startup: 2s}
    sql: SELECT date_trunc('minute', ts) AS ts, count(*) AS n FROM orders GROUP BY 1
classes:
"""


def test_a_request_reads_one_version_of_a_table_that_is_replaced(tmp_path, spark) -> None:
    shop = Shop(tmp_path, spark)
    text = PROJECT.replace("POOLS", OPEN).replace("classes:\n", TABLES)
    (tmp_path / "freshline.yml").write_text(text, encoding="utf-8")
    for number in range(2):
        shop.land(number)
    with LiveProject.running(shop):
        for number in (2, 3):
            whole = len(shop.rows)
            for table in ("totals", "minutes"):
                sql = f"SELECT sum(n) AS n FROM {table}"
                wait_until(lambda whole=whole, sql=sql: _asked(shop, sql) == [[whole]])
            prices: Counter[str] = Counter()
            for item, price in shop.rows:
                prices[item] += price
            sums = "SELECT item, sum(price) AS price FROM totals GROUP BY item ORDER BY item"
            assert shop.ask(sums)[1]["rows"] == [[item, prices[item]] for item in sorted(prices)]
            shop.land(number)


def _asked(shop: Shop, sql: str) -> list[list[object]] | None:
    status, answer = shop.ask(sql)
    return answer["rows"] if status == 200 else None
