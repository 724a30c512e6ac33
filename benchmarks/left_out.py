"""What it takes to tell that a file changes little, beside what it takes to find it at all.

CPU of this process for a CSV file: counting its records and reading their times, as for every file; reading
the newest value of each key beside that; and deciding, when it is found and when it is consumed.

    .venv/bin/python benchmarks/left_out.py [--rows 8000] [--keys 1000]
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from freshline.definitions.sections.feeds import Landing
from freshline.landing.record_reader import RecordReader
from freshline.storage.delta.last_values import DiscardLimit, FileOffer, LastValues

RUNS = 15
LANDING = Landing(
    format="csv", schema="ts timestamp, src string, n double, note string, bytes long", timestamp="ts"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=8_000)
    parser.add_argument("--keys", type=int, default=1_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.csv"
        write(path, options.rows, options.keys)
        reader = RecordReader(LANDING)
        values = reader.compared(path, "src", "n")
        assert values is not None, "too many keys to be compared"
        known = LastValues()
        with known.storing([FileOffer(values)], [False]):
            pass

        def decide() -> None:
            offer = known.offered(values, DiscardLimit(0.1, 1.0))
            assert known.discarded([offer]) == [True]
            with known.storing([offer], [True]):
                pass

        found_ms = cpu_ms(lambda: reader.read(path))
        compared_ms = cpu_ms(lambda: reader.compared(path, "src", "n"))
        decided_ms = cpu_ms(decide)
    print(f"{options.rows} rows of {options.keys} keys, CPU: found {found_ms:.1f} ms")
    print(f"  newest values {compared_ms:.1f} ms, {compared_ms / found_ms:.2f} of it")
    print(f"  decided {decided_ms:.2f} ms, {decided_ms / found_ms:.2f} of it")


def write(path: Path, rows: int, keys: int) -> None:
    draw = random.Random(1)
    with path.open("w", encoding="utf-8") as lines:
        lines.write("ts,src,n,note,bytes\n")
        for number in range(rows):
            at = f"2026-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}Z"
            lines.write(f"{at},host{draw.randrange(keys)},{draw.random()},abc,{number}\n")


def cpu_ms(work: Callable[[], object]) -> float:
    """Of one call, in the middle."""
    taken = []
    for _ in range(RUNS):
        started = time.process_time()
        work()
        taken.append((time.process_time() - started) * 1_000)
    return median(taken)


if __name__ == "__main__":
    main()
