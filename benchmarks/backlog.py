"""A backlog of small files, live, beside tables with targets: how long it takes, and what it does to them.

One feed has so many files of 1 kB waiting; three others bring one every 10 s, and their staleness is compared
with its bound. Once with `blocking: 1s`; then a smaller backlog under every policy, each beside the same with
one file a job (`prp` takes all there is either way). A run that takes longer than `--seconds`, or with one
file a job than `--seconds-alone`, is cut short. It says how far it came, and how long all would take.

    .venv/bin/python benchmarks/backlog.py                      # 50,000 files, then 2,000 under every policy
    .venv/bin/python benchmarks/backlog.py --files 2000 --policies edf --seconds 120
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from freshline.base.duration import SECOND
from freshline.definitions.language.policies import POLICIES, policies_for
from freshline.definitions.load import load
from freshline.live.status.status import WarehouseStatus

PERIOD_S: Final = 10
OTHERS: Final = 3
ROWS: Final = 20
TEXT: Final = "x" * 24


@dataclass(frozen=True, slots=True)
class Case:
    """One run."""

    files: int
    policy: str
    blocking: str
    batches: bool
    seconds: int
    startup_ms: int
    tracks: int

    @property
    def title(self) -> str:
        how = "batches" if self.batches else "one file a job"
        blocking = f", blocking {self.blocking}" if "blocking" in POLICIES[self.policy].options else ""
        return f"{self.files:,} files, {self.policy}{blocking}, {how}"


def project(case: Case) -> str:
    blocking = f", blocking: {case.blocking}" if "blocking" in POLICIES[case.policy].options else ""
    cost = f"{{startup: {case.startup_ms}ms, rate: 0.0005}}"
    names = ["backlog", *(f"other{number}" for number in range(OTHERS))]
    csv = f"period: {PERIOD_S}s, format: csv, schema: 'ts timestamp, n long, text string', timestamp: ts"
    return "\n".join(
        [
            "name: backlog",
            f"pools: {{updates: {{tracks: {case.tracks}, policy: {case.policy}{blocking}}}}}",
            "feeds:",
            *(f"  {name}: {{path: landing/{name}, {csv}}}" for name in names),
            "tables:",
            *(f"  {name}: {{feed: {name}, cost: {cost}, target_lag: 60s}}" for name in names),
            "",
        ]
    )


def write(folder: Path, name: str, at_s: float) -> None:
    """A file of 1 kB, its records of the second before that instant."""
    lines = ["ts,n,text"]
    for row in range(ROWS):
        then = at_s - 1 + (row + 1) / ROWS
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(then)) + f".{int(then % 1 * 1000):03d}"
        lines.append(f"{stamp},{row},{TEXT[: 1000 // ROWS - len(stamp) - 6]}")
    file = folder / f"{name}.csv.tmp"
    file.write_text("\n".join([*lines, ""]), encoding="utf-8")
    file.rename(folder / f"{name}.csv")


class Others(threading.Thread):
    """Brings the files of the other feeds, each in time."""

    def __init__(self, landing: Path) -> None:
        super().__init__(daemon=True)
        self._landing = landing
        self.over = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.over.wait(PERIOD_S - time.time() % PERIOD_S):
            number += 1
            for other in range(OTHERS):
                write(self._landing / f"other{other}", f"{number:06d}", time.time())
            time.sleep(0.01)


def run(case: Case) -> None:
    from freshline.live.run.run_options import RunOptions
    from freshline.live.run.runner import Runner

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("backlog", *(f"other{number}" for number in range(OTHERS))):
            (folder / "landing" / name).mkdir(parents=True)
        began = time.time() - case.files
        for number in range(case.files):
            write(folder / "landing/backlog", f"{number:06d}", began + number)
        file = folder / "freshline.yml"
        file.write_text(project(case), encoding="utf-8")
        warehouse, storage = load(file), folder / "warehouse"
        with Runner(
            warehouse, folder, storage, RunOptions(warm="all", accept_landing=True, batches=case.batches)
        ) as runner:
            others = Others(folder / "landing")

            def look(status: WarehouseStatus) -> None:
                if status.tables[0].loaded_rows >= case.files * ROWS:
                    runner.stop("the backlog is loaded")

            runner.on_status = look
            others.start()
            started = time.monotonic()
            runner.run(case.seconds * SECOND)
            took_s = time.monotonic() - started
            others.over.set()
            last = runner.status()
        show(case, took_s, last)


def show(case: Case, took_s: float, last: WarehouseStatus) -> None:
    backlog, *others = last.tables
    loaded = backlog.loaded_rows // ROWS
    done = ""
    if loaded < case.files:
        whole = f"{took_s * case.files / loaded / 60:.0f} min at this rate" if loaded else "none loaded"
        done = f" of {case.files:,}, then cut short ({whole}),"
    print(
        f"{case.title}: {loaded:,} files{done} in {took_s:.0f} s, {loaded / took_s:.1f} a second, "
        f"{backlog.jobs:,} jobs"
    )
    for other in others:
        if other.staleness_bound_us is None or other.staleness_max_us is None:
            print(
                f"  {other.name}: no bound, staleness {(other.staleness_max_us or 0) / SECOND:.1f} s at most"
            )
            continue
        ratio = other.staleness_max_us / other.staleness_bound_us
        print(
            f"  {other.name}: staleness {other.staleness_max_us / SECOND:.1f} s at most, "
            f"{ratio:.2f} of its bound"
        )
    for note in last.broken_assumptions[-5:]:
        print(f"  {note}")


def separately(case: Case) -> None:
    """In a process of its own: each run has a Spark of its own."""
    process = multiprocessing.get_context("spawn").Process(target=run, args=(case,))
    process.start()
    process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--files-by-policy", type=int, default=2_000)
    parser.add_argument("--policies", nargs="*", default=policies_for("tables"))
    parser.add_argument("--blocking", default="1s")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--seconds-alone", type=int, default=120)
    parser.add_argument("--startup-ms", type=int, default=700, help="what is declared of an update")
    parser.add_argument("--tracks", type=int, default=2)
    given = parser.parse_args()
    common = (given.startup_ms, given.tracks)
    with suppress(KeyboardInterrupt):
        if given.files:
            separately(Case(given.files, "edf", given.blocking, True, given.seconds, *common))
        for policy in given.policies if given.files_by_policy else ():
            for batches in (True, False):
                seconds = given.seconds if batches else given.seconds_alone
                separately(Case(given.files_by_policy, policy, given.blocking, batches, seconds, *common))


if __name__ == "__main__":
    main()
