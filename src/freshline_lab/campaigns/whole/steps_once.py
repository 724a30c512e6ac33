"""Checks in a journal that every step continues from its last commit, and loads every file once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from freshline.definitions.warehouse import Warehouse


def steps_not_once(warehouse: Warehouse, calls: Iterable[dict[str, Any]]) -> Iterator[str]:
    """What steps loaded twice, left out, or took out of order, by the calls of a journal."""
    loaders = {step.feed: name for name, step in warehouse.steps.items() if step.feed is not None}
    arrived: dict[str, list[int]] = {name: [] for name in loaders.values()}
    loaded: dict[str, list[int]] = {name: [] for name in loaders.values()}
    reached = dict.fromkeys(warehouse.steps, 0)
    running: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for call in calls:
        if "restarted" in call:
            running.clear()
        for event in call.get("events", ()):
            loader = loaders.get(event.get("arrived"))
            # A new runner finds files again. A file of timestamp 0 has nothing to load.
            if loader is not None and event["timestamp"] > 0 and event["file"] not in arrived[loader]:
                arrived[loader].append(event["file"])
            for part in running.pop((event.get("committed"), event.get("job")), ()):
                step = part["step"]
                if part["from"] != reached[step]:
                    yield f"once: {step} continues from {part['from']}, was at {reached[step]}"
                reached[step] = part["to"]
                loaded.get(step, []).extend(part.get("files", ()))
        for instruction in call.get("instructions", ()):
            if "parts" in instruction and instruction.get("start") in warehouse.steps:
                running[instruction["start"], instruction["job"]] = instruction["parts"]
    for step, files in loaded.items():
        if files != arrived[step][: len(files)]:
            yield f"once: {step} loaded {files} of {arrived[step]}"
