"""The tables that a SQL query reads."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from freshline.base.errors import InputError
from freshline.sql.dialect import SPARK
from freshline.sql.expansion.relations import StatementTooLarge
from freshline.sql.expansion.statement import check_expansion

_BEGINNINGS: Final = frozenset({TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.L_PAREN})
# Functions that name a table in a way that only Spark can resolve.
_INDIRECT: Final = frozenset({"IDENTIFIER", "STREAM", "TABLE"})
# Nodes that cannot contain tables; they are most of a query. A table that a hint names may be an alias.
_WITHOUT_TABLES: Final = (exp.Column, exp.Identifier, exp.Literal, exp.TableAlias, exp.Hint)
_ONE_QUERY: Final = "Write one query that begins with SELECT or WITH"
# Spark's parser handles 300 levels of nesting with Java's default stack.
_DEPTH_MAX: Final = 200
# Longer texts take a second or more to parse, and delay all other requests. 5,000 ids of 20 characters fit.
_LENGTH_MAX: Final = 1 << 17
_TOKENS_MAX: Final = 20_000

# What sqlglot raises of a function with too few arguments, of `|>` where it expects none, and the like.
_UNFORESEEN: Final = (AssertionError, AttributeError, LookupError, TypeError, ValueError)

_Pending = list[tuple[exp.Expr, frozenset[str]]]


def tables_read(sql: str) -> tuple[str, ...]:
    """The names of the tables that a query reads, each once (ignoring case), in the order of the text.

    >>> tables_read("WITH busy AS (SELECT * FROM packets) SELECT * FROM busy JOIN hosts USING (src)")
    ('packets', 'hosts')
    """
    tables = tables_named(sql)
    if not tables:
        raise InputError("the SQL reads no table", "Name a table of the warehouse in its FROM")
    return tables


def tables_named(sql: str) -> tuple[str, ...]:
    """Like `tables_read`, but the query may read no table."""
    return tables_in(parse_query(sql))


def tables_in(query: exp.Query) -> tuple[str, ...]:
    """Like `tables_named`, for a parsed query."""
    tables: dict[str, exp.Identifier] = {}
    # The nodes still to search, each with the names of the common table expressions visible there.
    pending: _Pending = [(query, frozenset())]
    while pending:
        node, hidden = pending.pop()
        if isinstance(node, exp.Table):
            identifier = _identifier(node)
            if identifier is not None and identifier.name.lower() not in hidden:
                _keep_first(tables, identifier)
        elif isinstance(node, exp.Anonymous) and node.name.upper() in _INDIRECT:
            raise _unseen_table(f"{node.name.upper()}(...)")
        children = [child for child in node.iter_expressions() if not isinstance(child, _WITHOUT_TABLES)]
        for child in children:
            if isinstance(child, exp.With):
                hidden = _enter_with(child, hidden, pending)
        pending.extend((child, hidden) for child in children if not isinstance(child, exp.With))
    return tuple(identifier.name for identifier in sorted(tables.values(), key=_position))


def parse_query(sql: str) -> exp.Query:
    """The only query in a SQL text, as Spark understands it. Raises InputError if it expands to too much."""
    query = parse_tokens(query_tokens(sql), sql)
    check_expansion(query)
    return query


def query_tokens(sql: str) -> list[Token]:
    """The tokens of the only query in a SQL text."""
    _check_length(len(sql), "characters", _LENGTH_MAX)
    try:
        tokens = SPARK.tokenize(sql)
    except TokenError:
        raise _unended() from None
    _check_length(len(tokens), "words and signs", _TOKENS_MAX)
    return _one_statement(tokens)


def _check_length(length: int, what: str, limit: int) -> None:
    if length > limit:
        raise StatementTooLarge(
            f"the SQL has {length:,} {what}, and may have {limit:,}", "Write a shorter query"
        )


def parse_tokens(tokens: list[Token], sql: str) -> exp.Query:
    """The query that these tokens of a SQL text make."""
    try:
        (query,) = SPARK.parser().parse(tokens, sql)
        # A text with few tokens cannot be nested deeply.
        is_deep = len(tokens) > _DEPTH_MAX and isinstance(query, exp.Expr) and _is_deep(query)
    except ParseError as error:
        raise _syntax_error(error) from None
    except TokenError:
        raise _unended() from None  # in a hint, which sqlglot parses separately
    except _UNFORESEEN:
        raise _not_understood(tokens) from None
    except RecursionError:
        is_deep = True
    if is_deep:
        raise StatementTooLarge("the SQL is nested too deeply", "Split the query into several tables")
    if not isinstance(query, exp.Query):
        raise InputError("the SQL is not a query", _ONE_QUERY)
    return query


def _is_deep(query: exp.Expr) -> bool:
    """Whether it has more levels than recursive code can handle. A long AND or OR counts as one level."""
    pending = [(query, 1)]
    while pending:
        node, depth = pending.pop()
        if depth > _DEPTH_MAX:
            return True
        for child in node.iter_expressions():
            is_same = isinstance(node, exp.And | exp.Or) and type(child) is type(node)
            pending.append((child, depth if is_same else depth + 1))
    return False


def _one_statement(tokens: list[Token]) -> list[Token]:
    """The tokens without semicolons. Checks them before sqlglot warns about unknown statements."""
    statement: list[Token] = []
    ended = False
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            ended = bool(statement)
            continue
        if ended:
            raise InputError("the SQL holds several statements", _ONE_QUERY)
        statement.append(token)
    if not statement:
        raise InputError("the SQL is empty", _ONE_QUERY)
    if statement[0].token_type not in _BEGINNINGS:
        raise InputError(f"the SQL is not a query: it begins with {statement[0].text!r}", _ONE_QUERY)
    for token, following in pairwise(statement):
        # sqlglot parses `window(ts, '1 hour')` in a GROUP BY as a WINDOW clause, which has no bracket.
        if token.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
            token.token_type = TokenType.VAR
    return statement


def _enter_with(clause: exp.With, hidden: frozenset[str], pending: _Pending) -> frozenset[str]:
    """Queues the queries of a WITH, each of which sees the ones before it. Returns all names then hidden.

    A query that is not recursive does not see itself, so it may read a table with its own name.
    """
    for query in clause.expressions:
        named = hidden | {query.alias.lower()}
        pending.append((query, named if clause.recursive else hidden))
        hidden = named
    return hidden


def _identifier(table: exp.Table) -> exp.Identifier | None:
    """The identifier of a table; None for a function that makes rows, such as range(10)."""
    name = table.this
    if isinstance(name, exp.Func):
        return None
    if table.db or isinstance(name, exp.Dot):
        path = ".".join(part.name for part in table.parts)
        remedy = "Name a table of the warehouse, without a prefix"
        raise InputError(f"the SQL reads `{path}`, which names a database", remedy)
    if not isinstance(name, exp.Identifier):
        raise _unseen_table("a parameter")
    return name


def _keep_first(tables: dict[str, exp.Identifier], identifier: exp.Identifier) -> None:
    first = tables.setdefault(identifier.name.lower(), identifier)
    if _position(identifier) < _position(first):
        tables[identifier.name.lower()] = identifier


def _position(identifier: exp.Identifier) -> int:
    return int(identifier.meta.get("start", 0))


def _unended() -> InputError:
    return InputError("the SQL has a quote or a comment that does not end", "Close it")


def _unseen_table(by: str) -> InputError:
    return InputError(f"the SQL names a table by {by}", "Write the table's name itself")


def _not_understood(tokens: list[Token]) -> InputError:
    if any(token.token_type is TokenType.PIPE_GT for token in tokens):
        what = "the SQL has a `|>` in a place, or with an operator, that is not understood here"
        return InputError(what, "Write it with SELECT instead of `|>`")
    what = "the SQL has a function that is called in a way it cannot be"
    return InputError(what, "Check the arguments of its functions")


def _syntax_error(error: ParseError) -> InputError:
    first = error.errors[0]
    # Some of sqlglot's messages are about its own classes.
    description = str(first["description"]).removesuffix(".")
    why = "" if "<" in description or "/" in description else f": {description[:1].lower()}{description[1:]}"
    where = f"line {first['line']}, column {first['col']}, near `{str(first['highlight'])[:40]}`"
    return InputError(f"the SQL does not parse at {where}{why}", "Correct the SQL there or just before")
