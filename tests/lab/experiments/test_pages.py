"""The pages in docs/ are what the experiments write of the results beside them, the version apart."""

import json
from pathlib import Path
from typing import Any

from freshline import __version__
from freshline_lab.experiments.outages import outage_page
from freshline_lab.experiments.placement import placement_page
from freshline_lab.experiments.queries import continuous_page
from freshline_lab.experiments.staleness import staleness_page

DOCS = Path(__file__).parents[3] / "docs"


def page_and_results(experiment: str) -> tuple[str, dict[str, Any]]:
    """The page as this version would have signed it."""
    title, signed, rest = (DOCS / experiment / "page.md").read_text(encoding="utf-8").split("\n\n", 2)
    word, _, seeds = signed.split(" ", 2)
    assert word == "Freshline"
    results = json.loads((DOCS / experiment / "results.json").read_text(encoding="utf-8"))
    return "\n\n".join([title, f"{word} {__version__}, {seeds}", rest]), results


def test_the_page_on_outages_is_what_its_experiment_writes() -> None:
    page, record = page_and_results("outage-recovery")
    assert page == outage_page._page(record)


def test_the_page_on_staleness_is_what_its_experiment_writes() -> None:
    page, record = page_and_results("staleness-bounds")
    assert page == staleness_page._page(record, list(staleness_page._settings(record["outcomes"])))


def test_the_page_on_continuous_queries_is_what_its_experiment_writes() -> None:
    page, record = page_and_results("continuous-queries")
    assert page == continuous_page.page_of(record)
    assert all(requirement["met"] for requirement in record["requirements"])


def test_the_page_on_placement_is_what_its_experiment_writes() -> None:
    page, record = page_and_results("placement-experiment")
    assert page == placement_page.page_of(record)
    assert all(requirement["met"] for requirement in record["requirements"])
