"""Requests over tables that are computed whole, with and without a time, while they are replaced."""

import time
from collections import Counter

from asked_shop import OPEN, PROJECT, Shop
from live_project import LiveProject

FILE_ROWS = 4_000
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
    read: set[int] = set()
    with LiveProject.running(shop):
        # A table follows its source at its period, so the next files must come for it to have these.
        for number in range(2, 200):
            if len(read) > 1 and max(read) >= 2 * FILE_ROWS:
                break
            shop.land(number)
            read |= {rows for rows in (_read_whole(shop), _read_by_minute(shop)) if rows}
            time.sleep(1)
    assert len(read) > 1, read


def _read_whole(shop: Shop) -> int:
    """How many rows the totals have, which must be those of whole files; 0 if there is no answer yet."""
    sums = "SELECT item, sum(price) AS price, sum(n) AS n FROM totals GROUP BY item ORDER BY item"
    status, answer = shop.ask(sums)
    if status != 200:
        return 0
    total = sum(row[2] for row in answer["rows"])
    prices: Counter[str] = Counter()
    for item, price in shop.rows[:total]:
        prices[item] += price
    assert total % FILE_ROWS == 0
    assert [row[:2] for row in answer["rows"]] == [[item, prices[item]] for item in sorted(prices)]
    return total


def _read_by_minute(shop: Shop) -> int:
    status, answer = shop.ask("SELECT sum(n) AS n FROM minutes")
    rows = answer["rows"][0][0] if status == 200 and answer["rows"] else 0
    assert (rows or 0) % FILE_ROWS == 0
    return rows or 0
