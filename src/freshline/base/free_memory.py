"""Memory that was needed for a moment goes back to the system.

An allocator keeps what was freed, apart for every thread that ever allocated. Compaction and checkpoints take
some tens of megabytes for a second, in threads of their own: without this a run would hold them ever after.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

# glibc's number for it (malloc.h), and how many parts of the memory threads share: Python's lock lets one of
# them work at a time, so more would only be more to keep.
_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2


def share_arenas() -> None:
    """To be called before there are many threads."""
    _call("mallopt", ctypes.c_int(_M_ARENA_MAX), ctypes.c_int(_ARENAS))


def give_back() -> None:
    """Takes a few milliseconds at most."""
    _call("malloc_trim", ctypes.c_size_t(0))


def _call(name: str, *arguments: Any) -> None:
    """Where the C library has it: glibc."""
    function = getattr(_C_LIBRARY, name, None)
    if function is not None:
        function(*arguments)


_C_LIBRARY: Final = ctypes.CDLL(None)
