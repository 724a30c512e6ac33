"""Returns memory that was needed only for a moment to the operating system.

An allocator keeps freed memory, separately for every thread that ever allocated. Compaction and checkpoints
take some tens of megabytes for a second in their own threads; without this a run would never return them.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

# glibc's constant for the number of arenas (malloc.h). Python's lock lets one thread work at a time, so more
# arenas would only keep more memory.
_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2


def share_arenas() -> None:
    """Limits the arenas. Call it before the process has many threads."""
    _call("mallopt", ctypes.c_int(_M_ARENA_MAX), ctypes.c_int(_ARENAS))


def give_back() -> None:
    """Returns freed memory; takes a few milliseconds at most."""
    _call("malloc_trim", ctypes.c_size_t(0))


def _call(name: str, *arguments: Any) -> None:
    """Calls a function of the C library if the library has it; only glibc does."""
    function = getattr(_C_LIBRARY, name, None)
    if function is not None:
        function(*arguments)


_C_LIBRARY: Final = ctypes.CDLL(None)
