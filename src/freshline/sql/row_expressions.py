"""The expressions that a continuous query may compute from a row and from groups of rows."""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from freshline.base.errors import InputError
from freshline.sql.block import is_aggregate
from freshline.sql.dialect import SPARK

AGGREGATES: Final = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
# The aggregates of a request: it also estimates the spread of values.
SCATTERS: Final = (exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop)
_THESE: Final = "count, sum, avg, min and max"
# Functions that make several rows of one, besides those that sqlglot knows.
_GENERATORS: Final = frozenset(
    {"EXPLODE_OUTER", "INLINE", "INLINE_OUTER", "JSON_TUPLE", "POSEXPLODE", "POSEXPLODE_OUTER", "STACK",
     "VARIANT_EXPLODE", "VARIANT_EXPLODE_OUTER", "COLLATIONS", "SQL_KEYWORDS"}
)  # fmt: skip


def check_row(node: exp.Expr, where: str) -> None:
    """Raises InputError for an expression that is not computed from a single row."""
    pending = [node]
    while pending:
        part = pending.pop()
        _check_part(part, where)
        pending += part.iter_expressions()


def _check_part(node: exp.Expr, where: str) -> None:
    if isinstance(node, exp.Query | exp.Exists) or (isinstance(node, exp.In) and node.args.get("query")):
        remedy = "Make it a table (`sql` under `tables`) and join that, or write it without"
        raise InputError("it has a query within the query", remedy)
    if isinstance(node, exp.Star):
        raise InputError("a `*` stands within an expression", "Name the columns that are meant")
    if isinstance(node, exp.Window):
        remedy = f"Group with {_THESE} instead, or make it a table (`sql` under `tables`)"
        raise InputError("it has a window function (OVER)", remedy)
    if is_aggregate(node):
        if isinstance(node, AGGREGATES):
            raise InputError(f"`{called(node)}` stands in {where}", "Use it as a column of the answer alone")
        raise _other_aggregate(node)
    if isinstance(node, exp.UDTF | exp.Explode) or called(node).upper() in _GENERATORS:
        remedy = "Make it a table (`sql` under `tables`), and read that"
        raise InputError(f"`{called(node)}` makes several rows of one", remedy)
    if called(node).upper() == "SESSION_WINDOW":
        remedy = "Group by windows of a fixed length, such as window(ts, '10 seconds')"
        raise InputError("a session depends on rows that may not have been read", remedy)
    if isinstance(node, exp.Placeholder | exp.Parameter | exp.SessionParameter):
        raise InputError("it has a parameter without a value", "Write the value itself")


def check_aggregate(node: exp.Expr, wider: bool = False) -> None:
    """Raises InputError for a column of the answer that is not one of the five aggregates.

    `wider` also allows the aggregates of a request: variances and counts of distinct values.
    """
    if isinstance(node, exp.Filter):
        remedy = "Put the condition into WHERE, or into a CASE within the aggregate"
        raise InputError("an aggregate has a FILTER of its own", remedy)
    if not is_known(node, wider):
        raise _other_aggregate(node)
    name = called(node)
    if wider and counted_once(node) is not None:
        return
    if node.find(exp.Distinct) is not None:
        what = f"`{name}` counts each value once, which parts of the rows cannot tell"
        raise InputError(what, "Leave DISTINCT out, or group by the value and count the groups")
    arguments = [*node.iter_expressions()]
    if len(arguments) != 1:
        raise InputError(f"`{name}` has {len(arguments)} arguments", "Give it one")
    if not isinstance(arguments[0], exp.Star):
        check_row(arguments[0], f"`{name}`")
    elif not isinstance(node, exp.Count) or arguments[0].args.get("except_"):
        raise InputError(f"`{name}` has a `*`", "Name a column; only count(*) counts rows")


def is_known(node: exp.Expr, wider: bool = False) -> bool:
    """Whether it is an aggregate that parts of the rows can give."""
    return isinstance(node, AGGREGATES) or (wider and isinstance(node, SCATTERS))


def counted_once(node: exp.Expr) -> exp.Column | None:
    """The column of `count(DISTINCT column)`; None for anything else."""
    distinct = node.this if isinstance(node, exp.Count) else None
    if not isinstance(distinct, exp.Distinct) or len(distinct.expressions) != 1 or distinct.args.get("on"):
        return None
    column = distinct.expressions[0].unnest()
    return column if isinstance(column, exp.Column) and not column.is_star else None


def called(node: exp.Expr) -> str:
    """The name of a function as users write it; empty for anything else."""
    if isinstance(node, exp.Anonymous):
        return node.name.lower()
    if isinstance(node, exp.AnonymousAggFunc | exp.CombinedAggFunc):
        return str(node.this).lower()
    return node.sql_name().lower() if isinstance(node, exp.Func) else ""


def _other_aggregate(node: exp.Expr) -> InputError:
    name = node.sql(SPARK).partition("(")[0].lower()
    what = f"`{name}` is not one of {_THESE}"
    return InputError(what, "Use these, or make it a table (`sql` under `tables`)")
