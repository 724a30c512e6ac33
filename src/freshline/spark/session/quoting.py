"""Names of columns in Spark's expressions."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A column's name in backquotes: Spark takes a plain `a.b` as field `b` of `a`."""
    return "`" + name.replace("`", "``") + "`"
