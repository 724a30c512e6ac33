"""The newest answers of queries: files that are replaced at once, and a command that shows them."""

import json
import threading
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from freshline.base.json_values import plain
from freshline.cli.main import app
from freshline.live.queries.result_files import ResultFiles
from freshline.storage.control.layout import StorageLayout

PROJECT = """\
name: shop
pools: {updates: {tracks: 1}}
feeds:
  orders: {path: orders, format: csv, schema: "ts timestamp, n long", timestamp: ts, period: 1s}
tables:
  orders: {feed: orders, cost: {startup: 1ms}}
"""


ANSWER = {
    "query": "sums",
    "window": [40.0, 100.0],
    "released": 101.0,
    "deadline": 103.0,
    "finished": 102.5,
    "met": True,
    "keep": 0.5,
    "rows_seen": 10,
    "rows": [{"item": "tea", "n": 20}, {"item": None, "n": 4}],
    "estimates": [{"row": 0, "column": "n", "value": 20.0, "low": 15.5, "high": 24.5}],
}


def test_an_answer_is_kept_as_it_is_and_nothing_else_is_left(tmp_path: Path) -> None:
    results = ResultFiles(tmp_path / "results")
    assert results.read("sums") is None
    results.write("sums", ANSWER)
    assert results.read("sums") == ANSWER
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["sums.json"]


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.decimals()
        | st.text()
        | st.binary()
        | st.datetimes()
        | st.dates(),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
        ),
    )
)
def test_whatever_a_row_holds_becomes_json_that_every_reader_takes(value: object) -> None:
    json.loads(json.dumps(plain(value), allow_nan=False))


def test_values_are_exact_where_they_can_be() -> None:
    assert plain(Decimal("100000000000000000001")) == 100000000000000000001
    assert plain(Decimal("NaN")) is None
    assert plain(datetime(2026, 1, 1, 12, tzinfo=UTC)) == "2026-01-01T12:00:00+00:00"
    assert plain(date(2026, 1, 1)) == "2026-01-01"


@pytest.mark.parametrize("name", ["", "../status", "a/b", "..", ".", "a.json", "x\0", "é"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "status.json").write_text("{}", encoding="utf-8")
    assert ResultFiles(tmp_path / "results").read(name) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "5", "\xff", "[" * 100_000])
def test_a_damaged_file_is_no_answer(tmp_path: Path, text: str) -> None:
    (tmp_path / "sums.json").write_text(text, encoding="latin-1")
    assert ResultFiles(tmp_path).read("sums") is None


def test_a_reader_never_sees_a_part(tmp_path: Path) -> None:
    results = ResultFiles(tmp_path)
    results.write("sums", ANSWER)
    seen: list[object] = []

    def read() -> None:
        seen.extend(results.read("sums") for _ in range(300))

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(300):
        results.write("sums", ANSWER | {"rows": [{"n": number}] * 100})
    thread.join()
    assert None not in seen


def test_the_command_shows_the_newest_answer_and_says_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "freshline.yml").write_text(PROJECT, encoding="utf-8")
    results = ResultFiles(StorageLayout(tmp_path / "warehouse").control().results)
    (tmp_path / "warehouse" / "_freshline").mkdir(parents=True)
    runner = CliRunner()
    missing = runner.invoke(app, ["results", "sums", "-p", str(tmp_path)])
    assert "there is no query 'sums'" in str(missing.exception)
    results.write("sums", ANSWER)
    printed = runner.invoke(app, ["results", "sums", "-p", str(tmp_path), "--json"])
    assert json.loads(printed.stdout) == results.read("sums")
    shown = runner.invoke(app, ["results", "sums", "-p", str(tmp_path)]).stdout
    assert (
        "from 1970-01-01 00:00:40 to 00:01:40 UTC, answered at 00:01:42, from 50% of its window (10" in shown
    )
    assert "20 (15.5 to 24.5)" in shown
    results.write("sums", ANSWER | {"rows": [], "estimates": [], "met": False})
    shown = runner.invoke(app, ["results", "sums", "-p", str(tmp_path)]).stdout
    assert "after its deadline" in shown
    assert "There are no rows." in shown
    results.write("sums", ANSWER | {"rows": [], "estimates": [], "keep": 0.0, "rows_seen": 0})
    shown = runner.invoke(app, ["results", "sums", "-p", str(tmp_path)]).stdout
    assert "Nothing was read: its budget was too small for that." in shown
    results.write("sums", ANSWER | {"rows": [], "estimates": [], "window": [-60.0, 0.0]})
    shown = runner.invoke(app, ["results", "sums", "-p", str(tmp_path)]).stdout
    assert shown == "sums: nothing has been loaded into its tables yet.\n"
