"""Which columns of a base table are unchanged columns of its feed, where each record becomes one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sqlglot import exp

from freshline.base.errors import InputError
from freshline.sql.columns import Column
from freshline.sql.query import parse_query
from freshline.sql.row_expressions import check_row

_CLAUSES: Final = {"expressions", "from_", "hint"}


def kept_columns(select: str | None, feed: Sequence[Column]) -> Mapping[str, Column] | None:
    """The feed's columns, by the lower-case names that the table gives them.

    None if a record may give no row or several rows: facts about files then do not hold for rows.

    >>> from freshline.sql.columns import parse_columns
    >>> columns = parse_columns("ts timestamp, src string, n long")
    >>> kept = kept_columns("SELECT ts, n AS m, n + 1 AS k FROM f", columns)
    >>> {name: column.name for name, column in kept.items()}
    {'ts': 'ts', 'm': 'n'}
    >>> kept_columns("SELECT ts FROM f WHERE n > 0", columns) is None
    True
    """
    known = {column.name.lower(): column for column in feed}
    if select is None:
        return known
    query = parse_query(select)
    if not isinstance(query, exp.Select) or {key for key, value in query.args.items() if value} - _CLAUSES:
        return None
    source = query.args["from_"].this if query.args.get("from_") else None
    if not isinstance(source, exp.Table) or {key for key, value in source.args.items() if value} - {
        "this",
        "alias",
    }:
        return None
    kept: dict[str, Column] = {}
    for part in query.expressions:
        inner = part.unalias()
        if inner.is_star:
            kept |= _starred(inner, known)
        elif isinstance(inner, exp.Column) and inner.table.lower() in ("", source.alias_or_name.lower()):
            column = known.get(inner.name.lower())
            if column is not None:
                kept[part.alias_or_name.lower()] = column
        elif not _is_of_one_row(inner):
            return None
    return kept


def _starred(node: exp.Expr, known: Mapping[str, Column]) -> dict[str, Column]:
    star = node.find(exp.Star)
    assert star is not None
    others = [*(star.args.get("except_") or ()), *(star.args.get("replace") or ())]
    hidden = {each.alias_or_name.lower() for each in others}
    return {name: column for name, column in known.items() if name not in hidden}


def _is_of_one_row(node: exp.Expr) -> bool:
    try:
        check_row(node, "a column")
    except InputError:
        return False
    return True
