"""`freshline plan` as its user reads it."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from freshline.cli.main import app


def plan(file: Path, pool: str, **costs: str) -> tuple[int, list[str]]:
    """The exit code and the lines of a plan for tables of 1 minute on continuous feeds."""
    feeds = "".join(f"  {name}: {{arrival: continuous, period: 1m}}\n" for name in costs)
    tables = "".join(f"  {name}: {{feed: {name}, {rest}}}\n" for name, rest in costs.items())
    file.write_text(
        f"name: small\npools: {{updates: {{{pool}}}}}\nfeeds:\n{feeds}tables:\n{tables}", encoding="utf-8"
    )
    result = CliRunner().invoke(app, ["plan", "-p", str(file)])
    return result.exit_code, [" ".join(line.split()) for line in result.stdout.splitlines()]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "freshline.yml"


def test_one_target_is_not_spoken_of_as_several(file):
    code, lines = plan(file, "tracks: 1", a="target_lag: 2m, cost: {startup: 1s}")
    assert code == 0
    assert "Holds: the one target is proven." in lines


def test_one_table_is_not_spoken_of_as_several(file):
    code, lines = plan(file, "tracks: 1", a="target_lag: 1m, cost: {startup: 1s}")
    assert code == 1
    assert "Not proven for 1 of 1 table." in lines


def test_a_pool_in_which_nothing_is_bounded_is_not_called_bounded(file):
    _, lines = plan(file, "tracks: 2", a="cost: {startup: 70s}", b="cost: {startup: 1s}")
    assert "updates edf 2 1.183 - unbounded" in lines


def test_a_pool_in_which_some_clusters_are_bounded_says_how_many_tables(file):
    _, lines = plan(
        file, "tracks: 3, policy: clustered-edf", a="cost: {startup: 70s}", b="cost: {startup: 1s}"
    )
    assert "updates clustered-edf 3 1.183 - 1 of 2 bounded" in lines


def test_an_overload_by_a_hair_does_not_look_like_a_full_pool(file):
    _, lines = plan(file, "tracks: 1", a="cost: {startup: 30s}", b="cost: {startup: 30000001us}")
    assert "updates edf 1 just above 1 2 overloaded" in lines


RUNNABLE = """\
name: small
pools: {updates: {tracks: 1}}
feeds: {a: {period: 1m, path: landng, format: csv, schema: "ts timestamp, n long"}}
tables: {a: {feed: a, target_lag: 5m, cost: {startup: 1s}}}
"""


def test_what_a_run_would_refuse_is_said_by_the_plan_all_at_once(file):
    file.write_text(RUNNABLE, encoding="utf-8")
    result = CliRunner().invoke(app, ["plan", "-p", str(file)])
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    at = lines.index("Before a run mend this:")
    assert "`timestamp` is missing, and a run needs it" in lines[at + 1]
    assert f"the directory {file.parent}/landng does not exist" in lines[at + 2]
    assert all(str(file) in line or "freshline.yml:3" in line for line in lines[at + 1 : at + 3])
