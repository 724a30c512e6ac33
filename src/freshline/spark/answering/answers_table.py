"""The table of a query's answers (`into`): their rows, intervals and the data behind each answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from freshline.base.duration import DAY
from freshline.base.errors import InputError
from freshline.base.instants import utc
from freshline.definitions.sections.answer_columns import (
    OF_ANSWERS,
    WINDOW_TO,
    check_answer_columns,
    interval_names,
)
from freshline.spark.answering.window_reading import PreparedQuery, ReadingOutcome
from freshline.storage.delta.statistics import read_footer
from freshline.storage.delta.stored_table import StoredTable

_INSTANT: Final = pa.timestamp("us", "UTC")
_NUMBERS: Final = {"_keep": pa.float64(), "_rows_seen": pa.int64()}


class AnswersTable:
    """The answers of one query. Each answer is a commit, even if it has no rows."""

    def __init__(self, stored: StoredTable) -> None:
        self.stored = stored

    @classmethod
    def open_or_create(cls, path: Path, prepared: PreparedQuery, history_us: int = DAY) -> AnswersTable:
        estimated = [output.name for output in prepared.rewritten.partials.shown if output.kind != "key"]
        schema = answers_schema(prepared.query.name, prepared.schema, estimated)
        name = prepared.query.into or prepared.query.name
        return cls(StoredTable.open_or_create(path, name, schema, WINDOW_TO, history_us=history_us))

    def add(self, outcome: ReadingOutcome, released_us: int, deadline_us: int, finished_us: int) -> int:
        """Adds an answer; returns its version."""
        facts = {
            "_window_from": outcome.window[0],
            WINDOW_TO: outcome.window[1],
            "_released": released_us,
            "_deadline": deadline_us,
            "_finished": finished_us,
        }
        about: dict[str, Any] = {name: utc(at_us) for name, at_us in facts.items()}
        about |= {"_keep": float(outcome.keep), "_rows_seen": outcome.rows_seen}
        rows: list[dict[str, Any]] = [{**row, **about} for row in outcome.answer.rows]
        for estimate in outcome.answer.estimates:
            low, high = interval_names(estimate.column)
            rows[estimate.row] |= {low: estimate.low, high: estimate.high}
        # If two windows end at the same instant, the second answer does not move the table's freshness.
        freshness = max(outcome.window[1], self.stored.freshness or 0)
        return self.stored.commit(None, freshness, (), {"rows": len(rows)}, written=self._written(rows))

    def newest(self) -> int:
        """The version of the last answer."""
        return self.stored.version

    def _written(self, rows: list[dict[str, Any]]) -> list[Any]:
        if not rows:
            return []
        folder = f"data/{self.stored.sequence + 1:08d}"
        path = self.stored.path / folder / "part-0.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, self.stored.schema), path)
        return [(f"{folder}/part-0.parquet", read_footer(path, self.stored.schema, WINDOW_TO))]


def answers_schema(query: str, answer: StructType, estimated: list[str]) -> pa.Schema:
    """The columns of the answer, of the iteration and of the intervals' ends, if there are any."""
    try:
        check_answer_columns(answer.names, estimated)
    except InputError as error:
        raise InputError(f"query {query}: {error.what}", error.remedy) from None
    fields = [field.with_nullable(True) for field in to_arrow_schema(answer, timezone="UTC")]
    fields += [pa.field(name, _NUMBERS.get(name, _INSTANT)) for name in OF_ANSWERS]
    fields += [pa.field(name, pa.float64()) for column in estimated for name in interval_names(column)]
    return pa.schema(fields)
