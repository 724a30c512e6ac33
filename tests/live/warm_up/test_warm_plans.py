"""Which plans are warm, after a warm-up or an update."""

from hypothesis import given
from hypothesis import strategies as st

from freshline.live.status.status import Progress
from freshline.live.warm_up.warm_plans import WarmPlans

PLANS = [("a", "b"), ("c",), ("d", "e")]


def test_plans_are_handed_out_once_each_in_their_order():
    warmth = WarmPlans(PLANS)
    assert [warmth.take() for _ in range(5)] == [*PLANS, None, None]


def test_a_plan_that_an_update_has_warmed_is_not_handed_out():
    warmth = WarmPlans(PLANS)
    warmth.warmed("e", 7)
    assert [warmth.take() for _ in range(3)] == [("a", "b"), ("c",), None]
    assert [warmth.was_warm("d", at) for at in (6, 7, 8)] == [False, True, True]


def test_a_table_that_nobody_warms_up_for_is_warm_from_the_start():
    warmth = WarmPlans()
    assert warmth.was_warm("a", 0)
    assert not warmth.is_awaited("a")
    assert warmth.progress() is None
    assert warmth.take() is None


def test_a_plan_that_could_not_be_warmed_up_is_waited_for_no_longer_and_is_not_warm_before_an_update():
    warmth = WarmPlans(PLANS)
    warmth.gave_up("a")
    assert not warmth.is_awaited("b")
    assert not warmth.was_warm("b", 100)
    warmth.warmed("b", 101)
    assert [warmth.was_warm("a", at) for at in (100, 101)] == [False, True]


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.booleans()), max_size=12))
def test_progress_counts_every_plan_once_whatever_happens_to_it_how_often(happened: list[tuple[str, bool]]):
    warmth = WarmPlans(PLANS)
    done = set()
    for number, (table, goes_well) in enumerate(happened):
        if goes_well:
            warmth.warmed(table, number)
        else:
            warmth.gave_up(table)
        done.add(next(plan for plan in PLANS if table in plan))
        left = None if len(done) == len(PLANS) else Progress("warming up plans", len(done), len(PLANS))
        assert warmth.progress() == left
        assert [warmth.is_awaited(plan[-1]) for plan in PLANS] == [plan not in done for plan in PLANS]
    first: dict[str, int] = {}
    for number, (table, goes_well) in enumerate(happened):
        if goes_well:
            for alike in next(plan for plan in PLANS if table in plan):
                first.setdefault(alike, number)
    for table in "abcde":
        warm = [warmth.was_warm(table, at) for at in range(len(happened))]
        assert warm == [table in first and first[table] <= at for at in range(len(happened))]
