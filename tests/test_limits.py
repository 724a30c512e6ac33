"""How large files, folders, functions and constructors may be, and which code may tell kinds apart."""

import ast
import pkgutil
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import freshline
import freshline_lab
from freshline.kernel.core.order import Order
from freshline.kernel.tables.intake import Intake

SOURCE = Path(freshline.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LINES_MAX = 400
FUNCTION_LINES_MAX = 60  # from `def` to its last line
FOLDER_FILES_MAX = 25  # side by side, besides `__init__.py`
IMPORTS_MAX = 24  # modules of Freshline that a module imports
PARAMETERS_MAX = 9  # of a constructor, besides self
PACKAGES = [SOURCE, Path(freshline_lab.__file__).parent]
# A run and its status go over the table of kinds (`live/kinds_of_work.py`) and know no kind by name.
KIND_FOLDERS = {
    f"freshline.{layer}.{kind}"
    for layer in ("kernel", "live")
    for kind in ("queries", "requests", "steps", "nodes")
}
KIND_NAMES = {"queries", "classes", "requests", "steps", "outputs", "placement"}
OF_A_KIND = {
    # The methods of the HTTP service, each served by a kind.
    "live/run/serving.py": {"classes"},
    # A node joins the others before there is a Spark, and tells how steps are placed while it starts.
    "live/run/open_storage.py": {"freshline.live.nodes"},
    "live/run/opening.py": {"freshline.live.nodes"},
}
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


def imports(code: str) -> set[str]:
    """The modules of Freshline that a module imports, wherever in it."""
    froms = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    return {node.module for node in froms if node.module and node.module.startswith("freshline")}


def parameters(code: str) -> Iterator[tuple[str, int]]:
    """The classes of a module, and how many parameters their constructors have besides self."""
    for node in ast.walk(ast.parse(code)):
        for each in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                taken = each.args
                yield node.name, len(taken.posonlyargs + taken.args + taken.kwonlyargs) - 1


def kinds_named(code: str) -> set[str]:
    """The folders of kinds that a module imports from, and the names of kinds among its own names."""
    tree = ast.parse(code)
    names = {getattr(node, field, None) for node in ast.walk(tree) for field in ("id", "attr", "arg", "name")}
    folders = {folder for folder in KIND_FOLDERS for name in imports(code) if name.startswith(folder)}
    return folders | {name for name in names if isinstance(name, str) and name in KIND_NAMES}


def test_no_folder_is_crowded() -> None:
    files = [path for package in PACKAGES for path in package.rglob("*.py") if path.name != "__init__.py"]
    crowd = Counter(str(path.parent.relative_to(SOURCE.parent)) for path in files)
    assert {folder: number for folder, number in crowd.items() if number > FOLDER_FILES_MAX} == {}


def test_no_module_knows_too_many_others() -> None:
    known = {
        str(path.relative_to(SOURCE.parent)): len(imports(path.read_text(encoding="utf-8")))
        for package in PACKAGES
        for path in package.rglob("*.py")
    }
    assert {path: number for path, number in known.items() if number > IMPORTS_MAX} == {}


def test_no_constructor_takes_too_much() -> None:
    taken = {
        f"{path.relative_to(SOURCE.parent)}: {name}": number
        for package in PACKAGES
        for path in package.rglob("*.py")
        for name, number in parameters(path.read_text(encoding="utf-8"))
    }
    assert {name: number for name, number in taken.items() if number > PARAMETERS_MAX} == {}


def test_a_run_and_its_status_name_no_kind_of_work() -> None:
    named = {}
    for folder in ("live/run", "live/status"):
        for path in sorted((SOURCE / folder).glob("*.py")):
            place = f"{folder}/{path.name}"
            found = kinds_named(path.read_text(encoding="utf-8")) - OF_A_KIND.get(place, set())
            named |= {place: found} if found else {}
    assert named == {}


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


def test_imports_parameters_and_kinds_are_seen() -> None:
    code = (
        "from freshline.live.queries.pacing import Pacing\nimport io\n"
        "class A:\n    def __init__(self, a, *, b): self.steps = a\n"
        "def f():\n    from freshline.base.names import cut"
    )
    assert imports(code) == {"freshline.live.queries.pacing", "freshline.base.names"}
    assert list(parameters(code)) == [("A", 2)]
    assert kinds_named(code) == {"freshline.live.queries", "steps"}


def test_a_functions_lines_are_counted_from_its_def() -> None:
    code = "@property\ndef one():\n    '''Two.'''\n\n    def three():\n        return 4\n"
    assert list(functions(code)) == [("one", 5), ("three", 2)]
