"""Units of time in the calls that cut a time: `date_trunc('minute', ts)` and `trunc(ts, 'month')`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from freshline.sql.query import query_tokens


def units_in_capitals(sql: str) -> str:
    """The same query with capital letters in these units, as sqlglot writes them. Spark ignores their case.

    >>> units_in_capitals("SELECT date_trunc('hour', ts), 'hour' FROM t")
    "SELECT date_trunc('HOUR', ts), 'hour' FROM t"
    """
    tokens = query_tokens(sql)
    for place, token in enumerate(tokens[:-2]):
        if tokens[place + 1].token_type is not TokenType.L_PAREN:
            continue
        called = token.text.upper()
        at = place + 2 if called == "DATE_TRUNC" else _last(tokens, place + 2) if called == "TRUNC" else None
        if at is not None and tokens[at].token_type is TokenType.STRING:
            start, end = tokens[at].start, tokens[at].end + 1
            sql = sql[:start] + sql[start:end].upper() + sql[end:]
    return sql


def _last(tokens: Sequence[Token], first: int) -> int | None:
    """The place of the last token before the bracket that ends a call; `first` is the call's first."""
    depth = 1
    for place in range(first, len(tokens)):
        kind = tokens[place].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        if not depth:
            return place - 1
    return None
