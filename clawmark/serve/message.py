"""JSON-RPC 2.0: from a line to what it asks or answers, and back to a line. Pure.

JSON is strict both ways: no NaN, no infinity; half a character becomes U+FFFD. No error shows what the line said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clawmark.text import without_surrogates

PARSE, INVALID, NO_METHOD, PARAMS, FAULT = -32700, -32600, -32601, -32602, -32603
LATE, NOT_READY, CANCELLED, REFUSED = -32001, -32002, -32003, -32004

LONGEST_DEADLINE = 3600.0
"""Seconds; a longer one counts as this."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")

Id = int | str


class Failure(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class Call:
    """What one side asks. id None = a notification, which nobody waits for. seconds None = no deadline."""

    method: str
    params: dict[str, Any]
    id: Id | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What one side answers. id None = one that no question of ours can have. failure None = `result` holds it."""

    id: str | None
    result: Any
    failure: Failure | None


def parsed(line: bytes | None) -> Call | Answer:
    """What a line asks or answers. Raises Failure, and `Misused` where its id is known."""
    if line is None:
        raise Failure(INVALID, "a line of more than 1 MiB; send less at once")
    value = _json(line)
    if isinstance(value, list):
        raise Failure(INVALID, "a batch; send one object a line")
    if not isinstance(value, dict):
        raise Failure(INVALID, "no request: an object is wanted")
    if "method" not in value and ("result" in value or "error" in value):
        return _answer(value)
    known = value.get("id")
    if "id" in value and (isinstance(known, bool) or not isinstance(known, int | str)):
        raise Failure(INVALID, "the id is neither a string nor a whole number")
    try:
        return _call(value, known)
    except Failure as failure:
        if known is None and not isinstance(value.get("method"), str):
            raise  # not even a notification
        raise Misused(failure, known) from None


class Misused(Exception):
    """A request that cannot be answered otherwise, and its id (None = a notification: nobody is told)."""

    def __init__(self, failure: Failure, id: Id | None) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.id = id


def _call(value: dict[str, Any], id: Id | None) -> Call:
    if value.get("jsonrpc") != "2.0":
        raise Failure(INVALID, 'jsonrpc is not "2.0"')
    method, params = value.get("method"), value.get("params", {})
    if not isinstance(method, str):
        raise Failure(INVALID, "the method is no string")
    if not isinstance(params, dict):
        raise Failure(PARAMS, "params are no object")
    deadline = params.get("deadline_ms")
    if deadline is None:
        return Call(method, params, id, None)
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or not deadline > 0:
        raise Failure(PARAMS, "deadline_ms is no number over 0")
    return Call(method, params, id, min(deadline, LONGEST_DEADLINE * 1000) / 1000)  # a whole number may be no float


def _answer(value: dict[str, Any]) -> Answer:
    """An error in whatever form is an error; of its words none are kept but its stable code."""
    known = value.get("id")
    id = known if isinstance(known, str) else None
    if "error" not in value:
        return Answer(id, value["result"], None)
    error = value["error"] if isinstance(value["error"], dict) else {}
    code, data = error.get("code"), error.get("data")
    stable = data.get("code") if isinstance(data, dict) else None
    return Answer(
        id,
        None,
        Failure(
            code if isinstance(code, int) and not isinstance(code, bool) else FAULT,
            "",
            {"code": stable} if isinstance(stable, str) else None,
        ),
    )


def _json(line: bytes) -> Any:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError:
        raise Failure(PARSE, "no UTF-8") from None
    try:
        value = json.loads(text, parse_constant=_refused, parse_float=_finite)
        if _SURROGATE.search(text):
            # Half a character, written as an escape, could be stored and sent nowhere. Rare, so once more from text.
            value = json.loads(without_surrogates(json.dumps(value, ensure_ascii=False)))
    except RecursionError:
        raise Failure(PARSE, "no JSON: nested too deeply") from None
    except ValueError:
        raise Failure(PARSE, "no JSON") from None
    return value


def _refused(constant: str) -> Any:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(digits)
    return number


def call_line(id: Id, method: str, params: Mapping[str, Any]) -> bytes:
    return _line({"jsonrpc": "2.0", "id": id, "method": method, "params": dict(params)})


def result_line(id: Id, result: Any) -> bytes:
    return _line({"jsonrpc": "2.0", "id": id, "result": result})


def error_line(id: Id | None, failure: Failure) -> bytes:
    error: dict[str, Any] = {"code": failure.code, "message": failure.message}
    if failure.data is not None:
        error["data"] = dict(failure.data)
    return _line({"jsonrpc": "2.0", "id": id, "error": error})


def notice_line(method: str, params: Mapping[str, Any]) -> bytes:
    return _line({"jsonrpc": "2.0", "method": method, "params": dict(params)})


def _line(value: dict[str, Any]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return without_surrogates(text).encode()
