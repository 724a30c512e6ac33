"""A CSV feed may have another character between its values."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshline.base.errors import InputError
from freshline.definitions.load import loads
from freshline.definitions.sections.feed_entry import DELIMITERS
from freshline.definitions.sections.feeds import Landing
from freshline.landing.record_reader import RecordReader
from freshline.landing.records import UnreadableFile

PROJECT = """\
name: shop
pools: {{updates: {{tracks: 1}}}}
feeds:
  a: {{period: 1s, path: landing, format: csv, schema: "ts timestamp", timestamp: ts, delimiter: {}}}
tables: {{a: {{feed: a, cost: {{startup: 1ms}}}}}}
"""
TEXTS = st.text(st.sampled_from("xy ,;|^~'"), max_size=5)


def reader(delimiter: str) -> RecordReader:
    landing = Landing(format="csv", schema="ts timestamp, note string", timestamp="ts", delimiter=delimiter)
    return RecordReader(landing)


@given(st.sampled_from(DELIMITERS), st.lists(TEXTS, min_size=1, max_size=5))
def test_records_are_divided_at_the_delimiter(tmp_path_factory, delimiter: str, texts: list[str]) -> None:
    path: Path = tmp_path_factory.mktemp("a") / "a.csv"
    lines = [f'2026-01-01T00:00:0{second}Z{delimiter}"{text}"' for second, text in enumerate(texts)]
    blank = "\t\t" if delimiter == "\t" else ""
    path.write_text("\n".join([f"ts{delimiter}note", *lines, blank, ""]), encoding="utf-8")
    found = reader(delimiter).read(path)
    assert (found.count, found.newest_us % 60_000_000) == (len(texts), (len(texts) - 1) * 1_000_000)


def test_a_header_with_another_delimiter_is_another_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("ts,note\n2026-01-01T00:00:00Z,x\n", encoding="utf-8")
    with pytest.raises(UnreadableFile, match="its header is ts,note"):
        reader(";").read(path)


def test_the_delimiter_is_one_of_a_few() -> None:
    assert loads(PROJECT.format('"\\t"')).feeds["a"].landing.delimiter == "\t"
    with pytest.raises(InputError, match="is not a delimiter"):
        loads(PROJECT.format("ab"))
    with pytest.raises(InputError, match="csv files only"):
        loads(PROJECT.format('";"').replace("format: csv", "format: json"))
