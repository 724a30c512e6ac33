"""Whether a class gets what it was promised."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from freshline.base.duration import SECOND
from freshline.definitions.sections.classes import ServiceClass
from freshline.kernel.requests.class_targets import PERIODS, TOLERANCE, ClassTargets

GOLD = ServiceClass("gold", "main", Fraction(1, 2), settling_us=20 * SECOND, overshoot=Fraction(1, 2))


def states(*errors: float | None) -> list[str]:
    agreement = ClassTargets(GOLD)
    return [agreement.closed(ate, 5 * number * SECOND) for number, ate in enumerate(errors, start=1)]


def test_a_class_that_nobody_asks_is_idle():
    assert ClassTargets(GOLD).state == "IDLE"
    assert states(0.9, None, 0.5) == ["BROKEN", "IDLE", "KEPT"]


def test_a_single_bad_period_is_no_breach():
    assert states(0.5, 0.5, 0.7, 0.5) == ["KEPT", "KEPT", "KEPT", "KEPT"]


def test_the_error_may_be_exceeded_a_little_and_for_a_while():
    assert states(0.7, 0.7, 0.7, 0.7, 0.7, 0.7) == ["SETTLING"] * 5 + ["BROKEN"]


def test_the_error_may_not_be_exceeded_by_more_than_the_overshoot():
    assert states(0.5, 0.8, 1.0, 1.0, 0.2, 0.2) == [
        "KEPT",
        "SETTLING",
        "BROKEN",
        "BROKEN",
        "SETTLING",
        "KEPT",
    ]


@given(st.lists(st.none() | st.floats(0, 1), max_size=30))
def test_a_class_is_kept_exactly_where_its_last_periods_are_near_its_error(errors: list[float | None]):
    for number, state in enumerate(states(*errors), start=1):
        last: list[float] = []
        for ate in reversed(errors[max(0, number - PERIODS) : number]):
            if ate is None:
                break
            last.append(ate)
        near = bool(last) and sum(reversed(last)) / len(last) <= TOLERANCE * 0.5
        assert (state == "KEPT") == near
        assert (state == "IDLE") == (not last)
