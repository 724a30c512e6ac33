"""The rows of an update that are in no slice: those with the largest values of a column, whatever their sign.

Of sums over such values a sample tells little: most of the sum may be in a few of them. There are at most 3 %
of them, so reading them besides costs next to nothing.
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

# How finely Spark tells values apart to find how large the largest are: a ten-thousandth of the rows.
_ACCURACY: Final = 10_000


def outliers_marked(rows: pa.Table, column: str | None) -> pa.Table:
    """The rows, outliers in no slice; exactly so many, of which ties are broken by their order."""
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
    """The same for more rows than the driver takes: those above the value that 3 % are above, about.

    Spark reads the rows once more for that.
    """
    if column is None:
        return frame
    size = f.abs(f.col(quoted(column)).cast("double"))
    (limit,) = frame.agg(f.percentile_approx(size, float(1 - OUTLIERS), _ACCURACY)).collect()[0]
    if limit is None:
        return frame
    none = f.lit(NO_SLICE).cast("smallint")
    return frame.withColumn(SLICE_COLUMN, f.when(size > f.lit(limit), none).otherwise(f.col(SLICE_COLUMN)))
