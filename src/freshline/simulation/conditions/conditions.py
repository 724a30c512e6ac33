"""The conditions of a simulated run, which its plan does not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from freshline.base.errors import InputError
from freshline.base.names import Names
from freshline.definitions.warehouse import Warehouse
from freshline.kernel.core.timers import NEVER
from freshline.simulation.classes import RequestRate, checked_requests
from freshline.simulation.conditions.crashes import Crash, Crashes, checked_crashes, checked_node_crashes
from freshline.simulation.conditions.failures import checked_failures
from freshline.simulation.conditions.gaps import Gap, Gaps, checked_gaps
from freshline.simulation.conditions.outages import Outage, Outages, checked_outages
from freshline.simulation.kinds import KINDS


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a run, checked for its warehouse."""

    outages: Outages = field(default_factory=dict)
    gaps: Gaps = field(default_factory=dict)
    slow: Mapping[str, Fraction] = field(default_factory=dict)
    failures: Mapping[str, Fraction] = field(default_factory=dict)
    crashes: Crashes = ()
    requests: Mapping[str, RequestRate] = field(default_factory=dict)
    node_crashes: Mapping[str, Crashes] = field(default_factory=dict)

    @property
    def first_crash(self) -> int:
        """When the runner or a node first crashes."""
        spans = [self.crashes, *self.node_crashes.values()]
        return min((start for each in spans for start, _ in each), default=NEVER)

    def record(self) -> dict[str, Any]:
        """Their record in a journal's header: only those that are set."""
        record = {
            "outages": self.outages,
            "gaps": self.gaps,
            "slow": {name: str(factor) for name, factor in self.slow.items()},
            "failures": {name: str(rate) for name, rate in self.failures.items()},
            "crashes": self.crashes,
            "node_crashes": self.node_crashes,
            "requests": {name: rate.record() for name, rate in self.requests.items()},
        }
        return {name: value for name, value in record.items() if value}


def checked(
    warehouse: Warehouse,
    end: int,
    outages: Mapping[str, Sequence[Outage]] | None = None,
    gaps: Mapping[str, Sequence[Gap]] | None = None,
    slow: Mapping[str, Fraction] | None = None,
    failures: Mapping[str, Fraction] | None = None,
    crashes: Sequence[Crash] = (),
    requests: Mapping[str, RequestRate] | None = None,
    node_crashes: Mapping[str, Sequence[Crash]] | None = None,
) -> Conditions:
    """The conditions of a run of that warehouse that ends then."""
    of_runner = checked_crashes(crashes, end)
    conditions = Conditions(
        checked_outages(warehouse, outages or {}),
        checked_gaps(warehouse, gaps or {}),
        checked_factors(warehouse, slow or {}),
        checked_failures(warehouse, failures or {}),
        of_runner,
        checked_requests(warehouse, requests or {}),
        checked_node_crashes(warehouse, node_crashes or {}, of_runner, end),
    )
    for name in warehouse.classes.keys() & conditions.slow.keys() - conditions.requests.keys():
        what = f"the class `{name}` is to be slow, but has no requests"
        raise InputError(what, f"Add its requests, such as --requests {name}:1/s")
    return conditions


def checked_factors(warehouse: Warehouse, slow: Mapping[str, Fraction]) -> Mapping[str, Fraction]:
    """By table, query or class: the factor on its costs."""
    names = [name for kind in KINDS for name in kind.can_be_slow(warehouse)]
    for name, factor in slow.items():
        if name not in names:
            known = Names("tables", names)
            raise InputError(f"`{name}`, which is to be slow, does not exist", known.remedy(name))
        if factor <= 0:
            raise InputError(f"`{name}` is slow by the factor {factor}", "Give a factor above zero")
    return dict(slow)
