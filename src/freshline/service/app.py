"""The requests to a running warehouse: status, answers, and an edited file to apply."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

from fastapi import Depends, FastAPI, Request
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from freshline.base.errors import DefinitionErrors, InputError
from freshline.service.bodies import read_body
from freshline.service.description import CLASSES, FAILURES, QUERY
from freshline.service.failures import ServiceFailure, failed
from freshline.service.question_intake import QuestionIntake
from freshline.service.running_warehouse import RunningWarehouse

_logger = logging.getLogger(__name__)
# Some hundred thousand lines of definitions.
FILE_MAX: Final = 16 << 20


def service_app(site: RunningWarehouse) -> FastAPI:
    """The paths of the service. It serves neither a documentation page nor a schema."""
    app = FastAPI(
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        responses=FAILURES,
        dependencies=[Depends(HTTPBearer(auto_error=False))],  # for the description; `Guard` checks it
    )
    one_at_a_time, asking = asyncio.Semaphore(1), QuestionIntake(site)

    @app.get("/v1/status")
    async def status() -> JSONResponse:
        return JSONResponse(await asyncio.to_thread(site.status))

    @app.get("/v1/results/{query}")
    async def results(query: str) -> JSONResponse:
        found = await asyncio.to_thread(site.results, query)
        if found is None:
            raise ServiceFailure("not_found", "there are no results of this query", "See `freshline status`")
        return JSONResponse(found)

    @app.get("/v1/classes", **CLASSES)
    async def classes() -> JSONResponse:
        return JSONResponse({"classes": await asyncio.to_thread(site.classes)})

    @app.post("/v1/query", **QUERY)
    async def query(request: Request) -> Response:
        return await asking(request)

    @app.post("/v1/apply")
    async def apply(request: Request) -> JSONResponse:
        text = _text(await read_body(request, FILE_MAX))
        async with one_at_a_time:
            try:
                return JSONResponse(await asyncio.to_thread(site.apply, text))
            except TimeoutError:
                remedy = "See `freshline status` for what became of it"
                raise ServiceFailure("undecided", "the run has not decided in time", remedy) from None

    _tell_failures(app)
    return app


def _tell_failures(app: FastAPI) -> None:
    @app.exception_handler(ServiceFailure)
    async def unanswered(request: Request, error: ServiceFailure) -> JSONResponse:
        return error.response()

    @app.exception_handler(InputError)
    async def wrong(request: Request, error: InputError) -> JSONResponse:
        errors = error.errors if isinstance(error, DefinitionErrors) else [error]
        records = [_record(each) for each in errors]
        return ServiceFailure("bad_definition", error.what, error.remedy, more={"errors": records}).response()

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        code = "method_not_allowed" if error.status_code == 405 else "not_found"
        headers, remedy = dict(error.headers or {}), "See docs/security.md for what can be asked"
        return ServiceFailure(code, error.detail.lower(), remedy, headers).response()

    @app.exception_handler(Exception)  # the service's boundary: a bug here must not end the run
    async def broken(request: Request, error: Exception) -> JSONResponse:
        _logger.warning("%s %s: %s: %s", request.method, request.url.path, type(error).__name__, error)
        return failed().response()


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8 text", "Save it as UTF-8") from None


def _record(error: InputError) -> dict[str, Any]:
    return {
        "what": error.what,
        "remedy": error.remedy,
        "file": error.place.file if error.place else None,
        "line": error.place.line if error.place else None,
    }
