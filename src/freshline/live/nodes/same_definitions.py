"""Ensures that all nodes of a warehouse run the same definitions: each writes a digest for the others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from freshline.base.atomic_write import replace_text
from freshline.base.errors import InputError
from freshline.definitions.serial import to_record
from freshline.definitions.warehouse import Warehouse
from freshline.storage.control.control_folder import ControlFolder
from freshline.storage.control.lease import Identity, holding_run


def digest_of(warehouse: Warehouse) -> str:
    """The digest of the definitions. Comments and spelling of a file do not change it."""
    return blake2b(json.dumps(to_record(warehouse)).encode(), digest_size=16).hexdigest()


def agree(mine: ControlFolder, others: Iterable[ControlFolder], digest: str, identity: Identity) -> None:
    """Writes this node's digest; InputError if another running node has a different one.

    The caller holds the lease. Of two nodes that start together, at least one sees the other's digest. The
    digest of an earlier run is ignored: the present holder of the lease will write its own.
    """
    replace_text(mine.definitions, json.dumps({"digest": digest, "run": identity.run}))
    for other in others:
        said, run = _said(other.definitions)
        if said is not None and said != digest and run == holding_run(other.lease, identity):
            what = f"node {other.folder.name} runs with other definitions than this one"
            raise InputError(what, "Give all nodes the same file, and restart those with another")


def _said(path: Path) -> tuple[str | None, str | None]:
    """The digest and the run that wrote it."""
    try:
        record = json.loads(path.read_bytes())
        return str(record["digest"]), str(record["run"])
    except (OSError, ValueError, KeyError, TypeError):
        return None, None
