"""The SQL that Spark reads."""

from typing import Final

from sqlglot.dialects.dialect import Dialect

SPARK: Final = Dialect.get_or_raise("spark")
