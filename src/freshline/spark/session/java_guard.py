"""A small process that ends Java when the process that started both has ended, however that ended."""

from __future__ import annotations

import os
import signal
import time
from typing import Final

from freshline.base.processes import process_start

# Java may end by itself and remove its files.
_ENDING_S: Final = 2.0
_LOOK_EVERY_S: Final = 0.05
_STANDARD_INPUT: Final = 0


def guard(java: int) -> None:
    """Waits until the parent has ended, or has closed the input. Then ends the process of that number.

    The number may belong to another process by then: the instant of its start tells them apart.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    started = process_start(java)
    while os.read(_STANDARD_INPUT, 1):
        pass
    give_up_at = time.monotonic() + _ENDING_S
    while started is not None and process_start(java) == started:
        if time.monotonic() > give_up_at:
            os.kill(java, signal.SIGKILL)
            return
        time.sleep(_LOOK_EVERY_S)
