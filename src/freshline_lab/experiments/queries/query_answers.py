"""The answers of a live run's queries, and which assumption broke if an answer was late."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final, Literal

from freshline.base.duration import SECOND
from freshline.planning.costs.fit import PastRun
from freshline_lab.experiments.noise import Noise
from freshline_lab.experiments.queries.live_table_2 import LiveQuery

Why = Literal["overload", "failed", "unknown cost", "look", "own cost", "others' cost", "share", "machine"]
_WORTH_SAYING: Final = 0.05
_SHEDDING: Final = ("lrm", "lrm-paper")


@dataclass(frozen=True, slots=True)
class EndedIteration:
    """An iteration that has ended."""

    query: str
    released: int
    deadline: int
    started: int
    finished: int
    ran_us: int = 0  # without pauses
    allowed_us: int | None = None  # its budget, or the cost of its share of the window; None: no limit
    keep: float = 0.0
    known: bool = True  # whether the cost of its parts was known
    failed: bool = False
    looked: bool = False  # whether it read beyond its budget, to measure the cost there

    @property
    def met(self) -> bool:
        return self.finished <= self.deadline and not self.failed

    @property
    def over_us(self) -> int:
        return 0 if self.allowed_us is None else max(0, self.ran_us - self.allowed_us)

    @property
    def in_time(self) -> float:
        """The share of the window read by the deadline, if it ran without a pause after it."""
        if self.failed:
            return 0.0
        late_us = max(0, self.finished - self.deadline)
        return self.keep * max(0.0, 1 - late_us / max(1, self.ran_us))


@dataclass(frozen=True, slots=True)
class PolicyRun:
    """A policy's run."""

    policy: str
    start: int
    end: int
    ended: Sequence[EndedIteration]
    updates: Sequence[PastRun]
    noise: Noise


def verdict(ran: PolicyRun, asked: Sequence[LiveQuery], cycle_us: int) -> dict[str, Any]:
    """The result over iterations due by the end; a later answer does not count."""
    by_release = {(each.query, each.released): each for each in ran.ended}
    weights = {
        query.name: query.weight * query.selectivity * query.window_us * query.tables for query in asked
    }
    due, after_first, misses, causes = [], [], [], Counter[str]()
    lost = whole = 0.0
    finished = 0
    for query in asked:
        for released in _releases(query.stride_us, ran.start, ran.end):
            found = by_release.get((query.name, released))
            is_missed = found is None or not found.met
            due.append(is_missed)
            if released >= ran.start + cycle_us:
                after_first.append(is_missed)
            finished += found is not None and found.finished <= ran.end
            whole += weights[query.name]
            lost += weights[query.name] * (1 - (0.0 if found is None else found.in_time))
            if is_missed:
                why, because = cause(ran, query, released, found)
                causes[why] += 1
                deadline = released + query.stride_us
                misses.append(
                    {
                        "query": query.name,
                        "released": (released - ran.start) / SECOND,
                        "late_by": None if found is None else (found.finished - deadline) / SECOND,
                        "because": because,
                    }
                )
    return {
        "policy": ran.policy,
        "iterations": len(due),
        "miss_rate": fmean(due) if due else 0.0,
        "miss_rate_after_first_cycle": fmean(after_first) if after_first else None,
        "completion_rate": finished / max(1, len(due)),
        "error_share": lost / whole if whole else 0.0,
        "busy": sum(each.ran_us for each in ran.ended) / max(1, ran.end - ran.start),
        "causes": dict(causes),
        "looks": sum(each.looked for each in ran.ended),
        "noise": ran.noise.sentence(ran.start / SECOND),
        "misses": sorted(misses, key=lambda miss: miss["released"]),
    }


def _releases(stride_us: int, start: int, end: int) -> range:
    """The releases from the start on that were due by the end: deadlines are as long as strides."""
    return range(-(-start // stride_us) * stride_us, end - stride_us + 1, stride_us)


def cause(ran: PolicyRun, query: LiveQuery, released: int, found: EndedIteration | None) -> tuple[Why, str]:
    """The cause of a miss: a kind, and a sentence."""
    if found is not None and found.failed:
        return "failed", "it failed"
    if ran.policy not in _SHEDDING:
        return "overload", "the queries ask for more than a track, and nothing is shed"
    until = ran.end if found is None else found.finished
    beside = _beside(ran, released, until)
    if found is not None and not found.known:
        return "unknown cost", "it ran before its cost was known" + beside
    if found is not None and found.looked:
        return "look", f"it read beyond its budget, to learn what that costs now{beside}"
    if found is not None and found.over_us and found.over_us >= found.finished - found.deadline:
        return "own cost", f"its parts took {_longer(found)}{beside}"
    others = [each for each in ran.ended if each.finished > released and each.started < until]
    over = [each for each in others if each.over_us]
    late_us = 0 if found is None else found.finished - found.deadline
    if over and sum(each.over_us for each in over) >= late_us:
        worst = max(over, key=lambda each: each.over_us)
        name = "it" if worst is found else worst.query
        return "others' cost", (
            f"of {len(others)} iterations since its release {len(over)} took longer than they were allowed, "
            f"{sum(each.over_us for each in over) / SECOND:.2f} s in all; {name} took "
            f"{_longer(worst)}{', to learn what that costs now' if worst.looked else ''}{beside}"
        )
    if ran.policy == "lrm-paper":
        return "share", f"the shares of the last schedule did not fit any more{beside}"
    return "machine", f"no iteration took so much longer than allowed: it waited for the machine{beside}"


def _longer(each: EndedIteration) -> str:
    assert each.allowed_us is not None, "there is nothing to be above"
    return f"{each.over_us / SECOND:.2f} s longer than the {each.allowed_us / SECOND:.2f} s learned for it"


def _beside(ran: PolicyRun, since: int, until: int) -> str:
    """Other load on the machine."""
    said = ""
    updated_us = sum(
        max(0, min(until, run.started + run.duration_us) - max(since, run.started)) for run in ran.updates
    )
    if updated_us:
        said += f"; tables were updated for {updated_us / SECOND:.2f} s of that"
    return said + ran.noise.beside(since / SECOND, until / SECOND, _WORTH_SAYING)


def requirements(live: dict[str, Any]) -> list[dict[str, Any]]:
    """The requirements of the live runs, the measurements, and whether they are met."""
    rates = {each["policy"]: each["miss_rate_after_first_cycle"] for each in live["policies"]}
    lrm, rm = rates.get("lrm"), rates.get("rm")
    if lrm is None or rm is None:
        return []
    return [
        {
            "required": "live: lrm misses at most 2 % after the first cycle",
            "measured": f"{lrm:.1%}",
            "met": lrm <= 0.02,
        },
        {
            "required": "live: lrm misses at most a quarter of what rm misses",
            "measured": f"{lrm:.1%} and {rm:.1%}",
            "met": lrm <= rm / 4,
        },
        {
            "required": "live: each miss is put down to the assumption that broke",
            "measured": ", ".join(
                f"{each['policy']}: "
                + (", ".join(f"{n} {why}" for why, n in each["causes"].items()) or "none")
                for each in live["policies"]
            ),
            "met": all(miss["because"] for each in live["policies"] for miss in each["misses"]),
        },
    ]
