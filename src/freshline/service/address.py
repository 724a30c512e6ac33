"""The address and the token of a run's service, in a file that only the storage's owner can read."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

LOOPBACK: Final = "127.0.0.1"
_MODE: Final = 0o600


@dataclass(frozen=True, slots=True)
class ServiceAddress:
    """The address of a service, and the token that a request must carry."""

    url: str
    token: str

    @property
    def port(self) -> int:
        """Its port on the loopback. Raises ValueError for any other address."""
        parts = urlsplit(self.url)
        if parts.scheme != "http" or parts.hostname != LOOPBACK or not parts.port:
            raise ValueError(f"{self.url!r} is not on the loopback")
        return parts.port

    def write(self, path: Path) -> None:
        """Replaces the file atomically. From the start only its owner can read it, in any folder."""
        draft = path.with_name(f".{path.name}.draft")
        draft.unlink(missing_ok=True)  # left by a run that was killed
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE), "w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), _MODE)
            json.dump(asdict(self), file)
        draft.replace(path)

    def remove(self, path: Path) -> None:
        """Removes the file, unless another run has replaced it."""
        if ServiceAddress.read(path) == self:
            with suppress(OSError):  # the folder cannot be written; clients then find no service there
                path.unlink(missing_ok=True)

    @classmethod
    def read(cls, path: Path) -> ServiceAddress | None:
        """The address in the file; None if there is no file, or if it is not on the loopback."""
        try:
            record = json.loads(path.read_bytes())
            address = cls(str(record["url"]), str(record["token"]))
            _ = address.port
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None
        return address if address.token.isascii() and address.token.isprintable() else None
