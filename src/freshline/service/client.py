"""Asking a running warehouse from another process."""

from __future__ import annotations

import json
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Final

from freshline.definitions.errors import DefinitionErrors, InputError, Place
from freshline.service.address import LOOPBACK, Address

# A little more than a request may take.
_TIMEOUT_S: Final = 150.0
_ANSWER_MAX: Final = 64 << 20


class Undecided(Exception):  # noqa: N818  (it is what happened)
    """The run has been asked, and has not answered in time."""


def ask(file: Path, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    """The answer of the run whose address is in that file.

    InputError where nobody runs there, or where it refuses what was asked for.
    """
    address = Address.read(file)
    if address is None:
        raise _nobody(file)
    headers = {"Authorization": f"Bearer {address.token}"}
    # Not urllib's way, which asks the environment for a proxy.
    connection = HTTPConnection(LOOPBACK, address.port, timeout=_TIMEOUT_S)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        status, text = response.status, response.read(_ANSWER_MAX)
    except TimeoutError:
        raise Undecided("the run does not answer") from None
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
    if not isinstance(record, dict) or status in (401, 421):
        raise _nobody(file)  # somebody else has the port of a run that is gone
    if status == 200:
        return record
    error = str(record.get("error"))
    if status in (408, 504):
        raise Undecided(error)
    if status == 422:
        raise _refused(record, error)
    raise InputError(f"the run answers: {error} ({status})", "Use the version of Freshline that runs there")


def _refused(record: dict[str, Any], error: str) -> InputError:
    errors = [
        InputError(each["what"], each["remedy"], Place(each["file"], each["line"]) if each["file"] else None)
        for each in record.get("errors", ())
    ]
    if not errors:
        return InputError(error, "Edit the file")
    return errors[0] if len(errors) == 1 else DefinitionErrors(errors)


def _nobody(file: Path) -> InputError:
    what = f"no warehouse runs with the storage {file.parent.parent}"
    return InputError(what, "Start it with `freshline run`; what is in the file counts from then on")
