"""Timestamps in the names of data files."""

from datetime import UTC, datetime

import pytest

from freshline.base.errors import InputError
from freshline.base.instants import epoch_us
from freshline.definitions.sections.name_timestamp import check_pattern, instant_in_name

NOON = epoch_us(datetime(2024, 5, 6, 12, tzinfo=UTC))


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("packets-%Y%m%dT%H%M.csv", "packets-20240506T1200.csv"),
        ("packets-%Y%m%dT%H%M.csv", "site/packets-20240506T1200.csv"),
        ("%Y/%m/%d/%H.json.gz", "site/2024/05/06/12.json.gz"),
        ("%Y-%m-%dT%H%M%z.csv", "2024-05-06T1400+0200.csv"),
        ("%Y-%m-%d_%H-%M-%S.%f.csv", "2024-05-06_12-00-00.000000.csv"),
    ],
)
def test_a_name_tells_the_instant_in_utc_where_it_says_no_zone(pattern: str, name: str) -> None:
    assert check_pattern(pattern) == pattern
    assert instant_in_name(pattern, name) == NOON


@pytest.mark.parametrize("name", ["packets-20240506.csv", "packets-20241306T1200.csv", "packets.csv", ""])
def test_a_name_of_another_pattern_tells_none(name: str) -> None:
    assert instant_in_name("packets-%Y%m%dT%H%M.csv", name) is None


@pytest.mark.parametrize("pattern", ["%Y.csv", "%y%m.csv", "%Y-%j.csv", "%d.%m.%Y %I %p"])
def test_a_pattern_may_end_at_any_part_of_an_instant(pattern: str) -> None:
    assert check_pattern(pattern) == pattern


@pytest.mark.parametrize("pattern", ["%H%M", "%Y-%H", "%m%d", "%%", "%Y%Y", "%Q", "100%", "plain"])
def test_a_pattern_that_tells_no_instant_is_refused(pattern: str) -> None:
    with pytest.raises(InputError):
        check_pattern(pattern)
