"""What `freshline sql` refuses before Spark starts."""

import pytest
from typer.testing import CliRunner

from freshline.base.errors import InputError
from freshline.cli.main import app

PROJECT = """\
name: small
pools: {updates: {tracks: 2}}
feeds:
  packets: {path: in, format: csv, schema: "ts timestamp, bytes long", timestamp: ts, period: 300ms}
tables:
  packets: {feed: packets}
  traffic: {sql: "SELECT ts, sum(bytes) AS bytes FROM packets GROUP BY ts", period: 300ms}
"""


def refused(folder, monkeypatch, query) -> str:
    (folder / "freshline.yml").write_text(PROJECT, encoding="utf-8")
    monkeypatch.setenv("JAVA_HOME", str(folder / "nowhere"))  # to start Spark would be another error
    result = CliRunner().invoke(app, ["sql", query, "-p", str(folder)])
    assert isinstance(result.exception, InputError)
    return str(result.exception)


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT * FROM nobody", "there is no table `nobody`. The tables are packets, traffic."),
        ("SELECT * FROM packets JOIN secret.plans", "the SQL reads `secret.plans`, which names a database."),
        ("DROP TABLE packets", "the SQL is not a query: it begins with 'DROP'."),
        ("SELECT 1; DROP TABLE packets", "the SQL holds several statements."),
        ("INSERT INTO packets SELECT * FROM packets", "the SQL is not a query: it begins with 'INSERT'."),
        ("WITH p AS (SELECT * FROM packets) INSERT INTO packets SELECT * FROM p", "the SQL "),
        ("FROM packets INSERT INTO traffic SELECT *", "the SQL "),
        ("SET spark.sql.session.timeZone = CET", "the SQL is not a query: it begins with 'SET'."),
        (f"SELECT {'(' * 5_000}1{')' * 5_000}", "the SQL is nested too deeply."),
        (f"SELECT {' + '.join(['bytes'] * 5_000)} FROM packets", "the SQL is nested too deeply."),
    ],
)
def test_sql_is_a_query_over_the_tables_or_refused_before_spark_starts(tmp_path, monkeypatch, query, what):
    assert refused(tmp_path, monkeypatch, query).startswith(what)


def test_sql_says_before_spark_starts_that_a_table_is_not_there_yet(tmp_path, monkeypatch):
    assert refused(tmp_path, monkeypatch, "SELECT * FROM Traffic") == (
        "nothing has been loaded into table traffic yet. `freshline run` loads it."
    )
