"""Who is heard at all: requests to the loopback by its name, with the run's token, and not for ever."""

from __future__ import annotations

import asyncio
import hmac
from typing import Final

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from freshline.service.address import LOOPBACK, Address

# An edited file is looked at by Spark, and waits for a decision of the run; see `live.applying`.
REQUEST_MAX_S: Final = 120.0


class Guard:
    """Stands before every path, so that nobody learns without a token which paths there are.

    A page in a browser may have its own name point to the loopback (DNS rebinding), and then ask us: its
    requests carry that name as `Host`.
    """

    def __init__(self, app: ASGIApp, address: Address, request_max_s: float = REQUEST_MAX_S) -> None:
        self._app = app
        self._hosts = {f"{name}:{address.port}".encode() for name in (LOOPBACK, "localhost")}
        self._credentials = f"Bearer {address.token}".encode()
        self._request_max_s = request_max_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "the server speaks nothing else"
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._request_max_s):
                await self._app(scope, receive, send)
        except TimeoutError:
            await failure(408, "the request took too long")(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        hosts = [value.lower() for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return failure(421, "the request is for another host")
        given = [value for name, value in headers if name == b"authorization"]
        # In constant time: how long it takes tells nothing of the token.
        if not hmac.compare_digest(given[0] if len(given) == 1 else b"", self._credentials):
            return failure(401, "the token is missing or wrong", {"WWW-Authenticate": "Bearer"})
        return None


def failure(status: int, what: str, headers: dict[str, str] | None = None) -> JSONResponse:
    """An answer that says what is wrong, in one sentence."""
    return JSONResponse({"error": what}, status, headers)
