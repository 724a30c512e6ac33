"""Reads a question from an HTTP body, strictly."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from freshline.base.clock import clock
from freshline.base.duration import SECOND, parse_duration
from freshline.base.errors import InputError
from freshline.base.names import cut, one_of
from freshline.service.failures import ServiceFailure

# Well below the limit of a request (`service.guard`), so that the client gets an answer.
DEADLINE_MAX_US: Final = 100 * SECOND
_DURATION_MAX: Final = 100  # characters
_KEYS: Final = ("sql", "class", "deadline", "share")
_NEEDED: Final = _KEYS[:3]
EXAMPLE: Final = '{"sql": "SELECT count(*) AS n FROM events", "class": "analysts", "deadline": "2s"}'


@dataclass(frozen=True, slots=True)
class Question:
    """A query of a client, and its deadline."""

    sql: str
    class_name: str
    asked_us: int  # since the Unix epoch
    deadline_us: int  # after `asked_us`
    share: Fraction | None = None  # the largest share of the slices to read


def read_question(body: bytes) -> Question:
    """The question in a body, asked now. Raises `ServiceFailure` if it is invalid."""
    asked_us = clock()
    record = _object(body)
    unknown = [key for key in record if key not in _KEYS]
    if unknown:
        raise _bad(f"the body has the unknown key {cut(unknown[0])!r}", f"It may have {one_of(_KEYS)}")
    for key in _NEEDED:
        if key not in record:
            raise _bad(f"the body has no `{key}`", f"Send a body such as {EXAMPLE}")
    return Question(_text(record, "sql"), _text(record, "class"), asked_us, _deadline(record), _share(record))


def deadline_us(text: str) -> int:
    """A deadline in microseconds. Raises `ServiceFailure` if it is invalid or too long."""
    if len(text) > _DURATION_MAX:
        raise _bad_deadline("the deadline is no duration")
    try:
        found = parse_duration(text)
    except InputError as error:
        raise _bad_deadline(f"the deadline is wrong: {error.what}", error.remedy) from None
    if not 0 < found <= DEADLINE_MAX_US:
        raise _bad_deadline(f"the deadline {text!r} is not within {DEADLINE_MAX_US // SECOND} s")
    return found


def _object(body: bytes) -> dict[str, Any]:
    try:
        record = json.loads(body.decode("utf-8"), parse_constant=_no_number, object_pairs_hook=_once)
    except (ValueError, RecursionError):  # also for a text that is not UTF-8, or a number of 5,000 digits
        raise _bad("the body is not JSON", f"Send a body such as {EXAMPLE}") from None
    if not isinstance(record, dict):
        raise _bad("the body is not a JSON object", f"Send a body such as {EXAMPLE}")
    return record


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a key comes twice")
    return record


def _text(record: dict[str, Any], key: str) -> str:
    text = record[key]
    if not isinstance(text, str):
        raise _bad(f"`{key}` is not a text", f"Send a body such as {EXAMPLE}")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise _bad(f"`{key}` has half a character (a surrogate)", "Send text that UTF-8 has")
    return text


def _deadline(record: dict[str, Any]) -> int:
    text = record["deadline"]
    if not isinstance(text, str):
        raise _bad_deadline("the deadline is not a text")
    return deadline_us(text)


def _share(record: dict[str, Any]) -> Fraction | None:
    if "share" not in record:
        return None
    share = record["share"]
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise _bad("`share` is not a number above 0 and up to 1", "Send a share such as 0.125, or none")
    return Fraction(share)


def _bad(message: str, remedy: str) -> ServiceFailure:
    return ServiceFailure("bad_request", message, remedy)


def _bad_deadline(
    message: str, remedy: str = "Write a number and a unit, such as '2s' or '500ms'"
) -> ServiceFailure:
    return ServiceFailure("bad_deadline", message, remedy)
