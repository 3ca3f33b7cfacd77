"""What every log of JSON lines needs: strict parsing, whole text, times in whatever form they were logged. Pure."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, Final

LINE_LIMIT: Final = 8 << 20
"""Bytes of the longest entry that is read; OpenClaw's own limit for a stored event is half of it."""


class Unreadable(Exception):
    """An entry that should have been readable. `reason` is the Fault's."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _refuse_constant(name: str) -> Any:
    raise Unreadable("number_constant")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)
_BLANKS: Final = " \t\r\n"


def parse(line: bytes) -> Any:
    """The JSON value of one line. Raises Unreadable: stricter than the standard library, which lets NaN through."""
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise Unreadable("invalid_utf8") from None
    if not text.startswith("{"):
        text = text.removeprefix("\ufeff").lstrip(_BLANKS)
    try:
        value, end = _DECODER.raw_decode(text)
    except json.JSONDecodeError:
        raise Unreadable("invalid_json") from None
    except ValueError:  # an integer of more digits than Python converts
        raise Unreadable("number_size") from None
    except RecursionError:
        raise Unreadable("too_deep") from None
    if end != len(text) and text[end:].strip(_BLANKS):
        raise Unreadable("invalid_json")
    return value


_LONE: Final = re.compile("[\ud800-\udfff]")


def whole(text: str) -> str:
    """`text` without lone surrogates, which neither SQLite nor UTF-8 can hold."""
    return text if text.isascii() else _LONE.sub("\ufffd", text)


_SECONDS_BELOW: Final = 10**11
"""A smaller number is seconds: as milliseconds it would lie before March 1973."""
_LAST_MS: Final = 253_402_300_799_000  # the end of the year 9999, where datetime ends


def milliseconds(value: object) -> int | None:
    """Milliseconds since 1970 of a logged time (a number or ISO text); None when it is no time."""
    if type(value) is int and _SECONDS_BELOW <= value <= _LAST_MS:
        return value
    if isinstance(value, str):
        if not (value.isascii() and value.isdecimal()):
            return _iso_milliseconds(value)
        value = int(value) if len(value) <= 16 else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LAST_MS:  # nor is NaN
        return None
    ms = int(value) if abs(value) >= _SECONDS_BELOW else int(value * 1000)
    return ms if 0 < ms <= _LAST_MS else None


def _iso_milliseconds(text: str) -> int | None:
    if len(text) > 40:
        return None
    try:
        at = datetime.fromisoformat(text.strip())
        ms = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return ms if 0 < ms <= _LAST_MS else None
