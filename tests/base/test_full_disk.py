"""A full disk is called that, whoever reports it; what only reads like one is not."""

import errno
import os
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshline.base.disk import full_disk
from freshline.spark.errors import sentence

WORDS = "No space left on device"
ROOT = "the disk is full (/)"
SAID = {
    f"Job aborted\nCaused by: java.io.IOException: {WORDS}": "the disk is full",
    f"[TASK_WRITE_FAILED] Task failed while writing rows to file:/nowhere/data/1. SQLSTATE: 58030\n"
    f"Caused by: java.io.IOException: {WORDS}": ROOT,
    f"Caused by: java.io.FileNotFoundException: /nowhere/blockmgr/1 ({WORDS})": ROOT,
    "Caused by: java.nio.file.FileSystemException: /nowhere/x: Disk quota exceeded": ROOT,
    f"Generic LocalFileSystem error: Unable to write file /nowhere/1.json: {WORDS} (os error 28)": ROOT,
}


@pytest.mark.parametrize("text", SAID)
def test_what_spark_and_delta_say_of_a_full_disk_is_understood(text: str) -> None:
    assert full_disk(Exception(text)) == sentence(Exception(text)) == SAID[text]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_the_systems_own_errors_name_the_file_system(number: int) -> None:
    assert full_disk(OSError(number, os.strerror(number), "/nowhere/x")) == ROOT
    assert full_disk(OSError(number, os.strerror(number))) == "the disk is full"


def test_of_several_file_systems_the_fullest_is_named(tmp_path: Path) -> None:
    # Nothing can be written below /proc, where statistics say that no byte is free.
    said = f"reading {tmp_path}/1.json, writing /proc/x\nCaused by: java.io.IOException: {WORDS}"
    assert full_disk(Exception(said)) == "the disk is full (/proc)"


def test_it_is_seen_below_other_errors() -> None:
    error = RuntimeError("no checkpoint")
    error.__cause__ = OSError(errno.ENOSPC, WORDS, "/nowhere/x")
    assert full_disk(error) == ROOT


def test_a_database_without_room_says_so(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "small.sqlite")
    connection.execute("PRAGMA max_page_count = 2")
    with pytest.raises(sqlite3.OperationalError) as raised:
        connection.executescript("CREATE TABLE a (b); CREATE TABLE c (d)")
    connection.close()
    assert full_disk(raised.value) == "the disk is full"


@given(st.sampled_from(["", "x: ", "(", "IOException: "]), st.sampled_from(["", ")", "."]))
def test_a_value_that_reads_like_it_is_a_value(before: str, after: str) -> None:
    value = f"{before}{WORDS}{after}"
    said = f'[CAST_INVALID_INPUT] The value \'{value}\' of the type "STRING" cannot be cast to "INT"'
    assert full_disk(Exception(said)) is None
    assert sentence(Exception(said)) == said


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ENOENT])
def test_other_errors_of_the_system_are_not_called_so(number: int) -> None:
    assert full_disk(OSError(number, WORDS)) is None
