"""The pages in docs/ are what the experiments write of the results beside them."""

import json
from pathlib import Path

from freshline.experiments import outage_page, staleness_page

DOCS = Path(__file__).parent.parent.parent / "docs"


def test_the_page_on_outages_is_what_its_experiment_writes() -> None:
    folder = DOCS / "outage-recovery"
    record = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert (folder / "page.md").read_text(encoding="utf-8") == outage_page._page(record)


def test_the_page_on_staleness_is_what_its_experiment_writes() -> None:
    folder = DOCS / "staleness-bounds"
    record = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    settings = list(staleness_page._settings(record["outcomes"]))
    assert (folder / "page.md").read_text(encoding="utf-8") == staleness_page._page(record, settings)
