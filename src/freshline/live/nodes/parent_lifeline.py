"""A process that ends with the one that started it, however that ends."""

from __future__ import annotations

import os
import signal
import threading
from typing import Final

_STANDARD_INPUT: Final = 0


def end_with_parent() -> None:
    """Has this process told to end (SIGTERM) when its standard input does.

    Whoever started it holds the other end, and never writes. It is closed when that one goes, by `kill -9`
    too.
    """

    def wait() -> None:
        # Not by `sys.stdin`, whose lock a thread that waits would hold at the interpreter's end.
        while os.read(_STANDARD_INPUT, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="life-line", daemon=True).start()
