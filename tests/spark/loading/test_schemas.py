"""The columns of tables: which ones a Delta table can hold is known before anything is made."""

import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from freshline.base.errors import DefinitionErrors, InputError
from freshline.definitions.load import loads
from freshline.spark.loading.schemas import schemas
from freshline.storage.delta.stored_table import StoredTable

PROJECT = """\
name: shop
pools: {{updates: {{tracks: 1}}}}
feeds:
  orders: {{path: orders, format: json, schema: "ts timestamp, item {kind}, n long", timestamp: ts, period: 10s}}
tables:
  orders: {{feed: orders}}
  more: {{sql: "SELECT {columns} FROM orders", period: 10s, timestamp: ts}}
  joined: {{sql: "SELECT {joined} FROM orders a JOIN more b ON a.ts = b.ts", period: 10s, timestamp: ts}}
"""  # noqa: E501


def shop(columns: str = "ts, item", joined: str = "a.ts, a.item", kind: str = "string"):  # type: ignore[no-untyped-def]
    return loads(PROJECT.format(columns=columns, joined=joined, kind=kind))


@pytest.mark.parametrize(
    ("expression", "kind", "unheld"),
    [
        ("ts - ts", "interval day to second", None),
        ("INTERVAL '1' YEAR", "interval year", None),
        ("make_interval(1)", "interval", None),
        ("NULL", "void", None),
        ("array()", "array<void>", "void"),
        ("map('a', NULL)", "map<string,void>", "void"),
        ("map(ts - ts, 1)", "map<interval day to second,int>", "interval day to second"),
        ("array(named_struct('a', 1, 'b', ts - ts))", None, "interval day to second"),
        ("named_struct('a', 1, 'A', 2)", "struct<a:int,A:int>", "two fields a"),
        ("struct()", "struct<>", None),
    ],
)
def test_a_column_that_delta_cannot_hold_is_refused_with_its_place_and_a_remedy(
    spark, expression, kind, unheld
):
    warehouse = shop(columns=f"ts, {expression} AS odd")
    with pytest.raises(InputError) as refused:
        schemas(spark, warehouse)
    assert refused.value.what.startswith(f"column odd of table more is {kind or ''}")
    assert refused.value.what.endswith(f", but Delta cannot hold {unheld or kind}")
    assert refused.value.remedy == "Give it another type, such as CAST(... AS string) AS `odd`"
    assert refused.value.place == warehouse.tables["more"].place


@pytest.mark.parametrize("joined", ["*", "a.ts, a.item AS x, b.item AS X"])
def test_two_columns_of_one_name_are_refused(spark, joined):
    warehouse = shop(joined=joined)
    with pytest.raises(InputError, match=r"table joined has two columns (ts|x) ") as refused:
        schemas(spark, warehouse)
    assert "with AS" in refused.value.remedy
    assert refused.value.place == warehouse.tables["joined"].place


@pytest.mark.parametrize("kind", ["char(3)", "array<varchar(3)>"])
def test_a_feed_with_texts_of_a_given_length_is_refused(spark, kind):
    warehouse = shop(kind=kind)
    with pytest.raises(InputError, match="Declare string instead") as refused:
        schemas(spark, warehouse)
    assert refused.value.place == warehouse.feeds["orders"].place


@pytest.mark.parametrize(
    "expression",
    [
        "CAST(n AS decimal(38, 10))",
        "TIMESTAMP_NTZ '2026-01-01 00:00:00'",
        "array(named_struct('a', map('k', DATE '2026-01-01'), 'b', X'00'))",
        "parse_json('[1]')",
        "CAST(item AS varchar(3))",
    ],
)
def test_what_is_not_refused_can_be_made_written_and_opened(spark, tmp_path, expression):
    columns = schemas(spark, shop(columns=f"ts, {expression} AS odd, 1 AS `a.b c`"))["more"]
    arrow = to_arrow_schema(columns, timezone="UTC")
    table = StoredTable.open_or_create(tmp_path / "t", "more", arrow, "ts")
    source = "(SELECT TIMESTAMP '2026-01-01 00:00:00' AS ts, 'tea' AS item, 1L AS n)"
    rows = spark.sql(f"SELECT ts, {expression} AS odd, 1 AS `a.b c` FROM {source}")
    rows.write.parquet(str(tmp_path / "t/data/1"))
    table.commit("data/1", 1, [], {})
    again = StoredTable.open_or_create(tmp_path / "t", "more", arrow, "ts")
    assert [file.rows for file in again.files] == [1]


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("CAST(ts AS date) < concat('to', 'day')", "'today'"),
        ("to_date(concat('now', ''))", "'now'"),
        ("ts < concat('yesterday', ' UTC')", "'yesterday utc'"),
        ("if(n > 1, ts, 'tomorrow')", "'tomorrow'"),
        (r"ts < concat('\x01', 'now')", "'now'"),
        ("ts - 'no' 'w'", "'now'"),
        ("`now`()", "now"),
        ("system.builtin.current_timestamp()", "current_timestamp"),
        ("user", "current_user"),
        ("system.builtin.uuid()", "uuid"),
        ("upper(`input_file_name`())", "input_file_name"),
    ],
)
def test_what_gives_something_else_each_time_is_known_to_spark(spark, expression, name):
    warehouse = shop(columns=f"ts, {expression} AS x")
    with pytest.raises(InputError) as refused:
        schemas(spark, warehouse)
    assert refused.value.what == f"table more: `{name}` gives something else each time it is asked"
    assert refused.value.place == warehouse.tables["more"].place


@pytest.mark.parametrize(
    "expression",
    [
        "item = 'now'",
        "item IN ('today', 'yesterday UTC')",
        "ts > 'epoch'",
        "ts > '2026-01-01'",
        "CAST(item AS timestamp)",
        "convert_timezone('UTC', TIMESTAMP_NTZ '2026-01-01 00:00:00')",
        "first(n) OVER (PARTITION BY ts)",
        "array_sort(collect_list(n) OVER (PARTITION BY ts))",
        "current_database()",
    ],
)
def test_what_spark_gives_the_same_each_time_is_fine(spark, expression):
    assert "odd" in schemas(spark, shop(columns=f"ts, item, {expression} AS odd"))["more"].names


def test_all_tables_that_spark_refuses_are_named_at_once_but_for_those_that_read_one(spark):
    text = PROJECT.format(columns="ts, nosuch", joined="a.ts", kind="string")
    text += """\
  other: {sql: "SELECT ts, round(item, item) AS x FROM orders", period: 10s, timestamp: ts}
  last: {sql: "SELECT ts, NULL AS x FROM orders", period: 10s, timestamp: ts}
  fine: {sql: "SELECT ts FROM orders", period: 10s, timestamp: ts}
"""
    with pytest.raises(DefinitionErrors) as refused:
        schemas(spark, loads(text))
    said = {error.place.line: error.what for error in refused.value.errors if error.place is not None}
    assert sorted(said) == [7, 9, 10]
    assert said[7].startswith("Spark refuses table more: ")
    assert said[9].startswith("Spark refuses table other: ")
    assert said[10].startswith("column x of table last is void")


def test_a_feed_that_two_tables_load_is_refused_once(spark):
    text = PROJECT.format(columns="ts", joined="a.ts", kind="char(3)") + "  again: {feed: orders}\n"
    with pytest.raises(DefinitionErrors) as refused:
        schemas(spark, loads(text))
    assert len(refused.value.errors) == 1
