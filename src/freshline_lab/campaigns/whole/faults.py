"""Random faults and requests of a simulated run of a whole warehouse."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Final

from freshline.base.duration import MILLISECOND, SECOND
from freshline.definitions.warehouse import Warehouse
from freshline.simulation.classes import RequestRate
from freshline.simulation.conditions.conditions import Conditions, checked
from freshline.simulation.conditions.crashes import Crashes
from freshline_lab.runs.warehouses import random_crashes, random_failures, random_gaps, random_outages

LENGTH_US: Final = 240 * SECOND
# Time for what broke late to recover.
AFTERWARDS_US: Final = 160 * SECOND
END: Final = LENGTH_US + AFTERWARDS_US
_FAULTS: Final = ("outages", "gaps", "failures", "slow", "crashes")


def random_conditions(warehouse: Warehouse, seed: int) -> Conditions:
    """A third of all runs has no fault: there every proof counts. The others have one to three kinds.

    Every class is asked in every run.
    """
    rng = random.Random(f"faults:{seed}")
    kinds = [] if rng.random() < 0.35 else rng.sample(_FAULTS, rng.randint(1, 3))
    crashes = _crashes(seed) if "crashes" in kinds else ()
    of_node = _of_node(warehouse, seed)
    return checked(
        warehouse,
        END,
        outages=random_outages(warehouse, seed, LENGTH_US) if "outages" in kinds else {},
        gaps=random_gaps(warehouse, seed, LENGTH_US) if "gaps" in kinds else {},
        slow=_slow(warehouse, rng) if "slow" in kinds else {},
        failures=_failures(warehouse, seed, rng) if "failures" in kinds else {},
        crashes=() if of_node else crashes,
        requests={name: _requests(rng) for name in warehouse.classes},
        node_crashes={of_node: crashes} if of_node and crashes else {},
    )


def _of_node(warehouse: Warehouse, seed: int) -> str | None:
    """The node that crashes, instead of the runner; None in every third run, and without nodes."""
    rng = random.Random(f"node:{seed}")
    return rng.choice([*warehouse.nodes]) if warehouse.nodes and rng.random() < 2 / 3 else None


def _crashes(seed: int) -> Crashes:
    """Crashes that are over before the end."""
    return tuple(crash for crash in random_crashes(seed, LENGTH_US) if crash[1] < END)


def _slow(warehouse: Warehouse, rng: random.Random) -> dict[str, Fraction]:
    names = [*warehouse.stored, *warehouse.queries, *warehouse.classes]
    chosen = rng.sample(names, rng.randint(1, min(3, len(names))))
    return {name: Fraction(rng.choice((2, 5, 12, 40)), 10) for name in chosen}


def _failures(warehouse: Warehouse, seed: int, rng: random.Random) -> dict[str, Fraction]:
    failing = random_failures(warehouse, seed) if rng.random() < 0.7 else {}
    steps = list(warehouse.steps)
    if steps and rng.random() < 0.5:
        failing[rng.choice(steps)] = Fraction(rng.choice((2, 10, 40)), 100)
    return failing


def _requests(rng: random.Random) -> RequestRate:
    return RequestRate(
        Fraction(rng.choice((5, 20, 100)), 100),
        rng.choice((1, 4, 16)),
        rng.choice((20, 150, 400)) * MILLISECOND,
    )
