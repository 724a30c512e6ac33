"""Which SQL a request may have: one SELECT over tables, made of plain expressions.

A request is answered in parts if it groups rows and every column of its answer is a key or an aggregate that
parts of the rows can give. Every other accepted request is answered whole.
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
from freshline.sql.expansion.relations import StatementTooLarge
from freshline.sql.expansion.statement import check_expansion
from freshline.sql.formulas import without_filters
from freshline.sql.from_tables import ReadableTable, UnknownColumn
from freshline.sql.query import parse_tokens, query_tokens, tables_in
from freshline.sql.query_sql import QuerySql, understood
from freshline.sql.result_clauses import ResultClauses, output, split
from freshline.sql.row_expressions import counted_once

Code = Literal["bad_sql", "unknown_table", "not_supported"]
_SAME: Final[dict[str, type[exp.AggFunc]]] = {"MEAN": exp.Avg, "STD": exp.Stddev}
# A placeholder for the instant of a request in microseconds, which is the same for all its parts.
NOW: Final = 4_611_686_018_427_387_904


class RequestRefused(InputError):  # noqa: N818  (an event, not a fault)
    """A refused request; `code` is the kind of error."""

    def __init__(self, code: Code, what: str, remedy: str) -> None:
        super().__init__(what, remedy)
        self.code: Code = code


@dataclass(frozen=True, slots=True)
class SlicedRequest:
    """A request that is answered in parts: the query over the rows, and the clauses applied to the answer."""

    sql: QuerySql  # the columns of the answer, then those that only `clauses` need; named _o0, _o1, ...
    clauses: ResultClauses
    sides: frozenset[int]  # positions in the FROM of the tables that are read in slices


@dataclass(frozen=True, slots=True)
class RequestSql:
    """The SQL of a request, analysed."""

    text: str  # without comments and extra spaces, so equal requests have equal texts
    query: exp.Select
    tables: tuple[str, ...]  # names of the warehouse's tables, each once
    in_slices: SlicedRequest | None  # None: answered whole

    @property
    def is_whole(self) -> bool:
        return self.in_slices is None


def read_request(sql: str, tables: Mapping[str, ReadableTable]) -> RequestSql:
    """Analyses the SQL of a request over these tables. Raises RequestRefused if it is not allowed."""
    folded = {name.lower(): table for name, table in tables.items()}
    tokens, select = _parsed(sql)
    named = _tables(select, folded)
    columns = {column for table in named.values() for column in table.columns or ()}
    try:
        check_words(tokens, columns)
        check_nodes(select)
        check_expansion(select, {name: table.columns for name, table in folded.items() if table.columns})
    except InputError as error:
        raise RequestRefused("not_supported", error.what, error.remedy) from None
    if any(token.token_type is TokenType.PIPE_GT for token in tokens):
        raise RequestRefused("not_supported", "the SQL has a `|>`", "Write it with SELECT instead")
    return RequestSql(
        _text(tokens, sql), select, tuple(each.name for each in named.values()), _in_slices(select, folded)
    )


def _parsed(sql: str) -> tuple[list[Token], exp.Select]:
    try:
        tokens = query_tokens(sql)
        query = parse_tokens([*tokens], sql)
    except StatementTooLarge as error:
        raise RequestRefused("not_supported", error.what, error.remedy) from None
    except InputError as error:
        raise RequestRefused("bad_sql", error.what, error.remedy) from None
    if not isinstance(query, exp.Select):
        what = "the SQL is not exactly one SELECT"
        raise RequestRefused("bad_sql", what, "Write one SELECT, without brackets around it")
    return tokens, query


def _tables(select: exp.Select, known: Mapping[str, ReadableTable]) -> dict[str, ReadableTable]:
    """The tables that it reads. Refuses files, functions that make rows, and tables of other databases."""
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
    """The tokens as the user wrote them, separated by single spaces."""
    words, end = [], 0
    for token in tokens:
        if token.start >= end:  # sqlglot turns `1L` into three tokens at one position
            words.append(sql[token.start : token.end + 1])
            end = token.end + 1
    return " ".join(words)


def _in_slices(query: exp.Select, tables: Mapping[str, ReadableTable]) -> SlicedRequest | None:
    """How to answer it in parts; None if that is not possible."""
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
            return None  # Spark may resolve the name to that column of the answer
        raise RequestRefused("bad_sql", error.what, error.remedy) from None
    except InputError:
        return None
    return SlicedRequest(sql, clauses, sides)


def _rename(select: exp.Select) -> None:
    """Renames synonyms of aggregates, and replaces the current time by the placeholder `NOW`."""
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
    """The query with these columns under internal names, so their own names may repeat or be missing."""
    select = sql.select.copy()
    select.set("expressions", [exp.alias_(part.copy(), output(at)) for at, part in enumerate(parts)])
    if sql.keys:
        select.set("group", exp.Group(expressions=[key.copy() for key in sql.keys]))
    return replace(sql, select=select)


def _check_counted_once(sql: QuerySql, sides: frozenset[int]) -> None:
    """Refuses COUNT(DISTINCT) of a column that does not decide the slice: a value may then be in several."""
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
