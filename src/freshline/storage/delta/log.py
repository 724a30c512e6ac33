"""A Delta table's log as files: its commits, the data files that they consumed, and its clean-up.

A commit that is cleaned away leaves its list of consumed files in an archive, which is only appended to. So
log and archive together always list everything that was loaded, and the ledger can be rebuilt from them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from freshline.base.duration import MILLISECOND
from freshline.base.errors import InputError

# The key of Freshline's part of a commit's information.
KEY: Final = "freshline"
_CHECKPOINT: Final = re.compile(r"checkpoint(?:\.[0-9a-f-]{36})?\.(?:parquet|json)")

Lists = tuple[int, list[dict[str, Any]]]  # a version and the files that it consumed


def commit_path(table: Path, version: int) -> Path:
    return table / "_delta_log" / f"{version:020d}.json"


def checkpoint_path(table: Path, version: int) -> Path:
    """The file of a checkpoint in a single file."""
    return table / "_delta_log" / f"{version:020d}.checkpoint.parquet"


def hint_path(table: Path) -> Path:
    """The file that names the last checkpoint."""
    return table / "_delta_log" / "_last_checkpoint"


def last_checkpoint(table: Path) -> int | None:
    """The version of the last checkpoint according to the log's hint, without listing the log."""
    try:
        version = json.loads(hint_path(table).read_text(encoding="utf-8"))["version"]
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None  # the hint is optional
    return version if isinstance(version, int) and version >= 0 else None


def has(table: Path, version: int) -> bool:
    """Whether the log has that version's commit or checkpoint, without listing the log."""
    return commit_path(table, version).exists() or checkpoint_path(table, version).exists()


def identity(table: Path, version: int) -> str | None:
    """The identity of one of our commits; None if the version has no commit or another writer's."""
    information = _information_of(table, version)
    return None if information is None else information.get("id")


def commit_information(table: Path, version: int) -> dict[str, Any]:
    """Our part of a commit's information; empty for a commit that is not ours."""
    with commit_path(table, version).open(encoding="utf-8") as lines:
        for line in lines:
            if '"commitInfo"' in line:
                ours = json.loads(line)["commitInfo"].get(KEY, {})
                return ours if isinstance(ours, dict) else {}
    return {}


def check_newest(table: Path, version: int) -> None:
    """Raises InputError if the newest commit is damaged, for example cut short by a full disk."""
    path = commit_path(table, version)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        whole = bool([json.loads(line) for line in lines if line.strip()])
    except ValueError:
        whole = False
    if not whole:
        raise InputError(
            f"the newest commit of table {table.name} is damaged: {path} is not whole",
            "Restore that file from a backup; or delete it, and the next run loads its data files again",
        )


def committed_at(information: Mapping[str, Any]) -> int | None:
    """The time of a commit by its writer's clock, in microseconds; None if the commit has none."""
    at_ms = information.get("timestamp")
    return at_ms * MILLISECOND if isinstance(at_ms, int) else None


def commits(table: Path) -> range:
    """The versions whose commits are in the log, up to the newest and without a gap."""
    versions = sorted((version for version, kind, _ in _entries(table) if kind == "json"), reverse=True)
    if not versions:
        return range(0)
    # A writer that was suspended for long can leave a commit far below, which no reader sees.
    first = versions[0]
    for version in versions[1:]:
        if version != first - 1:
            break
        first = version
    return range(first, versions[0] + 1)


def checkpoints(table: Path) -> list[int]:
    """The versions that have a checkpoint, oldest first."""
    return sorted({version for version, kind, _ in _entries(table) if kind.startswith("checkpoint")})


def has_commit(table: Path, after: int, identity: str) -> bool:
    """Whether a commit after that version has this identity."""
    present = commits(table)
    newer = present[max(0, after + 1 - present.start) :]
    return any(commit_information(table, version).get("id") == identity for version in newer)


def consumed_after(table: Path, version: int) -> Iterator[Lists]:
    """The files that the commits after a version consumed, in order, cleaned commits included."""
    following = version + 1
    while True:
        # The next commit, if it exists, has the next name, so a long log need not be listed.
        if not has(table, following - 1):
            present = commits(table)
            if following >= present.stop:
                return
            if following < present.start:
                yield from _archived(table, following, present.start)
                following = present.start
        while (information := _information_of(table, following)) is not None:
            yield following, information.get("files", [])
            following += 1
        if has(table, following - 1):
            return  # otherwise it was cleaned just now and is in the archive


def _information_of(table: Path, version: int) -> dict[str, Any] | None:
    try:
        return commit_information(table, version)
    except FileNotFoundError:
        return None


def first_since(table: Path, instant_s: float) -> int:
    """The first version from which all commits are at or after that instant; the next version if none is."""
    present = commits(table)
    for version in present:
        with suppress(FileNotFoundError):  # others may clean the log too
            if commit_path(table, version).stat().st_mtime >= instant_s:
                return version
    return present.stop


def thin_checkpoints(table: Path, every: int) -> None:
    """Keeps about one checkpoint in `every` versions and the two newest, which a reader may be opening."""
    kept = -every
    for version in checkpoints(table)[:-2]:
        if version - kept >= every:
            kept = version
        else:
            checkpoint_path(table, version).unlink(missing_ok=True)


def archive(table: Path, before: int) -> None:
    """Archives the consumed files of all commits below a version. The sync to disk can take a second."""
    present = commits(table)
    lists = [
        (version, commit_information(table, version).get("files", []))
        for version in range(present.start, before)
    ]
    if lists:
        _append(_archive(table), {"from": present.start, "to": before - 1, "commits": lists})


def remove(table: Path, before: int) -> int:
    """Removes the log's entries below a version with a checkpoint. The caller has archived them."""
    doomed = sorted((version, name) for version, _, name in _entries(table) if version < before)
    # The oldest go first, so a crash in between leaves no gap.
    for _, name in doomed:
        (table / "_delta_log" / name).unlink(missing_ok=True)
    return len(doomed)


def _entries(table: Path) -> Iterator[tuple[int, str, str]]:
    """The version, the kind and the name of each file; there may be tens of thousands."""
    for name in os.listdir(table / "_delta_log"):
        kind = name[21:]
        if name[:20].isdecimal() and (kind in ("json", "crc") or _CHECKPOINT.fullmatch(kind)):
            yield int(name[:20]), kind, name


def _archive(table: Path) -> Path:
    return table / "_freshline" / "consumed.jsonl"


def _append(archive: Path, line: dict[str, Any]) -> None:
    archive.parent.mkdir(exist_ok=True)
    text = json.dumps(line, separators=(",", ":"), ensure_ascii=False)
    with archive.open("ab") as file:
        # A crash may have cut the line before short: it must not spoil this one.
        file.write(f"\n{text}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def _archived(table: Path, first: int, end: int) -> Iterator[Lists]:
    """The files consumed by the commits `first` to `end` - 1, which are no longer in the log."""
    following = first
    archive = _archive(table)
    if archive.exists():
        with archive.open("rb") as lines:
            for line in lines:
                batch = _batch(line)
                if batch is None or batch["to"] < following or batch["from"] > following:
                    continue
                for version, files in batch["commits"]:
                    if following <= version < end:
                        yield version, files
                following = batch["to"] + 1
    if following < end:
        raise InputError(
            f"the log of {table} lacks versions {following} to {end - 1}: their loaded files are not known",
            "Restore these files of its _delta_log, or delete the table to load it again",
        )


def _batch(line: bytes) -> dict[str, Any] | None:
    """One line of the archive; None if it was cut short: its commits are then still in the log."""
    try:
        batch = json.loads(line)
    except ValueError:
        return None
    return batch if isinstance(batch, dict) else None
