"""How long tests wait for what must happen: long enough for a machine that has fifteen other things to do."""

import time
from collections.abc import Callable

from freshline.base.duration import SECOND

PATIENCE_S = 600
PATIENCE_US = PATIENCE_S * SECOND
PATIENCE = f"{PATIENCE_S}s"  # for `--for`


def wait_until(happens: Callable[[], bool]) -> None:
    """Until that is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not happens():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)
