"""Following the tables of other nodes."""

from pathlib import Path
from queue import SimpleQueue

import pyarrow as pa

from freshline.live.loop.messages import Message, RemoteCommit
from freshline.live.loop.run_notes import RunNotes
from freshline.live.nodes.table_follower import TableFollower
from freshline.storage.delta.followed_table import FollowedTable
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
