"""Landing directories of feeds, and checks that they hold nothing else."""

from __future__ import annotations

import codecs
import csv
import json
import os
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path, PurePath
from typing import Final

from freshline.base.errors import DefinitionErrors, InputError, about
from freshline.base.printable import printable
from freshline.definitions.sections.feeds import Landing
from freshline.definitions.warehouse import Warehouse
from freshline.sql.columns import parse_columns

# System directories with everything below them, and directories that may have landing directories below.
_SYSTEM: Final = re.compile(
    r"/(bin|boot|dev|lib.{0,3}|lost\+found|nix|proc|run|sbin|snap|sys|usr|System|Library|Applications)(/.*)?"
    r"|(/private)?/(etc|var/(backups|cache|db|lib|log|mail|run|spool/cron))(/.*)?",
    re.DOTALL,
)
_SHARED: Final = re.compile(
    "/(home|media|mnt|opt|srv|Users|Volumes|private)|(/private)?/(tmp|var(/(local|opt|spool|tmp|www))?)"
)
_HOMES: Final = re.compile("/root|/(home|Users)/[^/]+")
_MEMORY: Final = PurePath("/dev/shm")
# Files that are never CSV, JSON or Parquet data: programs, settings, documents, pictures, archives.
_FOREIGN: Final = re.compile(
    r"(readme|licen[sc]e|makefile|dockerfile)(\..*)?|authorized_keys2?|known_hosts|id_(rsa|dsa|ecdsa|ed25519)|"
    r"crontab|.*\.("
    r"py|pyc|ipynb|sh|bash|pl|rb|js|c|h|cc|cpp|hpp|java|class|jar|scala|go|rs|sql|r|html?|css|"
    r"xml|ya?ml|toml|ini|cfg|conf|cnf|env|properties|service|lock|pem|key|crt|"
    r"md|rst|tex|pdf|docx?|odt|xlsx?|ods|pptx?|rtf|eml|"
    r"jpe?g|png|gif|svg|webp|heic|ico|mp3|mp4|mov|mkv|avi|wav|flac|"
    r"so|o|a|exe|dll|dylib|bin|iso|img|deb|rpm|apk|dmg|whl|zip|tar|tgz|7z|rar|sqlite3?|db|bak|swp)",
    re.IGNORECASE | re.DOTALL,
)
_WORKING_COPIES: Final = (".git", ".hg", ".svn")
# How a program without a file extension begins: a script, or machine code.
_PROGRAMS: Final = (b"#!", b"\x7fELF")
_BEGINNING: Final = 4096
# The check looks at no more names than this, and reports fewer.
_NAMES_MAX: Final = 10_000
_TOLD_MAX: Final = 3


def landing_directories(warehouse: Warehouse, folder: Path, storage: Path) -> dict[str, Path]:
    """The landing directory of each feed, with links resolved; the project's file is in `folder`.

    A run takes everything below a landing directory: it loads it or moves it into quarantine. So a directory
    is refused if it contains the storage, the project's file or files of another feed. One inside the storage
    is refused too, because other programs must not write there.
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
            wrong = f"the feed {first_in[directory]} has the same directory"
        elif name in inner_of:
            wrong = f"it contains the directory of feed {inner_of[name]}"
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
    """Refuses a directory that does not look like a landing directory: unreadable files there would be moved.

    The check happens once: an accepted or valid directory is remembered, and any file may come later. If
    tables have rows but nothing is remembered, the rows came from these directories.
    """
    known = _read(remembered)
    if known is None and loaded:
        return
    errors: list[InputError] = []
    for name, directory in directories.items():
        landing = warehouse.feeds[name].landing
        wrong = None if (known or {}).get(name) == str(directory) else doubt(directory, landing)
        if wrong is not None:
            what = about(("feeds", name, "path"), f"the directory {directory} {wrong}")
            remedy = (
                "Unreadable files there would be moved into quarantine: give the feed a directory of its "
                "own, or accept this one with `freshline run --yes`"
            )
            errors.append(InputError(what, remedy, warehouse.feeds[name].place))
    if errors:
        raise DefinitionErrors(errors)


def missing_directories(warehouse: Warehouse, directories: Mapping[str, Path]) -> list[str]:
    """Sentences about landing directories that do not exist: a sender may make them, or a path is wrong."""
    found = []
    for name, directory in directories.items():
        if not directory.is_dir():
            what = about(("feeds", name, "path"), f"the directory {directory} does not exist")
            found.append(f"{warehouse.feeds[name].place}: {what}. Create it, or correct the path")
    return found


def remember_directories(directories: Mapping[str, Path], remembered: Path) -> None:
    """Records which directories of which feeds have passed the check."""
    seen = {name: str(directory) for name, directory in directories.items()}
    if seen != _read(remembered):
        draft = remembered.with_name(f".{remembered.name}.draft")
        draft.write_text(json.dumps(seen, indent=1), encoding="utf-8")
        draft.replace(remembered)


def doubt(directory: Path, landing: Landing) -> str | None:
    """Why a directory does not look like a landing directory; None if it does."""
    wrong = _wrong_place(directory)
    if wrong is not None:
        return wrong
    found = list(islice(_foreign(directory), _TOLD_MAX + 1)) or _unlike(directory, landing)
    if not found:
        return None
    names = ", ".join(map(printable, found[:_TOLD_MAX])) + (" and more" if len(found) > _TOLD_MAX else "")
    return f"has contents that do not look like data: {names}"


def _wrong_place(directory: Path) -> str | None:
    if directory == Path("/"):
        return "is the root of the file system"
    path = str(directory)
    memory = _MEMORY in directory.parents
    if (_SYSTEM.fullmatch(path) and not memory) or _SHARED.fullmatch(path):
        return "is a system directory"
    own = os.path.realpath(os.path.expanduser("~"))
    for place in (directory, *directory.parents):
        if place.name in _WORKING_COPIES:
            return f"belongs to {printable(str(place))}, where a working copy keeps its history"
        if str(place) == own or _HOMES.fullmatch(str(place)):
            below = directory.relative_to(place).parts
            if not below:
                return "is a home directory"
            if any(part.startswith(".") for part in below):
                return "is hidden in a home directory, where programs keep their own files"
    return None


def _foreign(directory: Path) -> Iterator[str]:
    """Yields the names of files below the directory that are clearly not data."""
    for folder, folders, files in _walk(directory):
        yield from (_relative(directory, folder, name) for name in folders if name in _WORKING_COPIES)
        for name in files:
            if _is_foreign(os.path.join(folder, name)):
                yield _relative(directory, folder, name)


def _unlike(directory: Path, landing: Landing) -> list[str]:
    """Files without an extension that do not begin like the feed's files; none if some file may be data.

    A single damaged file among others is a case for quarantine.
    """
    found = []
    for folder, _, files in _walk(directory):
        for name in files:
            beginning = _beginning(os.path.join(folder, name))
            if "." in name or (beginning and _may_begin(beginning, landing)):
                return []
            if beginning:
                found.append(_relative(directory, folder, name))
    return found


def _walk(directory: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields the first files below a directory that a run would see, folder by folder, with all folders."""
    left = _NAMES_MAX
    for folder, folders, files in os.walk(directory):
        visible = (name for name in sorted(files) if name[0] not in "._" and not name.endswith(".tmp"))
        shown = (name for name in visible if not os.path.islink(os.path.join(folder, name)))
        names = list(islice(shown, left))
        yield folder, folders, names
        left -= len(names)
        if not left:
            return
        folders[:] = sorted(name for name in folders if name[0] not in "._")


def _relative(directory: Path, folder: str, name: str) -> str:
    return os.path.relpath(os.path.join(folder, name), directory)


def _is_foreign(path: str) -> bool:
    name = os.path.basename(path)
    return bool(_FOREIGN.fullmatch(name)) or ("." not in name and _beginning(path).startswith(_PROGRAMS))


def _beginning(path: str) -> bytes:
    """The first bytes of a file; empty if it is not a file or cannot be read."""
    try:
        if not os.path.isfile(path):
            return b""
        with open(path, "rb") as stream:
            return stream.read(_BEGINNING)
    except OSError:
        return b""


def _may_begin(beginning: bytes, landing: Landing) -> bool:
    """Whether a data file of the feed may begin like this."""
    if landing.format == "parquet":
        return beginning.startswith(b"PAR1")
    if landing.format == "json":
        return beginning.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"")
    if landing.format is None or landing.schema is None or not landing.header:
        return True
    lines = beginning.decode(landing.encoding, "replace").removeprefix("\ufeff").splitlines()
    filled = (line.lower() for line in lines if line.strip())
    titles = next(csv.reader(filled, delimiter=landing.delimiter), [])
    names = [column.name.lower() for column in parse_columns(landing.schema)]
    if len(lines) == 1 and len(beginning) == _BEGINNING:  # the last title may be cut off
        return titles[:-1] == names[: len(titles) - 1]
    return titles == names


def _read(remembered: Path) -> dict[str, str] | None:
    try:
        known = json.loads(remembered.read_text(encoding="utf-8"))
    except OSError:
        return None  # there is none, or no permission, which is reported when the storage is opened
    except ValueError:
        return {}  # damaged: the check happens again
    return known if isinstance(known, dict) else {}
