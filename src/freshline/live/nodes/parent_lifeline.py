"""Ends a process when its parent ends, however that ends."""

from __future__ import annotations

import os
import signal
import threading
from typing import Final

_STANDARD_INPUT: Final = 0


def end_with_parent() -> None:
    """Sends SIGTERM to this process when its standard input closes.

    The parent holds the other end and never writes. The system closes it when the parent ends, even by
    `kill -9`.
    """

    def wait() -> None:
        # Not `sys.stdin`: a waiting thread would hold its lock at the interpreter's end.
        while os.read(_STANDARD_INPUT, 1):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="life-line", daemon=True).start()
