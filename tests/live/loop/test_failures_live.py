"""Storage and feeds in trouble during a run: it is shown, tried again, and nothing is lost or twice."""

import errno
import os
import sqlite3

import pytest
from deltalake import DeltaTable

from cases import rest_in_soak
from freshline.definitions.load import loads
from freshline.landing.digest import content_digest
from freshline.live.loop.run_notes import Overruns
from freshline.live.status.status import WarehouseStatus
from freshline.live.tables.housekeeping import Housekeeper
from freshline.live.tables.landing_feeds import LandingFeeds
from freshline.live.tables.load_records import LoadRecords
from freshline.spark.errors import is_of_a_row, sentence, spark_ended
from freshline.storage.control.history import History
from freshline.storage.control.quarantine import Quarantine
from freshline.storage.delta.files import ConsumedFile
from freshline.storage.delta.ledger import Ledger
from freshline.storage.delta.stored_table import StoredTable
from patience import PATIENCE_US, wait_until
from place import PROJECT, Place

OVERRUNS = "orders: {feed: orders, cost: {startup: 1ms}}"


@pytest.fixture
def place(tmp_path, spark) -> Place:
    place = Place(tmp_path, spark)
    for number in (1, 2, 3):
        place.land("orders", number)
        place.land("clicks", number)
    return place


def full_disk() -> OSError:
    return OSError(errno.ENOSPC, "No space left on device")


def test_a_table_that_cannot_commit_is_tried_again_and_holds_up_only_what_depends_on_it(place, monkeypatch):
    failures = []
    commit = StoredTable.commit

    def failing(self, *arguments, **options):
        clicks = place.runner.tables["clicks"].sequence
        if self.path.name == "orders" and (len(failures) < 2 or clicks < 3):
            failures.append(clicks)
            raise full_disk()
        return commit(self, *arguments, **options)

    monkeypatch.setattr(StoredTable, "commit", failing)
    place.run()
    assert len(failures) >= 2
    shown = [status.tables for status in place.said if status.tables[0].state == "FAILED"]
    assert {tables[0].message for tables in shown} == {"the disk is full"}
    assert {tables[2].state for tables in shown} == {"UPSTREAM_FAILED"}
    assert "FAILED" not in {tables[1].state for tables in shown}
    assert place.runner.status().tables[0].message is None
    assert [place.numbers(table) for table in ("orders", "clicks", "sums")] == [[1, 2, 3]] * 3
    assert place.runner.status().quarantined == 0


def test_a_folder_that_cannot_be_written_to_sends_no_file_into_quarantine(place):
    obstacle = place.folder / "warehouse" / "tables" / "orders" / "data"
    obstacle.parent.mkdir(parents=True)
    obstacle.write_text("in the way", encoding="utf-8")

    def in_the_third_attempt(status: WarehouseStatus) -> bool:
        return any("orders: attempt 3 failed" in note for note in status.broken_assumptions)

    place.run(until=in_the_third_attempt)
    assert place.numbers("orders") == []
    obstacle.unlink()
    place.run()
    assert [place.numbers(table) for table in ("orders", "clicks", "sums")] == [[1, 2, 3]] * 3
    assert place.runner.status().quarantined == 0


def test_trouble_after_a_commit_does_not_load_its_file_again(place, monkeypatch):
    place.project = PROJECT.replace(
        "period: 500ms}\n  clicks", "period: 500ms, after_load: archive}\n  clicks"
    )
    archive = place.folder / "warehouse" / "_freshline" / "archive"
    archive.mkdir(parents=True)
    (archive / "orders").write_text("in the way", encoding="utf-8")
    record, failures = Ledger.record, []

    def failing(self, table, *arguments):
        if table == "clicks" and not failures:
            failures.append(table)
            raise sqlite3.OperationalError("database or disk is full")
        record(self, table, *arguments)

    monkeypatch.setattr(Ledger, "record", failing)
    place.run()
    assert failures == ["clicks"]
    (archive / "orders").unlink()
    place.run()  # the ledger reads what it missed, and the files are moved
    assert sorted(path.name for path in (archive / "orders").iterdir()) == ["1.json", "2.json", "3.json"]
    assert [place.numbers(table) for table in ("orders", "clicks", "sums")] == [[1, 2, 3]] * 3


def test_a_full_disk_stops_neither_the_status_nor_the_search_for_files(place, monkeypatch):
    (place.folder / "landing" / "orders" / "4.json").write_text("{no data", encoding="utf-8")
    write, put, failures = WarehouseStatus.write, Quarantine.put, []

    def failing_write(self, path):
        if failures.count("status") < 2:
            failures.append("status")
            raise full_disk()
        write(self, path)

    def failing_put(self, *arguments):
        if "quarantine" not in failures:
            failures.append("quarantine")
            place.land("clicks", 5)
            raise full_disk()
        return put(self, *arguments)

    monkeypatch.setattr(WarehouseStatus, "write", failing_write)
    monkeypatch.setattr(Quarantine, "put", failing_put)
    place.run()
    assert sorted(failures) == ["quarantine", "status", "status"]
    assert place.numbers("orders") == [1, 2, 3]
    assert place.numbers("clicks") == [1, 2, 3, 5]
    assert place.runner.status().quarantined == 1


def test_a_feed_gone_silent_is_shown_while_the_others_go_on(place):
    clicks_meanwhile: list[int] = []  # updates, since orders were seen to be silent

    def clicks_go_on(status: WarehouseStatus) -> bool:
        place.land("clicks", 3 + len(place.said))
        orders, clicks, _ = status.tables
        if (orders.state, orders.backlog) == ("SILENT", 0) and clicks.state != "SILENT":
            clicks_meanwhile.append(clicks.jobs)
        return clicks_meanwhile[-1:] > clicks_meanwhile[:1]

    place.run(until=clicks_go_on)
    assert any("feed orders has gone silent" in note for note in place.said[-1].broken_assumptions)


def test_of_the_files_of_a_job_only_the_bad_ones_are_put_aside(place):
    place.project = PROJECT.replace("{tracks: 2}", "{tracks: 2, policy: prp}")
    for number in (4, 7):
        place.land_bad("orders", number)
    for number in (5, 6):
        place.land("orders", number)
    place.run()
    assert place.numbers("orders") == place.numbers("sums") == [1, 2, 3, 5, 6]
    # A job takes all files that have been found when it starts: fewer commits than there are good files.
    assert 1 <= DeltaTable(place.folder / "warehouse" / "tables" / "orders").version() < 5
    entries = Quarantine(place.folder / "warehouse" / "_freshline" / "quarantine").entries()
    assert [(entry.name, entry.attempts) for entry in entries] == [("4.json", 1), ("7.json", 1)]
    assert all("field name 'n' and the value many" in entry.reason for entry in entries)
    status = place.runner.status()
    assert (status.quarantined, status.tables[0].message) == (2, None)
    notes = [note.partition(" ")[2] for note in status.broken_assumptions if "quarantine" in note]
    assert [note.partition(" put")[0] for note in notes] == ["orders: 4.json", "orders: 7.json"]


def test_a_file_with_a_wrong_type_is_put_aside_at_its_first_failure(place):
    place.land_bad("orders", 4)
    place.run()
    assert [entry.attempts for entry in place.quarantine()] == [1]
    assert not any("attempt 1 failed" in note for note in place.said[-1].broken_assumptions)


def test_a_file_with_a_record_that_a_select_cannot_compute_is_put_aside(place):
    place.project = PROJECT.replace("{tracks: 2}", "{tracks: 2, policy: prp}").replace(
        "orders: {feed: orders,",
        'orders: {feed: orders, select: "SELECT ts, 12 div (n - 2) AS n FROM orders",',
    )
    place.run()
    assert place.numbers("orders") == place.numbers("sums") == [-12, 12]
    assert place.numbers("clicks") == [1, 2, 3]
    (entry,) = Quarantine(place.folder / "warehouse" / "_freshline" / "quarantine").entries()
    assert (entry.feed, entry.name, entry.attempts) == ("orders", "2.json", 1)
    assert entry.reason.startswith("[DIVIDE_BY_ZERO] Division by zero.")


ROW = '{"n": 0, "big": 9223372036854775807, "text": "No space left on device"}'
NOT_TO_BE_COMPUTED = {
    "100 / n": "[DIVIDE_BY_ZERO]",
    "100 % n": "[REMAINDER_BY_ZERO]",
    "big + 1": "[ARITHMETIC_OVERFLOW]",
    "int(big)": "[CAST_OVERFLOW]",
    "int(text)": "[CAST_INVALID_INPUT]",
    "to_timestamp(text, 'yyyy')": "[CANNOT_PARSE_TIMESTAMP]",
    "array(1, 2)[n + 2]": "[INVALID_ARRAY_INDEX]",
    "timestamp_seconds(big)": "[DATETIME_OVERFLOW]",
    "decimal(big) * big": "[NUMERIC_VALUE_OUT_OF_RANGE",
    "interval '1' day / n": "[INTERVAL_DIVIDED_BY_ZERO]",
    "raise_error(text)": "[USER_RAISED_EXCEPTION]",
    "map(n, 1, n, 2)": "[DUPLICATED_MAP_KEY]",
    "(SELECT id FROM range(2))": "[SCALAR_SUBQUERY_TOO_MANY_ROWS]",
    "from_json(text, 'a int', map('mode', 'FAILFAST'))": "[MALFORMED_RECORD_IN_PARSING",
    "to_number(text, '999')": "[INVALID_FORMAT.MISMATCH_INPUT]",
    "sequence(1, 10, n)": "Illegal sequence boundaries",
    "interval '1' month * big": "java.lang.ArithmeticException: integer overflow",
    "text rlike concat('(', text)": "java.util.regex.PatternSyntaxException",
}


@pytest.mark.parametrize("expression", rest_in_soak(NOT_TO_BE_COMPUTED, first=6))
def test_what_spark_cannot_compute_of_a_row_is_known_for_that(spark, tmp_path, expression):
    (tmp_path / "1.json").write_text(ROW, encoding="utf-8")
    rows = spark.read.schema("n int, big long, text string").json(str(tmp_path)).selectExpr(expression)
    with pytest.raises(Exception) as written:  # noqa: PT011  (of many types, and some are Java's)
        rows.write.parquet(str(tmp_path / "out"))
    with pytest.raises(Exception) as checked:  # noqa: PT011
        rows.write.format("noop").mode("overwrite").save()
    for raised in (written.value, checked.value):
        assert is_of_a_row(raised)
        assert sentence(raised).startswith(NOT_TO_BE_COMPUTED[expression])


def test_a_job_whose_rest_cannot_be_committed_is_tried_again_without_its_bad_file(place, monkeypatch):
    place.project = PROJECT.replace("{tracks: 2}", "{tracks: 2, policy: prp}")
    place.land_bad("orders", 4)
    commit, failures = StoredTable.commit, []

    def failing(self, *arguments, **options):
        if self.path.name == "orders" and not failures:
            failures.append("orders")
            raise full_disk()
        return commit(self, *arguments, **options)

    monkeypatch.setattr(StoredTable, "commit", failing)
    place.run()
    assert failures == ["orders"]
    assert place.numbers("orders") == place.numbers("sums") == [1, 2, 3]
    assert place.runner.status().quarantined == 1


def test_after_a_restart_a_backlog_is_worked_off_as_one(place, monkeypatch):
    place.run()
    for number in range(4, 12):
        place.land("orders", number)
    commit = StoredTable.commit

    def failing(self, *arguments, **options):
        if self.path.name == "sums":
            raise full_disk()
        if self.path.name == "orders":  # else it might be over before a status has told of it
            wait_until(lambda: "RECOVERING" in place.states("orders"))
        return commit(self, *arguments, **options)

    monkeypatch.setattr(StoredTable, "commit", failing)
    place.run(
        until=lambda status: status.tables[0].backlog == 0 and len(place.numbers("orders")) == 11,
        batches=False,
    )
    assert "RECOVERING" in place.states("orders")
    assert place.states("orders") <= {"RECOVERING", "HEALTHY", "SILENT"}
    monkeypatch.undo()
    place.run()  # what is derived has its own backlog now
    assert place.said[0].tables[2].state == "RECOVERING"
    assert place.states("sums") == {"RECOVERING", "HEALTHY"}
    assert place.numbers("sums") == list(range(1, 12))


def test_a_table_that_keeps_failing_while_a_run_drains_is_given_up(place, monkeypatch):
    """Its first update comes at once; what lands then it would load in an hour."""
    hourly = "period: 1h, cost: {startup: 5s}}\n"
    place.project = PROJECT.replace("period: 500ms, cost: {startup: 5s}}\n", hourly)
    commit, failures = StoredTable.commit, []

    def failing(self, *arguments, **options):
        if self.path.name != "sums":
            return commit(self, *arguments, **options)
        if self.freshness is not None:
            failures.append(self.freshness)
            raise full_disk()
        place.land("orders", 4)
        return commit(self, *arguments, **options)

    monkeypatch.setattr(StoredTable, "commit", failing)
    place.run(ends="sums was given up after failures: the disk is full")
    assert place.runner.incomplete
    assert len(failures) >= 3
    assert place.runner.status().tables[2].state == "FAILED"
    assert place.numbers("orders") == [1, 2, 3, 4]
    assert 4 not in place.numbers("sums")
    monkeypatch.undo()
    place.run()
    assert place.numbers("sums") == [1, 2, 3, 4]
    assert not place.runner.incomplete


def test_a_run_that_drains_onto_a_full_disk_says_which_files_are_left(place, monkeypatch):
    commit = StoredTable.commit

    def failing(self, *arguments, **options):
        if self.path.name == "clicks":
            raise full_disk()
        return commit(self, *arguments, **options)

    monkeypatch.setattr(StoredTable, "commit", failing)
    place.run(ends="clicks was given up, and 3 files left, after failures: the disk is full")
    assert place.runner.incomplete


def test_updates_that_take_longer_than_assumed_are_one_note_a_table(place):
    place.project = PROJECT.replace("orders: {feed: orders, cost: {startup: 5s}}", OVERRUNS)
    place.run(batches=False)
    (note,) = [note for note in place.runner.status().broken_assumptions if " orders: " in note]
    assert " orders: 3 updates took longer than assumed, at worst " in note
    assert note.endswith(" instead of 1ms")
    assert str(Overruns(1, 1_200_000, 1_000, 0)) == "an update took 1.2s, more than the assumed 1ms"


def test_a_log_that_cannot_be_written_does_not_hide_how_the_run_went(place, caplog):
    place.runner = place.new_runner(drain=True)
    logs = place.folder / "warehouse" / "_freshline" / "logs"
    logs.mkdir(parents=True)
    (logs / f"{place.runner.run_id}.jsonl").symlink_to("/dev/full")
    with place.runner as runner:
        runner.run(PATIENCE_US)
    assert "the disk is full" in caplog.text
    assert [table.jobs for table in runner.status().tables[:2]] == [3, 3]
    assert place.numbers("orders") == [1, 2, 3]


def with_after_load(action: str) -> str:
    return PROJECT.replace("period: 500ms}\n  clicks", f"period: 500ms, after_load: {action}}}\n  clicks")


@pytest.mark.parametrize("action", rest_in_soak(["delete", "archive"]))
def test_a_correction_that_lands_while_the_first_is_loaded_is_not_cleared_away(place, monkeypatch, action):
    place.project = with_after_load(action)
    landing, commit = place.folder / "landing" / "orders", StoredTable.commit
    correction = '{"ts": "2026-01-01T00:00:01Z", "n": 100}\n'

    def corrected(self, folder, freshness, consumed, *arguments, **options):
        if [file.name for file in consumed] == ["1.json"] and self.path.name == "orders":
            (landing / ".1").write_text(correction, encoding="utf-8")
            (landing / ".1").replace(landing / "1.json")
        return commit(self, folder, freshness, consumed, *arguments, **options)

    monkeypatch.setattr(StoredTable, "commit", corrected)
    place.run()
    assert place.numbers("orders") == [1, 2, 3]
    quarantine = Quarantine(place.folder / "warehouse" / "_freshline" / "quarantine")
    if not quarantine.entries():  # it was seen before the first one was known to be loaded
        assert (landing / "1.json").read_text(encoding="utf-8") == correction
        place.run()
    (entry,) = quarantine.entries()
    assert (entry.name, "other content" in entry.reason) == ("1.json", True)
    kept = place.folder / "warehouse" / "_freshline" / "quarantine" / "files" / entry.stored
    assert kept.read_text(encoding="utf-8") == correction
    assert [path.name for path in landing.iterdir() if path.suffix] == []


def test_only_what_was_seen_is_cleared_away(tmp_path):
    warehouse = loads(with_after_load("delete"))
    path = tmp_path / "orders" / "1.json"
    path.parent.mkdir()

    def land(text: str, mtime_ns: int) -> ConsumedFile:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(mtime_ns, mtime_ns))
        return ConsumedFile(path.name, len(text), mtime_ns, content_digest(path))

    with History(tmp_path / "history.sqlite") as history:
        ledger = Ledger(tmp_path / "ledger.sqlite")
        feeds = LandingFeeds(warehouse, {"orders": path.parent})
        books = LoadRecords(feeds, ledger, history, tmp_path / "archive")
        for first, second in (("", '{"n": 1}'), ('{"n": 1}', '{"n": 2}')):
            seen = land(first, 1)
            ledger.remember("orders", seen)
            land(second, 2)
            books.forget("orders", seen)
            assert path.read_text(encoding="utf-8") == second
            land(first, 3)  # the same content, sent again
            books.forget("orders", seen)
            assert not path.exists()
        ledger.close()


def test_files_taken_out_of_quarantine_are_counted_no_more(place):
    quarantine = Quarantine(place.folder / "warehouse" / "_freshline" / "quarantine")
    (place.folder / "landing" / "orders" / "4.json").write_text("{no data", encoding="utf-8")

    def taken_out(status: WarehouseStatus) -> bool:
        for entry in quarantine.entries():
            if [each.quarantined for each in place.said].count(1) > 1:
                quarantine.drop(entry)
        return not status.quarantined and any(each.quarantined for each in place.said)

    place.run(until=taken_out)
    assert max(status.quarantined for status in place.said) == 1
    assert place.runner.status().quarantined == 0


def test_no_housekeeping_is_begun_when_a_run_ends(place, monkeypatch):
    consider, while_stopping = Housekeeper.consider, []

    def considering(self, now, kernel):
        while_stopping.append(place.runner.loop.driver.stopping)
        consider(self, now, kernel)

    monkeypatch.setattr(Housekeeper, "consider", considering)
    place.run(until=lambda status: len(place.said) > 2)
    assert set(while_stopping) == {False}


def test_a_spark_that_only_fails_a_job_has_not_ended(spark):
    with pytest.raises(Exception, match="PATH_NOT_FOUND"):
        spark.read.json("/nowhere/at/all")
    assert spark_ended(spark) is None
