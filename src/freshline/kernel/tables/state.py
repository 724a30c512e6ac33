"""The one word for how a table is, for the live status and for simulated runs alike."""

from __future__ import annotations

from typing import Literal

TableState = Literal[
    "EMPTY", "HEALTHY", "BEHIND", "LATE", "RECOVERING", "SILENT", "FAILED", "UPSTREAM_FAILED"
]


def exceeds(observed_us: int | None, limit_us: int | None) -> bool:
    """Whether a duration is above a limit; not where there is none of either."""
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
) -> TableState:
    """The one word for how a table is; of several that fit, the one that asks for something to be done.

    `recovering` says that something happened to its feed or to the runner (an outage, a failure, a restart)
    since the table was last within a period of its trailing edge: then its lag has a known cause, and is
    being worked off. `in_recovery` says the same of a table that its policy has given a larger share of the
    tracks, however far it is behind. A lag above the bound without such a cause is LATE, and wins
    over SILENT: there are files here that the warehouse should have loaded, which is its own fault; once they
    are loaded and still nothing comes, it is the sender's. Without a bound nothing was promised, so nothing
    is late.
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
    return "BEHIND" if behind else "HEALTHY"
