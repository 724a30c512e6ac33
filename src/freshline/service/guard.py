"""Admits only requests to the loopback by its name, with the run's token, and with a timeout."""

from __future__ import annotations

import asyncio
import hmac
from typing import Final

from starlette.types import ASGIApp, Receive, Scope, Send

from freshline.service.address import LOOPBACK, ServiceAddress
from freshline.service.bodies import early
from freshline.service.failures import ServiceFailure, headers_too_large

# Spark checks an edited file, and the run decides about it; see `live.queries.edit_applier`.
REQUEST_MAX_S: Final = 120.0
HEADERS_MAX_BYTES: Final = 16 << 10


class Guard:
    """Checks every request before its path, so that the paths are not revealed without a token.

    A web page may point its own name to the loopback (DNS rebinding) and send requests from the browser. They
    carry that name as `Host`.
    """

    def __init__(self, app: ASGIApp, address: ServiceAddress, request_max_s: float = REQUEST_MAX_S) -> None:
        self._app = app
        self._hosts = {f"{name}:{address.port}".encode() for name in (LOOPBACK, "localhost")}
        self._credentials = f"Bearer {address.token}".encode()
        self._request_max_s = request_max_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "the server speaks nothing else"
        refusal = self._refusal(scope)
        if refusal is not None:
            await early(refusal)(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._request_max_s):
                await self._app(scope, receive, send)
        except TimeoutError:
            late = ServiceFailure(
                "too_slow", "the request took too long", "Send it at once, and ask for less"
            )
            await late.response()(scope, receive, send)

    def _refusal(self, scope: Scope) -> ServiceFailure | None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        # The server limits only headers that come in several pieces.
        in_lines = sum(len(name) + len(value) + len(b": \r\n") for name, value in headers)
        if len(scope["raw_path"]) + len(scope["query_string"]) + in_lines > HEADERS_MAX_BYTES:
            return headers_too_large(HEADERS_MAX_BYTES)
        hosts = [value.lower() for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            remedy = "Use the url in the storage's _freshline/service.json"
            return ServiceFailure("wrong_host", "the request is for another host", remedy)
        given = [value for name, value in headers if name == b"authorization"]
        # In constant time, so that the duration reveals nothing about the token.
        if not hmac.compare_digest(given[0] if len(given) == 1 else b"", self._credentials):
            remedy = "Send `Authorization: Bearer` and the token in the storage's _freshline/service.json"
            challenge = {"WWW-Authenticate": "Bearer"}
            return ServiceFailure("unauthorized", "the token is missing or wrong", remedy, challenge)
        return None
