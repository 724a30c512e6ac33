"""What is said of a live run of queries: rates, losses, why answers were late; and how large it is made."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshline.base.duration import SECOND
from freshline.definitions.load import load
from freshline.planning.costs.fit import PastRun
from freshline.planning.costs.iterations import PastPart
from freshline_lab.experiments.noise import Noise
from freshline_lab.experiments.queries.live_queries import POLICIES
from freshline_lab.experiments.queries.live_table_2 import (
    LOADING_MOST,
    TABLES,
    QueryCost,
    demand_of,
    project,
    queries,
    query_cost,
    sizes,
)
from freshline_lab.experiments.queries.query_answers import EndedIteration, PolicyRun, requirements, verdict

S = SECOND
START = 1_000 * S
(Q1, Q2) = queries(2, 1, 3)  # every 2 s and every 4 s


def ended(query, released_s, finished_s, ran_s=0.5, allowed_s=1.0, keep=0.5, **others):
    released = START + released_s * S
    return EndedIteration(
        query.name,
        released,
        released + query.stride_us,
        released,
        START + round(finished_s * S),
        round(ran_s * S),
        None if allowed_s is None else round(allowed_s * S),
        keep,
        **others,
    )


def judged(*answers, policy="lrm", updates=(), seconds=8):
    ran = PolicyRun(policy, START, START + seconds * S, answers, updates, Noise(Path("nowhere")))
    return verdict(ran, [Q1, Q2], 4 * S)


IN_TIME = (
    ended(Q1, 0, 1),
    ended(Q1, 2, 3),
    ended(Q1, 4, 5),
    ended(Q1, 6, 7),
    ended(Q2, 0, 2),
    ended(Q2, 4, 6),
)


def test_answers_in_time_lose_what_was_not_read():
    found = judged(*IN_TIME)
    assert (found["iterations"], found["miss_rate"], found["completion_rate"]) == (6, 0, 1)
    assert found["error_share"] == pytest.approx(0.5)
    assert found["misses"] == []
    assert found["busy"] == pytest.approx(6 * 0.5 / 8)


def test_an_answer_that_never_came_is_missed_and_all_of_it_is_lost():
    found = judged(*IN_TIME[1:])
    assert found["miss_rate"] == pytest.approx(1 / 6)
    assert found["miss_rate_after_first_cycle"] == 0
    assert found["completion_rate"] == pytest.approx(5 / 6)
    (miss,) = found["misses"]
    assert (miss["query"], miss["released"], miss["late_by"]) == ("Q1", 0, None)


@pytest.mark.parametrize(
    ("late", "policy", "why", "said"),
    [
        (ended(Q1, 6, 8.5, ran_s=1.75), "lrm", "own cost", "its parts took 0.75 s longer than the 1.00 s"),
        (ended(Q1, 6, 8.5, ran_s=1.75, looked=True), "lrm", "look", "to learn what that costs now"),
        (ended(Q1, 6, 8.5, known=False), "lrm", "unknown cost", "before its cost was known"),
        (ended(Q1, 6, 8.5), "lrm", "machine", "waited for the machine"),
        (ended(Q1, 6, 8.5), "lrm-paper", "share", "did not fit any more"),
        (ended(Q1, 6, 8.5, allowed_s=None), "rm", "overload", "nothing is shed"),
        (ended(Q1, 6, 7, failed=True), "rm", "failed", "it failed"),
    ],
)
def test_a_miss_is_put_down_to_what_broke(late, policy, why, said):
    found = judged(*IN_TIME[:3], *IN_TIME[4:], late, policy=policy)
    assert found["causes"] == {why: 1}
    (miss,) = found["misses"]
    assert said in miss["because"]
    assert miss["late_by"] == (late.finished - late.deadline) / S


def test_a_miss_by_others_names_the_one_that_took_longest_and_the_updates_beside():
    slow = ended(Q2, 4, 7.5, ran_s=3.4)
    update = PastRun(START + 5 * S, 2 * S, 10, S, 1)
    found = judged(*IN_TIME[:3], IN_TIME[4], slow, ended(Q1, 6, 8.2), updates=[update])
    assert found["causes"] == {"others' cost": 1}
    because = found["misses"][0]["because"]
    assert "Q2 took 2.40 s longer than the 1.00 s learned for it" in because
    assert "tables were updated for 1.00 s of that" in because


def test_what_is_required_of_lrm_and_rm():
    rm = judged(*IN_TIME[:2], *IN_TIME[4:], policy="rm") | {"policy": "rm"}
    met = requirements({"policies": [judged(*IN_TIME), rm]})
    assert [each["met"] for each in met] == [True, True, True]
    assert requirements({"policies": [rm]}) == []


costs = st.builds(QueryCost, st.floats(20_000, 400_000), st.floats(0.2, 20), st.floats(1_000, 50_000))


@given(st.lists(costs, min_size=1, max_size=10), st.integers(50_000, 900_000), st.floats(1.0, 2.0))
def test_sizes_ask_for_what_is_wanted_and_loading_for_little(found, update_us, demand):
    by_name = {f"Q{number}": cost for number, cost in enumerate(found, start=1)}
    sized = sizes(by_name, [PastRun(0, update_us, 48_000, 12 * S, 1)], demand)
    # A part more is a step in what is asked for; rows are whole.
    steps = sum(by_name[q.name].part_us / q.stride_us for q in sized.queries)
    assert demand - steps - 0.05 <= sized.demand <= demand + steps + 0.05
    assert sized.demand == demand_of(
        queries(len(found), sized.longer, 1), by_name, sized.rows_a_second * sized.strides_in_window
    )
    alone = len(TABLES) * update_us / (12 * S)
    assert sized.loading <= max(LOADING_MOST, alone) * 1.01
    assert all(query.window_us == sized.strides_in_window * query.stride_us for query in sized.queries)
    fixed = sum(by_name[q.name].fixed_us / q.stride_us for q in sized.queries)
    assert fixed <= 0.4001


def test_what_answers_cost_is_told_from_their_parts():
    parts = []
    for answer in range(3):
        parts += [PastPart(answer, 100_000 + 2 * 1_000 * n, n, 1_000 * n) for n in (16, 48, 192)]
        parts.append(PastPart(answer, 5_000, 0, 7))
    assert query_cost(parts) == QueryCost(100_000, 2, 5_000)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_project_is_one_that_freshline_takes(tmp_path, policy):
    file = tmp_path / "freshline.yml"
    file.write_text(project(queries(10, 1.25, 4), 900, POLICIES[policy]), encoding="utf-8")
    warehouse = load(file)
    assert [len(query.tables) for query in warehouse.queries.values()] == [1, 1, 1, 1, 2, 2, 3, 2, 2, 1]
    assert all(side.in_slices for query in warehouse.queries.values() for side in query.sides)
