"""A plain task set, as `freshline analyze` reads it, and all analyses that apply to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from freshline.base.errors import InputError
from freshline.planning.analysis import np_edf, rate_monotonic
from freshline.planning.analysis.gedf import compliant_vector, devi_anderson
from freshline.planning.analysis.json_input import decimals_of, number, positive, read_json, record, shown
from freshline.planning.analysis.np_gedf import NpGedf
from freshline.planning.analysis.utilization import fits, utilization

_SET_KEYS: Final = ("tracks", "tasks")
_TASK_KEYS: Final = ("name", "cost", "period", "deadline", "phase")
_REMEDY: Final = "Write the task set as in the documentation of `freshline analyze`"


@dataclass(frozen=True, slots=True)
class TaskSet:
    """Tasks in whole units of 10^−decimals of the user's unit, so that every verdict is exact.

    There are no phases: the verdicts hold for all of them.
    """

    tracks: int
    names: tuple[str, ...]
    costs: tuple[int, ...]
    periods: tuple[int, ...]
    deadlines: tuple[int, ...]
    decimals: int

    def in_user_unit(self, units: int | Fraction) -> float:
        """A time in the user's unit."""
        return float(Fraction(units) / 10**self.decimals)


def analyze(task_set: TaskSet) -> dict[str, object]:
    """Every analysis of the task set, lists in its order; `None` for one that does not apply.

    Rate-monotonic and non-preemptive EDF are for one track. All but rate-monotonic take each deadline to be
    the period (papers 001 and 004), and the tardiness bounds need U ≤ m and every cost at most its period.
    `reasons` has why an analysis does not apply.
    """
    analyses: dict[str, Callable[[TaskSet], dict[str, object]]] = {
        "rm": _rate_monotonic,
        "np_edf_one_track": _np_edf,
        "np_gedf": _np_gedf,
        "gedf": _gedf,
    }
    reasons = _reasons(task_set)
    answer: dict[str, object] = {"utilization": utilization(task_set.costs, task_set.periods)}
    for name, analysis in analyses.items():
        answer[name] = None if name in reasons else analysis(task_set)
    if reasons:
        answer["reasons"] = {name: reasons[name] for name in analyses if name in reasons}
    return answer


def _reasons(task_set: TaskSet) -> dict[str, str]:
    """Why analyses do not apply, by their names."""
    tasks = list(zip(task_set.names, task_set.costs, task_set.periods, task_set.deadlines, strict=True))
    constrained = next((name for name, _, period, deadline in tasks if deadline != period), None)
    too_costly = next((name for name, cost, period, _ in tasks if cost > period), None)
    reasons: dict[str, str] = {}
    if not fits(task_set.costs, task_set.periods, task_set.tracks):
        tracks = "one track" if task_set.tracks == 1 else f"{task_set.tracks} tracks"
        reasons |= dict.fromkeys(("np_gedf", "gedf"), f"unbounded: the tasks need more than {tracks}")
    elif too_costly is not None:
        above = f"unbounded: the cost of {shown(too_costly)} is above its period"
        reasons |= dict.fromkeys(("np_gedf", "gedf"), above)
    if constrained is not None:
        implicit = f"known only if each deadline is the period, and that of {shown(constrained)} is not"
        reasons |= dict.fromkeys(("np_edf_one_track", "np_gedf", "gedf"), implicit)
    if task_set.tracks > 1:
        reasons |= dict.fromkeys(("rm", "np_edf_one_track"), "for one track only")
    return reasons


def _rate_monotonic(task_set: TaskSet) -> dict[str, object]:
    responses = rate_monotonic.response_times(task_set.costs, task_set.periods)
    answer: dict[str, object] = {
        "schedulable": rate_monotonic.all_within(responses, task_set.deadlines),
        "response_times": [
            None if response.time is None else task_set.in_user_unit(response.time) for response in responses
        ],
    }
    if any(response.reason for response in responses):
        answer["reasons"] = [response.reason for response in responses]
    return answer


def _np_edf(task_set: TaskSet) -> dict[str, object]:
    verdict = np_edf.schedulable(task_set.costs, task_set.periods)
    if verdict is None:
        return {"schedulable": None, "reason": f"undecided after {np_edf.POINTS_MAX:,} points in time"}
    return {"schedulable": verdict}


def _np_gedf(task_set: TaskSet) -> dict[str, object]:
    x = NpGedf(task_set.costs, task_set.periods).x(task_set.tracks)
    assert x is not None
    return {
        "x": task_set.in_user_unit(x),
        "tardiness": [task_set.in_user_unit(cost + x) for cost in task_set.costs],
    }


def _gedf(task_set: TaskSet) -> dict[str, object]:
    tasks = task_set.costs, task_set.periods, task_set.tracks
    tardiness, response_times = devi_anderson(*tasks), compliant_vector(*tasks)
    assert tardiness is not None
    assert response_times is not None
    return {
        "devi_anderson": [task_set.in_user_unit(time) for time in tardiness],
        "compliant_vector": [task_set.in_user_unit(time) for time in response_times],
    }


def parse_task_set(text: str) -> TaskSet:
    """The task set that a JSON text describes; an `InputError` has the fault and a remedy.

    >>> parse_task_set('{"tracks": 1, "tasks": [{"name": "a", "cost": 0.5, "period": "20"}]}').costs
    (5,)
    """
    content = record(read_json(text, "task set", _REMEDY), "the task set", _SET_KEYS, required=_SET_KEYS)
    tracks = content["tracks"]
    if isinstance(tracks, bool) or not isinstance(tracks, int) or tracks < 1:
        raise InputError(f"tracks is {shown(tracks)}", "Give the number of tracks, a whole number from 1 up")
    tasks = content["tasks"]
    if not isinstance(tasks, list) or not tasks:
        raise InputError("tasks is not a list with at least one task", 'Write "tasks": [{"name": …}, …]')
    times_by_name: dict[str, tuple[Decimal, ...]] = {}
    for position, task in enumerate(tasks, start=1):
        name, times = _task(task, f"task {position}")
        if name in times_by_name:
            raise InputError(f"two tasks have the name {name!r}", "Give each task a name of its own")
        times_by_name[name] = times
    decimals = max(decimals_of(time) for times in times_by_name.values() for time in times)
    costs, periods, deadlines = zip(
        *([int(Fraction(time) * 10**decimals) for time in times] for times in times_by_name.values()),
        strict=True,
    )
    return TaskSet(tracks, tuple(times_by_name), costs, periods, deadlines, decimals)


def _task(task: object, where: str) -> tuple[str, tuple[Decimal, Decimal, Decimal]]:
    """Name, and cost, period and deadline. The phase is only checked: no analysis depends on it."""
    fields = record(task, where, _TASK_KEYS, required=_TASK_KEYS[:3])
    name = fields["name"]
    if not isinstance(name, str) or not name:
        raise InputError(f"the name of {where} is {shown(name)}", "Give it a text that is not empty")
    cost = positive(fields["cost"], f"the cost of {name!r}")
    period = positive(fields["period"], f"the period of {name!r}")
    deadline = positive(fields.get("deadline", period), f"the deadline of {name!r}")
    if number(fields.get("phase", 0), f"the phase of {name!r}") < 0:
        raise InputError(f"the phase of {name!r} is negative", "Give a phase of 0 or more")
    return name, (cost, period, deadline)
