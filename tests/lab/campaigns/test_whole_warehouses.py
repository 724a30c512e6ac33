"""Warehouses with every kind of work: what is proven of each kind holds beside all others."""

from pathlib import Path

import pytest

from cases import cases
from freshline.definitions.live_checks import check_runnable
from freshline.definitions.load import loads
from freshline_lab.campaigns.whole.documents import whole_text
from freshline_lab.campaigns.whole.entries import written
from freshline_lab.campaigns.whole.faults import random_conditions
from freshline_lab.campaigns.whole.live_projects import live_project
from freshline_lab.campaigns.whole.live_run import check_live
from freshline_lab.campaigns.whole.whole_run import check_whole

WAREHOUSES = 150


@pytest.mark.sampled
def test_all_promises_hold_beside_each_other_and_runs_replay():
    wrong = {}
    for seed in range(cases(WAREHOUSES, one_in=15)):
        report = check_whole(seed)
        if report.wrong:
            wrong[seed] = report.wrong
    assert not wrong


@pytest.mark.parametrize("seed", [565, 1163, 1256])
def test_an_output_whose_bursts_may_meet_spoils_no_other(seed: int):
    assert check_whole(seed).wrong == []


def test_nodes_crash_alone_too():
    conditions = [random_conditions(loads(whole_text(seed)), seed) for seed in range(60)]
    assert any(each.node_crashes for each in conditions)
    assert any(each.crashes for each in conditions)


def test_a_seed_gives_the_same_file_and_every_kind_of_work_comes_up():
    assert whole_text(3) == whole_text(3)
    warehouses = [loads(whole_text(seed)) for seed in range(40)]
    for section in ("tables", "queries", "classes", "nodes", "steps"):
        having = sum(bool(getattr(warehouse, section)) for warehouse in warehouses)
        assert having >= 20, section
    assert any(table.discard for each in warehouses for table in each.tables.values())
    assert any(feed.shed for each in warehouses for feed in each.feeds.values())
    over_steps = (
        not each.steps.keys().isdisjoint(table.sources)
        for each in warehouses
        for table in each.tables.values()
    )
    assert any(over_steps)


def test_the_projects_for_spark_can_run():
    for seed in range(40):
        check_runnable(loads(written(live_project(seed).document)))


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_on_spark_every_row_is_there_once_and_bounds_are_kept_or_explained(seed: int, tmp_path: Path):
    assert check_live(seed, tmp_path).wrong == []
