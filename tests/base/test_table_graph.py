"""Orders and cycles of the graph of tables."""

from hypothesis import given
from hypothesis import strategies as st

from freshline.base.graph import cycles, topological_order

Graph = dict[str, list[str]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = [f"t{i}" for i in range(draw(st.integers(1, 8)))]
    return {name: draw(st.lists(st.sampled_from(names), unique=True, max_size=3)) for name in names}


def reaches_itself(graph: Graph, start: str) -> bool:
    seen: set[str] = set()
    pending = list(graph[start])
    while pending:
        table = pending.pop()
        if table not in seen:
            seen.add(table)
            pending.extend(graph[table])
    return start in seen


@given(graphs())
def test_an_order_has_every_source_first_and_all_tables_unless_there_is_a_cycle(graph: Graph) -> None:
    order = topological_order(graph)
    for position, name in enumerate(order):
        assert set(graph[name]) <= set(order[:position])
    assert (len(order) < len(graph)) == any(reaches_itself(graph, name) for name in graph)


@given(graphs())
def test_cycles_are_found_if_and_only_if_there_are_some_and_are_apart(graph: Graph) -> None:
    order = topological_order(graph)
    found = cycles(graph, order)
    assert bool(found) == (len(order) < len(graph))
    for cycle in found:
        for reader, source in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
            assert source in graph[reader]
        assert cycle[0] == min(cycle)
    assert len({name for cycle in found for name in cycle}) == sum(len(cycle) for cycle in found)


def test_of_the_tables_that_are_free_the_first_defined_comes_first() -> None:
    assert topological_order({"c": [], "b": ["a"], "d": ["c"], "a": []}) == ["c", "d", "a", "b"]
