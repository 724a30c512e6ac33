"""What several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console

from freshline.base.duration import parse_duration
from freshline.base.errors import InputError, Place
from freshline.base.printable import printable
from freshline.cli.printing.grid import ROWS_MAX
from freshline.definitions.load import load
from freshline.definitions.warehouse import Warehouse
from freshline.planning.costs.learned import learned_costs
from freshline.planning.costs.learned_queries import learned_query_costs
from freshline.storage.control.history import History
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.node_runs import NodeRuns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Output to a pipe or a log has no line breaks inside rows, and names are not cut.
_WIDTH_PIPED = 10_000


ProjectOption = Annotated[
    Path,
    typer.Option("-p", "--project", help="The warehouse's file, or the folder it is in.", metavar="FILE"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
AllOption = Annotated[bool, typer.Option("--all", help=f"Show every table, not only the first {ROWS_MAX}.")]

DEFAULT_PROJECT = Path("freshline.yml")

T = TypeVar("T")


def load_project(project: Path) -> Warehouse:
    """The warehouse that a file, or the freshline.yml of a folder, defines."""
    return load(project / DEFAULT_PROJECT if project.is_dir() else project)


def load_with_costs(project: Path) -> tuple[Warehouse, Mapping[str, int]]:
    """The warehouse with learned costs if none are declared; by table or query, from how many runs."""
    with working("reading"):
        warehouse = load_project(project)
    costs = [table.cost for table in warehouse.stored.values()]
    costs += [query.cost for query in warehouse.queries.values()]
    if None not in costs and not any(table.is_whole for table in warehouse.tables.values()):
        return warehouse, {}
    layout = StorageLayout(storage_path(project, warehouse))
    if warehouse.nodes:
        told = learned_costs(
            warehouse, NodeRuns(control.runs for control in layout.controls(warehouse.nodes))
        )
        return told.warehouse, told.runs
    with History(layout.control().history, read_only=True) as history:
        of_tables = learned_costs(warehouse, history)
        of_queries = learned_query_costs(of_tables.warehouse, history)
    return of_queries.warehouse, {**of_tables.runs, **of_queries.runs}


def read_input(file: Path, parse: Callable[[str], T]) -> T:
    """The content of a JSON file, by that parser; errors name the file."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {file}: {error}", "Name a readable JSON file") from error
    try:
        return parse(text)
    except InputError as error:
        raise InputError(error.what, error.remedy, Place(str(file), 0)) from None


def storage_path(project: Path, warehouse: Warehouse) -> Path:
    """The folder of the tables; `storage` is relative to the folder of the warehouse's file."""
    return project_folder(project) / warehouse.storage


def project_folder(project: Path) -> Path:
    """The folder of the warehouse's file, which its paths are relative to."""
    return project if project.is_dir() else project.parent


@contextmanager
def spark_for(name: str, storage: Path) -> Iterator[SparkSession]:
    """Spark for one command on a storage, on this machine; an interrupt leaves no Java process behind."""
    from freshline.spark.session.java import no_java_left_behind
    from freshline.spark.session.session import open_session
    from freshline.storage.control.permissions import modes_of

    with modes_of(storage), no_java_left_behind():
        session = open_session(name)
        try:
            yield session
        except Exception:  # not for an interrupt: `no_java_left_behind` then ends Spark
            session.stop()
            raise
        session.stop()


def duration_option(text: str, option: str) -> int:
    """A duration from the command line, at least 1 µs."""
    try:
        duration_us = parse_duration(text)
    except InputError as error:
        raise InputError(f"{option}: {error.what}", error.remedy) from None
    if duration_us <= 0:
        raise InputError(f"{option} is {text}", "Give a duration above zero, such as 8h")
    return duration_us


def console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=_WIDTH_PIPED)


@contextmanager
def working(doing: str) -> Iterator[None]:
    """Shows activity on standard error during the block, if that is a terminal."""
    if sys.stderr.isatty():
        with Console(stderr=True).status(doing):
            yield
    else:
        yield


def say(sentence: str) -> None:
    """Prints a sentence on standard error; it adds the capital letter and the full stop."""
    print(f"{printable(sentence[:1].upper() + sentence[1:])}.", file=sys.stderr, flush=True)


def print_json(record: Mapping[str, Any]) -> None:
    print(json.dumps(record, indent=2))
