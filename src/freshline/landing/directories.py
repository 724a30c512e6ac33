"""Where the feeds' files land: in places where nothing else is."""

from __future__ import annotations

from pathlib import Path

from freshline.definitions.errors import DefinitionErrors, InputError
from freshline.definitions.sentences import about
from freshline.definitions.warehouse import Warehouse


def landing_directories(warehouse: Warehouse, folder: Path, storage: Path) -> dict[str, Path]:
    """By feed its landing directory, links resolved; the project's file is in the folder.

    All that lies below a landing directory is taken: loaded, or put into quarantine. So one that holds the
    storage, the project's file or another feed's files is refused; so is one in the storage, which is not
    for others to write to.
    """
    directories = {
        name: (folder / feed.landing.path).resolve()
        for name, feed in warehouse.feeds.items()
        if feed.landing.path is not None
    }
    first_in = {directory: name for name, directory in reversed(directories.items())}
    inner_of = {
        first_in[above]: name
        for name, directory in reversed(directories.items())
        for above in directory.parents
        if above in first_in
    }
    folder, storage = folder.resolve(), storage.resolve()
    errors: list[InputError] = []
    for name, directory in directories.items():
        if storage.is_relative_to(directory):
            wrong = "it holds the storage"
        elif folder.is_relative_to(directory):
            wrong = "it holds the project's own file"
        elif directory.is_relative_to(storage):
            wrong = "it lies in the storage"
        elif first_in[directory] != name:
            wrong = f"it is that of feed {first_in[directory]} already"
        elif name in inner_of:
            wrong = f"it holds that of feed {inner_of[name]}, and all below it is taken"
        else:
            continue
        remedy = f"Give the feed a directory of its own, such as `path: landing/{name}`"
        what = about(("feeds", name, "path"), f"the directory {directory} cannot be used: {wrong}")
        errors.append(InputError(what, remedy, warehouse.feeds[name].place))
    if errors:
        raise DefinitionErrors(errors)
    return directories
