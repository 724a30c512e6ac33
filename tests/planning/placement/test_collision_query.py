"""The paper's own query, with the paper's own numbers."""

import pytest

from freshline.planning.placement.place import place
from freshline.planning.placement.placement import NodeLoad, PlacedTask, Route
from freshline.planning.placement.programme import programme_of
from freshline.planning.placement.stretch import stretched
from placement_cases import collision

CHAIN = ("O4", *(f"O{number}" for number in range(7, 22)))


def test_o3_goes_to_node_2_and_every_sub_deadline_is_as_equation_1_has_it() -> None:
    found = place(collision())
    assert (found.status, found.objective, found.bound, found.gap) == ("optimal", 0.0, 0.0, 0.0)
    assert found.layout is not None
    assert found.layout.nodes["O3"] == "node2"
    assert found.layout.routes == (Route("O2", "node1", "node2"),)
    of = found.layout.sub_deadline
    assert [of["O1"], of["O2"], of["O3"]] == pytest.approx([0.03, 0.03, 0.03])
    assert sum(of[name] for name in CHAIN) == pytest.approx(0.24)
    assert of["O5"] + of["O6"] == pytest.approx(3.0)
    # Within a unit it is shared by cost.
    assert [of[name] for name in CHAIN] == pytest.approx([0.015] * 16)


def test_its_tasks_are_those_of_5_3_and_its_nodes_bear_what_is_left() -> None:
    found = place(collision())
    assert found.tasks == (
        PlacedTask("node1", ("O1",), 0.01, pytest.approx(0.03)),
        PlacedTask("node1", ("O2",), 0.015, pytest.approx(0.03)),
        PlacedTask("node2", ("O3", *CHAIN), 0.135, pytest.approx(0.27)),
        PlacedTask("node2", ("O5", "O6"), 0.2, pytest.approx(3.0)),
    )
    assert found.nodes == (
        NodeLoad("node1", pytest.approx(0.025), pytest.approx(0.005)),
        NodeLoad("node2", pytest.approx(0.335), pytest.approx(0.015)),
    )


def test_on_node_1_the_objective_would_be_three_quarters() -> None:
    found = place(collision(), kept={"O3": "node1"})
    assert found.status == "optimal"
    assert found.objective == pytest.approx(0.75)
    assert found.layout is not None
    assert found.layout.sub_deadline["O3"] == pytest.approx(0.04)


def test_by_traffic_and_load_o3_goes_to_node_1() -> None:
    found = place(collision(), method="sqpr")
    assert found.layout is not None
    assert found.layout.nodes["O3"] == "node1"
    assert found.layout.routes == (Route("O3", "node1", "node2"),)
    assert found.objective == pytest.approx(0.75)


def test_operator_by_operator_deadlines_would_have_to_be_3_6_times_as_long() -> None:
    assert stretched(programme_of(collision(), joining=False), None, 10).factor == pytest.approx(1085 / 300)
