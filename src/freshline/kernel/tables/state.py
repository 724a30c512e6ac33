"""The state of a table as one word, for the live status and for simulated runs."""

from __future__ import annotations

from typing import Literal

TableState = Literal[
    "EMPTY", "HEALTHY", "BEHIND", "LATE", "RECOVERING", "SILENT", "FAILED", "UPSTREAM_FAILED"
]


def exceeds(observed_us: int | None, limit_us: int | None) -> bool:
    """Whether a duration is above a limit; False if either is None."""
    return observed_us is not None and limit_us is not None and observed_us > limit_us


def table_state(
    *,
    loaded: bool,
    lag_us: int | None,
    period_us: int,
    staleness_bound_us: int | None,
    silent: bool = False,
    failed: bool = False,
    upstream_failed: bool = False,
    recovering: bool = False,
    in_recovery: bool = False,
    misses_target: bool = False,
) -> TableState:
    """The state of a table as one word; of several that fit, the one that needs action.

    `recovering`: its feed or the runner had an outage, a failure or a restart since the table was last within
    a period of its trailing edge. Then its lag has a known cause, and is being worked off. `in_recovery`: its
    policy has given it a larger share of the tracks, however far it is behind. A lag above the bound without
    such a cause is LATE. LATE wins over SILENT: the warehouse should have loaded the files that are there.
    Once they are loaded and no more come, the sender is at fault. A table that has loaded all it can is LATE
    too if it is staler than its target: what it reads is stuck.
    """
    if failed:
        return "FAILED"
    if upstream_failed:
        return "UPSTREAM_FAILED"
    if not loaded:
        return "EMPTY"
    behind = exceeds(lag_us, period_us)
    if in_recovery or (recovering and behind):
        return "RECOVERING"
    if exceeds(lag_us, staleness_bound_us):
        return "LATE"
    if silent:
        return "SILENT"
    if misses_target:
        return "LATE"
    return "BEHIND" if behind else "HEALTHY"
