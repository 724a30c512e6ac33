"""Processes of this host."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


def process_start(pid: int) -> str | None:
    """When a process of this host started, so that a process number that is used again is noticed."""
    if _BOOT.exists():
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        # The name in parentheses may have spaces; a zombie (Z) is dead.
        fields = status.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else f"{_BOOT.read_text().strip()} {fields[19]}"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ""
