"""Steps in the kernel: paper 002's examples instant by instant, and what the reading of it hangs on."""

from collections.abc import Sequence
from fractions import Fraction

from freshline.kernel.core.kernel import Kernel
from freshline.kernel.core.pool import TrackPool
from freshline.kernel.core.validation import validate
from freshline.kernel.steps.orders import order_of
from freshline.kernel.steps.release import OnAdvance
from freshline.kernel.steps.task import StepTask, StepTerms
from freshline.kernel.tables.events import DataFile
from freshline.kernel.tables.remote_table import RemoteTable
from freshline.planning.placement.plan import (
    Operator,
    PlacementNode,
    PlacementOutput,
    PlacementPlan,
    StreamSource,
)
from freshline_lab.runs.placement_run import Burst, StepSetting, run_steps, step_kernel

ONE = Fraction(1)


def operator(name: str, *inputs: str, node: str = "n", cost: int = 1) -> Operator:
    return Operator(name, inputs, (name,), Fraction(cost), (node,))


def plan_of(operators: Sequence[Operator], *outputs: tuple[str, int]) -> PlacementPlan:
    made = {each.name for each in operators}
    streams = dict.fromkeys(stream for each in operators for stream in each.inputs if stream not in made)
    nodes = dict.fromkeys(each.nodes[0] for each in operators if each.nodes)
    return PlacementPlan(
        tuple(PlacementNode(name) for name in nodes),
        tuple(StreamSource(stream, next(iter(nodes))) for stream in streams),
        tuple(operators),
        tuple(PlacementOutput(stream, Fraction(deadline)) for stream, deadline in outputs),
    )


def setting(plan: PlacementPlan, tasks: Sequence[Sequence[str]], **sub_deadlines: int) -> StepSetting:
    return StepSetting(
        {each.name: each.nodes[0] for each in plan.operators if each.nodes},
        sub_deadlines,
        {each.name: int(each.cost) for each in plan.operators},
        tasks,
    )


FIGURE_6 = plan_of([operator("O1", "p"), operator("O2", "O1"), operator("O3", "O1")], ("O2", 2), ("O3", 7))
# T1 = (O1, O2) is to be done within 2, T2 = (O3) within 5.
FIGURE_6_SETTING = setting(FIGURE_6, [("O1", "O2"), ("O3",)], O1=1, O2=1, O3=5)
P1_AT_1_AND_P2_AT_3 = [Burst(1, "p", 1), Burst(3, "p", 2)]


def test_figure_6_instant_by_instant() -> None:
    kernel = step_kernel(FIGURE_6, FIGURE_6_SETTING)
    done = run_steps(kernel, P1_AT_1_AND_P2_AT_3, lambda name, burst: 1)
    validate(kernel)
    # (p1, T1) runs from 1 to 3, (p2, T1) before (p1, T2), whose deadline is 2 + 5, and so on.
    assert [(each.operator, each.burst, each.finish, each.deadline) for each in done] == [
        ("O1", 1, 2, 2),
        ("O2", 1, 3, 3),
        ("O1", 2, 4, 4),
        ("O2", 2, 5, 5),
        ("O3", 1, 6, 7),
        ("O3", 2, 7, 9),
    ]


def test_in_figure_6_first_in_first_out_is_late_with_p2() -> None:
    kernel = step_kernel(FIGURE_6, FIGURE_6_SETTING._replace(policy="fifo"))
    done = run_steps(kernel, P1_AT_1_AND_P2_AT_3, lambda name, burst: 1)
    assert [(each.operator, each.burst, each.finish) for each in done] == [
        ("O1", 1, 2),
        ("O2", 1, 3),
        ("O3", 1, 4),
        ("O1", 2, 5),
        ("O2", 2, 6),
        ("O3", 2, 7),
    ]
    assert next(each for each in done if (each.operator, each.burst) == ("O2", 2)).finish > 3 + 2


# READINGS' fork: O1 feeds O2 on A and O3 on B.
FORK = plan_of(
    [
        operator("O1", "s", node="A", cost=1),
        operator("O2", "O1", node="A", cost=1),
        operator("X", "x", node="A", cost=40),
        operator("O3", "O1", node="B", cost=50),
        operator("Y", "y", node="B", cost=45),
    ],
    ("O2", 100), ("O3", 101), ("X", 45), ("Y", 46),
)  # fmt: skip
FORK_BURSTS = [Burst(0, "s", 1), Burst(0, "x", 1), Burst(41, "y", 1)]


def forked(o1: int, o2: int) -> dict[str, int]:
    """When each is done at the fork, if the task (O1, O2) has these sub-deadlines up to each of its steps."""
    terms = setting(FORK, [("O1", "O2"), ("X",), ("O3",), ("Y",)], O1=o1, O2=o2 - o1, X=45, O3=99, Y=46)
    costs = {each.name: int(each.cost) for each in FORK.operators}
    done = run_steps(step_kernel(FORK, terms), FORK_BURSTS, lambda name, burst: costs[name])
    return {each.operator: each.finish for each in done}


def test_counting_the_whole_task_is_unsafe_at_a_fork() -> None:
    # (12): O1 is to be done with O2, by 100: X goes first, and O3 waits for Y as well.
    assert forked(o1=100, o2=100)["O3"] == 136 > 101


def test_counting_up_to_the_step_that_is_next_is_in_time_at_a_fork() -> None:
    done = forked(o1=2, o2=100)
    assert done == {"O1": 1, "X": 41, "O2": 42, "O3": 51, "Y": 96}
    assert done["O3"] <= 101
    assert done["Y"] - 41 > 46  # Y alone has no room beside a job of 50 that is not put aside


def test_a_job_of_several_steps_has_the_deadline_of_its_last() -> None:
    # MODEL-002: with the first one's, all three chains would go before X, which would end at 17.
    chains = [operator(f"A{k}", f"s{k}") for k in (1, 2, 3)]
    rest = [operator(f"B{k}", f"A{k}", cost=4) for k in (1, 2, 3)]
    plan = plan_of(
        [*chains, *rest, operator("X", "x", cost=2)], *((f"B{k}", 40) for k in (1, 2, 3)), ("X", 10)
    )
    sub_deadlines = {f"A{k}": 8 for k in (1, 2, 3)} | {f"B{k}": 32 for k in (1, 2, 3)} | {"X": 10}
    terms = setting(plan, [*((f"A{k}", f"B{k}") for k in (1, 2, 3)), ("X",)], **sub_deadlines)
    terms = terms._replace(limits_us={"n": 5})
    costs = {each.name: int(each.cost) for each in plan.operators}
    bursts = [Burst(0, f"s{k}", 1) for k in (1, 2, 3)] + [Burst(1, "x", 1)]
    done = run_steps(step_kernel(plan, terms), bursts, lambda name, burst: costs[name])
    assert [(each.operator, each.finish) for each in done] == [
        ("A1", 5), ("B1", 5), ("X", 7), ("A2", 12), ("B2", 12), ("A3", 17), ("B3", 17),
    ]  # fmt: skip


def test_a_step_whose_result_stays_in_its_task_is_as_urgent_as_the_one_that_leaves_it() -> None:
    """(6) has room for the chain after V, not for half of it before: 9 ≤ 10, 9 + 10 ≤ 20, but 5 + 9 > 10."""
    plan = plan_of(
        [operator("O1", "s", cost=5), operator("O2", "O1", cost=5), operator("V", "v", cost=9)],
        ("O2", 20),
        ("V", 10),
    )
    terms = setting(plan, [("O1", "O2"), ("V",)], O1=9, O2=11, V=10)
    costs = {each.name: int(each.cost) for each in plan.operators}
    bursts = [Burst(0, "s", 1), Burst(0, "v", 1)]
    done = run_steps(step_kernel(plan, terms), bursts, lambda name, burst: costs[name])
    assert [(each.operator, each.finish, each.deadline) for each in done] == [
        ("V", 9, 10),
        ("O1", 14, 20),
        ("O2", 19, 20),
    ]


def chain(s: int, a: int, b: int) -> Kernel:
    """A task (A, B) whose steps may share a job, as they are found when a run begins: fresh up to there."""
    kernel = Kernel()
    source = kernel.elsewhere["s"] = RemoteTable("s", s)
    first = StepTask(0, "A", StepTerms(10, 50, 20, leaves=False), [source], a)
    second = StepTask(1, "B", StepTerms(10, 50, 20), [first], b)
    source.dependents.append(first)
    first.dependents.append(second)
    second.follow(first)
    pool = TrackPool("n", 1, 0, order_of("edf"), kernel.touched)
    kernel.pools.append(pool)
    for step in (first, second):
        step.rule = OnAdvance(step)
        kernel.add(step)
        pool.join(step)
    kernel.begin(0)
    return kernel


def test_a_step_that_is_behind_the_one_before_it_catches_up_by_itself() -> None:
    """A run was killed between their commits; meanwhile what they read has gone on."""
    kernel = chain(s=3, a=1, b=0)
    done = run_steps(kernel, [], lambda name, burst: 10)
    validate(kernel)
    assert [(each.operator, each.burst) for each in done] == [
        ("B", 1), ("A", 2), ("A", 3), ("B", 2), ("B", 3),
    ]  # fmt: skip


def test_what_waits_for_a_step_is_done_once_however_its_task_was_behind() -> None:
    kernel = chain(s=1, a=1, b=0)
    done = run_steps(kernel, [Burst(1, "s", 2), Burst(2, "s", 3)], lambda name, burst: 10)
    validate(kernel)
    assert sorted((each.operator, each.burst) for each in done) == [
        ("A", 2), ("A", 3), ("B", 1), ("B", 2), ("B", 3),
    ]  # fmt: skip


def test_files_that_come_within_a_period_are_of_one_burst() -> None:
    kernel = Kernel()
    step = StepTask(0, "A", StepTerms(10, 50, 20, burst_us=5), [])
    step.rule = OnAdvance(step)
    pool = TrackPool("n", 1, 0, order_of("fifo"), kernel.touched)
    kernel.pools.append(pool)
    kernel.add(step)
    pool.join(step)
    for now in (1, 3, 5, 6, 10, 11):
        step.arrived(DataFile(now, now))
        step.source_advanced(now)
    # Whether it was at work all the time or not.
    assert [instance.came_at for instance in step.waiting] == [1, 1, 1, 6, 6, 11]
