"""Spark's SQL dialect in sqlglot."""

import logging
from typing import Final

from sqlglot.dialects.dialect import Dialect

# sqlglot warns about what it does not understand; here that is an error, so the warnings are off.
logging.getLogger("sqlglot").setLevel(logging.ERROR)
SPARK: Final = Dialect.get_or_raise("spark")
