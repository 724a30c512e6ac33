"""Who knows whom: docs/architecture.md lists the folders, and says what their order means."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "freshline"
TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
LAYERS = re.findall(r"^\| `(\w+)/` \|", TEXT, re.MULTILINE)
# "..., except that `one` and `other` know each other"
FRIENDS = [{one, other} for one, other in re.findall(r"`(\w+)` and `(\w+)`\s+know\s+each\s+other", TEXT)]
# "`one`, `other` and `third` read no clock"
PURE = re.findall(r"`(\w+)`", *re.findall(r"((?:`\w+`(?:,|\s+and)?\s+)+)read\s+no\s+clock", TEXT))
IMPURE = {
    "_thread",
    "asyncio",
    "concurrent",
    "multiprocessing",
    "py4j",
    "pyspark",
    "queue",
    "sched",
    "select",
    "selectors",
    "signal",
    "socket",
    "subprocess",
    "threading",
    "time",
}
CLOCKS = {f"{kind}.{name}" for kind in ("datetime", "date") for name in ("now", "utcnow", "today")}


def imports(code: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "a relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def known(code: str) -> set[str]:
    """The folders of Freshline that a module imports from."""
    parts = (name.split(".") for name in imports(code))
    return {part[1] for part in parts if part[0] == "freshline" and len(part) > 1}.intersection(LAYERS)


def impure_base(code: str) -> set[str]:
    """The modules of `base` that a module imports and that are not pure themselves."""
    parts = (name.split(".") for name in imports(code))
    names = {part[2] for part in parts if part[:2] == ["freshline", "base"] and len(part) > 2}
    files = {name: SOURCE / "base" / f"{name}.py" for name in names}
    return {
        f"base.{name}"
        for name, path in files.items()
        if path.exists() and clocks_threads_and_spark(path.read_text(encoding="utf-8"))
    }


def clocks_threads_and_spark(code: str) -> set[str]:
    found = {name.split(".")[0] for name in imports(code)} & IMPURE
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute):
            found |= {".".join(ast.unparse(node).rsplit(".", 2)[-2:])} & CLOCKS
    return found


def is_allowed(layer: str, other: str) -> bool:
    return LAYERS.index(other) <= LAYERS.index(layer) or {layer, other} in FRIENDS


def modules(layer: str) -> list[Path]:
    return sorted((SOURCE / layer).rglob("*.py"))


def test_the_table_lists_the_folders_there_are() -> None:
    assert len(LAYERS) == len(set(LAYERS))
    assert set(LAYERS) == {path.parent.name for path in SOURCE.glob("*/__init__.py")}


def test_what_the_document_says_of_layers_is_found_in_it() -> None:
    assert set(PURE) > {"definitions", "kernel"}
    assert set(PURE).union(*FRIENDS) <= set(LAYERS)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_dependency_only_points_upwards_in_the_table(layer: str) -> None:
    wrong = {
        f"{path.relative_to(SOURCE)} imports {other}"
        for path in modules(layer)
        for other in known(path.read_text(encoding="utf-8"))
        if not is_allowed(layer, other)
    }
    assert wrong == set()


def test_spark_does_not_know_the_kernel() -> None:
    """Spark loads and answers what it is told to: nothing in it depends on how jobs are scheduled."""
    wrong = [path for path in modules("spark") if "kernel" in known(path.read_text(encoding="utf-8"))]
    assert wrong == []


@pytest.mark.parametrize("layer", PURE)
def test_a_pure_layer_knows_no_clock_no_thread_no_spark_and_no_layer_that_does(layer: str) -> None:
    wrong = set()
    for path in modules(layer):
        code = path.read_text(encoding="utf-8")
        wrong |= {f"{path.relative_to(SOURCE)}: {each}" for each in clocks_threads_and_spark(code)}
        wrong |= {f"{path.relative_to(SOURCE)}: {each}" for each in known(code).difference(PURE, {"base"})}
        wrong |= {f"{path.relative_to(SOURCE)}: {each}" for each in impure_base(code)}
    assert wrong == set()


def test_what_stands_beside_the_folders_is_known_to_all_and_knows_none() -> None:
    doors = ("__main__.py", "__init__.py")  # by which users come in: nothing of Freshline asks them
    beside = [path for path in SOURCE.glob("*.py") if path.name not in doors]
    assert [path.name for path in beside if known(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import time", {"time"}),
        ("def f():\n    from threading import Lock", {"threading"}),
        ("import pyspark.sql as s", {"pyspark"}),
        ("from datetime import datetime\ndatetime.now()", {"datetime.now"}),
        ("import datetime\ndatetime.datetime.now()", {"datetime.now"}),
        ("from datetime import date\nd = date.today", {"date.today"}),
        ("from freshline.sql.time import Time\nkernel.now\ntimes = 1", set()),
    ],
)
def test_clocks_threads_and_spark_are_seen(code: str, found: set[str]) -> None:
    assert clocks_threads_and_spark(code) == found


@pytest.mark.parametrize(
    "code", ["import freshline.cli.main", "from freshline.cli.main import app", "from freshline import cli"]
)
def test_an_import_is_seen_however_it_is_written(code: str) -> None:
    assert known(code) == {"cli"}
    assert not is_allowed("kernel", "cli")
