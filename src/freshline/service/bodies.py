"""Reads bodies of requests up to a limit, and answers those beyond it."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Receive

from freshline.service.failures import ServiceFailure

# The limit up to which a refused body is read and dropped: a client reads the answer only after sending.
_REFUSED_MAX: Final = 64 << 20
_REFUSED_MAX_S: Final = 10.0


async def read_body(receive: Receive, at_most: int) -> bytes:
    """The body of a request. Raises `ServiceFailure` if it is too large or the client has disconnected."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ServiceFailure("bad_request", "the body is incomplete", "Send all of it")
        body += message.get("body", b"")
        if len(body) > at_most:
            if message.get("more_body", False):
                await throw_away(receive)
            raise ServiceFailure("too_large", f"the body has more than {at_most} bytes", "Send less")
        if not message.get("more_body", False):
            return bytes(body)


async def throw_away(receive: Receive) -> None:
    """Reads and drops the rest of a body, within limits."""
    taken = 0
    try:
        async with asyncio.timeout(_REFUSED_MAX_S):
            while taken <= _REFUSED_MAX:
                message = await receive()
                taken += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return
