"""Which operators become one task (5.3)."""

from freshline.planning.placement.place import place
from placement_cases import operator, plan


def tasks(*named, outputs: dict[str, float], **rest) -> list[tuple[str, ...]]:  # type: ignore[no-untyped-def]
    return [task.operators for task in place(plan(*named, outputs=outputs, **rest)).tasks]


FORK = operator("O1", "s", 1, "a"), operator("O2", "O1", 1, "a"), operator("O3", "O1", 50, "b")


def test_the_fork_goes_on_to_the_least_deadline() -> None:
    others = operator("X", "s", 40, "a"), operator("Y", "s", 45, "b")
    deadlines = {"O2": 100, "O3": 101, "X": 45, "Y": 46}
    assert tasks(*FORK, *others, outputs=deadlines) == [("O1", "O2"), ("X",), ("O3",), ("Y",)]


def test_where_the_least_deadline_leads_to_another_node_nothing_is_joined() -> None:
    assert tasks(*FORK, outputs={"O2": 100, "O3": 99}) == [("O1",), ("O2",), ("O3",)]


def test_of_equal_deadlines_the_own_output_comes_first_then_the_order_of_the_file() -> None:
    chain = operator("o", "s", 1, "a"), operator("p", "o", 1, "a"), operator("q", "o", 1, "a")
    assert tasks(*chain, outputs={"p": 50, "q": 50}) == [("o", "p"), ("q",)]
    assert tasks(*chain, outputs={"o": 50, "p": 50, "q": 50}) == [("o",), ("p",), ("q",)]
    assert tasks(*chain, outputs={"o": 50, "p": 60, "q": 40}) == [("o", "q"), ("p",)]


def test_an_operator_with_two_inputs_begins_a_task() -> None:
    join = operator("o", "s", 1, "a"), operator("p", "s", 1, "a"), operator("q", "o p", 1, "a")
    assert tasks(*join, operator("r", "q", 1, "a"), outputs={"r": 50}) == [("o",), ("p",), ("q", "r")]


def test_deadlines_behind_later_operators_count() -> None:
    named = (
        operator("o", "s", 1, "a"),
        operator("p", "o", 1, "a"),
        operator("q", "o", 1, "a"),
        operator("r", "q", 1, "a"),
    )
    assert tasks(*named, outputs={"p": 50, "r": 40}) == [("o", "q", "r"), ("p",)]
