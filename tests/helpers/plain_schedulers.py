"""Schedulers small enough to be seen to be right, for the bounds to be held against. Time is in integers."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

Tasks = list[tuple[int, int]]


def task_lists(size_max: int, period_max: int, size_min: int = 1) -> st.SearchStrategy[Tasks]:
    """Lists of (cost, period), each cost at most its period."""
    task = st.integers(1, period_max).flatmap(lambda p: st.tuples(st.integers(1, p), st.just(p)))
    return st.lists(task, min_size=size_min, max_size=size_max)


def apart(tasks: Tasks) -> tuple[list[int], list[int]]:
    """Costs and periods."""
    return [cost for cost, _ in tasks], [period for _, period in tasks]


def np_edf_tardiness(
    tasks: Tasks, offsets: Sequence[int], tracks: int, until: int, early: Sequence[int] | None = None
) -> list[int]:
    """The largest tardiness of each task under non-preemptive global EDF, for jobs started before `until`.

    A track that finds no released job starts one up to `early` before its release; the next one is
    released a period after that start.
    """
    costs, periods = apart(tasks)
    releases = list(offsets)
    free_from = [0] * len(tasks)
    busy_until = [0] * tracks
    tardiness = [0] * len(tasks)
    available = early or [0] * len(tasks)
    now = 0
    while now < until:
        ready = [
            (release > now, release + periods[task], task)
            for task, release in enumerate(releases)
            if release - available[task] <= now and free_from[task] <= now
        ]
        track = min(range(tracks), key=busy_until.__getitem__)
        if ready and busy_until[track] <= now:
            _, deadline, task = min(ready)
            finish = busy_until[track] = free_from[task] = now + costs[task]
            tardiness[task] = max(tardiness[task], finish - deadline)
            releases[task] = min(now, releases[task]) + periods[task]
        else:
            ahead = [release - early for release, early in zip(releases, available, strict=True)]
            now = min(time for time in (*ahead, *free_from, *busy_until, *releases) if time > now)
    return tardiness


def np_edf_tardiness_with_batches(
    tasks: Tasks, offsets: Sequence[int], tracks: int, until: int, batches: Sequence[tuple[int, int]]
) -> list[int]:
    """The same without early starts but for batches: (task, cost), each as soon as it may start.

    It may when a track finds no released job and the task has none running; its next job is then released a
    period after the batch's start at the earliest.
    """
    costs, periods = apart(tasks)
    releases = list(offsets)
    free_from = [0] * len(tasks)
    busy_until = [0] * tracks
    tardiness = [0] * len(tasks)
    waiting = list(batches)
    now = 0
    while now < until:
        ready = [
            (release + periods[task], task)
            for task, release in enumerate(releases)
            if release <= now and free_from[task] <= now
        ]
        track = min(range(tracks), key=busy_until.__getitem__)
        if ready and busy_until[track] <= now:
            deadline, task = min(ready)
            finish = busy_until[track] = free_from[task] = now + costs[task]
            tardiness[task] = max(tardiness[task], finish - deadline)
            releases[task] += periods[task]
        elif waiting and busy_until[track] <= now and free_from[waiting[0][0]] <= now:
            task, cost = waiting.pop(0)
            busy_until[track] = free_from[task] = now + cost
            releases[task] = max(releases[task], now + periods[task])
        else:
            now = min(time for time in (*free_from, *busy_until, *releases) if time > now)
    return tardiness


def preemptive_edf_tardiness(tasks: Tasks, offsets: Sequence[int], tracks: int, until: int) -> list[int]:
    """The largest tardiness of each task under preemptive global EDF, for jobs done by `until`."""
    costs, periods = apart(tasks)
    releases = list(offsets)
    left = list(costs)
    tardiness = [0] * len(tasks)
    for now in range(until):
        ready = [
            (releases[task] + periods[task], task) for task in range(len(tasks)) if releases[task] <= now
        ]
        for deadline, task in sorted(ready)[:tracks]:
            left[task] -= 1
            if left[task] == 0:
                tardiness[task] = max(tardiness[task], now + 1 - deadline)
                releases[task] += periods[task]
                left[task] = costs[task]
    return tardiness


def rate_monotonic_response(tasks: Tasks, watched: int, until: int) -> int | None:
    """The worst response of a task in the busy period from time 0; `None` where that outlasts `until`."""
    costs, periods = apart(tasks)
    level = sorted(range(len(tasks)), key=lambda task: (periods[task], task))
    level = level[: level.index(watched) + 1]
    waiting: dict[int, list[int]] = {task: [] for task in level}
    left = dict(zip(level, (costs[task] for task in level), strict=True))
    worst = 0
    for now in range(until):
        for task in level:
            if now % periods[task] == 0:
                waiting[task].append(now)
        running = next((task for task in level if waiting[task]), None)
        if running is None:
            return worst
        left[running] -= 1
        if left[running] == 0:
            release = waiting[running].pop(0)
            left[running] = costs[running]
            if running == watched:
                worst = max(worst, now + 1 - release)
                # The busy period may end in the very instant of the next release.
                if not any(waiting[task] for task in level):
                    return worst
    return None
