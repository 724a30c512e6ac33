"""Where the feeds' files land: in places where nothing else is."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePath
from typing import Final

from freshline.definitions.errors import DefinitionErrors, InputError, about
from freshline.definitions.warehouse import Warehouse
from freshline.printable import printable

# A system's own folders, with all that is below; and those that hold other people's, and many a landing.
_SYSTEM: Final = re.compile("bin|boot|dev|etc|lib.{0,3}|proc|sbin|sys|usr|System|Library|Applications")
_SHARED: Final = re.compile("home|media|mnt|opt|run|srv|tmp|var|Users|Volumes|private")
_HOMES: Final = (PurePath("/home"), PurePath("/Users"))
_MEMORY: Final = PurePath("/dev/shm")
# What nobody loads as CSV, JSON or Parquet: programs, settings, texts for people, pictures, archives.
_FOREIGN: Final = re.compile(
    r"(readme|licen[sc]e|makefile|dockerfile)(\..*)?|.*\.("
    r"py|pyc|ipynb|sh|bash|pl|rb|js|c|h|cc|cpp|hpp|java|class|jar|scala|go|rs|sql|r|html?|css|"
    r"xml|ya?ml|toml|ini|cfg|conf|cnf|env|properties|service|lock|pem|key|crt|"
    r"md|rst|tex|pdf|docx?|odt|xlsx?|ods|pptx?|rtf|eml|"
    r"jpe?g|png|gif|svg|webp|heic|ico|mp3|mp4|mov|mkv|avi|wav|flac|"
    r"so|o|a|exe|dll|dylib|bin|iso|img|deb|rpm|apk|dmg|whl|zip|tar|tgz|7z|rar|sqlite3?|db|bak|swp)",
    re.IGNORECASE,
)
_WORKING_COPIES: Final = (".git", ".hg", ".svn")
# A program without an ending to its name: a script, or machine code.
_PROGRAMS: Final = (b"#!", b"\x7fELF")
# At first sight: more names than these are not looked at, and fewer are told.
_NAMES_MAX: Final = 10_000
_TOLD_MAX: Final = 3


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


def check_directories(
    warehouse: Warehouse, directories: Mapping[str, Path], remembered: Path, *, loaded: bool
) -> None:
    """Refuses a directory that does not look like one for landing: what cannot be read there is moved away.

    Asked once: one that was accepted, or looked well when it was new, is remembered, and any file may come to
    it. Where something was loaded already and nothing is remembered, it came from these directories.
    """
    known = _read(remembered)
    if known is None and loaded:
        return
    errors: list[InputError] = []
    for name, directory in directories.items():
        wrong = None if (known or {}).get(name) == str(directory) else doubt(directory)
        if wrong is not None:
            what = about(("feeds", name, "path"), f"the directory {directory} {wrong}")
            remedy = (
                "What cannot be read there would be moved into quarantine: give the feed a directory of its "
                "own, or accept this one with `freshline run --yes`"
            )
            errors.append(InputError(what, remedy, warehouse.feeds[name].place))
    if errors:
        raise DefinitionErrors(errors)


def remember_directories(directories: Mapping[str, Path], remembered: Path) -> None:
    """Notes which directory of which feed needs no second look."""
    seen = {name: str(directory) for name, directory in directories.items()}
    if seen != _read(remembered):
        draft = remembered.with_name(f".{remembered.name}.draft")
        draft.write_text(json.dumps(seen, indent=1), encoding="utf-8")
        draft.replace(remembered)


def doubt(directory: Path) -> str | None:
    """Why a directory does not look like one for landing, if it does not."""
    if directory == Path("/"):
        return "is the root of the file system"
    top, depth = directory.parts[1], len(directory.parts) - 1
    alone = depth == 1 or (top == "var" and depth == 2)
    systems = _SYSTEM.fullmatch(top) and not (directory.is_relative_to(_MEMORY) and depth > 2)
    if systems or (alone and _SHARED.fullmatch(top)):
        return "is one of the system's"
    home = Path(os.path.expanduser("~")).resolve()
    if directory in (home, Path("/root")) or directory.parent in _HOMES:
        return "is somebody's home"
    if directory.parent == home and directory.name.startswith("."):
        return "is hidden in a home, where programs keep what is theirs"
    found = list(islice(_foreign(directory), _TOLD_MAX + 1))
    if not found:
        return None
    names = ", ".join(map(printable, found[:_TOLD_MAX])) + (" and more" if len(found) > _TOLD_MAX else "")
    return f"has what does not look like data: {names}"


def _foreign(directory: Path) -> Iterator[str]:
    """What is plainly not a feed's, by its name below the directory; hidden files and links do not count."""
    looked_at = 0
    for folder, folders, files in os.walk(directory):
        yield from (_relative(directory, folder, name) for name in folders if name in _WORKING_COPIES)
        folders[:] = sorted(name for name in folders if name[0] not in "._")
        for name in sorted(files):
            if name[0] in "._" or name.endswith(".tmp") or os.path.islink(os.path.join(folder, name)):
                continue
            looked_at += 1
            if looked_at > _NAMES_MAX:
                return
            if _is_foreign(os.path.join(folder, name)):
                yield _relative(directory, folder, name)


def _relative(directory: Path, folder: str, name: str) -> str:
    return os.path.relpath(os.path.join(folder, name), directory)


def _is_foreign(path: str) -> bool:
    name = os.path.basename(path)
    if _FOREIGN.fullmatch(name):
        return True
    if "." in name or not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as stream:
            return stream.read(4).startswith(_PROGRAMS)
    except OSError:
        return False


def _read(remembered: Path) -> dict[str, str] | None:
    try:
        known = json.loads(remembered.read_text(encoding="utf-8"))
    except OSError:
        return None  # there is none; or the storage is not ours, which is told when it is opened
    except ValueError:
        return {}  # damaged: it is asked again
    return known if isinstance(known, dict) else {}
