"""Measures of service classes over several runs: errors, admission, fairness, overshoot, settling."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, stdev
from typing import Any, Final

import numpy as np

from freshline.spark.answering.estimates import student_t
from freshline_lab.experiments.classes.service_runs import PERIOD_S, ClassCourse, PeriodCounts
from freshline_lab.experiments.classes.service_workload import CLASSES

REFERENCES: Final = tuple(float(error) for error, _, _ in CLASSES)  # ate_r
# A class with hardly any admitted requests has no steady error to compare.
ADMITTED_LEAST: Final = 0.1
_SETTLED: Final = 1.15  # of the reference
_AVERAGED: Final = 3  # periods


def measures(courses: Sequence[ClassCourse]) -> dict[str, Any]:
    """The measures of one algorithm at one load over all runs, in percent and seconds."""
    mwde, mwde_ci = _with_ci([fmean(course.mwde) for course in courses])
    return {
        "mwde": 100 * mwde,
        "mwde_ci": None if mwde_ci is None else 100 * mwde_ci,
        "classes": [_of_class(courses, place) for place in range(len(CLASSES))],
    }


def transient(courses: Sequence[ClassCourse]) -> list[dict[str, Any]]:
    """The mean course of each class, period by period."""
    return [
        {
            "class": place + 1,
            "ate": [100 * ate for ate in mean_course(courses, place)],
            "admitted": [
                100 * fmean(course.counts[place][period].admitted for course in courses)
                for period in _periods(courses)
            ],
            "capacity": [
                fmean(course.capacity_s[place][period] for course in courses) for period in _periods(courses)
            ],
        }
        for place in range(len(CLASSES))
    ]


def step(courses: Sequence[ClassCourse], at_s: int) -> list[dict[str, Any]]:
    """How far the errors exceed their references, and how long after the step they are back."""
    found = []
    for place in range(len(CLASSES)):
        over, settling = _overshoot_and_settling(courses, place)
        after_step = None if settling is None else max(0, settling - at_s)
        found.append({"class": place + 1, "overshoot": over, "settling": after_step})
    return found


def mean_course(courses: Sequence[ClassCourse], place: int) -> list[float]:
    """ate(k), the mean over the runs."""
    return [fmean(course.counts[place][period].ate for course in courses) for period in _periods(courses)]


def _of_class(courses: Sequence[ClassCourse], place: int) -> dict[str, Any]:
    runs = [course.counts[place] for course in courses]
    second = [counts[len(counts) // 2 :] for counts in runs]
    ate, ate_ci = _with_ci([fmean(count.ate for count in counts) for counts in runs])
    admitted, admitted_ci = _with_ci([fmean(count.admitted for count in counts) for counts in runs])
    spreads = [count.sdte for counts in runs for count in counts if count.sdte is not None]
    ended = sum(count.ended for counts in runs for count in counts)
    unanswered = sum(count.unanswered for counts in runs for count in counts)
    overshoot, settling = _overshoot_and_settling(courses, place)
    return {
        "class": place + 1,
        "ate": 100 * ate,
        "ate_ci": None if ate_ci is None else 100 * ate_ci,
        "ate_steady": 100 * _mean([count.ate for counts in second for count in counts]),
        "admitted": 100 * admitted,
        "admitted_ci": None if admitted_ci is None else 100 * admitted_ci,
        "admitted_steady": 100 * _admitted_steady(second),
        "sdte": 100 * _mean(spreads),
        "unanswered": 100 * unanswered / ended if ended else 0.0,
        "answered_steady": 100 * _mean([count.answered for counts in second for count in counts]),
        "overshoot": overshoot,
        "settling": settling,
    }


def _overshoot_and_settling(courses: Sequence[ClassCourse], place: int) -> tuple[float | None, int | None]:
    second = [course.counts[place][len(course.mwde) // 2 :] for course in courses]
    if _admitted_steady(second) < ADMITTED_LEAST:
        return None, None
    ates, reference = mean_course(courses, place), REFERENCES[place]
    last = max(
        (
            end
            for end in range(_AVERAGED, len(ates) + 1)
            if fmean(ates[end - _AVERAGED : end]) > _SETTLED * reference
        ),
        default=0,
    )
    return max(0.0, 100 * (max(ates) / reference - 1)), last * PERIOD_S


def _admitted_steady(second: Sequence[Sequence[PeriodCounts]]) -> float:
    return _mean([count.admitted for counts in second for count in counts])


def _periods(courses: Sequence[ClassCourse]) -> range:
    return range(len(courses[0].mwde))


def _mean(numbers: Sequence[float]) -> float:
    return fmean(numbers) if numbers else 0.0


def _with_ci(of_runs: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and half of its 95 % interval; None for a single run."""
    number = len(of_runs)
    if number < 2:
        return fmean(of_runs), None
    t = float(student_t(np.array([number - 1.0]))[0])
    return fmean(of_runs), t * stdev(of_runs) / sqrt(number)
