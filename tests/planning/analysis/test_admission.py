"""Which continuous queries are taken in, and on which track."""

from hypothesis import given, settings
from hypothesis import strategies as st

from freshline.planning.analysis.admission import QueryRefusal, admit, placed, refusal, track_for
from freshline.planning.analysis.levels import QueryLoad, is_schedulable
from query_loads import load, loads

MS = 1_000


def fit(queries: list[QueryLoad]) -> bool:
    return is_schedulable(queries, [query.least_us for query in queries])


def test_who_does_not_fit_beside_those_before_is_refused_with_the_stride_that_would_fit() -> None:
    queries = [
        load("a", 1_000 * MS, 600 * MS, least=600 * MS),
        load("b", 2_000 * MS, 1_000 * MS, least=1_000 * MS),
        load("c", 1_000 * MS, 300 * MS, least=300 * MS),
        load("d", 1_000 * MS, 900 * MS),
    ]
    reason = "even at the least costs, 1s of its own, its own deadline would be missed"
    assert admit(queries) == [QueryRefusal("b", reason, 2_800 * MS)]
    reason = "even at the least costs, 600ms of its own, the deadline of 'b' would be missed"
    assert admit(queries, running=("b", "c")) == [QueryRefusal("a", reason, 3_800 * MS)]


def test_there_may_be_no_stride_up_to_an_hour() -> None:
    hour = 3_600_000 * MS
    queries = [load("a", 2, 1, least=1), load("b", hour, hour, least=hour)]
    assert [(name, least) for name, _, least in admit(queries)] == [("b", None)]


def test_queries_go_to_tracks_by_falling_utilisation() -> None:
    queries = [load("a", 10, 1), load("b", 10, 5), load("c", 10, 3), load("d", 10, 4)]
    assert placed(queries, 2) == [0, 0, 1, 1]
    assert placed(queries, 1) == [0, 0, 0, 0]
    assert placed([], 3) == []


def test_a_new_query_goes_to_the_least_loaded_track_where_it_fits() -> None:
    full, half = [load("a", 10, 9, least=9)], [load("b", 10, 5, least=5)]
    assert track_for(load("c", 10, 1), [full, half]) == 1
    # The least loaded track leaves no time before this deadline.
    assert (
        track_for(load("c", 100, 2, deadline=2, least=2), [[load("a", 4, 1, deadline=1, least=1)], half]) == 1
    )
    assert track_for(load("c", 10, 6, least=6), [full, half]) is None
    found = refusal(load("c", 10, 6, least=6), [full, half])
    assert found.name == "c"
    assert found.period_least_us == MS


@given(loads(unit=500), st.sets(st.sampled_from(["q0", "q1", "q2", "q3"])))
def test_those_taken_in_fit_and_each_refused_one_does_not_beside_those_before(
    queries: list[QueryLoad], running: set[str]
) -> None:
    refused = {each.name for each in admit(queries, running)}
    in_turn = [query for query in queries if query.name in running]
    in_turn += [query for query in queries if query.name not in running]
    admitted: list[QueryLoad] = []
    for query in in_turn:
        assert fit([*admitted, query]) == (query.name not in refused)
        if query.name not in refused:
            admitted.append(query)


@settings(max_examples=50)
@given(loads(unit=1_000, period_max=12, size_max=4))
def test_the_stride_of_a_refusal_is_the_smallest_that_fits(queries: list[QueryLoad]) -> None:
    whole = [query._replace(least_us=query.cost_us, part_us=0) for query in queries]
    refused = {each.name: each.period_least_us for each in admit(whole)}
    admitted: list[QueryLoad] = []
    for query in whole:
        if query.name not in refused:
            admitted.append(query)
            continue
        least = refused[query.name]
        strides = (ms * MS for ms in range(1, 1_000))
        fitting = (
            stride
            for stride in strides
            if fit([*admitted, query._replace(period_us=stride, deadline_us=stride)])
        )
        if least is None or least >= 1_000 * MS:
            assert next(fitting, None) is None
        else:
            assert next(fitting) == least
