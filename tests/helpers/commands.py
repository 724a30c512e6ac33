"""The command line in this process: a process of its own takes a second to import what is here already."""

import io
import subprocess
import sys
import threading
from contextlib import redirect_stderr, redirect_stdout
from typing import TextIO

import pytest

from freshline.cli import main as entry


class _Output(io.StringIO):
    """What this thread prints; other threads, such as those of a live run, print where they did before."""

    def __init__(self, usual: TextIO) -> None:
        super().__init__()
        self._usual = usual
        self._thread = threading.current_thread()

    def write(self, text: str) -> int:
        if threading.current_thread() is self._thread:
            return super().write(text)
        return self._usual.write(text)


def freshline(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command's exit code and what it printed, as a process would have them."""
    said, complained, code = _Output(sys.stdout), _Output(sys.stderr), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(complained):
        patch.setattr(sys, "argv", ["freshline", *map(str, arguments)])
        patch.setattr(entry, "listen", lambda: None)  # signals are for the process of the tests
        try:
            entry.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return subprocess.CompletedProcess(arguments, code, said.getvalue(), complained.getvalue())
