"""Paper 002's evaluation: its placement, its worked schedules, and the miss rates at fifteen tuples."""

import json

import pytest

from freshline_lab.experiments.placement.collision_schedules import schedules
from freshline_lab.experiments.placement.placement import (
    METHODS,
    PAPER_RATES,
    TUPLES_MOST,
    miss_rates,
    placements,
    requirements,
)
from freshline_lab.experiments.placement.placement_page import write_live_page, write_page


def test_the_placement_is_the_papers() -> None:
    found = placements()
    assert (found["deadline"]["O3"], found["sqpr"]["O3"]) == ("node2", "node1")
    assert found["objective"] == {"node1": pytest.approx(0.75), "node2": 0.0}
    assert found["sub_deadlines_ms"] == pytest.approx(
        {"O1": 30, "O2": 30, "O3": 30, "O4 ... O21": 240, "O5, O6": 3000}
    )


def test_the_schedules_of_section_4_1_are_the_papers() -> None:
    assert schedules() == {
        "figure 3, p2 first": {"p1": 50, "p2": 300},
        "figure 3, p1 first": {"p1": 10, "p2": 310},
        "figure 4": {"p1": 30, "p2": 300},
        "figure 4, first in, first out": {"p1": 30, "p2": 480},
    }


def test_miss_rates_are_those_of_the_reading_and_a_page_says_so(tmp_path) -> None:
    rates = [miss_rates(method, 15, 5) for method in METHODS]
    rates += [miss_rates(METHODS[0], v2v, 1) for v2v in (1, TUPLES_MOST)]
    record = {
        "placement": placements(),
        "schedules": schedules(),
        "miss_rates": rates,
        "paper": {
            "v2v": 15,
            "miss_rates": dict.fromkeys(METHODS, 0.0),
            "sub_deadlines_ms": {"O1": 30},
        },
        "trials": 5,
    }
    record["requirements"] = requirements(record)
    assert [each["required"] for each in record["requirements"] if not each["met"]] == []
    of = {each["method"]: each for each in rates[:4]}
    assert (of["DeadlineAlloc.FIFO"]["output1"], of["DeadlineAlloc.FIFO"]["output2"]) == (0.0, 100.0)
    assert write_page({**record, "miss_rates": rates[:4]}, tmp_path).read_text().count("| met |") == 6


def test_a_live_run_has_a_page_with_paper_and_measured(tmp_path) -> None:
    rates = dict.fromkeys(("miss_rate", "output1", "output2", "all_outputs"), 12.345)
    record = {"stretch": 500, "miss_rates": [{"method": METHODS[1], **rates}], "in_order": True}
    page = write_live_page(record, PAPER_RATES, tmp_path / "made").read_text(encoding="utf-8")
    assert "| ExistingAlloc.EDF | 15.6 | 12.3 | 12.3 | 12.3 | 12.3 |" in page
    assert "In the paper's order: yes." in page
    assert json.loads((tmp_path / "made" / "live.json").read_text(encoding="utf-8")) == record
