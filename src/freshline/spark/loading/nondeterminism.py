"""Expressions of a query that have another value each time, according to Spark's analysis.

The text alone does not tell: `day < concat('to', 'day')` compares with today if `day` is a date, and with a
word if it is a text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from pyspark.sql import DataFrame

from freshline.sql.nondeterminism import moving_word

# Expressions that Spark replaces by a value when a query starts: the value differs the next time.
_CURRENT: Final = frozenset(
    {"current_date", "current_time", "current_timestamp", "current_user", "localtime", "localtimestamp",
     "now", "session_user", "user"}
)  # fmt: skip
_CASTS: Final = ("Cast", "TryCast")
_TIMES: Final = ("date", "timestamp", "timestamp_ntz")


def unsteady(rows: DataFrame) -> list[str]:
    """The names of such expressions, in the order of Spark's plan.

    Aggregates that depend on the order of rows, such as `first`, are not among them: any of their values is
    a correct answer.
    """
    analyzed = rows._jdf.queryExecution().analyzed()
    plan = _rules(rows).ReplaceExpressions.apply(analyzed)
    # Spark tells at once whether there are any; the search needs a call for every expression.
    if analyzed.deterministic() and not _is_replaced(rows, plan):
        return []
    names = (_name(expression) for expression in _expressions(plan))
    return [name for name in names if name is not None]


def _rules(rows: DataFrame) -> Any:
    jvm = rows.sparkSession._jvm
    assert jvm is not None
    return jvm.org.apache.spark.sql.catalyst.optimizer


def _is_replaced(rows: DataFrame, plan: Any) -> bool:
    """Whether the rules for the clock and the current user find something to replace."""
    rules = _rules(rows)
    catalogs = rows.sparkSession._jsparkSession.sessionState().catalogManager()
    replaced = rules.SpecialDatetimeValues.apply(rules.ComputeCurrentTime.apply(plan))
    return not rules.ReplaceCurrentLike(catalogs).apply(replaced).fastEquals(plan)


def _name(expression: Any) -> str | None:
    name = str(expression.prettyName()).lower()
    children = _listed(expression.children())
    if name in _CURRENT:
        return name
    if not expression.deterministic() and all(child.deterministic() for child in children):
        return name
    is_cast = expression.getClass().getSimpleName() in _CASTS
    if is_cast and expression.dataType().simpleString() in _TIMES and children[0].foldable():
        return _word(children[0])
    return None


def _word(text: Any) -> str | None:
    value = text.eval(None) if text.dataType().simpleString() == "string" else None
    return None if value is None else moving_word(str(value))


def _expressions(plan: Any) -> Iterator[Any]:
    pending = [plan]
    while pending:
        node = pending.pop()
        inner = _listed(node.expressions())
        while inner:
            expression = inner.pop()
            yield expression
            inner += reversed(_listed(expression.children()))
        pending += reversed(_listed(node.children()))


def _listed(sequence: Any) -> list[Any]:
    return [sequence.apply(position) for position in range(sequence.size())]
