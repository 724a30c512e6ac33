"""The SQL that Spark reads."""

import logging
from typing import Final

from sqlglot.dialects.dialect import Dialect

# What sqlglot warns of, it does not understand: that is an error here, and said as one.
logging.getLogger("sqlglot").setLevel(logging.ERROR)
SPARK: Final = Dialect.get_or_raise("spark")
