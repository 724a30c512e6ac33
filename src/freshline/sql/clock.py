"""The clock of a query: in a table that is computed whole, `now()` is the table's freshness."""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from freshline.sql.dialect import SPARK
from freshline.sql.nondeterminism import CLOCK

_DATES: Final = frozenset({"current_date", "curdate"})
_WORDS: Final = CLOCK | _DATES
_BARE: Final = frozenset({"current_date", "current_timestamp"})  # Spark takes these without brackets too
_TEXTS: Final = (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)


def sql_at(sql: str, instant_us: int) -> str:
    """The query with that instant in place of its clock; every other character stays.

    >>> sql_at("SELECT ts FROM packets WHERE ts > now() - INTERVAL 1 HOUR", 5)
    'SELECT ts FROM packets WHERE ts > timestamp_micros(5) - INTERVAL 1 HOUR'
    """
    tokens = SPARK.tokenize(sql)
    parts: list[str] = []
    done = 0
    for place, token in enumerate(tokens):
        end = _end_of_call(tokens, place)
        if end is None:
            continue
        instant = f"timestamp_micros({instant_us})"
        if token.text.lower() in _DATES:
            instant = f"CAST({instant} AS DATE)"
        parts += [sql[done : token.start], instant]
        done = end
    return "".join([*parts, sql[done:]])


def _end_of_call(tokens: list[Token], place: int) -> int | None:
    """The end of the call that begins at this token; None if it does not ask the clock."""
    token = tokens[place]
    word = token.text.lower()
    if word not in _WORDS or token.token_type in _TEXTS:
        return None
    if place and tokens[place - 1].token_type in (TokenType.DOT, TokenType.ALIAS):
        return None  # a column's name
    following = [each.token_type for each in tokens[place + 1 : place + 3]]
    if following == [TokenType.L_PAREN, TokenType.R_PAREN]:
        return tokens[place + 2].end + 1
    return token.end + 1 if word in _BARE else None
