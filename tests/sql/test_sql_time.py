"""What is said of a time holds for whatever row: compared with the values themselves."""

from hypothesis import given
from hypothesis import strategies as st

from freshline.sql.time import Time, newest

WIDTHS = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 10, 12, 60])
STEPS = st.lists(
    st.tuples(st.sampled_from(["shift", "floor", "truncate", "coarsen"]), st.integers(-70, 70), WIDTHS),
    max_size=6,
)
ROWS = st.integers(1, 300)


def computed(steps: list[tuple[str, int, int]], row: int) -> tuple[Time, int]:
    """A time, and its value for a row."""
    time, value = Time(), row
    for step, by, width in steps:
        if step == "shift":
            time, value = time.shifted(by), value + by
        elif step == "floor":
            time, value = time.floored(width), value // width * width
        elif step == "truncate":
            time, value = time.truncated(width), int(value / width) * width
        else:
            time = time.coarsened(width)
    return time, value


@given(STEPS, ROWS)
def test_a_value_lies_where_its_time_says(steps, row):
    time, value = computed(steps, row)
    start = row // time.step_us * time.step_us
    assert start + time.low_us <= value <= start + time.high_us


@given(STEPS, ROWS, ROWS)
def test_an_own_time_has_come_at_a_windows_edge_when_its_row_has(steps, row, windows):
    time, value = computed(steps, row)
    edge = windows * time.step_us - 1
    if time.is_own:
        assert (value <= edge) == (row <= edge)


@given(STEPS, ROWS, ROWS)
def test_rows_that_a_time_does_not_tell_apart_are_of_one_window(steps, row, other):
    time, value = computed(steps, row)
    _, another = computed(steps, other)
    if time.tells_apart and value == another:
        assert row // time.step_us == other // time.step_us


@given(STEPS, STEPS, ROWS, ROWS)
def test_the_newest_of_two_times_is_in_the_newest_rows_window(steps, more, row, other):
    one, value = computed(steps, row)
    two, another = computed(more, other)
    time = newest([one, two])
    if time is None:
        assert not (one.is_own and two.is_own)
    else:
        start = max(row, other) // time.step_us * time.step_us
        assert start + time.low_us <= max(value, another) <= start + time.high_us
        assert time.is_own
