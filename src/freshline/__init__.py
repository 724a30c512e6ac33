"""Freshline: a real-time stream warehouse whose freshness targets are proven before they are run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freshline.service.query import query as query

__version__ = "0.1.0"
__all__ = ["__version__", "query"]

# Read when Arrow and delta-rs are imported: their own allocators keep what was freed, apart for every thread
# that ever allocated. `base.free_memory` has the rest.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
os.environ.setdefault("_RJEM_MALLOC_CONF", "narenas:1")


def __getattr__(name: str) -> Any:
    """`freshline.query`, imported when it is used: all that it needs takes a while."""
    if name == "query":
        from freshline.service.query import query

        return query
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
