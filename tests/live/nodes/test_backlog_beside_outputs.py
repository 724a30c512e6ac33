"""A backlog on Spark gives way to the files of another feed on the same node, and all of it is loaded."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from freshline.definitions.load import load
from freshline.kernel.assembly.replay import kernel_of, replay
from freshline.live.nodes.node_statuses import as_one, read_statuses
from freshline.live.run.run_options import RunOptions
from freshline.live.run.runner import Runner
from live_project import LiveProject, in_a_thread
from patience import wait_until

FILES, ROWS, ALARMS = 30, 10, 3
FEED = 'path: landing/{}, format: csv, schema: "ts timestamp, n long", timestamp: ts, period: 10s, burst: 10'
PROJECT = f"""\
name: beside
nodes: {{here: {{}}}}
feeds:
  speeds: {{{FEED.format("speeds")}}}
  alarms: {{{FEED.format("alarms").replace("period: 10s", "period: 1s")}}}
tables:
  speeds: {{feed: speeds, cost: {{startup: 100ms}}}}
  fast: {{sql: "SELECT ts, n FROM speeds WHERE n >= 0", deadline: 1s, cost: {{startup: 100ms}}}}
  alerts: {{feed: alarms, deadline: 500ms, cost: {{startup: 100ms}}}}
"""


class Beside(LiveProject):
    """A node with a late feed and a healthy one."""

    def land(self, feed: str, number: int, at: datetime) -> None:
        lines = [f"{(at + timedelta(milliseconds=each)).isoformat()},{number}" for each in range(ROWS)]
        draft = self.folder / "landing" / feed / f".{number}.csv"
        draft.write_text("\n".join(["ts,n", *lines, ""]), encoding="utf-8")
        draft.rename(draft.with_name(f"{number:02}.csv"))

    def rows(self, table: str) -> int:
        return int(DeltaTable(self.layout.tables / table).to_pyarrow_table().num_rows)

    def journal(self) -> list[dict]:
        (log,) = self.layout.control("here").logs.glob("*.jsonl")
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


@pytest.mark.spark
@pytest.mark.soak
def test_a_file_found_during_recovery_is_loaded_before_the_rest_of_the_backlog(tmp_path: Path, spark) -> None:
    project = Beside(tmp_path, spark)
    (tmp_path / "freshline.yml").write_text(PROJECT, encoding="utf-8")
    for feed in ("speeds", "alarms"):
        (tmp_path / "landing" / feed).mkdir()
    began = datetime.now(UTC) - timedelta(seconds=10 * FILES)
    options = RunOptions(session=spark, node="here")
    with (
        Runner(load(tmp_path / "freshline.yml"), tmp_path, tmp_path / "warehouse", options) as runner,
        in_a_thread(runner),
    ):
        wait_until(project.layout.control("here").status.exists)
        for number in range(FILES):  # all that an outage held back
            project.land("speeds", number, began + timedelta(seconds=10 * number))
        late, healthy, output = (runner.kernel.task(name) for name in ("speeds", "alerts", "fast"))
        wait_until(lambda: late.moved_in_recovery)
        _shows_the_promise(project)
        for number in range(ALARMS):
            time.sleep(1.0 if number else 0.0)  # as far apart as declared
            before = healthy.jobs_started
            project.land("alarms", number, datetime.now(UTC))
            wait_until(lambda before=before: healthy.jobs_started > before and healthy.job is None)
        wait_until(lambda: late.freshness == output.freshness and not late.at_work and not output.at_work)
        wait_until(lambda: project.rows("fast") == FILES * ROWS)
    assert project.rows("speeds") == FILES * ROWS
    assert project.rows("alerts") == ALARMS * ROWS
    header, *calls = project.journal()
    assert replay(kernel_of(header), calls, header) == (len(calls), None)
    _alarms_went_first(calls)


def _shows_the_promise(project: Beside) -> None:
    """The status shows that the output recovers, the files that wait, and until when it is promised."""
    warehouse = load(project.folder / "freshline.yml")

    def told() -> list[dict]:
        status = as_one(warehouse, read_statuses(warehouse, project.layout))
        return [row for row in status.record(status.at_us)["outputs"] if row["recovering"]]

    wait_until(lambda: bool(told()))
    (output,) = told()
    assert output["name"] == "fast"
    assert 0 < output["files_waiting"] < FILES
    # (30 files x 0.2 s + 0.3 s) / (1 - 0.1/1 - 0.2/10), from when the first was found
    assert 0 < output["recovery_due"] < 30


def _alarms_went_first(calls: list[dict]) -> None:
    """The next job after an alarm was found is that of the alarm, though a backlog waits."""
    found, overtaken, rest, most = 0, 0, 0, 0
    for call in calls:
        found += sum(event.get("arrived") == "alarms" for event in call.get("events", ()))
        for start in call.get("instructions", ()):
            (first, *_) = start["parts"]
            if found:
                assert start["start"] == "alerts", call
                found -= 1
                overtaken += 1
            elif first.get("recovery"):
                most = max(most, len(first.get("files", ())))
                rest += overtaken > 0
    assert overtaken == ALARMS
    assert most > 1, "the backlog is loaded in jobs of several files"
    assert rest > 0, "no backlog was left when the first alarm was loaded"
