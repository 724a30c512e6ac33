"""Files that change little are not loaded; every other row is, once, whatever is loaded together."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from freshline.landing.key_values import digest
from freshline.live.tables.file_to_load import FileToLoad
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.last_values import DiscardLimit, LastValues
from freshline.storage.delta.ledger import Ledger
from plant import SCHEMA, SECOND, START, File, Plant, values

FILES = st.lists(
    st.builds(
        File,
        st.lists(
            st.tuples(
                st.integers(0, 30),
                st.sampled_from(["a", "b"]),
                st.sampled_from([0.0, 1.0, 1.05, 1.1, 2.0, -1.0, float("nan")]),
            ),
            min_size=1,
            max_size=3,
        ).map(tuple),
        st.sampled_from([0.0, 0.05, 0.1, 1.0]),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


@sampled(25)
@given(FILES, st.data())
def test_no_other_table_loses_a_row_and_no_key_is_further_off_than_allowed(
    tmp_path_factory, files: list[File], data
) -> None:
    plant = Plant(tmp_path_factory.mktemp("plant"))
    coming = [each for file in files for each in ([file, file] if file.again else [file])]
    waiting: list[tuple[File, FileToLoad]] = []
    newest: dict[str, tuple[int, float]] = {}  # what a reader of every file would know
    allowed: dict[str, float] = {}
    left_out: set[str] = set()
    for number, file in enumerate(coming):
        waiting.append((file, plant.find(number, file)))
        if number + 1 < len(coming) and data.draw(st.booleans()):
            continue
        plant.load("all", [found for _, found in waiting])
        committed = plant.load("few", [found for _, found in waiting])
        left_out |= {each.name for each in committed.consumed if each.discarded}
        assert committed.freshness == plant.tables["few"].freshness
        assert committed.computed == (committed.discarded < len(waiting))
        for each, found in sorted(waiting, key=lambda pair: pair[1]):
            for second, sensor, v in sorted(each.rows, key=lambda row: row[0]):
                if sensor not in newest or newest[sensor][0] <= second:
                    newest[sensor] = (second, v)
                    was_left = found.name in left_out
                    allowed[sensor] = max(allowed.get(sensor, 0.0), each.mwde) if was_left else 0.0
        waiting = []
        if data.draw(st.booleans()):
            plant.open()  # the runner was killed
    every = sorted(row for file in coming for row in file.rows)
    assert _comparable(plant.rows("all")) == _comparable(every)
    kept = [file for number, file in enumerate(coming) if f"{number}.csv" not in left_out]
    assert _comparable(plant.rows("few")) == _comparable(sorted(row for file in kept for row in file.rows))
    for sensor, (_, v) in newest.items():
        of_sensor = [row for row in plant.rows("few") if row[1] == sensor]
        last = [row[2] for row in of_sensor if row[0] == max(second for second, _, _ in of_sensor)]
        if allowed[sensor] and len(last) == 1:
            assert abs(last[0] - v) <= allowed[sensor] * abs(last[0])


def _comparable(rows: Sequence[tuple[int, str, float]]) -> list[str]:
    return sorted(map(repr, rows))


def test_a_discarded_file_is_known_as_consumed_whatever_becomes_of_the_ledger(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    plant.load("few", [plant.find(1, File(((1, "a", 10.0),), 0.0))])
    committed = plant.load("few", [plant.find(2, File(((2, "a", 10.5),), 0.1))])
    assert (committed.rows, committed.discarded, committed.computed) == (0, 1, False)
    assert plant.tables["few"].freshness == START + 2 * SECOND
    mixed = [plant.find(3, File(((3, "a", 10.6),), 0.1)), plant.find(4, File(((4, "a", 20.0),), 0.1))]
    committed = plant.load("few", mixed)
    assert (committed.rows, committed.discarded, committed.computed) == (1, 1, True)
    assert plant.computed == ["1.csv", "4.csv"]
    for name in ("one.sqlite", "made-anew.sqlite"):
        ledger = Ledger(tmp_path / name)
        ledger.catch_up("few", plant.tables["few"])
        found = {number: ledger.find("few", f"{number}.csv") for number in (1, 2, 3, 4)}
        assert {number: each and each.discarded for number, each in found.items()} == {
            1: False,
            2: True,
            3: True,
            4: False,
        }
        ledger.close()


def test_what_a_job_has_stored_that_failed_is_not_known(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    plant.load("few", [plant.find(1, File(((1, "a", 10.0), (1, "b", 10.0)), 0.0))])
    plant.updater.fails = True
    with pytest.raises(OSError, match="after the commit"):
        plant.load("few", [plant.find(2, File(((2, "a", 50.0),), 0.0))])
    plant.updater.fails = False
    found = [
        plant.find(3, File(((3, "b", 10.5),), 0.1)),
        plant.find(4, File(((4, "a", 10.5),), 0.1)),
        plant.find(5, File(((5, "a", 11.0),), 0.1)),
    ]
    # 10.5 would be close to what was known before the failure; what follows is known again.
    assert [each.discarded for each in plant.load("few", found[:2]).consumed] == [True, False]
    assert [each.discarded for each in plant.load("few", found[2:]).consumed] == [True]
    assert plant.discarding.last_values["few"].waiting == 1  # the one that failed


def test_what_is_stored_of_a_file_that_was_overwritten_meanwhile_is_not_known(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    plant.load("few", [plant.find(1, File(((1, "a", 10.0),), 0.0))])
    found = plant.find(2, File(((2, "a", 50.0),), 0.0))
    path = tmp_path / "readings" / "2.csv"
    path.write_text(path.read_text().replace("50.0", "99.0"))  # the same record of the same time
    plant.load("few", [found])
    assert plant.rows("few")[-1] == (2, "a", 99.0)
    near = plant.load("few", [plant.find(3, File(((3, "a", 50.0),), 0.1))])
    assert [each.discarded for each in near.consumed] == [False]
    same = plant.load("few", [plant.find(4, File(((4, "a", 50.0),), 0.1))])
    assert [each.discarded for each in same.consumed] == [True]


def test_what_somebody_else_has_written_is_not_known(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    plant.load("few", [plant.find(1, File(((1, "a", 10.0),), 0.0))])
    at = START + 2 * SECOND
    row = pa.table({"ts": [at], "sensor": ["a"], "v": [99.0], "_late": [False]})
    write_deltalake(tmp_path / "few", row.cast(SCHEMA), mode="append")
    plant.load("few", [plant.find(3, File(((3, "b", 1.0),), 0.0))])  # it makes the run see that commit
    near = plant.load("few", [plant.find(4, File(((4, "a", 10.0),), 0.1))])
    assert [each.discarded for each in near.consumed] == [False]


def test_values_are_found_again_as_far_as_they_are_certain(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    plant.load("few", [plant.find(1, File(((1, "a", 10.0), (2, "b", 5.0), (9, "c", 1.0)), 0.0))])
    plant.load("few", [plant.find(2, File(((10, "a", 11.0), (10, "b", 7.0), (10, "b", 8.0)), 0.0))])
    stored = plant.tables["few"]
    columns = plant.discarding._columns["few"]
    for rows_max, known in ((100, {"a": 11.0, "b": None, "c": 1.0}), (4, {"a": 11.0, "b": None})):
        values = LastValues()
        values.recall(stored, *columns, rows_max=rows_max)
        found = {key: values._stored.get(digest(key)) for key in "abc"}
        assert {key: each.value for key, each in found.items() if each} == known


def test_a_table_weighs_errors_as_those_who_read_it_do(tmp_path: Path) -> None:
    plant = Plant(tmp_path)
    plant.load("few", [plant.find(1, File(((1, "a", 10.0),), 0.0))])
    plant.discarding.limit("updates", 0.1)
    found = {"few": values(START + 2 * SECOND, a=11.0)}
    plant.discarding.read("few", 1.5, 0)
    plant.discarding.read("all", 9.0, 0)  # it has no `discard`
    assert plant.discarding.offers(found, 0)["few"].limit is None
    plant.open()
    plant.discarding.limit("updates", 0.1)
    plant.discarding.read("few", 1.5, 0)
    assert plant.discarding.offers(found, 5 * SECOND)["few"].limit == DiscardLimit(0.1, 1.0)


def test_a_ledger_of_an_older_version_is_taken_over(tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "ledger.sqlite") as old:
        old.executescript(
            "CREATE TABLE consumed (table_name TEXT NOT NULL, name TEXT NOT NULL, size INTEGER NOT NULL, "
            "mtime_ns INTEGER NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (table_name, name)) WITHOUT ROWID;"
            "INSERT INTO consumed VALUES ('few', '1.csv', 1, 2, 'x');"
        )
    old.close()
    ledger = Ledger(tmp_path / "ledger.sqlite")
    assert ledger.find("few", "1.csv") == ConsumedFile("1.csv", 1, 2, "x")
    ledger.remember("few", ConsumedFile("2.csv", 1, 2, "y", discarded=True))
    assert ledger.find("few", "2.csv") == ConsumedFile("2.csv", 1, 2, "y", discarded=True)
    ledger.close()
