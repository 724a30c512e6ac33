"""What queries know about the tables that they read, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from freshline.base.errors import InputError
from freshline.definitions.sections.feed_columns import of_feed
from freshline.definitions.sections.feeds import Feed
from freshline.definitions.sections.stored import StoredDefinition
from freshline.sql.checks import QueryCheck
from freshline.sql.from_tables import ReadableTable
from freshline.sql.query import parse_query
from freshline.sql.time import Relation, own_time


def readable_tables(
    wanted: Iterable[str],
    tables: Mapping[str, StoredDefinition],
    feeds: Mapping[str, Feed],
    order: Sequence[str],
) -> dict[str, ReadableTable]:
    """The wanted tables by name, if they are in `order`, which has every table after its sources."""
    upstream = _upstream(wanted, tables)
    known = {name: tables[name] for name in order if name in upstream and name in tables}
    rows = rows_a_second(known, feeds)
    relations: dict[str, Relation] = {}
    for name, table in known.items():
        relations[name] = _relation(table, feeds, relations)
    return {
        name: ReadableTable(name, relations[name].names, table.timestamp, table.slices, rows[name])
        for name, table in known.items()
    }


def rows_a_second(
    tables: Mapping[str, StoredDefinition], feeds: Mapping[str, Feed]
) -> dict[str, Fraction | None]:
    """The rows per second of each table, sources first; a derived table gets the rows of all its sources."""
    rows: dict[str, Fraction | None] = {}
    for name, table in tables.items():
        if table.feed is not None:
            rows[name] = feeds[table.feed].rows if table.feed in feeds else None
            continue
        known = [each for source in table.sources if (each := rows.get(source)) is not None]
        rows[name] = sum(known, Fraction(0)) if len(known) == len(table.sources) else None
    return rows


def _upstream(wanted: Iterable[str], tables: Mapping[str, StoredDefinition]) -> set[str]:
    """The tables and everything that they read, directly or indirectly."""
    found: set[str] = set()
    ahead = list(wanted)
    while ahead:
        name = ahead.pop()
        if name not in found and name in tables:
            found.add(name)
            ahead += tables[name].sources
    return found


def _relation(table: StoredDefinition, feeds: Mapping[str, Feed], known: Mapping[str, Relation]) -> Relation:
    """Its columns, if they are known. A check before a run reports the errors of its SQL."""
    time = own_time(table.timestamp)
    try:
        if table.feed is not None:
            feed = of_feed(feeds.get(table.feed))
            if table.select is None:
                return Relation(feed.names, time)
            check = QueryCheck(parse_query(table.select), {table.feed: feed}, by_record=True)
        elif table.sql is not None:
            sources = {name: known[name] for name in table.sources if name in known}
            check = QueryCheck(parse_query(table.sql), sources)
        else:
            return Relation(None, time)
    except InputError:
        return Relation(None, time)
    return Relation(check.result.names, time)
