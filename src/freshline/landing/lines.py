"""A text file's lines, as Spark tells them apart: blocks of whole lines, checked to be text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa

from freshline.landing.records import UnreadableFile

_BLOCK_BYTES: Final = 4 << 20
# A file without line ends must not fill the memory.
LINE_BYTES_MAX: Final = 64 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


class Block(NamedTuple):
    """Lines that end in a line feed each, in UTF-8."""

    first: int  # the number of its first line, from 1
    data: bytes


def blocks(path: Path, encoding: str) -> Iterator[Block]:
    """A file's lines, decompressed if its name says that it is compressed.

    A line ends in LF, CR or both, wherever that stands: Spark knows no line end within quotes. All encodings
    that a feed may have are ASCII below 128, so lines can be told apart before they are decoded.
    """
    number = 1
    for data in _whole_lines(path):
        text = _checked(data, encoding, number)
        yield Block(number, text)
        number += text.count(b"\n")


def _whole_lines(path: Path) -> Iterator[bytes]:
    number = 1
    pending: list[bytes] = []
    pending_bytes = 0
    for chunk in _chunks(path):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            data = b"".join((*pending, chunk[:cut]))
            yield data
            number += data.count(b"\n")
            pending, pending_bytes = [], 0
        pending.append(chunk[cut:])
        pending_bytes += len(chunk) - cut
        if pending_bytes > LINE_BYTES_MAX:
            raise UnreadableFile(f"line {number} is longer than {LINE_BYTES_MAX >> 20} MiB")
    if pending_bytes:
        yield b"".join((*pending, b"\n"))


def _chunks(path: Path) -> Iterator[bytes]:
    """The file's bytes, without a byte order mark, with a line feed for whatever ends a line."""
    with pa.input_stream(path, compression="detect") as stream:
        mark, halved = _BYTE_ORDER_MARK, False
        while chunk := stream.read(_BLOCK_BYTES):
            chunk = chunk.removeprefix(mark)
            mark = b""
            if halved:  # the carriage return before it has ended the line
                chunk = chunk.removeprefix(b"\n")
            halved = chunk.endswith(b"\r")
            yield chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in chunk else chunk


def _checked(data: bytes, encoding: str, number: int) -> bytes:
    """The text in UTF-8. Spark would put U+FFFD for what is none."""
    if data.isascii():
        return data
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = number + data.count(b"\n", 0, error.start)
        raise UnreadableFile(f"line {line} is not {encoding}: byte 0x{data[error.start]:02x}") from None
    return data if encoding == "utf-8" else text.encode()
