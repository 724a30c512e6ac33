"""What tells two files of one name apart."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final

_WHOLE_MAX: Final = 64 << 20
_END: Final = 8 << 20  # of a larger file: so much of its beginning and of its end
_CHUNK: Final = 1 << 20


def content_digest(path: Path) -> str:
    """A digest of a file's content.

    A file above 64 MiB is known by its size, beginning and end: it is hashed while others wait to be found,
    and reading all of it would take longer than loading a small one. Two deliveries of one name that differ
    only in the middle are not told apart then.
    """
    size = path.stat().st_size
    digest = blake2b(digest_size=16)
    with path.open("rb", buffering=0) as file:
        if size <= _WHOLE_MAX:
            _add(digest, file, _WHOLE_MAX + 1)
        else:
            digest.update(size.to_bytes(8, "big"))
            _add(digest, file, _END)
            file.seek(-_END, 2)
            _add(digest, file, _END)
    return digest.hexdigest()


def _add(digest: blake2b, file: BinaryIO, length: int) -> None:
    while length > 0 and (chunk := file.read(min(length, _CHUNK))):
        digest.update(chunk)
        length -= len(chunk)
