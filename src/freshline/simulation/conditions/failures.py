"""Random failures of jobs, with retries as in a run on Spark."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from fractions import Fraction

from freshline.base.back_off import back_off_us
from freshline.base.errors import InputError
from freshline.base.names import Names
from freshline.definitions.warehouse import Warehouse


def checked_failures(warehouse: Warehouse, rates: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    """By table: the chance that a job fails."""
    for name, rate in rates.items():
        if name not in warehouse.stored:
            raise InputError(
                f"the failing table `{name}` does not exist", Names("tables", warehouse.stored).remedy(name)
            )
        if not 0 <= rate < 1:
            raise InputError(
                f"the table `{name}` fails at the rate {rate}", "Give a rate of 0 or above, and below 1"
            )
    return dict(rates)


class JobFailures:
    """Decides at the end of each job whether it fails.

    Each (seed, table) has its own random stream, so costs and arrivals are drawn as without failures.
    """

    def __init__(self, rates: Mapping[str, Fraction], seed: int) -> None:
        self._draws = {
            name: (float(rate), random.Random(f"failure:{seed}:{name}").random)
            for name, rate in rates.items()
        }
        self._attempts: dict[str, int] = {}
        self.count = dict.fromkeys(rates, 0)  # by table
        self.first_at: int | None = None

    def fails(self, table: str, now: int) -> int | None:
        """When to retry, if the table's job that ends now fails."""
        draw = self._draws.get(table)
        if draw is None or draw[1]() >= draw[0]:
            self._attempts.pop(table, None)
            return None
        attempts = self._attempts[table] = self._attempts.get(table, 0) + 1
        self.count[table] += 1
        if self.first_at is None:
            self.first_at = now
        return now + back_off_us(attempts)

    def is_failing(self, table: str) -> bool:
        """Whether the table's last job failed."""
        return table in self._attempts

    def forget(self, tables: Collection[str] | None = None) -> None:
        """The runner, or the node of these tables, has crashed and lost its counts of attempts."""
        kept = {} if tables is None else self._attempts
        self._attempts = {name: number for name, number in kept.items() if name not in (tables or ())}
