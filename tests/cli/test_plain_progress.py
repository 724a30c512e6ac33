"""Without a terminal a run tells its progress in plain lines."""

from dataclasses import replace

import pytest

from freshline.base.duration import SECOND
from freshline.cli.plain_progress import PlainProgress
from freshline.live.status.status import WarehouseStatus
from freshline.live.tables.table_status import TableStatus

TABLE = TableStatus(
    "packets", "HEALTHY", SECOND, SECOND, None, None, SECOND, 2, 1_234, 0, 1, None, 0, 0, None
)
STATUS = WarehouseStatus("shop", "run-1", "here", 1, SECOND, 0, (), (), 0).changed(tables=(TABLE,))


def test_a_line_comes_at_once_then_every_ten_seconds_if_there_is_news(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress = PlainProgress()
    late = STATUS.changed(tables=(TABLE, replace(TABLE, name="hosts", state="LATE")))
    for second, status in ((1, STATUS), (2, late), (12, STATUS), (23, late), (34, late)):
        progress.hear(replace(status, at_us=second * SECOND, broken_assumptions=("one", f"n{second // 20}")))
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        "1970-01-01T00:00:01Z shop: tables: 1 HEALTHY; 1,234 rows loaded, 2 files wait",
        "1970-01-01T00:00:01Z shop: one",
        "1970-01-01T00:00:01Z shop: n0",
        "1970-01-01T00:00:23Z shop: tables: 1 LATE, 1 HEALTHY; 2,468 rows loaded, 4 files wait",
        "1970-01-01T00:00:23Z shop: n1",
    ]
    assert not said.out
