"""What several commands share."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console, RenderableType
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

from freshline.base.duration import parse_duration, seconds
from freshline.base.errors import InputError
from freshline.base.printable import printable
from freshline.definitions.load import load
from freshline.definitions.warehouse import Warehouse
from freshline.planning.costs.learned import learned_costs
from freshline.planning.costs.learned_queries import learned_query_costs
from freshline.planning.plan.plan import Plan, PoolPlan, TablePlan
from freshline.storage.control.history import History
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.node_runs import NodeRuns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Output to a pipe or a log has no line breaks inside rows, and names are not cut.
_WIDTH_PIPED = 10_000

# The number of rows that a table on the screen has; rows with problems come first, the rest is counted.
ROWS_MAX = 40

ProjectOption = Annotated[
    Path,
    typer.Option("-p", "--project", help="The warehouse's file, or the folder it is in.", metavar="FILE"),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
AllOption = Annotated[bool, typer.Option("--all", help=f"Show every table, not only the first {ROWS_MAX}.")]

DEFAULT_PROJECT = Path("freshline.yml")


def load_project(project: Path) -> Warehouse:
    """The warehouse that a file, or the freshline.yml of a folder, defines."""
    return load(project / DEFAULT_PROJECT if project.is_dir() else project)


def load_with_costs(project: Path) -> tuple[Warehouse, Mapping[str, int]]:
    """The warehouse with learned costs if none are declared; by table or query, from how many runs."""
    with working("reading"):
        warehouse = load_project(project)
    costs = [table.cost for table in warehouse.stored.values()]
    costs += [query.cost for query in warehouse.queries.values()]
    if None not in costs:
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


class Grid(Table):
    """A table whose rows begin with a name. Names are shown as they are; brackets are not markup."""

    def add_row(
        self, *cells: RenderableType | None, style: StyleType | None = None, end_section: bool = False
    ) -> None:
        name, *rest = cells
        super().add_row(
            Text(name) if isinstance(name, str) else name, *rest, style=style, end_section=end_section
        )


def grid(title: str, columns: Mapping[str, bool]) -> Grid:
    """An empty table; a column is right-aligned if its value is true."""
    table = Grid(title=Text(title, "bold"), title_justify="left", header_style="bold", box=None)
    for name, right in columns.items():
        # On a narrow screen the longest names are cut; numbers and verdicts stay.
        table.add_column(name, justify="right" if right else "left", no_wrap=right, overflow="ellipsis")
    return table


def show_rest(screen: Console, rows: int, all_rows: bool) -> None:
    """Prints how many rows of a table are not shown."""
    if not all_rows and rows > ROWS_MAX:
        screen.print(f"... and {rows - ROWS_MAX} more: --all shows every one, --json too.", style="dim")


def show_learned(screen: Console, what: str, counts: Sequence[int]) -> None:
    """Prints from how many runs the costs with a star were learned; a count of 0 means not learned."""
    learned = [count for count in counts if count]
    if learned:
        fewest, most = min(learned), max(learned)
        number = f"{most}" if fewest == most else f"{fewest} to {most}"
        screen.print(f"* learned from {number} {what}", style="dim", highlight=False)


def recovery_line(plan: Plan, table: TablePlan) -> tuple[int, Fraction] | None:
    """The recovery time x(λ) = a + b·λ after an outage of its feed: a in µs, and b.

    None if there is no such statement: it exists only for base tables on files (paper 001, Theorem 4).
    """
    feed_name = plan.warehouse.tables[table.name].feed
    if feed_name is None or table.recovery_period_us is None:
        return None
    feed = plan.warehouse.feeds[feed_name]
    base_us = table.recovery_time_us(0, feed.jitter_us)
    if feed.arrival != "files" or base_us is None:
        return None
    return base_us, Fraction(table.recovery_period_us, table.period_us - table.recovery_period_us)


def pool_record(pool: PoolPlan, tables: tuple[TablePlan, ...]) -> dict[str, Any]:
    """A pool as JSON."""
    clusters = None
    if pool.clusters is not None:
        clusters = [
            {
                "tracks": cluster.tracks,
                "tables": list(cluster.tables),
                "batch_limit": seconds(cluster.batch_limit_us),
            }
            for cluster in pool.clusters
        ]
    of_classes = {"classes": list(pool.classes), "part": seconds(pool.part_us)} if pool.classes else {}
    return {
        "name": pool.name,
        "tracks": pool.tracks,
        "policy": pool.policy,
        "behaves_as": pool.behaves_as(tables),
        "utilization": pool.utilization,
        "provisioning": pool.provisioning,
        "clusters": clusters,
        "tracks_least": pool.tracks_least,
        "blocking": seconds(pool.blocking_us),
        "blocking_most": seconds(pool.blocking_most_us),
        "batch_limit": seconds(pool.batch_limit_us),
        **of_classes,
    }


def table_record(plan: Plan, table: TablePlan) -> dict[str, Any]:
    """A table's plan as JSON."""
    line = recovery_line(plan, table)
    recovers = table.name in plan.warehouse.released_by_files
    return {
        "name": table.name,
        "pool": table.pool,
        "period": seconds(table.period_us),
        "cost": seconds(table.cost_us),
        "cost_source": "learned" if table.learned_from_runs else "declared",
        "response_bound": seconds(table.response_bound_us),
        "staleness_bound": seconds(table.staleness_bound_us),
        "target_lag": seconds(table.target_lag_us),
        "holds": table.holds,
        "expected": table.expected,
        "recovery_period": seconds(table.recovery_period_us) if recovers else None,
        "recovery_time": None if line is None else {"base": seconds(line[0]), "per_second": float(line[1])},
    }


def plan_record(plan: Plan) -> dict[str, Any]:
    """A plan as JSON."""
    return {
        "holds": plan.holds,
        "pools": [pool_record(pool, plan.tables) for pool in plan.pools],
        "tables": [table_record(plan, table) for table in plan.tables],
        "advice": list(plan.advice),
    }
