"""What may be asked of a running warehouse: its status, results of queries, and to take an edited file."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, Protocol

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from freshline.definitions.errors import DefinitionErrors, InputError
from freshline.service.guard import failure

_logger = logging.getLogger(__name__)
# Some hundred thousand lines of definitions.
BODY_MAX: Final = 16 << 20


class Site(Protocol):
    """A running warehouse, as far as the service asks it: by a thread that is not its own."""

    def status(self) -> dict[str, Any]:
        """How it is."""

    def results(self, query: str) -> dict[str, Any] | None:
        """A query's newest; None where there are none."""

    def apply(self, text: str) -> dict[str, Any]:
        """What becomes of the queries of an edited file.

        InputError where it is wrong; TimeoutError where nobody decides.
        """


def service_app(site: Site) -> FastAPI:
    """The paths of the service. It describes itself to nobody: no page, no schema."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    one_at_a_time = asyncio.Semaphore(1)

    @app.get("/v1/status")
    async def status() -> JSONResponse:
        return JSONResponse(await asyncio.to_thread(site.status))

    @app.get("/v1/results/{query}")
    async def results(query: str) -> JSONResponse:
        found = await asyncio.to_thread(site.results, query)
        return failure(404, "there are no results of such a query") if found is None else JSONResponse(found)

    @app.post("/v1/apply")
    async def apply(request: Request) -> JSONResponse:
        text = _text(await _body(request))
        async with one_at_a_time:
            try:
                return JSONResponse(await asyncio.to_thread(site.apply, text))
            except TimeoutError:
                return failure(504, "the run has not decided in time")

    @app.exception_handler(InputError)
    async def wrong(request: Request, error: InputError) -> JSONResponse:
        return JSONResponse({"error": str(error), "errors": _records(error)}, 422)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        return failure(error.status_code, error.detail, dict(error.headers or {}))

    @app.exception_handler(Exception)  # the service's boundary: a bug here ends no run
    async def failed(request: Request, error: Exception) -> JSONResponse:
        _logger.warning("%s %s: %s: %s", request.method, request.url.path, type(error).__name__, error)
        return failure(500, "this is a bug of Freshline, please report it")

    return app


async def _body(request: Request) -> bytes:
    """The request's body; one that is too large is refused as soon as that is known."""
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > BODY_MAX:
        raise HTTPException(413, f"the body has more than {BODY_MAX} bytes")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_MAX:
            raise HTTPException(413, f"the body has more than {BODY_MAX} bytes")
    return bytes(body)


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8 text", "Save it as UTF-8") from None


def _records(error: InputError) -> list[dict[str, Any]]:
    errors = error.errors if isinstance(error, DefinitionErrors) else [error]
    return [
        {
            "what": each.what,
            "remedy": each.remedy,
            "file": each.place.file if each.place else None,
            "line": each.place.line if each.place else None,
        }
        for each in errors
    ]
