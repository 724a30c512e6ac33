"""Random steps with outputs, for a file with nodes."""

from __future__ import annotations

import random

from freshline.base.duration import MILLISECOND, SECOND
from freshline_lab.campaigns.whole.entries import SCHEMA, Entry, sources_of, sql_over, us

_FEEDS_MAX = 3
_STEPS_MAX = 6  # beside those that load feeds
_TIMES = frozenset({"period", "jitter", "timestamp_jitter", "age", "phase", "lateness"})


def add_steps(rng: random.Random, document: Entry, nodes: list[str]) -> None:
    """Adds feeds, the steps that load them, steps over these, and outputs with deadlines.

    Most outputs can be in time. Some cannot, because their records are too old or because their own steps
    take too long.
    """
    feeds = {f"f{place}": _feed(rng, rng.choice(nodes)) for place in range(rng.randint(1, _FEEDS_MAX))}
    steps: Entry = {f"s{place}": {"feed": feed} for place, feed in enumerate(feeds)}
    for place in range(len(steps), len(steps) + rng.randint(0, _STEPS_MAX)):
        read = rng.sample(list(steps), min(len(steps), rng.choice((1, 1, 1, 2))))
        steps[f"s{place}"] = {"sql": sql_over(rng, read)}
        if rng.random() < 0.3:
            allowed = rng.sample(nodes, rng.randint(1, len(nodes)))
            steps[f"s{place}"]["node"] = allowed[0] if len(allowed) == 1 else allowed
        if rng.random() < 0.12:
            steps[f"s{place}"]["align"] = us(rng.choice((1, 2, 4)) * SECOND)
    costs_us = _add_costs(rng, steps, feeds)
    read_by_others = {source for entry in steps.values() for source in sources_of(entry.get("sql", ""))}
    for name, entry in steps.items():
        if name not in read_by_others or rng.random() < 0.1:
            entry["deadline"] = us(_deadline_us(rng, name, steps, feeds, costs_us))
            if rng.random() < 0.3:
                entry["weight"] = rng.choice((0.5, 2, 7))
    document["feeds"] |= {name: _entry_of(feed) for name, feed in feeds.items()}
    document["tables"] |= steps


def _feed(rng: random.Random, node: str) -> Entry:
    """A feed with its times in microseconds; `_entry_of` writes it."""
    period_us = rng.randint(4, 40) * SECOND
    feed: Entry = {"period": period_us, "node": node, "rows": rng.choice((1, 20, 300))}
    if rng.random() < 0.5:
        feed["burst"] = feed["rows"] * period_us // SECOND * rng.choice((1, 2))
    if rng.random() < 0.5:
        feed["jitter"] = rng.randint(0, period_us * 3 // 10)
    if rng.random() < 0.4:
        feed["timestamp_jitter"] = rng.randint(0, period_us)
    if rng.random() < 0.4:
        feed["age"] = rng.randint(0, 2 * period_us)
    if rng.random() < 0.4:
        feed["phase"] = rng.randint(0, 2 * period_us)
    if rng.random() < 0.15:
        feed["lateness"] = rng.randint(0, period_us)
    if rng.random() < 0.2:
        feed["shed"] = {"most": 20, "per": "1s", "value": "v"}
    return feed


def _entry_of(feed: Entry) -> Entry:
    times = {key: us(value) for key, value in feed.items() if key in _TIMES}
    return {**feed, **times, "schema": SCHEMA, "timestamp": "ts"}


def _add_costs(rng: random.Random, steps: Entry, feeds: Entry) -> dict[str, int]:
    """Costs that together take a share of the shortest distance of two files; by step, the worst case."""
    distance_us = min(feed["period"] - feed.get("jitter", 0) for feed in feeds.values())
    share = rng.choice((0.03, 0.08, 0.15, 0.3))
    budget_us = max(len(steps), int(distance_us * share))
    parts = {name: rng.randint(1, 10) for name in steps}
    costs_us = {}
    for name, entry in steps.items():
        cost_us = max(MILLISECOND, budget_us * parts[name] // sum(parts.values()))
        variability = rng.choice((0, 0, 0.2))
        entry["cost"] = {"startup": us(cost_us), "variability": variability}
        if rng.random() < 0.3:
            entry["cost"]["per_row"] = rng.choice(("1us", "20us", "200us"))
        if "sql" in entry and rng.random() < 0.3:
            entry["selectivity"] = rng.choice((0, 0.5, 2))
        costs_us[name] = int(cost_us * (1 + variability))
    return costs_us


def _deadline_us(
    rng: random.Random, output: str, steps: Entry, feeds: Entry, costs_us: dict[str, int]
) -> int:
    """Mostly beyond what its records wait for, with room for the work of all steps."""
    upstream = _upstream(output, steps)
    own = [feeds[steps[name]["feed"]] for name in upstream if "feed" in steps[name]]
    waits_us: int = max(
        max(feed.get("age", 0), feed.get("timestamp_jitter", 0)) + feed.get("lateness", 0) for feed in own
    )
    aligned = any("align" in steps[name] for name in upstream)
    if len(own) > 1 or aligned or any("lateness" in feed for feed in own):
        waits_us += max(feed["period"] + feed.get("jitter", 0) for feed in own) + (
            4 * SECOND if aligned else 0
        )
    draw = rng.random()
    if draw < 0.03:
        return max(1, waits_us // 2)
    if draw < 0.06:
        return waits_us + max(1, sum(costs_us[name] for name in upstream) // 2)
    work_us = 2 * sum(costs_us.values()) + 3 * 150 * MILLISECOND
    return waits_us + int(work_us * rng.uniform(1, 3))


def _upstream(name: str, steps: Entry) -> set[str]:
    read = sources_of(steps[name].get("sql", ""))
    return {name}.union(*(_upstream(source, steps) for source in read))
