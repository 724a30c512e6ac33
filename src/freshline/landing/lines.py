"""The lines of a text file, split as Spark does: blocks of whole lines, checked to be text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshline.landing.records import UnreadableFile

_BLOCK_BYTES: Final = 4 << 20
# A file without line ends must not fill the memory.
LINE_BYTES_MAX: Final = 64 << 20
_LINE_FEED: Final = 10
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class LineBlock(NamedTuple):
    """Lines in UTF-8, each of which ends in a line feed."""

    first: int  # the number of its first line, from 1
    lines: int  # including blank ones
    data: bytes


def blocks(path: Path, encoding: str) -> Iterator[LineBlock]:
    """Yields a file's lines, decompressed if its name says that it is compressed.

    A line ends in LF, CR or both, even within quotes, as in Spark. All encodings of a feed are ASCII below
    128, so lines can be split before they are decoded.
    """
    first = 1
    pending: list[bytes] = []
    pending_bytes = 0
    for chunk in _chunks(path):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            block = _block(b"".join((*pending, chunk[:cut])), encoding, first)
            yield block
            first += block.lines
            pending, pending_bytes = [], 0
        pending.append(chunk[cut:])
        pending_bytes += len(chunk) - cut
        if pending_bytes > LINE_BYTES_MAX:
            raise UnreadableFile(f"line {first} is longer than {LINE_BYTES_MAX >> 20} MiB")
    if pending_bytes:
        yield _block(b"".join((*pending, b"\n")), encoding, first)


def _chunks(path: Path) -> Iterator[bytes]:
    """The file's bytes without a byte order mark, with LF for every line end."""
    with pa.input_stream(path, compression="detect") as stream:
        mark, halved = _BYTE_ORDER_MARK, False
        while chunk := stream.read(_BLOCK_BYTES):
            chunk = chunk.removeprefix(mark)
            mark = b""
            if halved:  # the carriage return before it has ended the line
                chunk = chunk.removeprefix(b"\n")
            halved = chunk.endswith(b"\r")
            yield chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk


def _block(data: bytes, encoding: str, first: int) -> LineBlock:
    """Lines as UTF-8. Spark would silently replace invalid bytes by U+FFFD, so they are an error here."""
    # Twice as fast as `bytes.count` if most lines are short.
    lines = int(np.count_nonzero(np.frombuffer(data, np.uint8) == _LINE_FEED))
    if data.isascii():
        return LineBlock(first, lines, data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = first + data.count(b"\n", 0, error.start)
        raise UnreadableFile(f"line {line} is not {encoding}: byte 0x{data[error.start]:02x}") from None
    return LineBlock(first, lines, data if encoding == "utf-8" else text.encode())
