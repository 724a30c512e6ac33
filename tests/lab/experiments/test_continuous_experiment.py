"""The experiment on continuous queries: measures, workloads, and what is written of it."""

import gzip
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from freshline.base.duration import SECOND
from freshline.base.errors import InputError
from freshline.cli.main import app
from freshline.simulation.iterations import IterationOutcome
from freshline_lab.experiments.queries import continuous_queries
from freshline_lab.experiments.queries.continuous_page import page_of
from freshline_lab.experiments.queries.continuous_queries import QueryCase, demand, measured, run_case
from freshline_lab.experiments.queries.query_workloads import (
    END_US,
    STREAMS,
    randomly,
    read_trace,
    steady,
    step,
)
from freshline_lab.experiments.queries.table_2 import queries

S = SECOND


def bursty_trace(path: Path) -> Path:
    """Two minutes of a hundred arrivals a second, all of them in the first tenth of each second."""
    arrivals = [second * S + number * 1_000 for second in range(120) for number in range(100)]
    path.write_text("".join(f"{at}\n" for at in arrivals), encoding="ascii")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("queries") / "new"


@pytest.fixture(scope="module")
def record(folder: Path) -> dict[str, Any]:
    """What the command prints with --json, of fewer runs and sets; it also writes the folder."""
    trace = bursty_trace(folder.parent / "trace.txt")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(continuous_queries, "RUNS_QUICK", 2)
        patch.setattr(continuous_queries, "SETS_QUICK", 40)
        arguments = ["--quick", "--trace", str(trace), "--into", str(folder), "--json"]
        result = CliRunner().invoke(app, ["experiment", "continuous-queries", *arguments])
    assert isinstance(result.exception, SystemExit | None), result.output
    return dict(json.loads(result.stdout))


def test_results_page_and_figures_are_written(record, folder):
    assert json.loads((folder / "results.json").read_text(encoding="utf-8")) == record
    assert (folder / "page.md").read_text(encoding="utf-8") == page_of(record)
    for figure in ("figure.png", "query_load.png"):
        assert (folder / figure).read_bytes().startswith(b"\x89PNG")


def test_the_record_has_a_line_for_every_policy(record):
    assert [(each["name"], each["runs"]) for each in record["workloads"]] == [
        *(("cycle", 1), ("steady", 1), ("step", 1), ("random", 2), ("trace", 2)),
    ]
    assert [each["queries"] for each in record["query_load"]] == [4, 6, 8, 10, 12, 14, 16, 18, 20]
    for each in (*record["workloads"], *record["query_load"]):
        assert [found["policy"] for found in each["policies"]] == ["rm", "hpf", "lrm-paper", "lrm"]
        assert [found["rescheduling"] for found in each["policies"]] == [None, None, *["optimistic"] * 2]
    assert {(each["workload"], each["policy"], each["rescheduling"]) for each in record["rescheduling"]} == {
        (workload, policy, rescheduling)
        for workload in ("steady", "step", "random", "trace")
        for policy in ("lrm-paper", "lrm")
        for rescheduling in ("optimistic", "pessimistic", "permissive")
    }
    shed = record["shedding"]
    after = {"paper": 40, "least-overrun": 40, "least-error": 40, "best": 2}
    assert (shed["schedulable_after"], shed["sets_with_best"]) == (after, 2)
    assert shed["error_over_paper"].keys() == after.keys()
    assert shed["error_over_paper"]["best"]["mean"] <= 1 <= shed["least_error_over_best"]["mean"] <= 1.01


def test_budgets_miss_nothing_and_lose_least_wherever_it_is_crowded(record):
    everywhere = [
        found
        for each in (*record["workloads"], *record["query_load"], {"policies": record["rescheduling"]})
        for found in each["policies"]
    ]
    assert {found["miss_rate_worst"] for found in everywhere if found["policy"] == "lrm"} == {0}
    shares = {
        (each["name"], found["policy"]): found["error_share"]
        for each in record["workloads"]
        for found in each["policies"]
    }
    assert shares["steady", "lrm"] <= 0.23
    for name in ("cycle", "steady", "step", "random"):
        assert shares[name, "lrm"] == min(
            shares[name, policy] for policy in ("rm", "hpf", "lrm-paper", "lrm")
        )


def test_the_demand_is_that_of_all_tuples():
    asked = queries(10, "p")
    assert demand(asked, steady()) == pytest.approx(1.5, abs=1e-5)
    assert demand(asked, step()) == pytest.approx(1.5 * 7_500 * 1.95 / 12_500, abs=1e-3)
    assert demand(queries(20, "p"), steady()) == pytest.approx(3, abs=1e-5)


def test_measures_are_over_the_iterations_due():
    def outcome(deadline: int, finished: int | None, unprocessed: int) -> IterationOutcome:
        return IterationOutcome(
            "q", 0, deadline, finished, Fraction(1), 100, Fraction(unprocessed), Fraction(2)
        )

    outcomes = [outcome(10, 10, 0), outcome(10, 11, 30), outcome(20, 25, 50), outcome(20, None, 100)]
    of_first = measured(outcomes, 10)
    assert (of_first.miss_rate, of_first.completion_rate, of_first.total_error) == (0.5, 0.5, 60)
    of_all = measured(outcomes, 20)
    assert (of_all.miss_rate, of_all.completion_rate) == (0.75, 0.5)
    assert (of_all.total_error, of_all.error_share) == (360, 0.45)


def test_a_run_is_the_same_with_the_same_seed_and_another_one_with_another():
    one, same, other = (run_case(QueryCase("lrm", "optimistic", 10, randomly(1, seed))) for seed in (0, 0, 1))
    assert one == same
    assert one["total_error"] != other["total_error"]


def test_random_rates_have_their_mean_and_streams_of_their_own():
    (streams,) = randomly(1, 3).runs
    tuples = [streams[name].tuples(0, END_US) for name in STREAMS]
    assert len(set(tuples)) == len(STREAMS)
    assert all(tuples[0] != 0 and 0.7 < count / (10_000 * 20) < 1.3 for count in tuples)


def test_runs_and_streams_begin_evenly_over_a_trace(tmp_path):
    trace = read_trace(bursty_trace(tmp_path / "trace"))
    length_us = 119 * S + 99_000
    assert trace.length_us == length_us
    workload = trace.workload(2)
    each = Fraction(10_000 * length_us, S * 12_000)
    for run, streams in enumerate(workload.runs):
        for number, name in enumerate(STREAMS):
            begin = 20 * S + int((Fraction(run, 2) + Fraction(number, 3)) % 1 * (length_us - 60 * S))
            for first, last in ((-6 * S, 0), (0, END_US), (S, 3 * S)):
                came = sum(begin + first < at <= begin + last for at in trace.arrivals)
                assert abs(streams[name].tuples(first, last) - came * each) < 1


def test_a_compressed_trace_is_the_same_trace(tmp_path):
    plain = bursty_trace(tmp_path / "trace.txt")
    packed = tmp_path / "trace.txt.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_trace(packed).arrivals == read_trace(plain).arrivals


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "has no arrivals for more than a minute"),
        (b"0\n59000000\n", "has no arrivals for more than a minute"),
        (b"0\nsoon\n", ":2: 'soon' is no instant"),
        (b"0\n-5\n", ":2: '-5' is no instant"),
        (b"0\n1.5\n", ":2: '1.5' is no instant"),
        (b"5\n4\n", ":2: 4 is before the arrival above it"),
        (b"1" * 30, "is no instant"),
        (b"\xff\xfe", "cannot read"),
    ],
)
def test_a_bad_trace_is_refused_with_a_sentence(tmp_path, content, sentence):
    path = tmp_path / "trace"
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_trace(path)
    assert sentence in str(refused.value)


@pytest.mark.parametrize("name", ["missing", "broken.gz", "cut.gz", "wrong.gz"])
def test_a_trace_that_cannot_be_read_is_refused_with_a_sentence(tmp_path, name):
    packed = gzip.compress(b"1\n2\n" * 100)
    (tmp_path / "broken.gz").write_bytes(b"no gzip")
    (tmp_path / "cut.gz").write_bytes(packed[:-9])
    (tmp_path / "wrong.gz").write_bytes(packed[:12] + b"\xff" * 9 + packed[21:])
    result = CliRunner().invoke(
        app, ["experiment", "continuous-queries", "--quick", "--trace", str(tmp_path / name)]
    )
    assert isinstance(result.exception, InputError)
    assert "cannot read" in str(result.exception)
