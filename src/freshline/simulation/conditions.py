"""What a simulated run is put through, of which its plan knows nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from freshline.definitions.warehouse import Warehouse
from freshline.simulation.crashes import Crash, Crashes, checked_crashes
from freshline.simulation.failures import checked_failures
from freshline.simulation.gaps import Gap, Gaps, checked_gaps
from freshline.simulation.outages import Outage, Outages, checked_outages
from freshline.simulation.slow import checked_factors


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a run is put through, checked for its warehouse."""

    outages: Outages = field(default_factory=dict)
    gaps: Gaps = field(default_factory=dict)
    slow: Mapping[str, Fraction] = field(default_factory=dict)
    failures: Mapping[str, Fraction] = field(default_factory=dict)
    crashes: Crashes = ()

    def record(self) -> dict[str, Any]:
        """As a journal's header has it: only what there is."""
        record = {
            "outages": self.outages,
            "gaps": self.gaps,
            "slow": {name: str(factor) for name, factor in self.slow.items()},
            "failures": {name: str(rate) for name, rate in self.failures.items()},
            "crashes": self.crashes,
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
) -> Conditions:
    """The conditions of a run of that warehouse that ends then."""
    return Conditions(
        checked_outages(warehouse, outages or {}),
        checked_gaps(warehouse, gaps or {}),
        checked_factors(warehouse, slow or {}),
        checked_failures(warehouse, failures or {}),
        checked_crashes(crashes, end),
    )
