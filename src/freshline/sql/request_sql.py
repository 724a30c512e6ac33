"""What the SQL of a request may be: one SELECT over tables, made of plain expressions.

Where it groups rows, and every column of its answer is a key or an aggregate that parts of the rows give, it
is answered in parts. Anything else that is taken is answered whole, in one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from freshline.base.errors import InputError
from freshline.base.names import close_match
from freshline.sql.allowed import check_nodes, check_words
from freshline.sql.dialect import SPARK
from freshline.sql.formulas import without_filters
from freshline.sql.from_tables import ReadableTable, UnknownColumn
from freshline.sql.query import parse_tokens, query_tokens, tables_in
from freshline.sql.query_sql import QuerySql, understood
from freshline.sql.result_clauses import ResultClauses, output, split
from freshline.sql.row_expressions import counted_once

Code = Literal["bad_sql", "unknown_table", "not_supported"]
# Longer ones take a second and more to parse, and everybody else's while.
_LENGTH_MAX: Final = 1 << 16
_SAME: Final[dict[str, type[exp.AggFunc]]] = {"MEAN": exp.Avg, "STD": exp.Stddev}
# What stands for the instant of a request, in microseconds, which is one for all its parts.
NOW: Final = 4_611_686_018_427_387_904


class RequestRefused(InputError):  # noqa: N818  (it is what happened)
    """A request that is not taken; `code` says of which kind the trouble is."""

    def __init__(self, code: Code, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.code: Code = code


@dataclass(frozen=True, slots=True)
class SlicedRequest:
    """A request that is answered in parts: what is read of the rows, and what is done to the answer's."""

    sql: QuerySql  # columns of the answer first, then what `clauses` need beside them; called _o0, _o1, ...
    clauses: ResultClauses
    sides: frozenset[int]  # by their place in the FROM: tables that are read in slices


@dataclass(frozen=True, slots=True)
class RequestSql:
    """The SQL of a request, understood."""

    text: str  # without comments, and each space that matters once: the same for requests that are alike
    query: exp.Select
    tables: tuple[str, ...]  # of the warehouse, once each
    in_slices: SlicedRequest | None  # None: it is answered whole

    @property
    def is_whole(self) -> bool:
        return self.in_slices is None


def read_request(sql: str, tables: Mapping[str, ReadableTable]) -> RequestSql:
    """The SQL of a request over these tables, by name. Raises RequestRefused for all that is not one."""
    folded = {name.lower(): table for name, table in tables.items()}
    tokens, select = _parsed(sql)
    named = _tables(select, folded)
    columns = {column for table in named.values() for column in table.columns or ()}
    try:
        check_words(tokens, columns)
        check_nodes(select)
    except InputError as error:
        raise RequestRefused("not_supported", error.what, error.remedy) from None
    if any(token.token_type is TokenType.PIPE_GT for token in tokens):
        raise RequestRefused("not_supported", "the SQL has a `|>`", "Write it with SELECT instead")
    return RequestSql(
        _text(tokens, sql), select, tuple(each.name for each in named.values()), _in_slices(select, folded)
    )


def _parsed(sql: str) -> tuple[list[Token], exp.Select]:
    if len(sql) > _LENGTH_MAX:
        what = f"the SQL has {len(sql):,} characters, and may have {_LENGTH_MAX:,}"
        raise RequestRefused("bad_sql", what, "Ask something shorter")
    try:
        tokens = query_tokens(sql)
        query = parse_tokens([*tokens], sql)
    except InputError as error:
        raise RequestRefused("bad_sql", error.what, error.remedy) from None
    if not isinstance(query, exp.Select):
        what = "the SQL is not exactly one SELECT"
        raise RequestRefused("bad_sql", what, "Write one SELECT, without brackets around it")
    return tokens, query


def _tables(select: exp.Select, known: Mapping[str, ReadableTable]) -> dict[str, ReadableTable]:
    """The tables that it reads. Files, functions that make rows and other databases' tables are none."""
    for node in select.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier) or node.args.get("db"):
            what = "the SQL reads something that is not a table of the warehouse"
            raise RequestRefused("not_supported", what, f"Read tables by their names: {', '.join(known)}")
    try:
        named = tables_in(select)
    except InputError as error:
        raise RequestRefused("not_supported", error.what, error.remedy) from None
    if not named:
        what = "the SQL reads no table"
        raise RequestRefused("not_supported", what, "Name a table of the warehouse in its FROM")
    found = {}
    for name in named:
        if name.lower() not in known:
            meant = close_match(name, known)
            listed = ", ".join(table.name for table in known.values())
            remedy = f"Perhaps `{meant}` is meant" if meant else f"The tables are {listed}"
            raise RequestRefused("unknown_table", f"there is no table `{name}`", remedy)
        found[name.lower()] = known[name.lower()]
    return found


def _text(tokens: list[Token], sql: str) -> str:
    """The words as they were written, and nothing between them that might be taken for something else."""
    words, end = [], 0
    for token in tokens:
        if token.start >= end:  # `1L` is made into three that all stand in one place
            words.append(sql[token.start : token.end + 1])
            end = token.end + 1
    return " ".join(words)


def _in_slices(query: exp.Select, tables: Mapping[str, ReadableTable]) -> SlicedRequest | None:
    """How it is answered in parts; None where it is not."""
    select = query.copy()
    _rename(select)
    without_filters(select)
    aliases = {part.alias.lower() for part in select.expressions if isinstance(part, exp.Alias)}
    taken = {clause: select.args.pop(clause, None) for clause in ("having", "order", "limit", "offset")}
    try:
        sql = understood(select, _finder(tables), wider=True)
        if not sql.is_grouped:
            return None
        parts, clauses = split(sql, **taken)
        sql = _with_columns(sql, parts)
        sides = sql.in_slices()
        _check_counted_once(sql, sides)
    except UnknownColumn as error:
        if any(f"`{name}`" in error.what for name in aliases):
            return None  # Spark may take it for that column of the answer
        raise RequestRefused("bad_sql", error.what, error.remedy) from None
    except InputError:
        return None
    return SlicedRequest(sql, clauses, sides)


def _rename(select: exp.Select) -> None:
    """Calls aggregates by the names that are known here, and puts a number for the instant that it is."""
    for node in [*select.find_all(exp.Anonymous, exp.CurrentTimestamp, exp.CurrentDate)]:
        name = node.name.upper() if isinstance(node, exp.Anonymous) else ""
        if name in _SAME and len(node.expressions) == 1:
            node.replace(_SAME[name](this=node.expressions[0]))
        elif name in ("NOW", "CURDATE") or (not name and not node.this):
            instant: exp.Expr = exp.func("timestamp_micros", exp.Literal.number(NOW), dialect=SPARK)
            is_day = name == "CURDATE" or isinstance(node, exp.CurrentDate)
            node.replace(exp.cast(instant, "date", dialect=SPARK) if is_day else instant)


def _finder(tables: Mapping[str, ReadableTable]) -> Callable[[str], ReadableTable]:
    return lambda name: tables[name.lower()]


def _with_columns(sql: QuerySql, parts: list[exp.Expr]) -> QuerySql:
    """With these columns, by names of our own; so two may be called alike, or not at all."""
    select = sql.select.copy()
    select.set("expressions", [exp.alias_(part.copy(), output(at)) for at, part in enumerate(parts)])
    if sql.keys:
        select.set("group", exp.Group(expressions=[key.copy() for key in sql.keys]))
    return replace(sql, select=select)


def _check_counted_once(sql: QuerySql, sides: frozenset[int]) -> None:
    """Values that are counted once each: only of what rows are dealt by, each value is in one slice."""
    tables = sql.tables
    dealt_by = set()
    for place in sides:
        slices = tables.all[place].table.slices
        if slices is not None and slices.by is not None and slices.outliers is None:
            dealt_by.add(tables.root((place, slices.by.lower())))
    for part in sql.select.expressions:
        column = counted_once(part.unalias().unnest())
        if column is None:
            continue
        owner, names = tables.owner(column), [each.name.lower() for each in column.parts]
        is_plain = len(names) == 1 or (len(names) == 2 and names[0] == tables.all[owner or 0].alias)
        if owner is None or not is_plain or tables.root((owner, names[-1])) not in dealt_by:
            raise InputError("parts cannot tell how many values there are", "It is answered whole")
