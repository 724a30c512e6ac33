"""Random cores, and how costs were measured."""

from __future__ import annotations

import random

from freshline.base.duration import MILLISECOND
from freshline_lab.campaigns.whole.entries import Entry, us


def add_cores(rng: random.Random, document: Entry) -> None:
    """Most costs are those beside busy tracks, or few targets would hold; some files have cores counted."""
    nodes: Entry = document.get("nodes", {})
    with_costs = [*document["tables"].values(), *document.get("queries", {}).values()]
    costs = [entry["cost"] for entry in with_costs if "cost" in entry]
    if rng.random() < 0.6:
        if nodes:
            for cost in costs:
                cost["loaded"] = True
        return
    if not nodes or rng.random() < 0.3:
        document["cores"] = rng.choice((1, 2, 4, 16))
    for node in nodes.values():
        if rng.random() < 0.2:
            node |= {"master": "spark://host:7077", "cores": rng.choice((1, 8, 32))}
        else:
            node["master"] = f"local[{rng.choice((1, 2, 8))}]"
    for cost in costs:
        if rng.random() < 0.3:
            cost["loaded"] = True
            continue
        if rng.random() < 0.8:
            cost["tasks"] = rng.choice((1, 1, 2, 8))
        if rng.random() < 0.3:
            cost["stages"] = rng.randint(1, 3)
        if rng.random() < 0.7:
            cost["task"] = us(rng.randint(0, 50 * MILLISECOND))
