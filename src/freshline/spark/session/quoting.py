"""Names of columns in Spark's expressions."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A column's name as Spark takes it for one, whatever characters it has: `a.b` alone is a part of `a`."""
    return "`" + name.replace("`", "``") + "`"
