"""How large files and functions may be, and who may ask of what kind something is."""

import ast
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import freshline
from freshline.kernel.core.order import Order
from freshline.kernel.tables.intake import Intake

SOURCE = Path(freshline.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LINES_MAX = 400
FUNCTION_LINES_MAX = 60  # from `def` to its last line
# These folders are where kinds of intakes, rules and policies are told apart; elsewhere they are asked.
TELL_APART = {("kernel", "tables"), ("kernel", "recovery")}
_OF_A_RULE = ("begin", "due", "job_finished", "source_advanced", "unfinished_deadlines")


def functions(code: str) -> Iterator[tuple[str, int]]:
    """The functions of a module, those in classes and in functions too, and the lines of each."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def kinds() -> set[str]:
    """The classes of intakes, release rules and policies there are, and the protocols of rules."""
    found = {"Intake", "Order"}
    for folder in ("core", "tables", "policies", "recovery"):
        for module in pkgutil.iter_modules([str(SOURCE / "kernel" / folder)], f"freshline.kernel.{folder}."):
            for name, kind in vars(import_module(module.name)).items():
                if isinstance(kind, type) and (
                    issubclass(kind, Intake | Order) or all(hasattr(kind, each) for each in _OF_A_RULE)
                ):
                    found.add(name)
    return found


def told_apart(code: str) -> set[str]:
    """What a module asks whether something is of that kind."""
    asked: list[ast.AST] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            asked += node.args[1:]
        elif isinstance(node, ast.MatchClass):
            asked.append(node.cls)
        elif isinstance(node, ast.Compare) and any(
            isinstance(side, ast.Call) and ast.unparse(side.func) == "type"
            for side in (node.left, *node.comparators)
        ):
            asked.append(node)
    names = (each for node in asked for each in ast.walk(node))
    return {
        each.id if isinstance(each, ast.Name) else each.attr
        for each in names
        if isinstance(each, ast.Name | ast.Attribute)
    }


def test_no_file_is_long() -> None:
    lines = {path.relative_to(SOURCE): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {str(path): number for path, number in lines.items() if number > LINES_MAX} == {}


def test_no_function_is_long() -> None:
    long = {
        f"{path.relative_to(SOURCE)}: {name}": number
        for path in FILES
        for name, number in functions(path.read_text(encoding="utf-8"))
        if number > FUNCTION_LINES_MAX
    }
    assert long == {}


def test_of_what_kind_an_intake_a_rule_or_a_policy_is_nobody_asks_but_those_that_know() -> None:
    forbidden = kinds()
    asked = {
        f"{path.relative_to(SOURCE)}: {name}"
        for path in FILES
        if path.relative_to(SOURCE).parts[:2] not in TELL_APART
        for name in told_apart(path.read_text(encoding="utf-8")) & forbidden
    }
    assert asked == set()


def test_the_kinds_are_found() -> None:
    assert kinds() >= {
        *("Intake", "FileIntake", "DerivedIntake", "ContinuousIntake"),
        *("Release", "PeriodicRelease", "StaleRelease", "RememberingRelease", "AdaptiveRelease"),
        "LeavingRelease",
        *("Order", "Fifo", "RateMonotonic", "Edf", "StrictEdf", "Proportional", "Aus", "AusSlack"),
    }
    assert kinds().isdisjoint({"Task", "TableTask", "Update", "Job", "Kernel", "Pool", "Timers"})


@pytest.mark.parametrize(
    ("code", "asked"),
    [
        ("isinstance(task.intake, FileIntake)", {"FileIntake"}),
        (
            "isinstance(rule, modes.AdaptiveRelease | StaleRelease)",
            {"modes", "AdaptiveRelease", "StaleRelease"},
        ),
        ("issubclass(kind, (Aus, Edf))", {"Aus", "Edf"}),
        ("type(order) is Aus", {"type", "order", "Aus"}),
        ("match rule:\n    case AdaptiveRelease(): pass", {"AdaptiveRelease"}),
        ("Aus.made_for(setting)", set()),
    ],
)
def test_however_it_is_asked_it_is_seen(code: str, asked: set[str]) -> None:
    assert told_apart(code) == asked


def test_a_functions_lines_are_counted_from_its_def() -> None:
    code = "@property\ndef one():\n    '''Two.'''\n\n    def three():\n        return 4\n"
    assert list(functions(code)) == [("one", 5), ("three", 2)]
