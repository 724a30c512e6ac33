"""The example with service classes."""

from pathlib import Path

from freshline.definitions.load import load
from freshline.planning.plan.make import make_plan


def test_the_example_holds_and_its_classes_are_in_their_pool() -> None:
    plan = make_plan(load(Path(__file__).parents[3] / "examples/classes/freshline.yml"))
    assert plan.holds
    assert [(pool.name, pool.tables, pool.classes) for pool in plan.pools] == [
        ("updates", ("packets", "hosts"), ()),
        ("asked", (), ("operators", "analysts", "guests")),
    ]
