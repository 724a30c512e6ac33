"""(6) is sound: of what is placed in time nothing is ever late, whatever comes when."""

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from freshline_lab.campaigns.placement.placement_holds import WAYS, Way, random_placed, run_placed


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from(WAYS))
def test_no_output_is_after_its_deadline(plan_seed: int, run_seed: int, way: Way) -> None:
    found = random_placed(plan_seed, way)
    assume(found is not None)
    assert found is not None
    worst = run_placed(*found, run_seed, way)
    assert not worst.late, worst
