"""A feed with many late rows is warned of, with the lateness that would have caught them."""

import pytest

from freshline.live.tables.late_rows import is_much_late, late_sentence
from place import Place


@pytest.mark.parametrize(("late", "rows", "much"), [(0, 10, False), (1, 1_000, False), (2, 1_999, True)])
def test_more_than_one_in_a_thousand_is_much(late: int, rows: int, much: bool) -> None:
    assert is_much_late(late, rows, 1) == much
    assert not is_much_late(late, rows, 0)


@pytest.mark.parametrize(
    ("lateness_us", "said"), [(1, "1ms"), (1_500, "2ms"), (1_000_001, "2s"), (61_000_000, "1m 1s")]
)
def test_the_lateness_that_would_do_is_rounded_up(lateness_us: int, said: str) -> None:
    sentence = late_sentence("hits", "web", 31, 1_000, lateness_us)
    assert sentence == (
        "hits: 31 of 1,000 rows (3.1%) came late, and derived tables lack them until `freshline rebuild`: "
        f"`lateness: {said}` of feed web would have caught them"
    )


@pytest.mark.spark
def test_a_run_warns_of_ties_between_files(tmp_path, spark, caplog) -> None:
    place = Place(tmp_path, spark)
    place.land("orders", 1)
    place.run()
    for name in ("tie", "older"):
        path = place.land("orders", 1)
        path.rename(path.with_name(f"{name}.json"))
    place.land("orders", 2)
    place.run()
    orders = place.runner.status().tables[0]
    assert orders.late_rows == 2
    assert "`lateness: 1ms` of feed orders would have caught them" in orders.late_warning
    assert "of feed orders would have caught them" in caplog.text
    assert any("came late" in note for note in place.said[-1].broken_assumptions)
