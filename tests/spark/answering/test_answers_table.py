"""What a query answers is kept in a Delta table, with intervals and what it was made of. Without Spark."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql.types import DecimalType, LongType, StringType, StructField, StructType

from freshline.base.errors import InputError
from freshline.spark.answering.answers_table import AnswersTable, answers_schema
from freshline.spark.answering.merging import Estimate, MergedAnswer
from freshline.spark.answering.window_reading import ReadingOutcome
from freshline.storage.delta.stored_table import StoredTable

ANSWER = StructType(
    [StructField("src", StringType()), StructField("n", LongType()), StructField("s", DecimalType(12, 2))]
)


def test_an_answer_is_a_commit_of_its_rows_with_their_intervals(tmp_path: Path) -> None:
    schema = answers_schema("q", ANSWER, ["n", "s"])
    table = AnswersTable(StoredTable.open_or_create(tmp_path / "t", "t", schema, "_window_to"))
    rows = ({"src": "a", "n": 4, "s": Decimal("1.50")}, {"src": None, "n": 2, "s": None})
    answer = MergedAnswer(
        rows, (Estimate(0, "n", 4, 2.0, 6.0), Estimate(0, "s", Decimal("1.50"), None, None))
    )
    first = table.add(ReadingOutcome(answer, (1_000_000, 3_000_000), Fraction(1, 2), 77), 3, 5, 4)
    nothing = table.add(ReadingOutcome(MergedAnswer((), ()), (2_000_000, 4_000_000), Fraction(1), 0), 4, 6, 5)
    assert nothing == first + 1
    assert table.stored.freshness == 4_000_000
    found = DeltaTable(tmp_path / "t").to_pyarrow_table().to_pylist()
    assert [(row["src"], row["n"], row["s"]) for row in found] == [("a", 4, Decimal("1.50")), (None, 2, None)]
    assert [(row["_n_low"], row["_n_high"], row["_s_low"]) for row in found] == [(2, 6, None), (None,) * 3]
    assert found[0]["_window_to"] == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=3)
    assert (found[0]["_keep"], found[0]["_rows_seen"]) == (0.5, 77)
    again = AnswersTable(StoredTable.open_or_create(tmp_path / "t", "t", schema, "_window_to"))
    again.add(ReadingOutcome(answer, (2_000_000, 4_000_000), Fraction(1, 2), 77), 3, 5, 4)
    assert DeltaTable(tmp_path / "t").to_pyarrow_table().num_rows == 4


@pytest.mark.parametrize("name", ["_keep", "_N_low", "_Window_To"])
def test_a_column_that_such_a_table_has_itself_is_refused(name: str) -> None:
    answer = StructType([StructField(name, LongType()), StructField("n", LongType())])
    with pytest.raises(InputError, match=f"query q: its column `{name}` is one that a table of answers"):
        answers_schema("q", answer, ["n"])
