"""The rows of an update that are in no slice: those with the largest absolute values of a column.

A sample estimates sums over such values badly: a few of them may make up most of the sum. They are at most
3 % of the rows, so reading all of them costs little.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from freshline.spark.session.quoting import quoted
from freshline.sql.columns import SLICE_COLUMN
from freshline.sql.slices import NO_SLICE, OUTLIERS

# The accuracy of Spark's percentile: a ten-thousandth of the rows.
_ACCURACY: Final = 10_000


def outliers_marked(rows: pa.Table, column: str | None) -> pa.Table:
    """The rows, of which the 3 % with the largest absolute values are in no slice."""
    count = rows.num_rows * OUTLIERS.numerator // OUTLIERS.denominator
    if column is None or not count:
        return rows
    name = next(each for each in rows.column_names if each.lower() == column.lower())
    values = pc.fill_null(pc.abs(rows[name].cast(pa.float64(), safe=False)), -1.0).to_numpy()
    values = np.where(np.isnan(values), np.inf, values)
    largest = np.argpartition(-values, count - 1)[:count]
    slices = np.array(rows[SLICE_COLUMN].to_numpy(), np.int16)
    slices[largest[values[largest] > 0]] = NO_SLICE
    place = rows.schema.get_field_index(SLICE_COLUMN)
    return rows.set_column(place, rows.schema.field(place), pa.array(slices, pa.int16()))


def outliers_marked_by_spark(frame: DataFrame, column: str | None) -> DataFrame:
    """The same for more rows than the driver takes: about 3 %, those above a percentile.

    Spark reads the rows once more for the percentile.
    """
    if column is None:
        return frame
    size = f.abs(f.col(quoted(column)).cast("double"))
    (limit,) = frame.agg(f.percentile_approx(size, float(1 - OUTLIERS), _ACCURACY)).collect()[0]
    if limit is None:
        return frame
    none = f.lit(NO_SLICE).cast("smallint")
    return frame.withColumn(SLICE_COLUMN, f.when(size > f.lit(limit), none).otherwise(f.col(SLICE_COLUMN)))
