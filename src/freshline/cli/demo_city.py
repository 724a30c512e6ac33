"""`freshline demo --all`: a city's warehouse with every kind of work, on two nodes, with an outage."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Final, Self

from rich.console import Console

from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.cli.plan import plan_record, show_plan
from freshline.cli.printing.outputs import with_placement
from freshline.cli.run import summary_record
from freshline.cli.shared import print_json
from freshline.definitions.load import load
from freshline.planning.plan.make import make_plan
from freshline.planning.plan.sparks import with_sparks
from freshline.service.client import NoAnswer

_DOWN: Final = "vehicles"
# When the feed goes down and comes back, as shares of the duration.
_OUTAGE: Final = (0.45, 0.65)
_QUESTIONS: Final = {
    "operators": "SELECT road, count(*) AS cars FROM vehicles GROUP BY road",
    "guests": "SELECT garage, min(free) AS free FROM parking GROUP BY garage",
}
_ASK_EVERY_S: Final = 4.0


def demo_city(folder: Path, for_us: int, seed: int, screen: Console | None) -> int:
    """Writes the project into an empty folder, shows its plan and runs it; returns the exit code."""
    from freshline.base.clock import clock
    from freshline.cli.nodes import RunningNodes  # Spark is slow to import
    from freshline.live.status.summary import show_summary
    from freshline.testing.network import CITY, Generator  # pyarrow is slow to import

    file = folder / "freshline.yml"
    file.write_text(
        files("freshline.testing").joinpath("city.yml").read_text(encoding="utf-8"), encoding="utf-8"
    )
    for spec in CITY:
        (folder / "landing" / spec.name).mkdir(parents=True)
    warehouse = load(file)
    plan = with_sparks(with_placement(make_plan(warehouse), {}))
    down = (_OUTAGE[0] * for_us / SECOND, _OUTAGE[1] * for_us / SECOND)
    if screen is not None:
        show_plan(screen, plan, all_rows=False)
        screen.print(f"\nFeed {_DOWN} will be down from second {down[0]:.0f} to {down[1]:.0f}.", style="dim")
        screen.print("Starting a Spark for each node ...", style="dim")
    specs = [replace(spec, outages=(down,)) if spec.name == _DOWN else spec for spec in CITY]
    asking, threads = Asking(folder), _Threads()
    nodes = RunningNodes(warehouse, file, folder / warehouse.storage, [], for_us)

    def begin() -> None:
        threads.start(Generator(specs, folder / "landing", seed, clock()).run)
        threads.start(asking.run)

    nodes.on_all_run = begin
    with threads:
        code = nodes.run(screen)
    status = nodes.status()
    if status is None:
        return code
    if screen is None:
        outage = {"feed": _DOWN, "from": down[0], "to": down[1]}
        run = summary_record(status, nodes.stopped_because)
        print_json({"plan": plan_record(plan), "run": run, "outage": outage, "asked": asking.counts()})
        return code
    show_summary(screen, status, status.started_us, status.at_us)
    for sentence in asking.sentences():
        screen.print(sentence, highlight=False)
    screen.print(f'Ask the tables: freshline sql -p {folder} "SELECT * FROM flow"', highlight=False)
    return code


class Asking:
    """Asks the running warehouse again and again, as operators and guests would."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._answers: dict[str, Counter[str]] = {name: Counter() for name in _QUESTIONS}

    def run(self, stop: threading.Event) -> None:
        while not stop.wait(_ASK_EVERY_S):
            for name, sql in _QUESTIONS.items():
                answer = self._ask(name, sql)
                if answer is not None and not stop.is_set():
                    self._answers[name][answer] += 1

    def _ask(self, name: str, sql: str) -> str | None:
        """The kind of answer; None while the warehouse does not run yet."""
        from freshline.service.query import query

        try:
            answer = query(sql, class_name=name, deadline="3s", project=self._project)
        except NoAnswer as error:
            return "rejected" if error.code == "rejected" else "unanswered"
        except InputError:
            return None
        return "complete" if answer["complete"] else "estimated"

    def counts(self) -> dict[str, dict[str, int]]:
        return {name: dict(found) for name, found in self._answers.items()}

    def sentences(self) -> list[str]:
        """What was asked and answered, a sentence for each class."""
        said = []
        for name, found in self._answers.items():
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(found.items())) or "no answer"
            said.append(f"Asked by {name} every {_ASK_EVERY_S:.0f} s, due in 3 s: {kinds}.")
        return said


class _Threads:
    """Threads that run until the end of a `with`."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(10)

    def start(self, run: Callable[[threading.Event], None]) -> None:
        thread = threading.Thread(target=run, args=(self._stop,), daemon=True)
        self._threads.append(thread)
        thread.start()
