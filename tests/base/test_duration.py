"""Durations: what people write, the microseconds it is, and what people read."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshline.base.duration import (
    DAY,
    DURATION_PATTERN,
    HOUR,
    MILLISECOND,
    MINUTE,
    SECOND,
    WEEK,
    format_duration,
    parse_duration,
)
from freshline.base.errors import InputError

SHORTEST_NAMES = {"us": 1, "ms": MILLISECOND, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("5 minutes", 5 * MINUTE),
        ("300s", 5 * MINUTE),
        ("1h 30m", 90 * MINUTE),
        ("1h30m", 90 * MINUTE),
        ("0.5 s", 500 * MILLISECOND),
        ("1 day", DAY),
        ("2 Weeks", 2 * WEEK),
        ("250 ms", 250 * MILLISECOND),
        ("7µs", 7),
        ("0.000001s", 1),
        ("  10 secs  ", 10 * SECOND),
        ("0", 0),
        ("0s", 0),
    ],
)
def test_a_duration_is_read_as_people_write_it(text: str, microseconds: int) -> None:
    assert parse_duration(text) == microseconds
    assert re.search(DURATION_PATTERN, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the duration is empty. Write a number and a unit, such as '5 minutes' or '300s'."),
        ("soon", "'soon' is not a duration. Write a number and a unit, such as '5 minutes' or '300s'."),
        ("300", "'300' is not a duration. Write a number and a unit, such as '5 minutes' or '300s'."),
        ("-5s", "'-5s' is not a duration. Write a number and a unit, such as '5 minutes' or '300s'."),
        ("1:30", "'1:30' is not a duration. Write a number and a unit, such as '5 minutes' or '300s'."),
        ("5 moons", "'5 moons' has the unknown unit 'moons'. Use us, ms, s, m, h, d or w, or their names."),
        ("0.5us", "'0.5us' is finer than a microsecond. Round it to whole microseconds."),
        ("6000 weeks", "'6000 weeks' is longer than a hundred years. Give a shorter duration."),
    ],
)
def test_what_is_not_a_duration_is_refused_with_a_remedy(text: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_duration(text)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x" * 100_000, "'{}…' is not a duration"),
        ("5" + "x" * 100_000, "'{}…' has the unknown unit 'xxxxx"),
        ("0." + "1" * 100_000 + "s", "'{}…' is finer than a microsecond"),
        ("9" * 100_000 + "s", "'{}…' is longer than a hundred years"),
    ],
)
def test_an_endless_duration_is_not_repeated_whole(text: str, what: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_duration(text)
    assert raised.value.what.startswith(what.format(text[:100]))
    assert len(str(raised.value)) < 400


@given(st.integers(0, 10**15), st.sampled_from(sorted(SHORTEST_NAMES)))
def test_a_whole_number_of_units_is_exact(count: int, unit: str) -> None:
    microseconds = count * SHORTEST_NAMES[unit]
    if microseconds <= 100 * 366 * DAY:
        assert parse_duration(f"{count}{unit}") == microseconds


@given(st.integers(0, 100 * 366 * DAY))
def test_microseconds_written_in_seconds_are_read_back(microseconds: int) -> None:
    assert parse_duration(f"{Decimal(microseconds) / SECOND:f}s") == microseconds


@given(st.lists(st.tuples(st.integers(0, 1000), st.sampled_from(sorted(SHORTEST_NAMES))), min_size=1))
def test_a_sum_of_parts_is_the_parts_sum(parts: list[tuple[int, str]]) -> None:
    microseconds = sum(count * SHORTEST_NAMES[unit] for count, unit in parts)
    if microseconds <= 100 * 366 * DAY:
        assert parse_duration(" ".join(f"{count} {unit}" for count, unit in parts)) == microseconds


@pytest.mark.parametrize(
    ("microseconds", "text"),
    [
        (None, "-"),
        (0, "0s"),
        (999, "999µs"),
        (1_500, "1.5ms"),
        (999_499, "999ms"),
        (999_999, "1s"),
        (2_500_000, "2.5s"),
        (59_999_999, "1m"),
        (90 * SECOND, "1m 30s"),
        (HOUR - 1, "1h"),
        (90 * MINUTE, "1h 30m"),
        (DAY + HOUR + MINUTE, "1d 1h 1m"),
        (5 * DAY + HOUR + MINUTE, "5d 1h"),
        (-90 * SECOND, "-1m 30s"),
    ],
)
def test_a_duration_is_shown_to_about_three_digits(microseconds: int | None, text: str) -> None:
    assert format_duration(microseconds) == text


@given(st.integers(1, 100 * 366 * DAY))
def test_a_duration_that_is_shown_is_read_back_within_a_twentieth(microseconds: int) -> None:
    shown = parse_duration(format_duration(microseconds))
    assert abs(shown - microseconds) <= microseconds / 20


@given(st.integers(1, 100 * 365 * DAY))
def test_a_bound_is_never_shown_as_less_than_it_is(microseconds: int) -> None:
    assert parse_duration(format_duration(microseconds, up=True)) >= microseconds
