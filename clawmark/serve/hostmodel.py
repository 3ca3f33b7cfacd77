"""The host's own model, asked by way of the gateway that is connected: CLAWMARK_EXTRACT_URL=host.

What always holds: nothing is sent but to a peer that offered to ask its model; no error holds a word of what was asked or
answered, nor one that the peer chose. A request that got nothing is told from a model that gives nothing by asking it for
one short thing, so that what was said is not given up over a wrong setting, nor held up by one message.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final, Protocol

from clawmark import client
from clawmark.client import Connection
from clawmark.errors import ClawmarkError, EndpointDown, EndpointError, ReplyUnusable
from clawmark.llm import SMALL, SMALL_TOKENS
from clawmark.serve import message
from clawmark.serve.message import Failure
from clawmark.serve.outgoing import Unanswered

SET_UP_WRONGLY: Final = {
    "NOT_ALLOWED": "The gateway does not let clawmark ask its model: look at plugins.entries.clawmark.llm in openclaw.json.",
    "NOT_CONFIGURED": "The gateway has no model that it can ask: `openclaw models status` says which one is configured, and "
    "what is missing.",
    "UNSUPPORTED": "The runtime of the gateway's model answers no plugin: set CLAWMARK_EXTRACT_URL to an endpoint, or to "
    "`off`.",
}
"""By the stable codes of `complete`. Asking again changes nothing."""

IN_DOUBT: Final = frozenset({"REFUSED", "SILENT"})
"""Codes of what may be wrong with this request alone, or with every one."""

KNOWN_CODES: Final = IN_DOUBT | SET_UP_WRONGLY.keys() | {"UNUSABLE", "FAILED"}

NOBODY: Final = (
    "No gateway that offers its model is connected: start OpenClaw with the plugin of this version (`clawmark install "
    "openclaw`)."
)


class Asked(Protocol):
    def ask(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        """The gateway's result within so many seconds. Raises Unanswered, and Failure where it answers an error."""
        ...


class ByResident:
    """The gateway, asked by way of the resident process that it is connected to: for commands, which have none themselves."""

    def __init__(self, path: str, database: str = "") -> None:
        """As for `client.connect`; no process is started, for that one would have no gateway either."""
        self._path = path
        self._database = database

    def ask(self, method: str, params: Mapping[str, Any], seconds: float) -> Any:
        # What costs the person is asked once, also where the other end goes away meanwhile.
        with closing(Connection(self._path, database=self._database, start=False, tries=1)) as connection:
            try:
                return connection.call(method, dict(params), max(1, round(seconds * 1000)))
            except client.Unreached:
                raise Unanswered("nobody") from None
            except client.Failure as failure:
                data = failure.data if isinstance(failure.data, dict) else {}
                if "unanswered" in data:
                    raise Unanswered(data["unanswered"]) from None
                if failure.code in _OF_THE_RESIDENT and not data:
                    raise EndpointDown(_OF_THE_RESIDENT[failure.code]) from None
                raise Failure(failure.code, failure.message, data) from None


_OF_THE_RESIDENT: Final = {
    message.REFUSED: "The resident process may not ask the gateway's model: CLAWMARK_EXTRACT_URL and CLAWMARK_ALLOW_REMOTE "
    "of the gateway's environment do not name `host`.",
    message.NO_METHOD: "The resident process is of an earlier version: restart the gateway.",
    message.NOT_READY: "The memory of the resident process is not ready; `clawmark doctor` says why.",
    message.FAULT: "The resident process cannot ask the gateway now; `clawmark doctor` may say why.",
}
"""What keeps it from asking, by the codes of docs/protocol.md."""


class HostModel:
    """A `clawmark.llm.Completer`."""

    name = "host"
    endpoint = ""
    learned = ""

    def __init__(self, gateway: Asked) -> None:
        self._gateway = gateway

    def complete(self, system: str, user: str, schema: Mapping[str, Any], *, most_tokens: int, seconds: float) -> str:
        until = time.monotonic() + seconds
        asked = {"system": _with_schema(system, schema), "user": user, "most_tokens": most_tokens}
        try:
            return self._text(asked, seconds)
        except Failure as failure:
            if _code(failure) not in IN_DOUBT:
                raise _of_failure(failure) from None
        small = {"system": SMALL, "user": SMALL, "most_tokens": SMALL_TOKENS}
        try:
            self._text(small, max(0.0, until - time.monotonic()))
        except Failure as failure:
            raise _of_failure(failure) from None
        raise ReplyUnusable("The gateway's model gave nothing for this request, and answers others.")

    def _text(self, asked: Mapping[str, Any], seconds: float) -> str:
        """What the model said. Raises Failure as the gateway answers it."""
        try:
            result = self._gateway.ask("complete", asked, seconds)
        except Unanswered as unanswered:
            raise _of_silence(unanswered, seconds) from None
        text = result.get("text") if isinstance(result, dict) else None
        if not isinstance(text, str):
            raise EndpointDown("The gateway's answer is none that its plugin gives; it is asked again later.")
        if not text.strip():
            raise ReplyUnusable("The gateway's model gave no text.")
        return text


def _with_schema(system: str, schema: Mapping[str, Any]) -> str:
    """Not every model that a gateway asks takes a schema beside the messages."""
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"), default=dict)  # a frozen part of it
    return f"{system}\n\nAnswer with one JSON value and nothing else. It fits this JSON schema:\n{text}"


def _of_silence(unanswered: Unanswered, seconds: float) -> ClawmarkError:
    if unanswered.why == "nobody":
        return EndpointDown(NOBODY)
    if unanswered.why == "too_long":
        return ReplyUnusable("The batch is too long to be sent to the gateway; a smaller one is needed.")
    if unanswered.why == "gone":
        return EndpointDown("The gateway went away before its model answered.")
    return EndpointDown(f"The gateway's model did not answer within {seconds:.3g} s.")


def _of_failure(failure: Failure) -> ClawmarkError:
    code = _code(failure)
    if code in SET_UP_WRONGLY:
        return EndpointError(SET_UP_WRONGLY[code])
    if code == "UNUSABLE":
        return ReplyUnusable("The gateway's model gave no text that can be used.")
    if code == "REFUSED":
        return EndpointError(f"The gateway's model refuses even one short request. {SET_UP_WRONGLY['NOT_CONFIGURED']}")
    if failure.code == message.LATE:
        return EndpointDown("The gateway's model did not answer in time.")
    return EndpointDown("The gateway could not ask its model; `openclaw logs` may say why.")


def _code(failure: Failure) -> str:
    return str((failure.data or {}).get("code", ""))
