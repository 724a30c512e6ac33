"""Running a plan in simulated time."""

import io
import json
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cases import sampled
from freshline import __version__
from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.cli.main import app
from freshline.definitions.language.policies import PolicyName
from freshline.definitions.serial import from_record
from freshline.kernel.assembly import assemble as assembly
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.assembly.replay import replay
from freshline.kernel.core.journal import FORMAT, Journal
from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.validation import validate
from freshline.kernel.tables.update import Update
from freshline.planning.costs.draws import CostDraws
from freshline.planning.plan.make import make_plan, what_if
from freshline.simulation import simulate as module
from freshline.simulation.arrivals import FeedArrivals
from freshline.simulation.driver import SimulatedDriver
from freshline.simulation.simulate import simulate
from freshline.simulation.updates import SimulatedUpdates
from freshline.testing.builder import Builder
from freshline_lab.runs.warehouses import random_warehouse

POLICIES: list[PolicyName] = ["fifo", "rm", "edf", "edf-strict", "clustered-edf", "prp"]


def logged(seed: int, policy: PolicyName) -> str:
    stream = io.StringIO()
    plan = make_plan(what_if(random_warehouse(3), policy, {}))
    simulate(plan, 100 * SECOND, seed, journal_to=stream)
    return stream.getvalue()


@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_seed_writes_the_same_log_byte_for_byte(policy):
    assert logged(7, policy) == logged(7, policy)
    assert logged(7, policy) != logged(8, policy)


def test_the_log_names_version_seed_and_every_event_and_instruction():
    stream = io.StringIO()
    plan = make_plan(Builder().files("v", period=10, phase=10, cost=2).build())
    simulate(plan, 13 * SECOND, 5, journal_to=stream)
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    header = lines.pop(0)
    assert from_record(header.pop("warehouse")) == plan.warehouse
    assert header.pop("journal") == FORMAT
    assert header == {"freshline": __version__, "seed": 5, "end": 13_000_000, "now": 0, "freshness": None}
    start = {
        "start": "v",
        "job": 1,
        "track": 0,
        "release": 10_000_000,
        "deadline": 20_000_000,
        "from": 0,
        "to": 10_000_000,
        "files": [1],
    }
    assert lines == [
        {
            "now": 10_000_000,
            "events": [{"arrived": "v", "timestamp": 10_000_000, "file": 1}],
            "instructions": [start],
        },
        {"now": 12_000_000, "events": [{"finished": "v", "job": 1, "freshness": 10_000_000}]},
    ]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_replayed_log_gives_the_same_instructions(policy):
    plan = make_plan(what_if(random_warehouse(3), policy, {}))
    header, *calls = [json.loads(line) for line in logged(7, policy).splitlines()]
    assert from_record(header["warehouse"]) == plan.warehouse
    assert replay(assemble(plan), calls) == (len(calls), None)


def test_a_log_that_was_tampered_with_is_found_out():
    plan = make_plan(what_if(random_warehouse(3), "edf", {}))
    _, *calls = [json.loads(line) for line in logged(7, "edf").splitlines()]
    tampered = next(number for number, call in enumerate(calls) if call.get("instructions"))
    calls[tampered]["instructions"][0]["deadline"] += 1
    agreed, difference = replay(assemble(plan), calls)
    assert agreed == tampered
    assert difference is not None
    assert difference.call == tampered + 1


def test_a_log_that_lost_any_one_line_is_told_to_differ():
    plan = make_plan(what_if(random_warehouse(3), "edf", {}))
    _, *calls = [json.loads(line) for line in logged(7, "edf").splitlines()]
    reasons = set()
    for lost in range(len(calls)):
        rest = calls[:lost] + calls[lost + 1 :]
        agreed, difference = replay(assemble(plan), rest)
        if difference is None:  # nothing depends on it: at the end, or when nothing was to be done
            assert agreed == len(rest)
            continue
        assert lost <= agreed == difference.call - 1
        assert difference.now == rest[agreed]["now"]
        reasons.add(difference.reason and difference.reason.partition(" of ")[2])
    assert None in reasons
    assert any(reason and reason.endswith(", which is not running") for reason in reasons)


def test_a_log_with_a_line_cut_short_is_told_to_differ_there(tmp_path):
    log = tmp_path / "run.jsonl"
    lines = logged(7, "edf").splitlines()
    lines[4] = lines[4][:-9]
    log.write_text("\n".join([*lines, ""]), encoding="utf-8")
    result = CliRunner().invoke(app, ["replay", str(log)])
    assert (result.exit_code, result.stdout.splitlines()[1:]) == (
        1,
        ["  its line is cut short: the log has lost lines, here or before"],
    )
    record = json.loads(CliRunner().invoke(app, ["replay", str(log), "--json"]).stdout)
    assert (record["identical"], record["calls"], record["difference"]["call"]) == (False, 3, 4)
    log.write_text("\n".join([*lines[:4], "5", *lines[5:]]), encoding="utf-8")
    assert CliRunner().invoke(app, ["replay", str(log)]).exit_code == 1


def replayed(log: Path) -> tuple[int, str, str]:
    """Exit code, output and complaint of a replay; whatever is no InputError is a bug, and raised."""
    result = CliRunner().invoke(app, ["replay", str(log)])
    if isinstance(result.exception, InputError):
        return 2, result.stdout, str(result.exception)
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    return result.exit_code, result.stdout, ""


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({}, "Freshline 0.1.0 (journal format 1)"),
        ({"journal": 99, "freshline": "9.0"}, "Freshline 9.0 (journal format 99)"),
        ({"journal": None, "freshline": ["?"]}, "Freshline ['?'] (journal format None)"),
    ],
)
def test_a_log_of_another_format_is_refused_by_the_version_that_wrote_it(tmp_path, other, named):
    log = tmp_path / "run.jsonl"
    first, *calls = logged(7, "edf").splitlines()
    header = json.loads(first)
    del header["journal"]
    log.write_text("\n".join([json.dumps({**header, **other}), *calls, ""]), encoding="utf-8")
    assert replayed(log) == (
        2,
        "",
        f"{log} was written by {named}; this version replays format {FORMAT}. "
        "Replay it with the version that wrote it.",
    )


def test_an_event_that_is_not_known_is_refused_by_its_name(tmp_path):
    log = tmp_path / "run.jsonl"
    lines = logged(7, "edf").splitlines()
    lines[3] = lines[3].replace('"events":[{"', '"events":[{"teleported":1,"', 1)
    log.write_text("\n".join([*lines, ""]), encoding="utf-8")
    code, _, complaint = replayed(log)
    assert code == 2
    assert "an event 'teleported', which this version does not know" in complaint


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"no json",
        b"[1, 2]",
        b"{}",
        b"5",
        b"\x00\xff\xfe\x80" * 1000,
        b"[" * 100_000,
        b"9" * 10_000,
        b'{"warehouse": 1, "journal": 5}',
        b'{"warehouse": {}, "journal": 5, "now": 0, "freshness": null}',
        b'{"journal": 5}',
        b'{"warehouse": "\\ud800", "freshline": "\\u001b[31m"}',
    ],
)
def test_what_is_no_log_is_refused_with_a_sentence(tmp_path, content):
    log = tmp_path / "run.jsonl"
    log.write_bytes(content)
    code, shown, complaint = replayed(log)
    assert (code, shown) == (2, "")
    assert str(log) in complaint


def test_a_directory_and_nothing_at_all_are_no_logs(tmp_path):
    for log in (tmp_path, tmp_path / "missing.jsonl"):
        code, _, complaint = replayed(log)
        assert code == 2
        assert complaint.startswith(f"cannot read {log}: ")


def damaged(rng: Random, value: object) -> object:
    """The same with one thing in it that is gone, or something else."""
    if isinstance(value, dict) and value:
        key = rng.choice(list(value))
        rest = {other: entry for other, entry in value.items() if other != key}
        return rest if rng.random() < 0.2 else {**value, key: damaged(rng, value[key])}
    if isinstance(value, list) and value:
        at = rng.randrange(len(value))
        return value[:at] + ([] if rng.random() < 0.2 else [damaged(rng, value[at])]) + value[at + 1 :]
    # No larger number: an instant or a number of tracks without limit takes time without limit.
    return rng.choice([None, True, -1, 0, 1, 1.5, "", "x\x1b[31m", [], {}, [[]], {"finished": 1}])


@sampled(300, one_in=15)
@given(st.integers(0, 10**6), st.sampled_from([*POLICIES, "aus", "aus-slack"]))
def test_a_damaged_log_is_told_to_differ_or_refused_and_never_a_bug(seed, policy):
    rng = Random(f"damage:{seed}")
    lines = [json.loads(line) for line in logged(seed % 5, policy).splitlines()[:60]]
    at = 0 if rng.random() < 0.3 else rng.randrange(len(lines))
    lines[at] = damaged(rng, lines[at])
    with TemporaryDirectory() as folder:
        log = Path(folder) / "run.jsonl"
        log.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
        code, shown, _ = replayed(log)
    assert code in (0, 1, 2)
    assert "\x1b" not in shown


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", range(25))
def test_the_kernels_invariants_hold_at_every_instant(policy, seed, monkeypatch):
    class Checked(Kernel):
        def handle(self, now, events):
            instructions = super().handle(now, events)
            validate(self)
            return instructions

    monkeypatch.setattr(assembly, "Kernel", Checked)
    plan = make_plan(what_if(random_warehouse(seed), policy, {}))
    result = module.simulate(plan, 40 * SECOND, seed)
    assert len(result.tables) == len(plan.tables)


def test_lag_is_the_distance_to_the_trailing_edge():
    warehouse = Builder(policy="edf-strict").files("v", period=10, phase=10, cost=6).build()
    (table,) = simulate(make_plan(warehouse), 60 * SECOND).tables
    # Just before the completion at 26, the file of 20 is not loaded: stale by 26 − 10, behind by 20 − 10.
    assert (table.staleness_max_us, table.lag_max_us) == (16 * SECOND, 10 * SECOND)
    assert (table.jobs, table.misses) == (5, 0)


def test_an_overloaded_pool_runs_and_counts_its_misses():
    warehouse = Builder().continuous("a", period=10, cost=8).continuous("b", period=10, cost=8).build()
    plan = make_plan(warehouse)
    result = simulate(plan, 100 * SECOND)
    assert [table.plan.staleness_bound_us for table in result.tables] == [None, None]
    # They take turns: a ends at 8, 24, …, 88 and b at 16, 32, …, 96. What is released by 80 is due by 90.
    assert [(table.jobs, table.misses) for table in result.tables] == [(6, 8), (6, 9)]


def test_busy_tracks_are_measured_per_pool():
    warehouse = (
        Builder(tracks=2)
        .pool("reports", tracks=1)
        .continuous("a", period=10, cost=5)
        .continuous("b", period=10, cost=2, pool="reports")
        .build()
    )
    result = simulate(make_plan(warehouse), 100 * SECOND - 1)
    assert [(pool.name, pool.tracks) for pool in result.pools] == [("updates", 2), ("reports", 1)]
    assert [round(pool.busy, 6) for pool in result.pools] == [0.5, 0.2]


def test_every_policy_sees_the_same_costs_for_a_tables_jobs():
    def costs(policy: PolicyName) -> list[int]:
        warehouse = Builder(policy=policy).continuous("a", period=10, cost=4, variability=0.5).build()
        result = simulate(make_plan(warehouse), 200 * SECOND, 1, keep_records=True)
        assert result.records is not None
        return [bar.end - bar.start for bar in islice(result.records.bars(), len(result.records))]

    assert costs("edf") == costs("rm") == costs("fifo") == costs("prp")
    assert len(set(costs("edf"))) > 10


def test_a_target_that_is_exceeded_is_reported():
    warehouse = Builder().continuous("a", period=10, cost=4, target=12).build()
    plan = make_plan(warehouse)
    assert not plan.holds  # A = 10 + 10
    result = simulate(plan, 100 * SECOND)
    assert [table.exceeded_target for table in result.tables] == [True]
    assert not result.holds
    assert result.tables[0].staleness_max_us == 14 * SECOND


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([*POLICIES, "aus", "aus-slack"]))
def test_a_driver_that_is_stepped_does_as_one_that_runs(seed, policy):
    warehouse = what_if(random_warehouse(seed), policy, {})

    def journal(drive) -> str:
        stream = io.StringIO()
        costs = {name: CostDraws(table.cost, seed, name) for name, table in warehouse.tables.items()}
        files = {
            name: FeedArrivals(feed, seed)
            for name, feed in warehouse.feeds.items()
            if feed.arrival == "files"
        }
        kernel = assemble(make_plan(warehouse))
        drive(SimulatedDriver(kernel, {Update: SimulatedUpdates(costs)}, files, Journal(stream, {})))
        return stream.getvalue()

    def step(driver: SimulatedDriver) -> None:
        while driver.next_at <= 20 * SECOND:
            now = driver.next_at
            driver.step()
            assert driver.kernel.now == now < driver.next_at

    assert journal(step) == journal(lambda driver: driver.run(20 * SECOND))
