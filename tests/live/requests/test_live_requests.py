"""Requests of service classes to a warehouse that runs on Spark, over HTTP."""

import io
import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import freshline
from asked_shop import APART, OPEN, TOGETHER, Shop
from cases import rest_in_soak
from freshline.service.client import NoAnswer
from freshline.service.failures import STATUSES
from freshline.service.question_intake import ARROW
from freshline.storage.control.history import History
from live_project import START
from patience import PATIENCE_S, wait_until

SUMS = "SELECT item, sum(price) AS price, count(*) AS n FROM orders GROUP BY item ORDER BY item"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, spark) -> Iterator[Shop]:
    """One that runs for all tests that do not end it."""
    shop = Shop(tmp_path_factory.mktemp("shop"), spark, OPEN)
    for number in range(3):
        shop.land(number)
    with shop.running():
        yield shop


def test_an_answer_that_has_read_everything_is_exact(shop: Shop) -> None:
    status, answer = shop.ask(SUMS)
    assert status == 200, answer
    prices: Counter[str] = Counter()
    for item, price in shop.rows:
        prices[item] += price
    counts = Counter(item for item, _ in shop.rows)
    assert answer["rows"] == [[item, prices[item], counts[item]] for item in sorted(counts)]
    assert answer["columns"] == ["item", "price", "n"]
    assert (answer["class"], answer["share"], answer["complete"], answer["error"]) == (
        "operators",
        1.0,
        True,
        0.0,
    )
    assert answer["parts"]["done"] == answer["parts"]["of"]
    assert answer["intervals"] == [
        [None, [prices[i], prices[i]], [counts[i], counts[i]]] for i in sorted(counts)
    ]
    assert answer["few"] == [[False] * 3] * len(counts)
    assert set(answer["freshness"]) == {"orders"}
    assert answer["freshness"]["orders"].startswith(f"{START:%Y-%m-%dT%H:%M:2}")
    assert answer["freshness"]["orders"].endswith("Z")
    assert 0 < answer["seconds"] < 60


def test_a_share_is_an_estimate_with_intervals(shop: Shop) -> None:
    status, answer = shop.ask("SELECT sum(price) AS p, count(*) AS n FROM orders", share=0.125)
    assert (status, answer["share"], answer["complete"]) == (200, 0.125, False)
    (interval_p, interval_n), n = answer["intervals"][0], len(shop.rows)
    assert interval_p[0] < answer["rows"][0][0] < interval_p[1]
    assert interval_n[0] < interval_n[1]
    assert abs(answer["rows"][0][1] / n - 1) < 0.5
    assert answer["error"] == 0.0  # it read all that it was to read


def test_arrow_has_the_same_rows(shop: Shop) -> None:
    body = json.dumps({"sql": SUMS, "class": "guests", "deadline": "60s"}).encode()
    status, text = shop.post(body, Accept=ARROW)
    assert status == 200
    table = pa.ipc.open_stream(io.BytesIO(text)).read_all()
    assert [list(row.values()) for row in table.to_pylist()] == shop.ask(SUMS)[1]["rows"]
    assert json.loads(table.schema.metadata[b"freshline"])["complete"] is True


def test_what_has_no_parts_is_answered_whole_or_refused(shop: Shop) -> None:
    status, answer = shop.ask("SELECT count(DISTINCT price) AS n FROM orders")
    assert status in (200, 422), answer  # by what its tables' bytes suggest, on however slow a machine
    if status == 200:
        assert answer["rows"] == [[101]]
        assert (answer["parts"], answer["error"], answer["complete"]) == ({"done": 1, "of": 1}, 0.0, True)


def test_what_needs_all_rows_at_once_is_refused_if_reading_them_takes_too_long(shop: Shop) -> None:
    def is_refused() -> bool:
        status, answer = shop.ask("SELECT count(DISTINCT price) AS n FROM orders", deadline="40ms")
        if status == 504:  # a busy machine had not even read the SQL by then
            assert answer["error"]["code"] == "no_answer"
            return False
        assert (status, answer["error"]["code"]) == (422, "not_supported")
        return True

    wait_until(is_refused)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("", "bad_sql"),
        ("nonsense", "bad_sql"),
        ("SELECT 1; SELECT 2", "bad_sql"),
        ("SELECT count(*) FROM orders; DROP TABLE orders", "bad_sql"),
        ("DROP TABLE orders", "bad_sql"),
        ("INSERT INTO orders VALUES (1)", "bad_sql"),
        ("SELECT no_such_column FROM orders", "bad_sql"),
        ("SELECT count(*) FROM nowhere", "unknown_table"),
        ("SELECT count(*) FROM `orders; DROP TABLE orders`", "unknown_table"),
        ("SELECT count(*) FROM csv.`/etc/passwd`", "not_supported"),
        ("SELECT count(*) FROM `csv`.`/etc/passwd`", "not_supported"),
        ("SELECT count(*) FROM text.`/proc/self/environ`", "not_supported"),
        ("SELECT reflect('java.lang.System', 'getenv', 'HOME') FROM orders", "not_supported"),
        ("SELECT java_method('java.lang.System', 'exit', 1) FROM orders", "not_supported"),
        ("SELECT input_file_name() FROM orders", "not_supported"),
        ("SELECT count(*) FROM range(1000000000000)", "not_supported"),
        ("SELECT explode(sequence(1, 1000000000)) FROM orders", "not_supported"),
        ("SELECT _metadata.file_path FROM orders", "not_supported"),
    ],
)
def test_what_may_not_be_asked_is_refused_and_nothing_leaks(shop: Shop, sql: str, code: str) -> None:
    status, answer = shop.ask(sql)
    assert (status, answer["error"]["code"]) == (STATUSES[code], code), answer
    said = json.dumps(answer)
    assert str(shop.folder) not in said
    assert shop.address.token not in said
    assert answer["error"]["remedy"]


def test_who_has_a_wrong_token_or_sends_too_much_gets_nothing(shop: Shop) -> None:
    assert shop.send(b"{}", Authorization="Bearer x")[0] == 401
    assert shop.send(b"x" * (2 << 20))[0] == 413


def test_python_asks_too(shop: Shop) -> None:
    answer = freshline.query(
        "SELECT count(*) AS n FROM orders", class_name="operators", deadline="60s", project=shop.folder
    )
    assert answer["rows"] == [[len(shop.rows)]]
    with pytest.raises(NoAnswer, match="deadline passed"):
        freshline.query(
            "SELECT count(*) AS n FROM orders", class_name="operators", deadline="1us", project=shop.folder
        )


def test_clients_that_hang_up_free_their_requests(shop: Shop) -> None:
    address = shop.address
    body = json.dumps({"sql": SUMS, "class": "guests", "deadline": "90s"}).encode()
    head = f"POST /v1/query HTTP/1.1\r\nHost: 127.0.0.1:{address.port}\r\n"
    head += f"Authorization: Bearer {address.token}\r\nContent-Length: {len(body)}\r\n\r\n"
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", address.port), timeout=PATIENCE_S) as gone:
            gone.sendall(head.encode() + body)
    wait_until(lambda: not any(each["waiting"] for each in shop.classes().values()))
    assert shop.ask(SUMS, "guests")[0] == 200


@pytest.mark.soak
def test_a_flood_of_the_lowest_class_leaves_the_others_alone(tmp_path: Path, spark) -> None:
    shop = Shop(tmp_path, spark, APART)
    shop.land(0)
    with shop.running():
        _flood(shop)


def _flood(shop: Shop) -> None:
    count = "SELECT count(*) AS n FROM orders"
    for _ in range(4):  # by then it is known what it costs
        wait_until(lambda: shop.ask(count)[0] == 200)
    flood = json.dumps({"sql": SUMS, "class": "guests", "deadline": "10s"}).encode()
    said: Counter[int] = Counter()
    threads = [threading.Thread(target=lambda: said.update([shop.post(flood)[0]])) for _ in range(20)]
    for thread in threads:
        thread.start()
    for _ in range(2):
        status, answer = shop.ask(count)
        assert (status, answer.get("rows")) == (200, [[len(shop.rows)]]), answer
    for thread in threads:
        thread.join(PATIENCE_S)
    assert said.total() == 20
    assert set(said) <= {200, 429, 504}
    wait_until(lambda: not any(each["waiting"] for each in shop.classes().values()))


@pytest.mark.parametrize("pools", rest_in_soak([APART, TOGETHER]), ids=["apart", "together"])
def test_who_waits_when_the_run_stops_is_told_and_the_journal_replays(
    tmp_path: Path, spark, pools: str
) -> None:
    shop = Shop(tmp_path, spark, pools)
    shop.land(0)
    with shop.running() as runner:
        for _ in range(2):  # the first time Spark compiles, which is nothing to learn from
            wait_until(lambda: shop.ask(SUMS)[0] == 200)
        shop.land(1)
        wait_until(lambda: shop.loaded() == len(shop.rows))  # tables load beside requests
        body = json.dumps({"sql": SUMS, "class": "guests", "deadline": "90s"}).encode()
        with socket.create_connection(("127.0.0.1", shop.address.port), timeout=PATIENCE_S) as gone:
            gone.sendall(body[:20])
        answers: list[int] = []
        waiting = [threading.Thread(target=lambda: answers.append(shop.ask(SUMS)[0])) for _ in range(6)]
        for thread in waiting:
            thread.start()
        wait_until(lambda: any(each["waiting"] for each in shop.classes().values()) or len(answers) == 6)
        runner.stop("seen")
        for thread in waiting:
            thread.join(PATIENCE_S)
        assert len(answers) == 6
        assert set(answers) <= {200, 429, 503}
    calls, difference = shop.replayed()
    assert difference is None
    assert calls > 0
    (status,) = [each for each in runner.status().classes if each.name == "operators"]
    assert status.answered >= 1
    with History(shop.control.history, read_only=True) as history:
        assert history._rows("SELECT count(*) FROM parts WHERE query LIKE 'request %'", ())[0][0] > 0
