"""What a query may read of a feed: its declared columns, and which of them is the time."""

from __future__ import annotations

from contextlib import suppress

from freshline.base.errors import InputError
from freshline.definitions.sections.feeds import Feed
from freshline.sql.columns import parse_columns
from freshline.sql.time import Relation, own_time


def of_feed(feed: Feed | None) -> Relation:
    """The columns of a feed, as far as they are known. A wrong schema is reported with the feed."""
    if feed is None:
        return Relation(None, {})
    names = None
    if feed.landing.schema is not None:
        with suppress(InputError):
            names = tuple(column.name.lower() for column in parse_columns(feed.landing.schema))
    return Relation(names, own_time(feed.landing.timestamp))
