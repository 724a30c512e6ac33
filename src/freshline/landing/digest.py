"""A digest that distinguishes two files with the same name."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO, Final

_WHOLE_MAX: Final = 64 << 20
_END: Final = 8 << 20  # of a larger file: this much of its beginning and of its end
_CHUNK: Final = 1 << 20


def content_digest(path: Path) -> str:
    """A digest of a file's content.

    For a file above 64 MiB the digest covers its size, beginning and end, because other files wait meanwhile.
    Reading all of it would take longer than loading a small file. So two large files that differ only in the
    middle have the same digest.
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
