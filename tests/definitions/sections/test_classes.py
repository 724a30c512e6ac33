"""The section `classes`: what may be written, what becomes of it, and what a user reads where it is wrong."""

from fractions import Fraction

import pytest

from complaints import complaints
from freshline.base.duration import SECOND
from freshline.definitions.load import loads
from freshline.definitions.sections.classes import ServiceClass
from freshline.definitions.serial import from_record, to_record
from freshline.planning.plan.make import make_plan

HEAD = """\
name: shop
pools: {updates: {tracks: 1}, main: {tracks: 2, policy: rds-quota}}
feeds: {orders: {period: 5m}}
tables: {orders: {feed: orders, pool: updates, cost: {startup: 1s}}}
queries: {}
classes:
"""
POOL = (
    "Name a pool with `policy: rds-edf` or `rds-hef` or `rds-quota` or `admit-all`, such as "
    "`main: {tracks: 1, policy: rds-quota}`."
)


def test_a_class_has_defaults_and_the_only_pool_that_can_hold_it() -> None:
    warehouse = loads(
        HEAD + "  gold: {error: 0.3}\n  lead: {error: 1, data_error_factor: 0.1, settling: 20s}\n"
    )
    gold, lead = warehouse.classes.values()
    assert gold == ServiceClass("gold", "main", Fraction(3, 10), place=gold.place)
    assert (gold.data_error_factor, gold.settling_us, gold.overshoot) == (1, 60 * SECOND, Fraction(35, 100))
    assert (lead.data_error_factor, lead.settling_us) == (Fraction(1, 10), 20 * SECOND)
    assert [*from_record(to_record(warehouse)).classes] == ["gold", "lead"]
    again = from_record(to_record(warehouse)).classes["lead"]
    assert (again.error, again.data_error_factor) == (1, Fraction(1, 10))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "gold: {}",
            "gold: `error` is missing. Add the average error that answers may have, such as `error: 0.3`.",
        ),
        ("gold: {error: 0}", "gold.error: 0 is out of range. Write a number above 0, at most 1."),
        ("gold: {error: 30}", "gold.error: 30 is out of range. Write a number above 0, at most 1."),
        (
            "gold: {error: 1, pool: updates}",
            f"gold.pool: the pool `updates` has `policy: edf`, which holds no classes. {POOL}",
        ),
        ("gold: {error: 1, pool: mian}", "gold.pool: there is no pool `mian`. Perhaps `main` is meant."),
        (
            "orders: {error: 1}",
            "orders: it has the same name as the table `orders` of line 4. Rename one of the two.",
        ),
        ("gold: {error: 1, eror: 1}", "gold: unknown key `eror`. Perhaps `error` is meant."),
    ],
)
def test_a_wrong_class_is_refused_with_a_remedy(entry: str, message: str) -> None:
    assert complaints(f"{HEAD}  {entry}\n") == [f"freshline.yml:7: classes.{message}"]


def test_a_class_needs_a_pool_that_can_hold_it_and_a_choice_where_there_are_two() -> None:
    none = HEAD.replace(", main: {tracks: 2, policy: rds-quota}", "") + "  gold: {error: 0.3}\n"
    assert complaints(none) == [f"freshline.yml:7: classes.gold: no pool can hold classes. {POOL}"]
    two = HEAD.replace("main:", "more: {tracks: 1, policy: rds-edf}, main:") + "  gold: {error: 0.3}\n"
    what = "`pool` is missing, and there are 2 pools that can hold classes. Add `pool` with `more` or `main`."
    assert complaints(two) == [f"freshline.yml:7: classes.gold: {what}"]


def test_gains_are_for_the_policies_that_have_some() -> None:
    text = HEAD.replace("policy: rds-quota", "policy: rds-edf, gains: scheduled") + "  gold: {error: 0.3}\n"
    assert loads(text).pools["main"].gains == "scheduled"
    (complaint,) = complaints(text.replace("rds-edf", "rds-quota"))
    assert complaint.endswith(
        "pools.main.gains: it has no effect with the policy rds-quota. Remove it, or set `policy: rds-edf`."
    )


@pytest.mark.parametrize(
    ("tracks", "tables", "cost", "response_s"),
    [
        (1, 1, "5s", 10),
        (1, 1, "9800ms", 10.3),
        (1, 2, "5s", 10.5),
        (2, 1, "5s", 10),
        (2, 3, "100ms", 10.55),
        (2, 3, "5s", 18.333334),
    ],
)
def test_the_longest_part_of_a_request_counts_in_every_bound_of_the_pool(
    tracks: int, tables: int, cost: str, response_s: float
) -> None:
    text = f"name: n\npools: {{main: {{tracks: {tracks}, policy: rds-edf}}}}\nfeeds: {{f: {{period: 10s}}}}\n"
    text += "tables:\n"
    text += "".join(f"  t{number}: {{feed: f, cost: {{startup: {cost}}}}}\n" for number in range(tables))
    alone = make_plan(loads(text))
    shared = make_plan(loads(text + "classes: {gold: {error: 0.5}}\n"))
    assert (shared.pools[0].classes, shared.pools[0].part_us) == (("gold",), SECOND // 2)
    assert max(table.response_bound_us for table in shared.tables) == response_s * SECOND
    for one, other in zip(alone.tables, shared.tables, strict=True):
        assert one.response_bound_us <= other.response_bound_us


def test_a_class_is_asked_on_the_first_node() -> None:
    nodes = HEAD.replace("name: shop", "name: shop\nnodes: {edge: {}, centre: {}}").replace(
        "feeds: {orders: {period: 5m}}", "feeds: {orders: {period: 5m, node: edge}}"
    )
    assert loads(nodes + "  gold: {error: 1}\n").pools["main"].node == "edge"
    far = nodes.replace("policy: rds-quota}", "policy: rds-quota, node: centre}") + "  gold: {error: 1}\n"
    assert complaints(far) == [
        "freshline.yml:8: classes.gold: its pool `main` is on the node `centre`, and requests arrive on "
        "`edge`. Put it into a pool with `node: edge`, which reads all tables."
    ]
