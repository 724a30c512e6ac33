"""The commands that need a warehouse that has run: one small project, loaded once, and one Spark."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from cases import rest_in_soak
from freshline.base.errors import DefinitionErrors, InputError
from freshline.cli import demo, sql
from freshline.cli.main import app
from freshline.definitions.load import loads
from freshline.live.status.status import WarehouseStatus
from freshline.planning.plan.make import make_plan
from freshline.storage.control.history import History
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.quarantine import Quarantine
from holding_project import HOLDS
from patience import PATIENCE, PATIENCE_S
from processes import spark_javas
from short_waits import short_waits

pytestmark = pytest.mark.spark

PROJECT = """\
name: small
pools: {updates: {tracks: 2}}
feeds:
  packets: {path: landing, format: csv, schema: "ts timestamp, src string, bytes long", timestamp: ts, period: 300ms}
tables:
  packets: {feed: packets, target_lag: 1h}
  traffic: {sql: "SELECT ts, src, sum(bytes) AS bytes FROM packets GROUP BY ts, src", period: 300ms}
  hosts: {sql: "SELECT ts, src FROM traffic", period: 300ms, cost: {startup: 1s}}
"""  # noqa: E501
START = datetime(2026, 1, 1, tzinfo=UTC)
FILES = {
    "1.csv": [(0.1, "[a]", 10), (0.2, "b", 20)],
    "2.csv": [(0.15, "[a]", 5), (0.5, "[a]", 7)],  # its first record is late
    "3.csv": [(0.8, "b", 9)],
    "4.csv": [(1.1, "b", "many")],
}


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    return written(tmp_path_factory.mktemp("small"))


def written(folder: Path) -> Path:
    (folder / "freshline.yml").write_text(PROJECT, encoding="utf-8")
    (folder / "landing").mkdir()
    for name, rows in FILES.items():
        lines = ["ts,src,bytes", *(f"{at(second).isoformat()},{src},{size}" for second, src, size in rows)]
        (folder / "landing" / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    return folder


RUN = ("run", "--drain", "--for", PATIENCE, "--cold", "--json")


@contextmanager
def on_the_shared_spark() -> Iterator[None]:
    """The commands within leave Spark and the handlers of signals as they were."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkSession, "stop", lambda session: None)
        yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def finished(project, spark) -> Result:
    with short_waits(), on_the_shared_spark():
        return CliRunner().invoke(app, [*RUN, "-p", str(project)])


@pytest.fixture
def command(spark) -> Iterator:
    """Runs a command on a project, on the Spark that the tests share."""
    with on_the_shared_spark():
        yield lambda folder, *arguments: CliRunner().invoke(app, [*arguments, "-p", str(folder)])


@pytest.fixture
def freshline(project, finished, command) -> Callable[..., Result]:
    """Runs a command on the project after the run."""
    return partial(command, project)


def rows(project: Path, table: str) -> int:
    return DeltaTable(project / "warehouse" / "tables" / table).to_pyarrow_table().num_rows


def test_run_sums_itself_up_as_json(finished):
    check_summary(finished.stdout, finished.exit_code)


@pytest.mark.soak
def test_a_run_in_a_process_of_its_own_prints_nothing_else(tmp_path):
    arguments = ["-m", "freshline", *RUN, "-p", str(written(tmp_path))]
    ended = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    check_summary(ended.stdout, ended.returncode)


def check_summary(said: str, code: int) -> None:
    record = json.loads(said)
    assert code == 1  # the records are years old, and the target is an hour
    assert (record["name"], record["holds"], record["quarantined"]) == ("small", False, 1)
    assert record["stopped_because"] == "nothing is left to load"
    packets, traffic, hosts = record["tables"]
    assert packets["freshness"] == "2026-01-01T00:00:00.800000+00:00"
    assert (packets["rows"], packets["rows_late"], packets["jobs"], packets["backlog"]) == (5, 1, 3, 0)
    assert min(packets["staleness_max"], packets["staleness"]) > packets["target_lag"] == 3600.0
    assert (traffic["rows"], hosts["rows"], hosts["target_lag"]) == (4, 4, None)
    assert any("4.csv put into quarantine" in note for note in record["broken_assumptions"])


def test_run_sums_itself_up_for_people(freshline):
    result = freshline("run", "--drain", "--for", PATIENCE, "--cold")
    assert result.exit_code == 1
    assert "small over " in result.stdout
    assert "Exceeded: 1 of 1 targets." in result.stdout


@pytest.fixture
def caught_up(tmp_path) -> Path:
    """A project whose first file is an hour old, and whose second one is not."""
    text = PROJECT.replace("1h", "10m").partition("  traffic:")[0]
    (tmp_path / "freshline.yml").write_text(text, encoding="utf-8")
    (tmp_path / "landing").mkdir()
    now = datetime.now(UTC)
    for name, moment in (("1.csv", now - timedelta(hours=1)), ("2.csv", now)):
        text = f"ts,src,bytes\n{moment.isoformat()},a,1\n"
        (tmp_path / "landing" / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_a_target_that_was_exceeded_and_is_kept_at_the_end_was_exceeded(command, caught_up):
    result = command(caught_up, "run", "--drain", "--for", PATIENCE, "--cold", "--json")
    record = json.loads(result.stdout)
    (packets,) = record["tables"]
    assert packets["staleness"] < packets["target_lag"] == 600.0 < packets["staleness_max"]
    assert (result.exit_code, record["holds"]) == (1, False)


def test_the_exit_code_says_what_the_summary_says(command, caught_up):
    result = command(caught_up, "run", "--drain", "--for", PATIENCE, "--cold")
    assert (result.exit_code, "Exceeded: 1 of 1 targets." in result.stdout) == (1, True)
    # Nothing has come since, and what is there is minutes old at most.
    result = command(caught_up, "run", "--drain", "--for", PATIENCE, "--cold")
    assert (result.exit_code, "Kept: no target of 1 was exceeded." in result.stdout) == (0, True)


def test_a_table_that_loads_nothing_of_what_comes_is_not_kept_and_one_for_which_nothing_comes_is_not_missed(
    command, tmp_path
):
    text = PROJECT.replace("1h", "1ms").replace('src", period', 'src", target_lag: 1ms, period')
    (tmp_path / "freshline.yml").write_text(text, encoding="utf-8")
    (tmp_path / "landing").mkdir()

    def run() -> tuple[int, bool, list[str | None]]:
        result = command(tmp_path, "run", "--drain", "--for", PATIENCE, "--cold", "--json")
        record = json.loads(result.stdout)
        return result.exit_code, record["holds"], [table["verdict"] for table in record["tables"]]

    assert run() == (0, True, ["nothing came"] * 3)
    (tmp_path / "landing" / "1.csv").write_text("no such\ncolumns\n", encoding="utf-8")
    assert run() == (1, False, ["not loaded"] * 3)
    assert names(tmp_path) == ["1.csv"]


def test_a_log_of_a_run_with_unknown_costs_replays(project, finished):
    log = project / "warehouse" / "_freshline" / "logs" / f"{json.loads(finished.stdout)['run']}.jsonl"
    assert json.loads(log.read_text(encoding="utf-8").partition("\n")[0])["unknown"] == ["packets", "traffic"]
    result = CliRunner().invoke(app, ["replay", str(log)])
    assert (result.exit_code, result.stdout.partition(":")[0]) == (0, "Identical")


def test_sql_shows_rows_as_they_are(freshline):
    result = freshline("sql", "SELECT src AS `[who]`, sum(bytes) AS n FROM packets GROUP BY src ORDER BY n")
    assert result.exit_code == 0
    assert [line.split() for line in result.stdout.splitlines()] == [
        ["[who]", "n"],
        ["[a]", "22"],
        ["b", "29"],
    ]


def test_sql_prints_a_line_of_json_for_each_row(freshline):
    result = freshline("sql", "SELECT ts, bytes, _late FROM packets WHERE src = '[a]' ORDER BY ts", "--json")
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"ts": "2026-01-01 00:00:00.100000", "bytes": 10, "_late": False},
        {"ts": "2026-01-01 00:00:00.150000", "bytes": 5, "_late": True},
        {"ts": "2026-01-01 00:00:00.500000", "bytes": 7, "_late": False},
    ]


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_sql_shows_utc_wherever_the_machine_is(freshline, monkeypatch, form):
    query = "SELECT max(ts) AS newest, array(named_struct('at', max(ts))) AS nested FROM packets"
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "America/New_York")
        time.tzset()
        result = freshline("sql", query, *form)
        local = (os.environ["TZ"], time.localtime(0).tm_hour)
    time.tzset()
    assert local == ("America/New_York", 19)
    if form:
        newest = "2026-01-01 00:00:00.800000"
        assert json.loads(result.stdout) == {"newest": newest, "nested": [{"at": newest}]}
    else:
        assert result.stdout.splitlines()[1].startswith(" 2026-01-01")
        assert "datetime(2026, 1, 1, 0, 0, 0, 800000)" in " ".join(result.stdout.split())


def test_sql_that_spark_refuses_is_bad_input(freshline):
    result = freshline("sql", "SELECT nobody FROM packets")
    assert isinstance(result.exception, InputError)
    assert result.exception.what.startswith("Spark refuses the query: [UNRESOLVED_COLUMN")


@pytest.mark.parametrize("form", rest_in_soak([[], ["--json"]]))
@pytest.mark.parametrize(
    ("query", "condition"),
    [
        ("SELECT 1 / 0", "[DIVIDE_BY_ZERO]"),
        ("SELECT 1 / (bytes - 5) FROM packets", "[DIVIDE_BY_ZERO]"),
        ("SELECT (SELECT src FROM packets)", "[SCALAR_SUBQUERY_TOO_MANY_ROWS]"),
        (
            "SELECT ts + make_interval(400000 + int(bytes)) FROM packets",
            "java.lang.ArithmeticException: long",
        ),
    ],
)
def test_sql_without_an_answer_for_a_row_is_bad_input(freshline, query, condition, form):
    result = freshline("sql", query, *form)
    assert isinstance(result.exception, InputError)
    assert result.exception.what.startswith(f"Spark cannot answer the query: {condition}")
    assert "\n" not in str(result.exception)


def test_sql_on_a_machine_in_trouble_is_no_bad_input():
    failure = Exception("Job aborted\nCaused by: java.io.IOException: No space left on device")
    told = sql._unanswered(failure)
    assert isinstance(told, OSError)
    assert str(told) == "Spark cannot answer the query: the disk is full"


def test_rebuild_takes_late_records_in_and_names_who_reads_the_table(freshline, project):
    assert rows(project, "traffic") == 4
    result = freshline("rebuild", "traffic", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {"table": "traffic", "rows": 5, "read_by": ["hosts"]}
    assert rows(project, "traffic") == 5
    result = freshline("rebuild", "hosts")
    assert result.stdout == "Rebuilt hosts: 5 rows.\n"
    assert "rebuild hosts too" in freshline("rebuild", "traffic").stdout
    assert rows(project, "traffic") == rows(project, "hosts") == 5


@pytest.mark.parametrize(
    ("table", "what"),
    [
        ("nobody", "there is no table nobody"),
        ("packets", "packets is a base table: it has every record already"),
    ],
)
def test_only_derived_tables_are_rebuilt(freshline, table, what):
    result = freshline("rebuild", table)
    assert isinstance(result.exception, InputError)
    assert result.exception.what == what


def test_calibrate_measures_and_leaves_everything_else_alone(freshline, project):
    storage = project / "warehouse"

    def known() -> dict[str, int]:
        with History(StorageLayout(storage).control().history, read_only=True) as history:
            return {table: len(history.runs(table)) for table in ("packets", "traffic", "hosts")}

    before = known()
    versions = [DeltaTable(path).version() for path in sorted((storage / "tables").iterdir())]
    result = freshline("calibrate", "--files", "3", "--json")
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    updates = {table["name"]: table["updates"] for table in record["tables"]}
    assert updates["packets"] == 3
    assert min(updates.values()) >= 1
    assert record["too_few"] == [table for table, count in updates.items() if count < 3]
    assert known() == {table: before[table] + updates[table] for table in before}
    assert [DeltaTable(path).version() for path in sorted((storage / "tables").iterdir())] == versions
    assert sorted(path.name for path in (project / "landing").iterdir()) == ["1.csv", "2.csv", "3.csv"]
    assert not list((storage / "_freshline" / "scratch").iterdir())


def test_calibrate_says_what_plan_makes_of_it(freshline):
    result = freshline("calibrate", "--files", "3")
    assert result.exit_code == 0
    assert "packets: 3 updates measured\n" in result.stdout
    assert "`freshline plan` uses them" in result.stdout
    tables = json.loads(freshline("plan", "--json").stdout)["tables"]
    assert [table["cost_source"] for table in tables] == ["learned", "learned", "declared"]


def test_a_table_that_would_not_equal_its_query_is_not_run(tmp_path):
    file = tmp_path / "freshline.yml"
    file.write_text(PROJECT.replace("SELECT ts, src FROM", "SELECT ts, rand() AS at FROM"), encoding="utf-8")
    result = CliRunner().invoke(app, ["run", "-p", str(file)])
    assert isinstance(result.exception, DefinitionErrors)
    assert str(result.exception).startswith(f"{file}:8: tables.hosts.sql: `rand` gives something else")


def test_quarantine_lists_what_spark_said_of_a_file(freshline):
    (entry,) = json.loads(freshline("quarantine", "list", "--json").stdout)["quarantine"]
    assert (entry["feed"], entry["name"], entry["attempts"]) == ("packets", "4.csv", 1)
    lines = freshline("quarantine", "list").stdout.splitlines()
    assert lines[0].rstrip() == "1 in quarantine"
    assert '"many" in column bytes of the record 2026-01-01T00:00:01' in entry["reason"]
    assert lines[2].split()[0] == "packets/4.csv"
    assert lines[2].rstrip().endswith(entry["reason"])


@pytest.fixture
def put_aside(tmp_path) -> Path:
    """A project that never ran, with three files in quarantine."""
    (tmp_path / "freshline.yml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "landing").mkdir()
    store = Quarantine(tmp_path / "warehouse" / "_freshline" / "quarantine")
    for name in ("a.csv", "b.csv", "c.csv"):
        (tmp_path / name).write_text(name, encoding="utf-8")
        store.put("packets", name, tmp_path / name, "[/it] would not do", 3)
    return tmp_path


def quarantine(project: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["quarantine", *arguments, "-p", str(project)])


def names(project: Path) -> list[str]:
    """What is still in quarantine."""
    listed = json.loads(quarantine(project, "list", "--json").stdout)["quarantine"]
    return [entry["name"] for entry in listed]


def test_files_are_retried_one_by_one_or_all(put_aside):
    result = quarantine(put_aside, "retry", "packets/b.csv", "--json")
    back = put_aside / "landing" / "b.csv"
    assert json.loads(result.stdout) == {"retried": [{"feed": "packets", "name": "b.csv", "path": str(back)}]}
    assert back.read_text(encoding="utf-8") == "b.csv"
    assert names(put_aside) == ["a.csv", "c.csv"]
    result = quarantine(put_aside, "retry")
    assert result.stdout == "Back in landing: a.csv\nBack in landing: c.csv\n"
    assert names(put_aside) == []
    assert json.loads(quarantine(put_aside, "retry", "--json").stdout) == {"retried": []}


def test_files_are_dropped_one_by_one_or_all(put_aside):
    result = quarantine(put_aside, "drop", "packets/b.csv", "--json")
    assert json.loads(result.stdout) == {"dropped": [{"feed": "packets", "name": "b.csv"}]}
    assert names(put_aside) == ["a.csv", "c.csv"]
    assert quarantine(put_aside, "drop").stdout == "Dropped: packets/a.csv\nDropped: packets/c.csv\n"
    assert names(put_aside) == []
    assert not list((put_aside / "landing").iterdir())


@pytest.mark.parametrize("command", ["retry", "drop"])
def test_a_file_that_is_not_in_quarantine_is_bad_input(put_aside, command):
    result = quarantine(put_aside, command, "packets/a.csv", "packets/d.csv")
    assert isinstance(result.exception, InputError)
    assert result.exception.what == "packets/d.csv is not in quarantine"
    assert names(put_aside) == ["a.csv", "b.csv", "c.csv"]


def test_a_file_of_a_feed_that_is_gone_cannot_be_retried(put_aside):
    other = PROJECT.replace("  packets: {path", "  flows: {path").replace("feed: packets", "feed: flows")
    (put_aside / "freshline.yml").write_text(other, encoding="utf-8")
    result = quarantine(put_aside, "retry")
    assert isinstance(result.exception, InputError)
    assert result.exception.what == "there is no feed packets any more"


def test_reasons_are_shown_as_they_are(put_aside):
    assert quarantine(put_aside, "list").stdout.count("[/it] would not do") == 3


def test_a_name_that_would_command_the_terminal_is_escaped_and_taken_as_it_is_shown(put_aside):
    name, shown = "esc\x1b[31mRED\x07\n.csv", "packets/esc\\x1b[31mRED\\x07\\n.csv"
    (put_aside / name).write_text("", encoding="utf-8")
    store = Quarantine(put_aside / "warehouse" / "_freshline" / "quarantine")
    store.put("packets", name, put_aside / name, f"{name} would not do", 3)
    listed = quarantine(put_aside, "list").stdout
    assert (listed.count(shown), "\x1b" in listed, len(listed.splitlines())) == (1, False, 6)
    assert names(put_aside)[-1] == name
    assert quarantine(put_aside, "drop", shown).stdout == f"Dropped: {shown}\n"
    assert names(put_aside) == ["a.csv", "b.csv", "c.csv"]


def test_the_demonstration_as_json_has_its_plan_its_run_and_its_picture(finished, project):
    status = WarehouseStatus.read(project / "warehouse" / "_freshline" / "status.json")
    record = demo._record(make_plan(loads(HOLDS)), status, None, (21.0, 36.0), Path("out/staleness.png"))
    assert json.loads(json.dumps(record)) == record
    assert record["outage"] == {"feed": "packets", "from": 21.0, "to": 36.0}
    assert record["picture"] == "out/staleness.png"
    assert [table["staleness_bound"] for table in record["plan"]["tables"]] == [910.0, 2710.0]
    assert [table["name"] for table in record["run"]["tables"]] == ["packets", "traffic", "hosts"]


@pytest.mark.soak
def test_a_run_whose_spark_is_killed_ends_and_says_so_and_the_next_one_goes_on(tmp_path):
    text = PROJECT.replace(", target_lag: 1h", "").partition("  traffic:")[0]
    (tmp_path / "freshline.yml").write_text(text, encoding="utf-8")
    (tmp_path / "landing").mkdir()

    def land(number: int) -> None:
        hidden = tmp_path / "landing" / f".{number}"
        hidden.write_text(f"ts,src,bytes\n{at(number).isoformat()},a,{number}\n", encoding="utf-8")
        hidden.replace(tmp_path / "landing" / f"{number}.csv")

    land(1)
    run = [sys.executable, "-m", "freshline", "run", "-p", str(tmp_path), "--cold", "--json"]
    process = subprocess.Popen(
        [*run, "--for", "2h"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        packets = str(tmp_path / "warehouse/tables/packets")
        while not DeltaTable.is_deltatable(packets) or rows(tmp_path, "packets") < 1:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.2)
        (java,) = spark_javas(process.pid)
        os.kill(java, signal.SIGKILL)
        land(2)
        output, said = process.communicate(timeout=PATIENCE_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    sentence = "Spark has ended: its Java process was killed by signal 9"
    assert (process.returncode, said.splitlines()[-1]) == (4, f"Stopped: {sentence}.")
    assert json.loads(output)["stopped_because"] == sentence
    assert rows(tmp_path, "packets") == 1
    done = subprocess.run([*run, "--drain", "--for", PATIENCE], capture_output=True, check=False)
    assert (done.returncode, rows(tmp_path, "packets")) == (0, 2)
