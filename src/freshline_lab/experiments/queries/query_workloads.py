"""The streams of paper 000's experiments: steady, in steps, random, and a trace of packets."""

from __future__ import annotations

import gzip
import random
import zlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final

from freshline.base.duration import MILLISECOND, SECOND
from freshline.base.errors import InputError, Place
from freshline.base.names import cut
from freshline.simulation.streams import ChangingRate, ConstantRate, TupleArrivals, TupleStream

STREAMS: Final = ("s1", "s2", "s3")
END_US: Final = 20 * SECOND
CYCLE_US: Final = 6 * SECOND  # the longest stride
STEADY_RATE: Final = 12_500
STEP_RATE: Final = 7_500
MEAN_RATE: Final = 10_000
# Random rates are not in print; we draw exponentially distributed ones, at this interval.
RANDOM_EVERY_US: Final = 100 * MILLISECOND
# Left out at the beginning of the trace; and in total, including the run itself.
_TRACE_FROM_US: Final = 20 * SECOND
_TRACE_LEFT_OUT_US: Final = 60 * SECOND
_REMEDY: Final = "Give arrivals in whole microseconds, rising, one a line"


@dataclass(frozen=True, slots=True)
class QueryWorkload:
    """The rates of the streams, in one run or several."""

    name: str
    runs: Sequence[Mapping[str, TupleStream]]
    end_us: int = END_US


def steady(name: str = "steady", end_us: int = END_US) -> QueryWorkload:
    return QueryWorkload(name, [dict.fromkeys(STREAMS, ConstantRate(STEADY_RATE))], end_us)


def step() -> QueryWorkload:
    """A rate that rises by a tenth every second."""
    rates = [(s * SECOND, STEP_RATE * (1 + Fraction(s, 10))) for s in range(END_US // SECOND)]
    return QueryWorkload("step", [dict.fromkeys(STREAMS, ChangingRate(rates))])


def randomly(runs: int, seed: int) -> QueryWorkload:
    """Rates drawn by stream and run; the first is the mean."""

    def stream(run: int, name: str) -> ChangingRate:
        rng = random.Random(f"rates:{seed}:{run}:{name}")
        starts = range(0, END_US, RANDOM_EVERY_US)
        return ChangingRate(
            [(0, MEAN_RATE), *((at, round(rng.expovariate(1 / MEAN_RATE))) for at in starts if at)]
        )

    return QueryWorkload("random", [{name: stream(run, name) for name in STREAMS} for run in range(runs)])


@dataclass(frozen=True, slots=True)
class Trace:
    """Arrivals in µs, the first at 0."""

    file: str
    arrivals: Sequence[int]

    @property
    def length_us(self) -> int:
        return self.arrivals[-1]

    def record(self) -> dict[str, object]:
        return {"file": self.file, "arrivals": len(self.arrivals), "length": self.length_us / SECOND}

    def workload(self, runs: int) -> QueryWorkload:
        """Runs and streams begin evenly over its length; each arrival is as many tuples as give the mean."""
        each = Fraction(MEAN_RATE * self.length_us, SECOND * len(self.arrivals))
        return QueryWorkload(
            "trace",
            [
                {
                    name: self._part(Fraction(run, runs) + Fraction(number, len(STREAMS)), each)
                    for number, name in enumerate(STREAMS)
                }
                for run in range(runs)
            ],
        )

    def _part(self, share: Fraction, each: Fraction) -> TupleArrivals:
        begin = _TRACE_FROM_US + int(share % 1 * (self.length_us - _TRACE_LEFT_OUT_US))
        # No window is longer than what precedes the start.
        first = bisect_right(self.arrivals, begin - CYCLE_US)
        last = bisect_right(self.arrivals, begin + END_US)
        return TupleArrivals([at - begin for at in self.arrivals[first:last]], each)


def read_trace(path: Path) -> Trace:
    """A trace from a file, plain or compressed; an `InputError` has the fault."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        lines = content.decode("ascii").split()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}", "Name a file of arrivals, plain or .gz") from error
    arrivals: list[int] = []
    for number, line in enumerate(lines, start=1):
        if not line.isdecimal() or len(line) > 18:
            raise InputError(f"{cut(line)!r} is no instant", _REMEDY, Place(str(path), number))
        if arrivals and int(line) < arrivals[-1]:
            raise InputError(f"{line} is before the arrival above it", _REMEDY, Place(str(path), number))
        arrivals.append(int(line))
    if not arrivals or arrivals[-1] - arrivals[0] <= _TRACE_LEFT_OUT_US:
        raise InputError(f"{path} has no arrivals for more than a minute", "Give a longer trace")
    return Trace(path.name, [at - arrivals[0] for at in arrivals])
