"""Whose bounds count: from the first update that took all there was, of sources in order."""

from freshline.base.duration import SECOND
from freshline.kernel.assembly.assemble import assemble
from freshline.kernel.tables.asserted_bounds import AssertedBounds
from freshline.kernel.tables.task import TableTask
from freshline.kernel.tables.update import Update
from freshline.planning.plan.make import make_plan
from freshline.testing.builder import Builder

S = SECOND


def source_and_table() -> list[TableTask]:
    builder = Builder().files("a", period=10, phase=10).derived("d", ["a"], period=20)
    return list(assemble(make_plan(builder.build())).tasks)


def update(task: TableTask, start: int, loaded_to: int) -> Update:
    return Update(task, 1, 0, 10 * S, start * S, 0, 0, loaded_to * S, ())


def test_a_table_counts_only_if_its_sources_did_when_its_update_started():
    """One that took all there was of a source which was behind has got old data."""
    a, d = source_and_table()
    asserted = AssertedBounds({"a": (), "d": ("a",)})
    asserted.ended(update(a, 48, 50), 50 * S, 50 * S, 100 * S, True)
    assert "a" in asserted
    asserted.ended(update(d, 49, 10), 10 * S, 52 * S, 100 * S, True)
    assert "d" not in asserted
    asserted.ended(update(d, 50, 12), 12 * S, 53 * S, 100 * S, True)
    assert "d" in asserted


def test_what_is_suspended_counts_from_anew():
    a, d = source_and_table()
    asserted = AssertedBounds({"a": (), "d": ("a",)}, from_start=True)
    asserted.suspend(["a"])
    assert "a" not in asserted
    assert "d" not in asserted
    asserted.ended(update(a, 48, 50), 50 * S, 50 * S, 100 * S, True)
    asserted.ended(update(d, 40, 10), 10 * S, 51 * S, 100 * S, True)
    assert "a" in asserted
    assert "d" not in asserted
