"""The kinds of work as commands print them, in this order: one line for each."""

from __future__ import annotations

from typing import Final

from freshline.cli.printing.classes import PrintedClasses
from freshline.cli.printing.kind import PrintedKind
from freshline.cli.printing.outputs import PrintedOutputs
from freshline.cli.printing.queries import PrintedQueries
from freshline.cli.printing.tables import PrintedTables

PRINTED: Final[tuple[PrintedKind, ...]] = (
    PrintedTables(),
    PrintedOutputs(),
    PrintedQueries(),
    PrintedClasses(),
)
