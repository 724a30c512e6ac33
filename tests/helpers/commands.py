"""The command line in this process: a process of its own takes a second to import what is here already."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from freshline.cli import main as entry


def freshline(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The command's exit code and what it printed, as a process would have them."""
    said, complained, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(complained):
        patch.setattr(sys, "argv", ["freshline", *map(str, arguments)])
        patch.setattr(entry, "listen", lambda: None)  # signals are for the process of the tests
        try:
            entry.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return subprocess.CompletedProcess(arguments, code, said.getvalue(), complained.getvalue())
