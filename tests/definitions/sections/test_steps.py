"""Outputs with a deadline, the steps that they are computed by, and the nodes that those run on."""

import json
from fractions import Fraction

import pytest

from freshline.base.duration import MILLISECOND, SECOND
from freshline.base.errors import InputError
from freshline.definitions.differences import differences
from freshline.definitions.load import loads
from freshline.definitions.sections.cost import Cost
from freshline.definitions.serial import from_record, to_record
from freshline.planning.plan.outputs import plan_outputs

TEXT = """name: alerts
nodes:
  edge: {}
  centre: {master: "spark://centre:7077", speed: 2, policy: fifo, conf: {spark.ui.enabled: false, spark.x: 3}}
links: [[edge, centre]]
pools: {updates: {tracks: 1, node: centre}}
feeds:
  speeds: {period: 1s, jitter: 100ms, node: edge, burst: 20, age: 2s}
tables:
  readings: {feed: speeds, cost: {startup: 10ms, per_row: 300ns}}
  fast: {sources: [readings], selectivity: 0.5, cost: {per_row: 0.1us}}
  alerts: {sources: [fast], deadline: 10s, node: centre, cost: {startup: 10ms}}
  hourly: {sources: [fast], period: 1h}
"""


def complaints(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        loads(text)
    return str(caught.value).removesuffix("\n").split("\n")


def changed(old: str, new: str) -> list[str]:
    assert old in TEXT
    return [line.removeprefix("freshline.yml:") for line in complaints(TEXT.replace(old, new))]


def test_an_output_and_all_that_it_is_computed_from_are_steps() -> None:
    warehouse = loads(TEXT)
    assert (warehouse.step_order, warehouse.topological_order) == (
        ("readings", "fast", "alerts"),
        ("hourly",),
    )
    assert {
        name: (step.nodes, step.deadline_us, step.selectivity) for name, step in warehouse.steps.items()
    } == {
        "readings": (("edge",), None, 1),
        "fast": (None, None, Fraction(1, 2)),
        "alerts": (("centre",), 10 * SECOND, 1),
    }
    assert warehouse.steps["readings"].cost == Cost(
        10 * MILLISECOND, Fraction(0), Fraction(0), Fraction(3, 10)
    )
    assert warehouse.links == (("edge", "centre"),)
    assert warehouse.nodes["centre"].conf == {"spark.ui.enabled": "false", "spark.x": "3"}
    assert (warehouse.nodes["edge"].master, warehouse.nodes["edge"].policy) == ("local[1]", "edf")
    assert warehouse.feeds["speeds"].rows_most == 20
    assert list(warehouse.stored) == ["readings", "fast", "alerts", "hourly"]


def test_a_record_holds_nodes_links_and_steps() -> None:
    record = json.loads(json.dumps(to_record(loads(TEXT))))
    assert to_record(from_record(record)) == record
    assert from_record(record).steps.keys() == loads(TEXT).steps.keys()


def test_what_differs_of_a_step_is_named() -> None:
    other = loads(TEXT.replace("deadline: 10s", "deadline: 5s").replace("speed: 2", "speed: 3"))
    assert differences(loads(TEXT), other) == ["tables.alerts.deadline", "nodes.centre.speed"]


def test_a_burst_is_what_comes_in_a_period_unless_it_is_given() -> None:
    feed = loads(TEXT.replace("burst: 20", "rows: 7")).feeds["speeds"]
    assert feed.rows_most == 7


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        (
            "sources: [fast], deadline",
            "sources: [fast], period: 1s, phase: 1s, deadline",
            [
                "12: tables.alerts.period: a step has no period: it is released when what it reads advances. "
                "Remove it.",
                "12: tables.alerts.phase: it has no effect on a step, which is released when what it reads "
                "advances. Remove it.",
            ],
        ),
        (
            "node: centre, cost",
            "pool: updates, cost",
            ["12: tables.alerts.pool: it has no effect on a step, which runs on a node. Remove it."],
        ),
        (
            "{per_row: 0.1us}",
            "{rate: 0.1}",
            [
                "11: tables.fast.cost.rate: it has no effect on a step, which costs by its rows. "
                "Use `per_row`, such as `per_row: 200us`."
            ],
        ),
        (
            "[[edge, centre]]",
            "[[centre, edge]]",
            [
                "12: tables.alerts: no `links` lead from all that it reads to the node `centre`. "
                "Add links, or move what it reads, or itself, with `node`.",
                "13: tables.hourly: no `links` lead from all that it reads to the node `centre`. "
                "Add links, or move what it reads, or itself, with `node`.",
            ],
        ),
        (
            "[[edge, centre]]",
            "[[edge], [edge, edge], [edge, moon]]",
            [
                "5: links: a link of 1 nodes. Write two nodes, such as [edge, centre].",
                "5: links: it links `edge` with itself. Remove it: it needs no link.",
                "5: links: there is no node `moon`. Define it under `nodes`, or name `edge` or `centre`.",
            ],
        ),
        (
            "node: edge, ",
            "",
            [
                "8: feeds.speeds: `node` is missing, and there are 2 nodes. "
                "Add the node on which its files land, `node: edge or centre`."
            ],
        ),
        (
            "feed: speeds,",
            "feed: speeds, node: centre,",
            [
                "10: tables.readings.node: its feed `speeds` is on the node `edge`, where it is loaded. "
                "Remove it, or move the feed to `centre`."
            ],
        ),
        (
            "sources: [readings]",
            "sources: [readings, alerts]",
            [
                "11: tables.fast: the tables read each other in a cycle, fast -> alerts -> fast. "
                "Remove one of these reads."
            ],
        ),
        (
            "sources: [fast], period: 1h",
            "feed: speeds, node: edge",
            [
                "13: tables.hourly.node: it has no effect on a table without an output. Remove it, or add a "
                "`deadline` to the table, or to one that is computed from it.",
                "13: tables.hourly: its feed `speeds` is on the node `edge`, and its pool on `centre`. "
                "Give it a pool with `node: edge`.",
            ],
        ),
        (
            "period: 1h",
            "",
            [
                "13: tables.hourly: a derived table has no `period`. Add the time between two updates, such "
                "as `period: 15 minutes`, or a `deadline` to make it an output."
            ],
        ),
        (
            "pools: {updates: {tracks: 1, node: centre}}",
            "",
            [
                "13: tables.hourly: there is no pool for a table that is no step. "
                "Add one, such as `pools: {updates: {tracks: 1}}`, or a `deadline` downstream."
            ],
        ),
        (
            "burst: 20",
            "burst: 0",
            ["8: feeds.speeds.burst: 0 is not a whole number from 1 to 1000000000000. Write how many it is."],
        ),
    ],
)
def test_what_is_wrong_with_a_step_is_said(old: str, new: str, messages: list[str]) -> None:
    assert changed(old, new) == messages


def test_an_output_without_nodes_is_refused() -> None:
    text = "name: n\npools: {p: {tracks: 1}}\nfeeds: {f: {period: 1s}}\ntables: {t: {feed: f, deadline: 1s}}"
    assert complaints(text) == [
        "freshline.yml:4: tables.t.deadline: there are no `nodes` that an output could run on. "
        "Add one, such as `nodes: {here: {master: 'local[1]'}}`."
    ]


def test_keys_of_outputs_have_no_effect_without_one() -> None:
    text = (
        "name: n\npools: {p: {tracks: 1}}\nfeeds: {f: {period: 1s, burst: 3}}\n"
        "tables: {t: {feed: f, selectivity: 1, cost: {per_row: 1s}}}"
    )
    assert [line.split(". ")[0] for line in complaints(text)] == [
        "freshline.yml:4: tables.t.selectivity: it has no effect on a table without an output",
        "freshline.yml:4: tables.t.cost.per_row: it has no effect on a table with a period "
        "whose rows are appended",
    ]


def test_a_step_may_run_on_one_of_several_nodes() -> None:
    warehouse = loads(TEXT.replace("10s, node: centre", "10s, node: [centre, edge, centre]"))
    assert warehouse.steps["alerts"].nodes == ("centre", "edge")
    assert from_record(json.loads(json.dumps(to_record(warehouse)))).steps["alerts"].nodes == (
        "centre",
        "edge",
    )


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("[centre, moon]", "tables.alerts.node: there is no node `moon`"),
        ("[]", "tables.alerts.node: a list names no node"),
        ("[3]", "tables.alerts.node: a list names no node"),
    ],
)
def test_a_list_of_nodes_names_nodes(node: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        loads(TEXT.replace("10s, node: centre", f"10s, node: {node}"))


def test_a_list_is_where_a_step_is_placed() -> None:
    text = """
name: three
nodes: {a: {}, b: {}, c: {speed: 9}}
feeds: {f: {period: 60s, burst: 1, node: a}}
tables:
  t: {feed: f, cost: {startup: 1s}}
  s: {sources: [t], cost: {startup: 5s}, node: [a, b], deadline: 30s}
"""
    placed = plan_outputs(loads(text)).placed
    assert placed is not None
    assert placed.nodes["s"] in ("a", "b")
