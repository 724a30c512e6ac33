"""What `freshline simulate` is told to let go wrong: options as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from freshline.definitions.duration import SECOND, parse_duration
from freshline.definitions.errors import InputError
from freshline.definitions.names import cut
from freshline.simulation.crashes import Crash

_RATE = re.compile(r"[0-9]{1,6}(\.[0-9]{1,6})?")
# How long a runner is gone that somebody starts again at once.
_GONE_US = 10 * SECOND


def failures(options: Sequence[str]) -> dict[str, Fraction]:
    """`TABLE:RATE`, by table: the chance that a job fails."""
    rates: dict[str, Fraction] = {}
    for option in options:
        table, _, rate = option.rpartition(":")
        if not table or not _RATE.fullmatch(rate):
            raise InputError(f"--fail {cut(option)} is not TABLE:RATE", "Write it as in --fail traffic:0.1")
        if table in rates:
            raise InputError(f"--fail is given twice for table {cut(table)}", "Keep one of the two")
        rates[table] = Fraction(rate)
    return rates


def crashes(options: Sequence[str]) -> list[Crash]:
    """`TIME[:FOR]`: from when to when the runner is gone."""
    spans: list[Crash] = []
    for option in options:
        time, separator, length = option.partition(":")
        try:
            start = parse_duration(time)
            spans.append((start, start + (parse_duration(length) if separator else _GONE_US)))
        except InputError as error:
            raise InputError(f"--crash {cut(option)}: {error.what}", error.remedy) from None
    return spans
