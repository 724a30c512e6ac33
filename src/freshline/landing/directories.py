"""Where the feeds' files land: in places where nothing else is."""

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

# A system's own folders, with all that is below; and those that hold other people's, and many a landing.
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
# What is never loaded as CSV, JSON or Parquet: programs, settings, texts for people, pictures, archives.
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
# A program without an ending to its name: a script, or machine code.
_PROGRAMS: Final = (b"#!", b"\x7fELF")
_BEGINNING: Final = 4096
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
        landing = warehouse.feeds[name].landing
        wrong = None if (known or {}).get(name) == str(directory) else doubt(directory, landing)
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


def doubt(directory: Path, landing: Landing) -> str | None:
    """Why a directory does not look like one for landing, if it does not."""
    wrong = _wrong_place(directory)
    if wrong is not None:
        return wrong
    found = list(islice(_foreign(directory), _TOLD_MAX + 1)) or _unlike(directory, landing)
    if not found:
        return None
    names = ", ".join(map(printable, found[:_TOLD_MAX])) + (" and more" if len(found) > _TOLD_MAX else "")
    return f"has what does not look like data: {names}"


def _wrong_place(directory: Path) -> str | None:
    if directory == Path("/"):
        return "is the root of the file system"
    path = str(directory)
    memory = _MEMORY in directory.parents
    if (_SYSTEM.fullmatch(path) and not memory) or _SHARED.fullmatch(path):
        return "is one of the system's"
    own = os.path.realpath(os.path.expanduser("~"))
    for place in (directory, *directory.parents):
        if place.name in _WORKING_COPIES:
            return f"belongs to {printable(str(place))}, where a working copy keeps its history"
        if str(place) == own or _HOMES.fullmatch(str(place)):
            below = directory.relative_to(place).parts
            if not below:
                return "is somebody's home"
            if any(part.startswith(".") for part in below):
                return "is hidden in a home, where programs keep what is theirs"
    return None


def _foreign(directory: Path) -> Iterator[str]:
    """What is plainly not a feed's, by its name below the directory."""
    for folder, folders, files in _walk(directory):
        yield from (_relative(directory, folder, name) for name in folders if name in _WORKING_COPIES)
        for name in files:
            if _is_foreign(os.path.join(folder, name)):
                yield _relative(directory, folder, name)


def _unlike(directory: Path, landing: Landing) -> list[str]:
    """Files that have no ending and do not begin as the feed's do; none where some file may be data.

    One that is damaged among others is what quarantine is for.
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
    """The first files below a directory that a run would see, folder by folder; all folders are named."""
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
    """A file's first bytes; none of what is no file, or cannot be read."""
    try:
        if not os.path.isfile(path):
            return b""
        with open(path, "rb") as stream:
            return stream.read(_BEGINNING)
    except OSError:
        return b""


def _may_begin(beginning: bytes, landing: Landing) -> bool:
    """Whether a data file of the feed may begin so."""
    if landing.format == "parquet":
        return beginning.startswith(b"PAR1")
    if landing.format == "json":
        return beginning.removeprefix(codecs.BOM_UTF8).lstrip()[:1] in (b"{", b"")
    if landing.format is None or landing.schema is None or not landing.header:
        return True
    lines = beginning.decode(landing.encoding, "replace").removeprefix("\ufeff").splitlines()
    titles = next(csv.reader(line.lower() for line in lines if line.strip()), [])
    names = [column.name.lower() for column in parse_columns(landing.schema)]
    if len(lines) == 1 and len(beginning) == _BEGINNING:  # the last title may be a part of one
        return titles[:-1] == names[: len(titles) - 1]
    return titles == names


def _read(remembered: Path) -> dict[str, str] | None:
    try:
        known = json.loads(remembered.read_text(encoding="utf-8"))
    except OSError:
        return None  # there is none; or the storage is not ours, which is told when it is opened
    except ValueError:
        return {}  # damaged: it is asked again
    return known if isinstance(known, dict) else {}
