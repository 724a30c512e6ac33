"""PRP, the proportional heuristic: a baseline of papers 001 and 004."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop
from typing import Self

from freshline.kernel.core.order import Order, OrderContext, ReadyJob
from freshline.kernel.tables.task import Batch, TableTask


class Proportional(Order[TableTask]):
    """Shorter periods first, within clusters of similar periods (paper 004, section 5).

    A free track serves its own cluster, then any (promotion): the shortest period first, then the table with
    the most freshness gained for its worst-case cost. A job loads all there is, for all pending releases. The
    papers do not define clusters: `planning.plan.tracks` has our way.
    """

    def __init__(self, cluster_of_table: Mapping[str, int], cluster_of_track: Mapping[int, int]) -> None:
        super().__init__()
        self._cluster_of_table = cluster_of_table
        self._cluster_of_track = cluster_of_track
        clusters = sorted(set(cluster_of_table.values()) | set(cluster_of_track.values()))
        self._by_cluster: dict[int, dict[int, list[TableTask]]] = {cluster: {} for cluster in clusters}

    @classmethod
    def made_for(cls, setting: OrderContext) -> Self:
        pool = setting.pool
        assert pool.clusters is not None, "prp without clusters"
        cluster_of_table = {
            table: number for number, cluster in enumerate(pool.clusters) for table in cluster.tables
        }
        of_tracks = (number for number, cluster in enumerate(pool.clusters) for _ in range(cluster.tracks))
        return cls(cluster_of_table, dict(enumerate(of_tracks, start=setting.tracks_from)))

    def add(self, entry: TableTask) -> None:
        by_period = self._by_cluster[self._cluster_of_table[entry.name]]
        by_period.setdefault(entry.period_us, []).append(entry)

    def take(self, now: int, idle: list[int]) -> ReadyJob | None:
        own = {self._cluster_of_track[track] for track in idle}
        group = self._first_group(own) or self._first_group(self._by_cluster.keys())
        if group is None:
            return None
        best = max(group, key=lambda task: (_gain_per_cost(task, now), -task.place))
        group.remove(best)
        return Batch(best, None)

    def track_for(self, entry: ReadyJob, idle: list[int]) -> int:
        cluster = self._cluster_of_table[entry.name]
        own = [track for track in idle if self._cluster_of_track[track] == cluster]
        if not own:
            return heappop(idle)
        track = min(own)
        idle.remove(track)
        heapify(idle)
        return track

    def ready(self) -> list[TableTask]:
        return [task for periods in self._by_cluster.values() for group in periods.values() for task in group]

    def _first_group(self, clusters: Iterable[int]) -> list[TableTask] | None:
        """The ready tasks of the shortest period in these clusters."""
        groups = (
            (period, cluster)
            for cluster in clusters
            for period, tasks in self._by_cluster[cluster].items()
            if tasks
        )
        first = min(groups, default=None)
        return None if first is None else self._by_cluster[first[1]][first[0]]


def _gain_per_cost(task: TableTask, now: int) -> float:
    return (task.intake.trailing_edge(now) - task.freshness) / task.worst_case_us
