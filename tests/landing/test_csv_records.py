"""Small plain files are read without Arrow, and as Arrow would."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.landing import csv_records
from freshline.landing.lines import LineBlock
from freshline.landing.records import UnreadableFile

NAMES = ("a", "ts", "b")
FIELDS = st.text(st.sampled_from("xé 0\0\t'\ufeff;\\"), max_size=4)
LINES = st.one_of(
    st.lists(FIELDS, min_size=3, max_size=3).map(",".join), st.text(st.sampled_from('x,, "'), max_size=6)
)


def read(block: LineBlock, names: Sequence[str], column: str, small: int) -> object:
    """The values, or that there are none; `small`: up to how many bytes a block is read without Arrow."""
    before, csv_records._SMALL = csv_records._SMALL, small  # type: ignore[misc]
    try:
        table = csv_records._table(block, names, [column], ",")
        return None if table is None else table.to_pylist()
    except (UnreadableFile, ValueError) as error:  # Arrow's own are such
        return type(error)
    finally:
        csv_records._SMALL = before  # type: ignore[misc]


@sampled(400)
@given(st.lists(LINES, min_size=1, max_size=5), st.sampled_from(NAMES), st.sampled_from([1, 3]))
def test_a_plain_block_has_the_values_that_arrow_finds(lines, column, columns):
    names = NAMES if columns == 3 else (column,)
    block = LineBlock(1, len(lines), "".join(f"{line}\n" for line in lines).encode())
    assert read(block, names, column, small=1 << 16) == read(block, names, column, small=0)


def test_what_is_plain_needs_no_arrow(monkeypatch):
    monkeypatch.setattr(csv_records, "pacsv", None)
    block = LineBlock(1, 2, "1,2026-01-01,é\n2,2026-01-02,\n".encode())
    table = csv_records._table(block, NAMES, ["ts", "a"], ",")
    assert table is not None
    assert table.to_pydict() == {"ts": ["2026-01-01", "2026-01-02"], "a": ["1", "2"]}
