"""Reads the JSON input of the analyses: objects with known keys, and exact numbers.

Numbers may be decimal strings, so that no program in between makes floats of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, NoReturn

from freshline.base.errors import InputError

_DECIMAL: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
# More digits than any clock has; an unlimited exponent would be an unlimited integer.
_DIGITS_MAX: Final = 18
_NUMBER_REMEDY: Final = f"Write a decimal number of at most {_DIGITS_MAX} digits on either side of the point"


def read_json(text: str, what: str, remedy: str) -> object:
    """The content of a JSON text, its numbers exact."""

    def refuse_constant(constant: str) -> NoReturn:
        raise InputError(f"{constant} is not a number of a {what}", _NUMBER_REMEDY)

    try:
        return json.loads(
            text, parse_float=Decimal, parse_constant=refuse_constant, object_pairs_hook=_without_repetition
        )
    except InvalidOperation:
        raise InputError("a number's exponent is too large", _NUMBER_REMEDY) from None
    except RecursionError:
        raise InputError(f"the input is nested too deeply to be a {what}", remedy) from None
    except InputError:
        raise
    except ValueError as error:  # malformed JSON, or an integer of thousands of digits
        raise InputError(f"the input is not JSON that can be read: {error}", remedy) from None


def record(value: object, where: str, known: Sequence[str], required: Sequence[str]) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise InputError(f"{where} is not an object", f"Write an object with the keys {', '.join(known)}")
    for key in value:
        if key not in known:
            raise InputError(f"{where} has the unknown key {key!r}", f"Use only {', '.join(known)}")
    for key in required:
        if key not in value:
            raise InputError(f"{where} has no {key}", f"Give it a {key}")
    return value


def positive(value: object, where: str) -> Decimal:
    found = number(value, where)
    if found <= 0:
        raise InputError(f"{where} is {shown(value)}", "Give a number above zero")
    return found


def number(value: object, where: str) -> Decimal:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        try:
            value = Decimal(value)
        except InvalidOperation:  # an exponent beyond what Decimal can hold
            raise InputError(f"{where} is {shown(value)}", _NUMBER_REMEDY) from None
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise InputError(f"{where} is {shown(value)}, not a number", _NUMBER_REMEDY)
    found = Decimal(value)
    if found == 0:
        return Decimal(0)
    if not -_DIGITS_MAX <= found.adjusted() < _DIGITS_MAX or decimals_of(found) > _DIGITS_MAX:
        raise InputError(f"{where} is {shown(value)}", _NUMBER_REMEDY)
    return found


def decimals_of(number: Decimal) -> int:
    """The digits after the point that are needed to write the number."""
    return len(f"{number:f}".partition(".")[2].rstrip("0"))


def shown(value: object) -> str:
    text = str(value) if isinstance(value, (int, Decimal)) and not isinstance(value, bool) else repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _without_repetition(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise InputError("an object has the same key twice", "Keep one of the two")
    return content
