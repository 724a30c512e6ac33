"""Compares the cores that the plan counts with those of the Spark that runs."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

from freshline.definitions.sections.nodes import is_local
from freshline.definitions.warehouse import Warehouse
from freshline.planning.costs.cores import spark_cores


def core_troubles(warehouse: Warehouse, node: str | None, session: SparkSession) -> tuple[str, ...]:
    """Sentences about cores that the plan does not know, or counts and does not have."""
    context = session.sparkContext
    there, on_machine = context.defaultParallelism, os.cpu_count() or 1
    counted = spark_cores(warehouse).get(node)
    local = is_local(context.master)
    if local:
        there = min(there, on_machine)
    if counted is None:
        tracks = sum(pool.tracks for pool in warehouse.pools.values() if node in (None, pool.node))
        if tracks <= 1 or tracks <= there // 2:
            return ()
        what = f"{tracks} tracks share {there} cores, and `cores` is not declared"
        return (f"{what}: bounds assume that tracks do not slow each other down",)
    if there < counted.cores:
        return (f"the plan counts {counted.cores} cores, and this Spark has {there}: bounds may not hold",)
    if local and on_machine < min(counted.machine_cores, counted.sparks_cores):
        machine = min(counted.machine_cores, counted.sparks_cores)
        return (
            f"the plan counts {machine} cores of this machine, and it has {on_machine}: bounds may not hold; "
            f"declare `cores: {on_machine}`",
        )
    return ()
