"""The pools of a plan: as JSON, and for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from freshline.base.duration import seconds
from freshline.cli.printing.grid import grid, listed, note
from freshline.cli.printing.kinds import PRINTED
from freshline.definitions.language.policies import POLICIES
from freshline.live.status.screen_table import fill
from freshline.planning.analysis.utilization import readable
from freshline.planning.plan.advice import counted
from freshline.planning.plan.plan import Plan, PoolPlan


def pool_record(plan: Plan, pool: PoolPlan) -> dict[str, Any]:
    """A pool as JSON."""
    clusters = None
    if pool.clusters is not None:
        clusters = [
            {
                "tracks": cluster.tracks,
                "tables": list(cluster.tables),
                "batch_limit": seconds(cluster.batch_limit_us),
            }
            for cluster in pool.clusters
        ]
    record = {
        "name": pool.name,
        "tracks": pool.tracks,
        "policy": pool.policy,
        "behaves_as": pool.behaves_as(plan.tables),
        "utilization": pool.utilization,
        "provisioning": pool.provisioning,
        "clusters": clusters,
        "tracks_least": pool.tracks_least,
        "blocking": seconds(pool.blocking_us),
        "blocking_most": seconds(pool.blocking_most_us),
        "batch_limit": seconds(pool.batch_limit_us),
    }
    for kind in PRINTED:
        record |= kind.pool_record(pool)
    return record


def show_pools(screen: Console, plan: Plan) -> None:
    screen.print(
        fill(
            grid(f"Pools of {plan.warehouse.name}"),
            plan.pools,
            {
                "pool": lambda pool: pool.name,
                "policy": lambda pool: pool.policy,
                ">tracks": lambda pool: str(pool.tracks),
                ">utilisation": lambda pool: readable(pool.utilization, pool.tracks, pool.fits, digits=3),
                ">least tracks": lambda pool: "-" if pool.tracks_least is None else str(pool.tracks_least),
                "verdict": lambda pool: _verdict(plan, pool),
            },
        )
    )
    for pool in plan.pools:
        for number, cluster in enumerate(pool.clusters or (), start=1):
            tracks = counted(cluster.tracks, "track")
            note(screen, f"  {pool.name}/{number}: {tracks} for {listed(cluster.tables)}")
        said = [sentence for kind in PRINTED for sentence in kind.pool_notes(pool)]
        for sentence in [*said, *_unbounded(plan, pool)]:
            note(screen, f"  {pool.name}: {sentence}")


def _unbounded(plan: Plan, pool: PoolPlan) -> list[str]:
    """Which tables of a pool have no bound, and how they are scheduled."""
    behaves_as = pool.behaves_as(plan.tables)
    if behaves_as != pool.policy:
        return [f"no bound: behaves as {behaves_as}"]
    if not POLICIES[pool.policy].adaptive:
        return []
    names = [
        table.name
        for table in plan.tables
        if table.pool == pool.name
        and table.staleness_bound_us is None
        and table.name in plan.warehouse.released_by_files
    ]
    return [f"no bound for {listed(names)}: served as with edf"] if names else []


def _verdict(plan: Plan, pool: PoolPlan) -> str:
    for kind in PRINTED:
        verdict = kind.pool_verdict(plan, pool)
        if verdict is not None:
            return verdict
    if not pool.fits:
        return "[red]overloaded[/]"
    if not POLICIES[pool.policy].proven:
        return "[yellow]no bound known[/]"
    own = [table for table in plan.tables if table.pool == pool.name]
    bounded = sum(table.response_bound_us is not None for table in own)
    if bounded == len(pool.tables):
        return "[yellow]expected[/] (average costs)" if pool.provisioning == "average" else "bounded"
    return f"[red]{bounded} of {len(pool.tables)} bounded[/]" if bounded else "[red]unbounded[/]"
