"""Rows of windows, counted by what updates said that they loaded."""

from hypothesis import given
from hypothesis import strategies as st

from freshline.live.queries.window_rows import WindowRows
from freshline.storage.delta.files import LiveFile


def counted(window: int, *files: LiveFile) -> WindowRows:
    counting = WindowRows({"a": files}.__getitem__)
    counting.keep("a", window)
    return counting


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 200)), min_size=1, max_size=30),
    st.integers(1, 400),
    st.integers(0, 10),
)
def test_windows_at_the_edges_of_updates_are_counted_exactly(loads, window: int, known: int) -> None:
    """Some of the updates were there before the run, as files."""
    edges, rows, files = [0], [], []
    counting: WindowRows | None = None
    for number, (length, count) in enumerate(loads):
        after, to = edges[-1], edges[-1] + length
        edges.append(to)
        rows.append((after, to, count))
        if number < known:
            files.append(LiveFile(f"{number}", count, 1, after + 1, to))
            continue
        if counting is None:
            counting = counted(window, *files)
        counting.loaded("a", after, to, count)
    if counting is None:
        counting = counted(window, *files)
    end = edges[-1]
    for start in edges:
        if end - start <= window:
            assert counting.rows("a", start, end) == sum(n for after, _, n in rows if after >= start)


def test_what_an_empty_table_loads_first_is_counted_in_its_window() -> None:
    counting = counted(60)
    counting.loaded("a", 0, 1_000_000, 500)
    assert 490 <= counting.rows("a", 1_000_000 - 60, 1_000_000) <= 500


def test_a_file_without_statistics_is_counted_as_the_newest() -> None:
    counting = counted(100, LiveFile("x", 7, 1, 50, 50), LiveFile("y", 5, 1, None, None))
    assert counting.rows("a", 0, 49) == 0
    assert counting.rows("a", 49, 60) == 7
    assert counting.rows("a", 49, 1 << 62) == 12


def test_what_no_window_reaches_is_forgotten() -> None:
    counting = counted(100)
    for number in range(10_000):
        counting.loaded("a", number * 10, number * 10 + 10, 3)
    assert len(counting._loaded["a"]) <= 12
    assert counting.rows("a", 99_900, 100_000) == 30


def test_a_longer_window_is_counted_from_what_is_stored() -> None:
    files = [LiveFile("x", 7, 1, 1, 50)]
    counting = WindowRows(lambda table: files)
    counting.keep("a", 10)
    counting.loaded("a", 50, 100, 3)
    files.append(LiveFile("y", 3, 1, 51, 100))
    counting.keep("a", 100)
    assert counting.rows("a", 0, 100) == 10


def test_a_window_that_another_table_holds_back_is_counted_in_the_files() -> None:
    files: list[LiveFile] = []
    counting = WindowRows(lambda table: files)
    counting.keep("a", 100)
    for number in range(1_000):
        files.append(LiveFile(f"{number}", 3, 1, number * 10 + 1, number * 10 + 10))
        counting.loaded("a", number * 10, number * 10 + 10, 3)
    assert counting.rows("a", 2_000, 2_100) == 30
    assert counting.rows("a", 9_900, 10_000) == 30


def test_what_nobody_asks_for_is_not_counted() -> None:
    counting = counted(10)
    counting.loaded("b", 0, 10, 5)
    assert "b" not in counting._loaded
