"""What a placement promises, on random plans and on small ones that show one thing each."""

from fractions import Fraction
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import sampled
from freshline.planning.placement.place import place
from freshline.planning.placement.placement import Placement, PlacementLayout, Route
from freshline.planning.placement.plan import Operator, PlacementPlan
from freshline.planning.placement.programme import programme_of
from freshline_lab.campaigns.placement.paper_placement import paper_objective, paper_stretch
from freshline_lab.campaigns.placement.placement_plans import large_plan, overloaded_plan, small_plan
from placement_cases import operator, plan

SEEDS = st.integers(0, 100_000)


def layout_of(found: Placement) -> PlacementLayout:
    assert found.layout is not None
    return found.layout


@given(SEEDS)
@sampled(15, one_in=3)
def test_small_plans_are_placed_as_well_as_by_the_papers_own_programme(seed: int) -> None:
    given_plan = small_plan(seed)
    found, paper = place(given_plan), paper_objective(given_plan)
    if paper.values is not None:
        assert found.status == "optimal"
        assert found.objective == pytest.approx(paper.bound, rel=1e-4, abs=1e-4)
        check(given_plan, layout_of(found), 1.0)
        return
    assert found.status == "infeasible"
    assert found.infeasible is not None
    least = paper_stretch(given_plan).bound
    assert (found.infeasible.stretch or inf) == (inf if least == inf else pytest.approx(least, rel=0.01))
    if found.infeasible.stretch is not None:
        assert found.infeasible.layout is not None
        check(given_plan, found.infeasible.layout, found.infeasible.stretch)


@given(SEEDS)
@settings(max_examples=6, deadline=None)
def test_by_traffic_and_load_no_score_is_below_that_of_the_placement(seed: int) -> None:
    given_plan = small_plan(seed)
    found = place(given_plan, method="sqpr")
    if found.layout is None:
        assert found.infeasible is not None
        assert found.infeasible.stretch is None
        return
    best = place(given_plan)
    if best.layout is not None:
        assert score(given_plan, found.layout) <= score(given_plan, best.layout) + 1e-9
        assert best.objective is not None
        assert not found.holds or best.objective <= (found.objective or 0) + 1e-9


def score(given_plan: PlacementPlan, layout: PlacementLayout) -> float:
    """Traffic over all rates and the greatest load over all costs, of what outputs need."""
    needed = {each.operator for each in layout.sub_deadlines} or {each.name for each in given_plan.operators}
    speed = {node.name: node.speed for node in given_plan.nodes}
    loads = dict.fromkeys(speed, Fraction(0))
    for each in given_plan.operators:
        if each.name in needed:
            loads[layout.nodes[each.name]] += each.cost / speed[layout.nodes[each.name]]
    if len(needed) < len(given_plan.operators):
        return inf  # routes to what nobody needs are in the layout, but not in the score
    rates = {source.stream: source.rate for source in given_plan.sources}
    for each in given_plan.operators:
        for stream in each.outputs:
            rates[stream] = sum(rates[read] for read in each.inputs) * each.selectivity
    traffic = sum(rates[route.stream] for route in layout.routes) / sum(rates.values())
    return float(traffic + max(loads.values()) / sum(each.cost for each in given_plan.operators))


def check(given_plan: PlacementPlan, layout: PlacementLayout, factor: float) -> None:
    """(5), (6), the operators' nodes, and that every stream gets where it is needed, to no node twice."""
    programme = programme_of(given_plan)
    by_output = {(each.output, each.operator): each.seconds for each in layout.sub_deadlines}
    operators = given_plan.operators
    done = {node.name: float(node.blocking) for node in given_plan.nodes}
    speed = {node.name: float(node.speed) for node in given_plan.nodes}
    for unit in programme.order:
        names = [operators[place].name for place in programme.units[unit].operators]
        node = layout.nodes[names[0]]
        done[node] += programme.cost[unit] / speed[node]
        for goal in programme.goals_of[unit]:
            until = sum(by_output[programme.goals[goal].stream, name] for name in names)
            assert done[node] <= until * (1 + 1e-6) + 1e-9
    for goal in programme.goals:
        ends: dict[int, float] = {}
        for unit, before in goal.reads.items():
            own = sum(
                by_output[goal.stream, operators[each].name] for each in programme.units[unit].operators
            )
            ends[unit] = max((ends[each] for each in before), default=0.0) + own
        assert ends[goal.last] <= factor * float(goal.deadline) * (1 + 1e-6) + 1e-9
    check_routes(given_plan, layout)


def check_routes(given_plan: PlacementPlan, layout: PlacementLayout) -> None:
    available = {(source.stream, source.node) for source in given_plan.sources}
    available |= {
        (stream, layout.nodes[each.name]) for each in given_plan.operators for stream in each.outputs
    }
    for stream, one, other in layout.routes:  # in the order in which they are told
        assert (stream, one) in available
        assert (stream, other) not in available
        assert given_plan.links is None or (one, other) in given_plan.links
        available.add((stream, other))
    for each in given_plan.operators:
        assert each.nodes is None or layout.nodes[each.name] in each.nodes
        assert {(stream, layout.nodes[each.name]) for stream in each.inputs} <= available
    for output in given_plan.outputs:
        assert output.node is None or (output.stream, output.node) in available


@pytest.mark.parametrize("seed", range(3))
def test_two_hundred_operators_are_placed_at_no_distance_from_equal_laxity(seed: int) -> None:
    given_plan = large_plan(seed, 200, 20, 4, 40)
    found = place(given_plan)
    assert (found.status, found.objective, found.gap) == ("optimal", 0.0, 0.0)
    check(given_plan, layout_of(found), 1.0)


def test_what_is_pinned_and_too_much_is_proven_to_be() -> None:
    found = place(overloaded_plan(0, 200, 20))
    assert found.status == "infeasible"
    assert found.infeasible is not None
    assert found.infeasible.stretch == pytest.approx(20 / 12)
    assert found.infeasible.outputs == ("p3",)
    assert found.infeasible.nodes == ("n0",)
    assert "1.66667" in found.infeasible.reason


def test_a_deadline_below_the_computing_time_is_a_verdict() -> None:
    found = place(plan(operator("o", "s", 3), outputs={"o": 2}))
    assert found.status == "infeasible"
    assert found.infeasible is not None
    assert found.infeasible.stretch == 1.5
    assert found.infeasible.layout is not None
    assert found.infeasible.layout.sub_deadline == {"o": pytest.approx(3)}


def test_a_stream_takes_the_shortest_way_and_is_relayed_once() -> None:
    two = operator("x", "s", 1, "c"), operator("y", "s", 1, "d")
    found = place(plan(*two, outputs={"x": 9, "y": 9}, nodes="a b c d", links="a>b b>c b>d c>d"))
    assert layout_of(found).routes == (Route("s", "a", "b"), Route("s", "b", "c"), Route("s", "b", "d"))


def test_a_source_at_several_nodes_is_taken_from_the_nearest() -> None:
    found = place(
        plan(
            operator("x", "s", 1, "c"),
            outputs={"x": 9},
            nodes="a b c",
            links="a>b b>c",
            sources={"s": "a b"},
        )
    )
    assert layout_of(found).routes == (Route("s", "b", "c"),)


def test_an_output_is_brought_to_its_sink() -> None:
    found = place(plan(operator("x", "s", 1, "a"), outputs={"x": 9}, nodes="a b", sinks={"x": "b"}))
    assert layout_of(found).routes == (Route("x", "a", "b"),)


def test_where_links_are_in_the_way_no_stretch_helps() -> None:
    """Each output could be placed; both could not, since what they share can only be with one of them."""
    shared = operator("m", "s", 1), operator("x", "m", 1, "b"), operator("y", "m", 1, "c")
    found = place(
        plan(*shared, outputs={"x": 9, "y": 9}, nodes="a b c d", links="d>b d>c", sources={"s": "b c"})
    )
    assert found.status == "infeasible"
    assert found.infeasible is not None
    assert (found.infeasible.stretch, found.infeasible.layout) == (None, None)


def test_operators_that_no_output_needs_are_placed_and_count_nowhere() -> None:
    found = place(plan(operator("x", "s", 1, "a"), operator("unread", "x", 100, "a"), outputs={"x": 1}))
    assert found.status == "optimal"
    assert layout_of(found).nodes == {"x": "a", "unread": "a"}
    assert layout_of(found).sub_deadline == {"x": 1.0}
    assert [(task.node, task.operators) for task in found.tasks] == [("a", ("x",))]
    assert [(node.load, node.slack) for node in found.nodes] == [(1.0, 0.0), (0.0, None)]


def test_units_are_chained_one_to_one_and_have_one_and_the_same_node() -> None:
    chained = (
        operator("a1", "s", 1, "a"),
        operator("a2", "a1", 2, "a"),  # an output of the plan: it ends the unit
        operator("a3", "a2", 3, "a"),
        operator("free", "a3", 1),
        operator("b1", "free", 1, "b"),
        operator("b2", "b1", 1, "b", outputs="p q"),  # two streams: it ends the unit
        operator("b3", "p q", 1, "b"),
        operator("b4", "b3", 1, "b"),
        operator("a4", "b4", 1, "a"),
    )
    programme = programme_of(plan(*chained, outputs={"a2": 100, "a4": 100}))
    named = [[chained[place].name for place in unit.operators] for unit in programme.units]
    assert named == [["a1", "a2"], ["a3"], ["free"], ["b1", "b2"], ["b3", "b4"], ["a4"]]
    assert [unit.cost for unit in programme.units] == [3, 3, 1, 2, 2, 1]


def test_equal_shares_of_deadlines_go_by_their_place_in_the_file() -> None:
    """Thirds and tenths that floats would tell apart."""

    def order(*named: Operator) -> list[str]:
        made = plan(*named, outputs={each.name: 30 * float(each.cost) for each in named})
        programme = programme_of(made)
        return [made.operators[programme.units[unit].operators[0]].name for unit in programme.order]

    assert order(*(operator(name, "s", 0.1) for name in "cab")) == ["c", "a", "b"]


def test_speed_and_blocking_are_the_nodes_own() -> None:
    slow = plan(operator("x", "s", 1, "a"), outputs={"x": 2}, nodes="a", blocking=1.5)
    found = place(slow)
    assert found.status == "infeasible"
    assert found.infeasible is not None
    assert found.infeasible.stretch == 1.25
    quick = PlacementPlan(
        tuple(type(node)(node.name, Fraction(4), node.blocking) for node in slow.nodes),
        slow.sources,
        slow.operators,
        slow.outputs,
    )
    found = place(quick)
    assert [(node.load, node.slack) for node in found.nodes] == [(0.25, 0.25)]


def test_operators_that_are_kept_stay_and_others_are_placed_beside_them() -> None:
    two = operator("x", "s", 1), operator("y", "s", 1)
    both = plan(*two, outputs={"x": 1, "y": 1})
    for node, other in (("a", "b"), ("b", "a")):
        assert layout_of(place(both, kept={"x": node})).nodes == {"x": node, "y": other}
