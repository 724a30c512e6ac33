"""The Sparks of a plan, and how their tracks share the cores: as JSON, and for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from freshline.base.duration import format_duration, seconds
from freshline.planning.plan.advice import counted
from freshline.planning.plan.plan import Plan, SparkPlan


def spark_record(each: SparkPlan) -> dict[str, Any]:
    """A Spark as JSON."""
    return {
        "node": each.spark.node,
        "cores": each.spark.cores,
        "tracks": each.spark.tracks,
        "machine_cores": each.spark.machine_cores,
        "sparks_cores": each.spark.sparks_cores,
        "factor": float(each.factor),
        "wait": seconds(each.wait_us),
        "cores_least": each.cores_least,
    }


def show_sparks(screen: Console, plan: Plan) -> None:
    """Shows how tracks share cores, where these are known."""
    for each in plan.sparks:
        screen.print(_sentence(each), highlight=False, markup=False)
    if plan.sparks:
        screen.print()


def cores_assumed(plan: Plan) -> str:
    """What is assumed of cores that are not declared, as the end of a sentence."""
    if plan.sparks or sum(pool.tracks for pool in plan.pools) <= 1:
        return ""
    return ", and tracks do not slow each other down (`cores` is not declared)"


def _sentence(each: SparkPlan) -> str:
    spark = each.spark
    name = "Cores" if spark.node is None else f"Cores of {spark.node}"
    said = f"{name}: {spark.cores} for {counted(spark.tracks, 'track')}"
    if spark.machine_cores < spark.sparks_cores:
        machine = counted(spark.machine_cores, "core")
        said += f", on a machine with {machine} for Sparks that use {spark.sparks_cores}"
    if each.factor == 1 and not each.wait_us:
        said += "; no track slows another down, or costs were measured with all tracks busy"
    else:
        said += f"; costs count up to {float(each.factor):.3g} times"
        said += f" and {format_duration(each.wait_us, up=True)} more" if each.wait_us else ""
        said += ", as all tracks may be busy"
    least = "no number of cores proves all" if each.cores_least is None else f"least cores {each.cores_least}"
    return f"{said}; {least}."
