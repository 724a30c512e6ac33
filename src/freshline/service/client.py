"""Sends requests to a running warehouse from another process."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

from freshline.base.errors import DefinitionErrors, InputError, Place
from freshline.service.address import LOOPBACK, ServiceAddress

# A little longer than the service allows for a request.
_TIMEOUT_S: Final = 150.0
_ANSWER_MAX: Final = 64 << 20
_ELSEWHERE: Final = (401, 421)  # another process has the port of a run that has ended
_UNANSWERED: Final = (408, 429, 500, 503, 504)
_WRONG: Final = (400, 413, 422)


class NoAnswer(Exception):  # noqa: N818  (an event, not a fault)
    """The run does not answer the request now, or not in time."""

    def __init__(self, code: str, message: str, remedy: str) -> None:
        super().__init__(f"{message}. {remedy}.")
        self.code = code
        self.message = message
        self.remedy = remedy

    def record(self) -> dict[str, Any]:
        """The error in the form that the service uses."""
        return {"error": {"code": self.code, "message": self.message, "remedy": self.remedy}}


def ask(file: Path, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    """The answer of the run whose address is in the file.

    Raises InputError if no warehouse runs there, or if it refuses the request.
    """
    address = ServiceAddress.read(file)
    if address is None:
        raise _nobody(file)
    headers = {"Authorization": f"Bearer {address.token}"}
    # Not urllib, which would use a proxy from the environment.
    connection = HTTPConnection(LOOPBACK, address.port, timeout=_TIMEOUT_S)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        status, text = response.status, response.read(_ANSWER_MAX)
    except TimeoutError:
        raise NoAnswer("no_answer", "the run does not answer", "Ask `freshline status`") from None
    except (OSError, HTTPException):
        raise _nobody(file) from None
    finally:
        connection.close()
    return _answer(file, status, text)


def _answer(file: Path, status: int, text: bytes) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or status in _ELSEWHERE:
        raise _nobody(file)
    if status == 200:
        return record
    error = record.get("error")
    known = error if isinstance(error, dict) else {}
    code, message, remedy = (str(known.get(key, "unknown")) for key in ("code", "message", "remedy"))
    if status in _UNANSWERED:
        raise NoAnswer(code, message, remedy)
    if status in _WRONG:
        raise _refused(record, message, remedy)
    raise InputError(f"the run answers: {message} ({status})", "Use the version of Freshline that runs there")


def _refused(record: dict[str, Any], message: str, remedy: str) -> InputError:
    errors = [
        InputError(each["what"], each["remedy"], Place(each["file"], each["line"]) if each["file"] else None)
        for each in record.get("errors", ())
    ]
    if not errors:
        return InputError(message, remedy.rstrip("."))
    return errors[0] if len(errors) == 1 else DefinitionErrors(errors)


def _nobody(file: Path) -> InputError:
    what = f"no warehouse runs with the storage {file.parent.parent}"
    return InputError(what, "Start it with `freshline run`; what is in the file counts from then on")
