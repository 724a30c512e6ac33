"""The staleness experiment, with very few events: it runs, and leaves what it promises."""

import json
from pathlib import Path

from freshline_lab.experiments.staleness.staleness_bounds import (
    COMPARED,
    FILLS,
    PHASES,
    TRACKS,
    cases,
    run,
    run_case,
)

EVENTS = 1_000


def test_results_page_and_figure_are_written_and_every_bound_holds(tmp_path: Path) -> None:
    record = run(tmp_path / "new", events=EVENTS, quiet=True)
    assert json.loads((tmp_path / "new" / "results.json").read_text(encoding="utf-8")) == record
    assert (tmp_path / "new" / "figure.png").read_bytes().startswith(b"\x89PNG")
    outcomes = record["outcomes"]
    assert len(outcomes) == len(FILLS) * len(PHASES) * len(TRACKS) * (len(COMPARED) + 1)
    events = [outcome["events"] for outcome in outcomes]
    assert min(events) >= EVENTS
    page = (tmp_path / "new" / "page.md").read_text(encoding="utf-8")
    assert f"a simulation: {min(events):,} to {max(events):,}, as results.json says of each" in page
    bounded = [outcome for outcome in outcomes if outcome["bound_mws"] is not None]
    assert {outcome["policy"] for outcome in bounded} == {
        "NP-GEDF",
        "C-NP-GEDF",
        "a track for each table",
    }
    for outcome in bounded:
        assert outcome["observed_mws"] <= outcome["bound_mws"]
        # Ours is the smaller one, but rounded up to whole microseconds.
        assert outcome["bound_mws"] <= outcome["paper_bound_mws"] * (1 + 1e-9)


def test_a_run_goes_on_until_there_are_enough_events_where_starts_absorb_releases() -> None:
    case = next(case for case in cases(20_000, 0) if case.policy.name == "prp" and case.phases == "uniform")
    outcome = run_case(case)
    assert outcome.events >= 20_000
    # Fewer completions than releases: a run as long as under another policy would have been too short.
    assert outcome.jobs < 0.95 * outcome.events / 2
