"""A good placement quickly: in the order of (6) on the best node, then moves and swaps.

First by how far left sides of (6) exceed d', which adds up node by node and is 0 if the objective is. Then by
the objective itself, with late outputs weighted far above it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from math import inf

from freshline.planning.placement.links import members
from freshline.planning.placement.programme import Programme, narrowed
from freshline.planning.placement.sub_deadlines import SubDeadlineRule, left_sides, longest_path

_EPSILON = 1e-9
_LATE = 1e6  # times the share by which an output is late, in the objective of the search
# The most moves and swaps to try, by overruns and by the objective: at most some seconds each.
_BY_OVERRUNS_MAX = 300_000
_BY_OBJECTIVE_MAX = 15_000

Move = dict[int, int]  # new nodes, by unit


def search(programme: Programme, rule: SubDeadlineRule) -> list[int] | None:
    """Nodes by unit; None if no placement was found that links allow."""
    nodes = _first(programme, rule)
    if nodes is not None:
        _Overruns(programme, rule, nodes).improve()
        _Objective(programme, rule, nodes).improve()
    return nodes


def is_legal(programme: Programme, nodes: list[int], move: Move) -> bool:
    """Whether links allow the move, with all other units in place."""
    reaches = programme.links.reaches
    for unit, node in move.items():
        if not programme.domains[unit] >> node & 1:
            return False
        producers, consumers = programme.neighbours[unit]
        if not all(reaches[move.get(each, nodes[each])] >> node & 1 for each in producers):
            return False
        if not all(reaches[node] >> move.get(each, nodes[each]) & 1 for each in consumers):
            return False
    return True


def legal_start(programme: Programme) -> list[int] | None:
    """A placement that links allow, as `search` begins; None if none was found."""
    return _first(programme, SubDeadlineRule(programme))


def _first(programme: Programme, rule: SubDeadlineRule) -> list[int] | None:
    """Places units one after another, pinned ones first."""
    domains = programme.domains
    if not all(domains):
        return None
    on_node = _Nodes(programme, rule)
    nodes = [-1] * len(programme.units)
    for unit in programme.order:
        if domains[unit].bit_count() == 1:
            nodes[unit] = members(domains[unit])[0]
            on_node.add(unit, nodes[unit])
    free = [unit for unit in programme.order if nodes[unit] < 0]
    others = [unit for unit in range(len(programme.units)) if unit not in programme.rank]
    bound = programme.links.connect_all
    for unit in [*free, *others]:
        wishes = members(domains[unit])
        if unit in programme.rank:
            wishes.sort(key=lambda node: on_node.after_adding(unit, node))
        for node in wishes:
            tried = domains if bound else _placed(programme, domains, unit, node)
            if all(tried):
                domains, nodes[unit] = tried, node
                break
        else:
            return None
        if unit in programme.rank:
            on_node.add(unit, nodes[unit])
    return nodes


def _placed(programme: Programme, domains: tuple[int, ...], unit: int, node: int) -> tuple[int, ...]:
    tried = list(domains)
    tried[unit] = 1 << node
    return narrowed(tried, programme.edges, programme.links)


class _Nodes:
    """The units on each node, in the order of (6), and how far each node's left sides exceed d'."""

    def __init__(self, programme: Programme, rule: SubDeadlineRule) -> None:
        self._programme = programme
        self._shares = {
            unit: [rule.ideal[goal][unit] for goal in programme.goals_of[unit]] for unit in programme.order
        }
        self.delta = {unit: min(shares) for unit, shares in self._shares.items()}
        self.ranks: list[list[int]] = [[] for _ in programme.plan.nodes]
        self.over = [0.0] * len(self.ranks)

    def add(self, unit: int, node: int) -> None:
        insort(self.ranks[node], self._programme.rank[unit])
        self.over[node] = self.overrun(node, self.ranks[node])

    def remove(self, unit: int, node: int) -> None:
        self.ranks[node].remove(self._programme.rank[unit])
        self.over[node] = self.overrun(node, self.ranks[node])

    def after_adding(self, unit: int, node: int) -> tuple[float, float]:
        """How much further the node exceeds d' with this unit, and its load."""
        ranks = self.changed(node, add=unit)
        load = sum(self._programme.cost[self._programme.order[rank]] for rank in ranks)
        return self.overrun(node, ranks) - self.over[node], load / self._programme.speed[node]

    def changed(self, node: int, add: int | None = None, remove: int | None = None) -> list[int]:
        ranks = list(self.ranks[node])
        if remove is not None:
            ranks.remove(self._programme.rank[remove])
        if add is not None:
            insort(ranks, self._programme.rank[add])
        return ranks

    def overrun(self, node: int, ranks: list[int]) -> float:
        """Σ (l_o − d'_{s,o})⁺/c_o: a lower bound of the objective, and 0 if that is."""
        order, cost, speed = self._programme.order, self._programme.cost, self._programme.speed[node]
        done, total = self._programme.blocking[node], 0.0
        for rank in ranks:
            unit = order[rank]
            done += cost[unit] / speed
            if done > self.delta[unit] * (1 + _EPSILON):
                total += sum(max(0.0, done - share) for share in self._shares[unit]) / cost[unit]
        return total


class _Overruns:
    """Moves and swaps away from nodes that exceed d'."""

    def __init__(self, programme: Programme, rule: SubDeadlineRule, nodes: list[int]) -> None:
        self._programme = programme
        self._nodes = nodes
        self._looks = 0
        self._on = _Nodes(programme, rule)
        for unit in programme.order:
            insort(self._on.ranks[nodes[unit]], programme.rank[unit])
        self._on.over = [self._on.overrun(node, ranks) for node, ranks in enumerate(self._on.ranks)]

    def improve(self) -> None:
        while sum(self._on.over) > _EPSILON and (self._step(self._moves) or self._step(self._swaps)):
            pass

    def _step(self, ways: Callable[[int, int], Iterator[tuple[float, Move]]]) -> bool:
        """Takes the best change of the first unit that has one, from the worst node on."""
        for node in sorted(range(len(self._on.over)), key=lambda node: -self._on.over[node]):
            if self._on.over[node] <= _EPSILON:
                break
            for unit in self._movable(node):
                if self._looks >= _BY_OVERRUNS_MAX:
                    return False
                gain, move = min(ways(node, unit), key=lambda each: each[0], default=(0.0, {}))
                if gain < -_EPSILON:
                    self._take(move)
                    return True
        return False

    def _take(self, move: Move) -> None:
        for unit, to in move.items():
            self._on.remove(unit, self._nodes[unit])
            self._on.add(unit, to)
            self._nodes[unit] = to

    def _movable(self, node: int) -> list[int]:
        order, domains = self._programme.order, self._programme.domains
        return [order[rank] for rank in self._on.ranks[node] if domains[order[rank]].bit_count() > 1]

    def _without(self, node: int, unit: int) -> float:
        """What the node gains by losing the unit; below 0 if it gains."""
        self._looks += 1
        return self._on.overrun(node, self._on.changed(node, remove=unit)) - self._on.over[node]

    def _moves(self, node: int, unit: int) -> Iterator[tuple[float, Move]]:
        gain = self._without(node, unit)
        if gain >= -_EPSILON:
            return
        for other in members(self._programme.domains[unit]):
            if other != node and is_legal(self._programme, self._nodes, {unit: other}):
                self._looks += 1
                yield gain + self._on.after_adding(unit, other)[0], {unit: other}

    def _swaps(self, node: int, unit: int) -> Iterator[tuple[float, Move]]:
        if self._without(node, unit) >= -_EPSILON:
            return
        for other in members(self._programme.domains[unit]):
            for back in self._movable(other) if other != node else ():
                move = {unit: other, back: node}
                if is_legal(self._programme, self._nodes, move):
                    self._looks += 2
                    here = self._on.overrun(node, self._on.changed(node, add=back, remove=unit))
                    there = self._on.overrun(other, self._on.changed(other, add=unit, remove=back))
                    yield here + there - self._on.over[node] - self._on.over[other], move


class _Objective:
    """Moves and swaps by the objective, of units on nodes where a left side exceeds d'."""

    def __init__(self, programme: Programme, rule: SubDeadlineRule, nodes: list[int]) -> None:
        self._programme = programme
        self._rule = rule
        self._nodes = nodes
        self._looks = 0
        self._least = left_sides(programme, nodes)
        self._costs = [self._cost(goal, self._least) for goal in range(len(programme.goals))]

    def improve(self) -> None:
        while sum(self._costs) > _EPSILON and self._step():
            pass

    def _step(self) -> bool:
        for move in self._changes():
            if self._looks >= _BY_OBJECTIVE_MAX:
                return False
            if is_legal(self._programme, self._nodes, move) and self._take_if_better(move):
                return True
        return False

    def _changes(self) -> Iterator[Move]:
        programme, nodes = self._programme, self._nodes
        troubled = {
            nodes[unit]
            for goal, cost in enumerate(self._costs)
            if cost > _EPSILON
            for unit in programme.goals[goal].units
            if self._least[unit] > self._rule.ideal[goal][unit]
        }
        movable = [unit for unit in programme.order if programme.domains[unit].bit_count() > 1]
        here = [unit for unit in movable if nodes[unit] in troubled]
        for unit in here:
            yield from ({unit: node} for node in members(programme.domains[unit]) if node != nodes[unit])
        for unit in here:
            for other in movable:
                if nodes[other] != nodes[unit]:
                    yield {unit: nodes[other], other: nodes[unit]}

    def _take_if_better(self, move: Move) -> bool:
        self._looks += 1
        touched = {self._nodes[unit] for unit in move} | set(move.values())
        before = {unit: self._nodes[unit] for unit in move}
        for unit, node in move.items():
            self._nodes[unit] = node
        least = self._least | self._left_sides_on(touched)
        goals = {
            goal
            for unit in least
            if least[unit] != self._least[unit]
            for goal in self._programme.goals_of[unit]
        }
        costs = {goal: self._cost(goal, least) for goal in goals}
        if sum(costs.values()) < sum(self._costs[goal] for goal in goals) - _EPSILON:
            self._least = least
            for goal, cost in costs.items():
                self._costs[goal] = cost
            return True
        for unit, node in before.items():
            self._nodes[unit] = node
        return False

    def _left_sides_on(self, nodes: set[int]) -> dict[int, float]:
        programme = self._programme
        done = {node: programme.blocking[node] for node in nodes}
        found = {}
        for unit in programme.order:
            node = self._nodes[unit]
            if node in nodes:
                done[node] += programme.cost[unit] / programme.speed[node]
                found[unit] = done[node]
        return found

    def _cost(self, goal: int, least: dict[int, float]) -> float:
        cost = self._rule.cost(goal, least)
        if cost < inf:
            return cost
        late = longest_path(self._programme.goals[goal], least) / self._rule.deadline[goal] - 1
        return _LATE * (1 + late)
