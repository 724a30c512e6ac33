"""`freshline quarantine`: files that could not be loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from freshline.base.errors import InputError
from freshline.base.instants import utc
from freshline.base.printable import printable
from freshline.cli.printing.grid import grid
from freshline.cli.shared import (
    DEFAULT_PROJECT,
    JsonOption,
    ProjectOption,
    console,
    load_project,
    print_json,
    storage_path,
)
from freshline.definitions.warehouse import Warehouse
from freshline.storage.control.layout import StorageLayout
from freshline.storage.control.quarantine import Quarantine, QuarantinedFile

quarantine = typer.Typer(
    help="List, retry or drop files that could not be loaded.", no_args_is_help=True, rich_markup_mode=None
)

FilesArgument = Annotated[
    list[str] | None, typer.Argument(help="FEED/NAME as `list` shows it; default: all.", metavar="FEED/NAME")
]


@quarantine.command("list")
def list_(project: ProjectOption = DEFAULT_PROJECT, as_json: JsonOption = False) -> None:
    """Show the files in quarantine, with the reason.

    Example: freshline quarantine list
    """
    _, _, entries = _open(project)
    if as_json:
        records = [
            {
                "feed": entry.feed,
                "name": entry.name,
                "reason": entry.reason,
                "attempts": entry.attempts,
                "at": utc(entry.at).isoformat(),
            }
            for entry in entries
        ]
        print_json({"quarantine": records})
        return
    table = grid(f"{len(entries)} in quarantine", "file", "since", ">attempts", "reason")
    for entry in entries:
        since = utc(entry.at).strftime("%Y-%m-%d %H:%M:%S")
        reason = Text(printable(entry.reason))
        table.add_row(_shown(entry), since, str(entry.attempts), reason)
    console().print(table)


@quarantine.command()
def retry(
    files: FilesArgument = None, project: ProjectOption = DEFAULT_PROJECT, as_json: JsonOption = False
) -> None:
    """Move files back to where they landed, to be loaded again.

    Example: freshline quarantine retry packets/0007.csv
    """
    warehouse, store, entries = _open(project)
    folder = project if project.is_dir() else project.parent
    retried = []
    for entry in _chosen(entries, files):
        feed = warehouse.feeds.get(entry.feed)
        if feed is None or feed.landing.path is None:
            raise InputError(f"there is no feed {entry.feed} any more", "Drop the file, or define the feed")
        back = store.retry(entry, folder / feed.landing.path)
        retried.append({"feed": entry.feed, "name": entry.name, "path": str(back)})
        if not as_json:
            print(f"Back in {printable(feed.landing.path)}: {printable(entry.name)}")
    if as_json:
        print_json({"retried": retried})


@quarantine.command()
def drop(
    files: FilesArgument = None, project: ProjectOption = DEFAULT_PROJECT, as_json: JsonOption = False
) -> None:
    """Delete files from the quarantine, for good.

    Example: freshline quarantine drop packets/0007.csv
    """
    _, store, entries = _open(project)
    chosen = _chosen(entries, files)
    for entry in chosen:
        store.drop(entry)
        if not as_json:
            print(f"Dropped: {_shown(entry)}")
    if as_json:
        print_json({"dropped": [{"feed": entry.feed, "name": entry.name} for entry in chosen]})


def _open(project: Path) -> tuple[Warehouse, Quarantine, list[QuarantinedFile]]:
    warehouse = load_project(project)
    store = Quarantine(StorageLayout(storage_path(project, warehouse)).quarantine)
    return warehouse, store, store.entries()


def _chosen(entries: list[QuarantinedFile], files: list[str] | None) -> list[QuarantinedFile]:
    if not files:
        return entries
    by_name = {_shown(entry): entry for entry in entries}
    by_name |= {f"{entry.feed}/{entry.name}": entry for entry in entries}
    unknown = [file for file in files if file not in by_name]
    if unknown:
        raise InputError(f"{unknown[0]} is not in quarantine", "`freshline quarantine list` shows what is")
    return [by_name[file] for file in files]


def _shown(entry: QuarantinedFile) -> str:
    return printable(f"{entry.feed}/{entry.name}")
