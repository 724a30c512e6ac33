"""The thread of the service: a server on the loopback during a run."""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from freshline.service.address import LOOPBACK, ServiceAddress
from freshline.service.app import service_app
from freshline.service.failures import ServiceFailure, headers_too_large
from freshline.service.guard import HEADERS_MAX_BYTES, REQUEST_MAX_S, Guard
from freshline.service.question_intake import CONNECTIONS_MAX
from freshline.service.running_warehouse import RunningWarehouse

HEADERS_MAX_S: Final = 10.0
_CLOSING_MAX_S: Final = 2.0


class _Connection(H11Protocol):
    """One request per connection, and few connections, so that clients cannot exhaust file handles."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > CONNECTIONS_MAX:
            transport.abort()
            return
        self.loop.call_later(HEADERS_MAX_S, self._expect_request)
        self.loop.call_later(REQUEST_MAX_S + HEADERS_MAX_S, transport.abort)

    def send_400_response(self, msg: str) -> None:
        """Answers invalid HTTP in the same form as all other errors."""
        failure = ServiceFailure("bad_request", "this is not HTTP", "Send a request of HTTP/1.1")
        if len(self.conn.trailing_data[0]) > HEADERS_MAX_BYTES:
            failure = headers_too_large(HEADERS_MAX_BYTES)
        response = failure.response()
        headers = [*response.raw_headers, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=failure.status, headers=headers),
            h11.Data(data=bytes(response.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _expect_request(self) -> None:
        if self.cycle is None:
            self.transport.abort()


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves signals to the run."""
        yield


@contextmanager
def serving(site: RunningWarehouse, path: Path) -> Iterator[ServiceAddress]:
    """Serves during the block; the file at `path` has the address. Raises OSError if no port is free."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        port = listener.getsockname()[1]
        address = ServiceAddress(f"http://{LOOPBACK}:{port}", secrets.token_urlsafe(32))
        server = _Server(_config(Guard(service_app(site), address)))
        thread = threading.Thread(target=server.run, args=([listener],), name="service", daemon=True)
        thread.start()
        try:
            address.write(path)
            yield address
        finally:
            address.remove(path)
            server.should_exit = True
            thread.join(_CLOSING_MAX_S)


def _config(app: Guard) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_Connection,
        h11_max_incomplete_event_size=HEADERS_MAX_BYTES,
        headers=[("Connection", "close"), ("Cache-Control", "no-store")],
        loop="asyncio",
        ws="none",
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=None,  # the screen belongs to the run
        log_level="critical",
        timeout_graceful_shutdown=1,
    )
