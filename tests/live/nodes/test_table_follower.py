"""Following the tables of other nodes."""

from pathlib import Path
from queue import SimpleQueue

import pyarrow as pa
import pyarrow.parquet as pq

from freshline.live.loop.messages import Message, RemoteCommit
from freshline.live.loop.run_notes import RunNotes
from freshline.live.nodes.table_follower import TableFollower
from freshline.storage.delta.followed_table import FollowedTable
from freshline.storage.delta.stored_table import StoredTable
from patience import PATIENCE_S


class Damaged(FollowedTable):
    """It cannot be read the first time, by whatever it is."""

    looks = 0

    def look(self) -> bool:
        self.looks += 1
        if self.looks == 1:
            raise ValueError("half a line")
        return True

    @property
    def freshness(self) -> int | None:
        return None if self.looks < 2 else 7


def test_whatever_a_log_is_like_it_is_looked_at_again(tmp_path: Path) -> None:
    posted: SimpleQueue[Message] = SimpleQueue()
    notes = RunNotes(0)
    following = TableFollower(
        {"t": Damaged(tmp_path / "t", "ts", pa.schema([]))}, notes, RemoteCommit, lambda: 1
    )
    following.start(posted.put)
    try:
        assert posted.get(timeout=PATIENCE_S) == RemoteCommit("t", 7)
    finally:
        following.stop()


def test_a_message_says_how_many_rows_came_since_the_one_before(tmp_path: Path) -> None:
    schema = pa.schema([("ts", pa.timestamp("us", "UTC"))])
    written = StoredTable.open_or_create(tmp_path / "t", "t", schema, "ts")
    _commit(written, 3, 100)
    table = FollowedTable(tmp_path / "t", "ts", schema)
    table.reload()
    posted: SimpleQueue[Message] = SimpleQueue()
    following = TableFollower({"t": table}, RunNotes(0), RemoteCommit)
    following.start(posted.put)
    told: list[RemoteCommit] = []
    try:
        for rows, freshness, recovery in ((2, 200, False), (0, 300, True), (5, 400, False)):
            _commit(written, rows, freshness, recovery)
            while not told or told[-1].freshness < freshness:
                message = posted.get(timeout=PATIENCE_S)
                assert isinstance(message, RemoteCommit)
                told.append(message)
            written.compact(1 << 20, 1 << 30)  # the same rows in other files
    finally:
        following.stop()
    assert [(each.before, each.freshness, each.rows, each.recovery) for each in told] == [
        (100, 200, 2, False),
        (200, 300, 0, True),
        (300, 400, 5, False),
    ]


def _commit(table: StoredTable, rows: int, freshness: int, recovery: bool = False) -> None:
    folder = f"data/{freshness}"
    (table.path / folder).mkdir(parents=True)
    if rows:
        instants = pa.array([freshness] * rows, pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"ts": instants}), table.path / folder / "part-0.parquet")
    table.commit(folder, freshness, (), {"recovery": True} if recovery else {})
