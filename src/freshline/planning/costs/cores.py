"""The cores of each Spark, the tracks that share them, and how much longer jobs take for that.

Spark shares its cores fairly between tracks: a job that runs q tasks at once takes max(1, tracks·q/cores)
times as long as alone. Sparks on one machine share its cores in the same way.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from freshline.definitions.sections.nodes import cores_of, is_local
from freshline.definitions.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class SparkCores:
    """The cores of one Spark, and the tracks that share them."""

    node: str | None  # None in a warehouse without nodes
    cores: int
    tracks: int
    machine_cores: int  # of its machine; of a cluster its own
    sparks_cores: int  # of all Sparks on the machine, together

    def factor(self, tasks: int | None, busy: int | None = None) -> Fraction:
        """How many times as long as alone a job takes that runs so many tasks at once; None: unknown.

        `busy` is how many of its tracks are busy, all by default, with the other Sparks of its machine idle.

        >>> SparkCores(None, 2, 4, 2, 2).factor(1), SparkCores(None, 2, 4, 2, 2).factor(None)
        (Fraction(2, 1), Fraction(4, 1))
        >>> SparkCores("edge", 2, 1, 2, 4).factor(1)
        Fraction(2, 1)
        """
        at_once = self.cores if tasks is None else min(tasks, self.cores)
        own = max(Fraction(1), Fraction((self.tracks if busy is None else busy) * at_once, self.cores))
        if busy is not None:
            return own
        return own * max(Fraction(1), Fraction(self.sparks_cores, self.machine_cores))


def spark_cores(warehouse: Warehouse) -> dict[str | None, SparkCores]:
    """By node, the Sparks with a known number of cores; without nodes the only Spark has the key None."""
    if not warehouse.nodes:
        tracks = sum(pool.tracks for pool in warehouse.pools.values())
        cores = warehouse.cores
        return {} if cores is None else {None: SparkCores(None, cores, tracks, cores, cores)}
    here = [node for node in warehouse.nodes.values() if is_local(node.master)]
    of_local = {node.name: cores_of(node.master) or warehouse.cores for node in here}
    together = sum(cores or 0 for cores in of_local.values())
    found: dict[str | None, SparkCores] = {}
    for name, node in warehouse.nodes.items():
        cores, tracks = of_local.get(name, node.cores), _tracks_of(warehouse, name)
        if cores is None:
            continue
        if name in of_local:
            found[name] = SparkCores(name, cores, tracks, warehouse.cores or together, together)
        else:
            found[name] = SparkCores(name, cores, tracks, cores, cores)
    return found


def _tracks_of(warehouse: Warehouse, node: str) -> int:
    """The tracks of a node: of its pools, and one for steps where it may run any."""
    steps = any(node in warehouse.nodes_of(step) for step in warehouse.steps)
    return steps + sum(pool.tracks for pool in warehouse.pools.values() if pool.node == node)
