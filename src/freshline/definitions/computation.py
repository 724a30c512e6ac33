"""The part of a definition that a table's rows are computed from, and whether it has changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from itertools import takewhile
from typing import Any, Final, Self

from sqlglot import exp
from sqlglot.errors import ErrorLevel, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from freshline.base.duration import format_duration
from freshline.base.errors import InputError
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.stored import StoredDefinition
from freshline.definitions.sections.tables import Table
from freshline.sql.dialect import SPARK
from freshline.sql.query import parse_query

# A hint changes how Spark computes rows, not the rows.
_WITHOUT_MEANING: Final = (TokenType.HINT, TokenType.SEMICOLON)
_WITH_CASE: Final = (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER)
# The number of characters that an excerpt of a long text shows before and after a difference.
_CONTEXT_LENGTH: Final = 40


@dataclass(frozen=True, slots=True)
class Computation:
    """The part of a table's definition that its rows depend on, as the user's file has it."""

    sql: str | None = None
    select: str | None = None
    timestamp: str | None = None
    lookback_us: int = 0
    align_us: int | None = None
    slices: str | None = None  # in words, as are the next two
    discard: str | None = None  # which files are left out
    shed: str | None = None  # which rows of its feed are left out

    @classmethod
    def of(cls, table: StoredDefinition, feeds: Mapping[str, Feed]) -> Self:
        discard = table.discard if isinstance(table, Table) else None
        shed = None if table.feed is None else feeds[table.feed].shed
        return cls(
            table.sql,
            table.select,
            table.timestamp,
            table.lookback_us,
            table.align_us,
            None if table.slices is None else table.slices.in_words(),
            None if discard is None else discard.in_words(),
            None if shed is None else shed.in_words(),
        )

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Reads a record, perhaps of another version: a field that it lacks counts as not given."""
        return cls(**{field.name: record[field.name] for field in fields(cls) if field.name in record})


def changes(before: Computation, now: Computation) -> list[str]:
    """How the computation of new rows would differ from that of the stored rows, in sentences for users."""
    found = []
    for key in ("sql", "select"):
        texts: tuple[str | None, str | None] = getattr(before, key), getattr(now, key)
        if _normal(texts[0]) != _normal(texts[1]):
            was, is_now = _shown(*texts)
            found.append(f"`{key}` was {was}, and is {is_now}")
    if before.timestamp != now.timestamp:
        found.append(f"`timestamp` was {before.timestamp}, and is {now.timestamp}")
    for key, was_us, now_us in (
        ("lookback", before.lookback_us or None, now.lookback_us or None),
        ("align", before.align_us, now.align_us),
    ):
        if was_us != now_us:
            found.append(f"`{key}` was {_length(was_us)}, and is {_length(now_us)}")
    for key, whose in (("slices", ""), ("discard", ""), ("shed", " of its feed")):
        words: tuple[str | None, str | None] = getattr(before, key), getattr(now, key)
        if words[0] != words[1]:
            found.append(f"`{key}`{whose} was {words[0] or 'not given'}, and is {words[1] or 'not given'}")
    return found


def only_adds(before: str | None, now: str | None, columns: Collection[str]) -> bool:
    """Whether a `select` differs from the earlier one only by these columns."""
    if before is None or now is None:
        return False
    try:
        queries = parse_query(before), parse_query(now)
    except InputError:
        return False
    if not all(isinstance(query, exp.Select) for query in queries):
        return False
    added = {name.lower() for name in columns}
    kept = [part for part in queries[1].selects if part.alias_or_name.lower() not in added]
    queries[1].set("expressions", kept)
    return _written(queries[0]) == _written(queries[1])


def _normal(sql: str | None) -> object:
    """A form that is equal for texts that Spark reads alike: comments, spaces and keyword case do not count.

    Tokens alone do not show whether case matters: it does not for a keyword, it may for a column. The parsed
    query shows that, but it may drop parts of the text. So the form has both.
    """
    if sql is None:
        return None
    try:
        words = tuple(
            (token.token_type, token.text if token.token_type in _WITH_CASE else token.text.lower())
            for token in _tokens(sql)
        )
        return words, _written(parse_query(sql))
    except (TokenError, InputError, RecursionError):
        return sql.strip()  # another version of the parser accepted it


def _written(query: exp.Query) -> str:
    for select in query.find_all(exp.Select):
        select.set("hint", None)
    return query.sql(SPARK, comments=False, unsupported_level=ErrorLevel.IGNORE)


def _tokens(sql: str) -> list[Token]:
    return [token for token in SPARK.tokenize(sql) if token.token_type not in _WITHOUT_MEANING]


def _shown(was: str | None, now: str | None) -> tuple[str, str]:
    """Both texts, each on one line and without comments; long ones are cut to where they differ."""
    texts = ["" if sql is None else _on_one_line(sql) for sql in (was, now)]
    first = _alike(texts[0], texts[1])
    last = _alike(texts[0][first:][::-1], texts[1][first:][::-1])
    return _excerpt(texts[0], first, len(texts[0]) - last), _excerpt(texts[1], first, len(texts[1]) - last)


def _alike(one: str, other: str) -> int:
    """The length of the common beginning of two texts."""
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in alike)


def _excerpt(text: str, first: int, end: int) -> str:
    """The text around a part of it; cut only if that leaves out much."""
    if not text:
        return "not given"
    start = 0 if first <= 2 * _CONTEXT_LENGTH else first - _CONTEXT_LENGTH
    stop = len(text) if len(text) - end <= 2 * _CONTEXT_LENGTH else end + _CONTEXT_LENGTH
    return f'"{"…" if start else ""}{text[start:stop]}{"…" if stop < len(text) else ""}"'


def _on_one_line(sql: str) -> str:
    try:
        tokens = SPARK.tokenize(sql)
    except TokenError:
        return " ".join(sql.split())
    line, end = "", 0
    for token in tokens:
        if token.start >= end:  # sqlglot turns `1L` into three tokens at one position
            line += (" " if line and token.start > end else "") + sql[token.start : token.end + 1]
            end = token.end + 1
    return line


def _length(length_us: int | None) -> str:
    return "not given" if length_us is None else format_duration(length_us)
