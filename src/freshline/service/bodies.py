"""Bodies of requests: read up to their limit, and beyond it to be told so."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Receive

from freshline.service.failures import ServiceFailure

# So much is taken, and thrown away, of a body that is refused: a client reads no answer before all is sent.
_REFUSED_MAX: Final = 64 << 20
_REFUSED_MAX_S: Final = 10.0


async def read_body(receive: Receive, at_most: int) -> bytes:
    """The request's body; `ServiceFailure` where it is too large, or where its sender has gone."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ServiceFailure("bad_request", "the body ends before its end", "Send all of it")
        body += message.get("body", b"")
        if len(body) > at_most:
            if message.get("more_body", False):
                await throw_away(receive)
            raise ServiceFailure("too_large", f"the body has more than {at_most} bytes", "Send less")
        if not message.get("more_body", False):
            return bytes(body)


async def throw_away(receive: Receive) -> None:
    """The rest of a body of which nothing is wanted, within limits."""
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
