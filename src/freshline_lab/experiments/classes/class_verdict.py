"""The results of service classes in a live run, and whether they meet the requirements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from freshline_lab.experiments.classes.request_load import SentRequest

SETTLING_S: Final = 15.0  # after a change of load, when nothing is required
WINDOW_S: Final = 30.0
_STEP_S: Final = 5.0
LATE: Final = 1.1  # deadlines: a later answer is late
_IN_TIME: Final = 0.99


def class_figures(said: Sequence[SentRequest], name: str, begins_s: float, ends_s: float) -> dict[str, Any]:
    """A class between two instants, in percent."""
    own = [each for each in said if each.class_name == name and begins_s <= each.at_s < ends_s]
    admitted = [each for each in own if each.is_admitted]
    answered = [each for each in admitted if each.is_answered]
    return {
        "class": name,
        "submitted": len(own),
        "admitted": _percent(len(admitted), len(own)),
        "ate": 100 * sum(each.error for each in admitted) / len(admitted) if admitted else None,
        "unanswered": _percent(len(admitted) - len(answered), len(admitted)),
    }


def in_time(said: Sequence[SentRequest]) -> float | None:
    """The share of answers that came within 1.1 deadlines."""
    answered = [each for each in said if each.is_answered]
    if not answered:
        return None
    return sum(each.took_s <= LATE * each.deadline_s for each in answered) / len(answered)


def worst_inversion(said: Sequence[SentRequest], names: Sequence[str]) -> float:
    """The worst inversion in 30 s: how many more requests a less important class's share would admit."""
    worst, end = 0.0, max((each.at_s for each in said), default=0.0)
    at = 0.0
    while at <= max(0.0, end - WINDOW_S):
        window = [each for each in said if at <= each.at_s < at + WINDOW_S]
        counts = []
        for name in names:
            own = [each for each in window if each.class_name == name]
            counts.append((len(own), sum(each.is_admitted for each in own)))
        for place, (submitted, admitted) in enumerate(counts):
            for lesser, admitted_lesser in counts[place + 1 :]:
                if submitted and lesser:
                    worst = max(worst, submitted * admitted_lesser / lesser - admitted)
        at += _STEP_S
    return worst


def phases_of(
    said: Sequence[SentRequest], phases: Sequence[tuple[float, float]], names: Sequence[str]
) -> list[dict[str, Any]]:
    """By phase, the classes after they have settled. `phases` are (load in percent, how long)."""
    found, begins_s = [], 0.0
    for load, seconds in phases:
        after = begins_s + min(SETTLING_S, seconds / 2)
        figures = [class_figures(said, name, after, begins_s + seconds) for name in names]
        found.append({"load": load, "classes": figures})
        begins_s += seconds
    return found


def requirements(run: dict[str, Any], references: Sequence[float]) -> list[dict[str, Any]]:
    """The requirements of issue and paper, the measurements, and whether they are met."""
    needs = []
    for place in (0, 1):
        worst = max((phase["classes"][place]["ate"] or 0.0 for phase in run["phases"]), default=0.0)
        needs.append(
            _need(
                f"class {place + 1} at or below its reference of {references[place]:g} % after settling",
                f"{worst:.1f} %",
                worst <= references[place],
            )
        )
    share = run["in_time"]
    needs.append(
        _need(
            "99 % of answers within 1.1 deadlines",
            "no answers" if share is None else f"{share:.1%}",
            share is not None and share >= _IN_TIME,
        )
    )
    above = [table["name"] for table in run["tables"] if not table["within_bound"]]
    needs.append(_need("tables within their bounds", ", ".join(above) or "all", not above))
    needs.append(
        _need(
            "in no 30 s a class's admitted share below a lesser one's by more than a request",
            f"{run['inversion']:.2f} requests",
            run["inversion"] <= 1.0,
        )
    )
    return needs


def _need(required: str, measured: str, met: bool) -> dict[str, Any]:
    return {"required": required, "measured": measured, "met": met}


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None
