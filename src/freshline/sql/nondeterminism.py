"""Expressions of a query that change their value between runs, as far as the text shows them.

Spark finds all of them once it has resolved the types: see `spark.loading.nondeterminism`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from sqlglot import exp

from freshline.sql.time import Relation

# Functions whose value changes with every run, or with the distribution of rows over files.
_FUNCTIONS: Final = frozenset(
    {"AES_ENCRYPT", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "GETDATE",
     "INPUT_FILE_BLOCK_LENGTH", "INPUT_FILE_BLOCK_START", "INPUT_FILE_NAME", "JAVA_METHOD", "LOCALTIME",
     "LOCALTIMESTAMP", "MONOTONICALLY_INCREASING_ID", "NOW", "RAND", "RANDN", "RANDSTR", "REFLECT",
     "SESSION_USER", "SHUFFLE", "SPARK_PARTITION_ID", "TRY_REFLECT", "UNIFORM", "USER", "UUID", "VERSION"}
)  # fmt: skip
# Functions that give the time of the query; in a table that is computed whole they give its freshness.
CLOCK: Final = frozenset({"current_date", "current_timestamp", "now"})
# Functions that Spark also accepts without brackets; sqlglot then parses them as columns.
_BARE: Final = frozenset({"CURRENT_TIME", "LOCALTIME", "LOCALTIMESTAMP"})
# Spark's column with facts about a row's file.
_OF_FILES: Final = "_metadata"
# Texts that Spark reads as a moving time if nothing or a time zone follows; otherwise they are not times.
_MOVING: Final = ("now", "today", "tomorrow", "yesterday")
# Characters that Spark trims from a text before it reads a time.
_BLANK: Final = "".join(map(chr, (*range(0x21), *range(0x7F, 0xA0))))
# Expressions that bring both sides to one type: a text beside a time becomes a time.
_OF_ONE_TYPE: Final = (
    exp.Between, exp.Coalesce, exp.EQ, exp.GT, exp.GTE, exp.In, exp.LT, exp.LTE, exp.NEQ, exp.NullSafeEQ,
    exp.Nullif,
)  # fmt: skip
# Expressions that convert a text to a time.
_OF_TIMES: Final = (
    exp.AddMonths, exp.Date, exp.DateAdd, exp.DateSub, exp.DateTrunc, exp.Extract, exp.Hour, exp.LastDay,
    exp.Minute, exp.MonthsBetween, exp.NextDay, exp.Second, exp.StrToTime, exp.TimeStrToTime,
    exp.TimestampAdd, exp.TimestampTrunc, exp.TsOrDsAdd, exp.TsOrDsToDate,
)  # fmt: skip
_NAMED_OF_TIMES: Final = frozenset(
    {"DATE_PART", "TO_TIMESTAMP_LTZ", "TO_TIMESTAMP_NTZ", "TRY_TO_DATE", "TRY_TO_TIMESTAMP", "WINDOW"}
)


def unsteady(query: exp.Expr, sources: Collection[Relation]) -> Iterator[str]:
    """The names of expressions whose value changes."""
    timestamps = {name for relation in sources for name in relation.times}
    has_own = any(relation.names is None or _OF_FILES in relation.names for relation in sources)
    for node in query.walk():
        name = _moving(node, timestamps) if isinstance(node, exp.Literal) else _called(node)
        if name is not None and not (name == _OF_FILES and has_own):
            yield name


def moving_word(text: str) -> str | None:
    """The name for a text whose time changes each day, such as 'today' or 'yesterday UTC'."""
    word = text.strip(_BLANK).lower()
    return f"'{word}'" if word.startswith(_MOVING) else None


def _called(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Column):
        if node.parts[0].name.lower() == _OF_FILES and len(node.parts) > 1:
            return _OF_FILES
        is_bare = not node.table and not node.this.args.get("quoted") and node.name.upper() in _BARE
        return node.name.lower() if is_bare else None
    if isinstance(node, exp.Func):
        name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        return name.lower() if name.upper() in _FUNCTIONS else None
    return None


def _moving(text: exp.Literal, timestamps: Collection[str]) -> str | None:
    """A text such as 'today' where Spark certainly converts it to a time."""
    word = moving_word(text.name)
    if not text.is_string or word is None:
        return None
    node: exp.Expr = text
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    parent = node.parent
    if isinstance(parent, exp.Anonymous):
        is_time = parent.name.upper() in _NAMED_OF_TIMES
    elif isinstance(parent, _OF_ONE_TYPE):
        is_time = any(_is_time(each, timestamps) for each in parent.iter_expressions() if each is not node)
    else:
        is_time = isinstance(parent, _OF_TIMES) or _is_cast(parent)
    return word if is_time else None


def _is_time(node: exp.Expr, timestamps: Collection[str]) -> bool:
    node = node.unnest()
    if isinstance(node, exp.Column):
        return node.name.lower() in timestamps
    return _is_cast(node) or isinstance(node, exp.TimestampTrunc | exp.TsOrDsAdd | exp.TsOrDsToDate)


def _is_cast(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Cast) and node.is_type(*exp.DataType.TEMPORAL_TYPES)
