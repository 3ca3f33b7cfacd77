"""What OpenClaw's own fields mean in clawmark's words: for whom a block is, and in whose name a tool is called. Pure.

The fields come from the host's context, never from the model. What they do not say is taken for less: a kind of session
that nobody knows is a group, and a session that the host runs by itself has no owner who speaks in it. Who is known not to
be the owner is given what a group is given, also alone with the agent. Where the host says nothing of it, whoever writes
directly is the owner.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal

from clawmark.clean import without_envelopes
from clawmark.errors import UsageError
from clawmark.hosts.openclaw.sessionkey import agent_of, kind_of
from clawmark.model import Turn
from clawmark.text import without_surrogates
from clawmark.tools import Caller

HOST: Final = "openclaw"


def turn(params: Mapping[str, Any], now: datetime) -> Turn:
    """The turn that a block is asked for. Raises UsageError naming a field of the wrong type."""
    return Turn(
        prompt=_said(_text(params, "prompt") or ""),
        host=HOST,
        scope=_scope(params),
        session=_text(params, "sessionId"),
        kind=_kind(params),
        recent=tuple(_said(line) for line in _lines(params, "recent")),
        run=_text(params, "runId"),
        now=now,
    )


def caller(params: Mapping[str, Any]) -> Caller:
    """In whose name a tool is called; what the owner typed is for the memory to look up. Raises UsageError as `turn`."""
    kind = _kind(params)
    owns = _flag(params, "senderIsOwner")
    runs_itself = kind_of(_text(params, "sessionKey") or "") == "host"
    return Caller(
        host=HOST,
        scope=_scope(params),
        session=_text(params, "sessionId"),
        kind=kind,
        owner=not runs_itself and (owns is True or (owns is None and kind == "direct")),
    )


def _scope(params: Mapping[str, Any]) -> str | None:
    return _text(params, "agentId") or agent_of(_text(params, "sessionKey") or "") or None


def _kind(params: Mapping[str, Any]) -> Literal["direct", "group"]:
    if _flag(params, "senderIsOwner") is False:
        return "group"
    return "direct" if kind_of(_text(params, "sessionKey") or "") == "direct" else "group"


def _said(text: str) -> str:
    """What the person wrote: up to 2026.7.1 the host puts the time in front of it."""
    return without_envelopes(text).strip()


def _text(params: Mapping[str, Any], name: str) -> str | None:
    value = params.get(name)
    if value is not None and not isinstance(value, str):
        raise UsageError(f"{name} is no text")
    return without_surrogates(value) if value else None


def _flag(params: Mapping[str, Any], name: str) -> bool | None:
    value = params.get(name)
    if value is not None and not isinstance(value, bool):
        raise UsageError(f"{name} is neither true nor false")
    return value


def _lines(params: Mapping[str, Any], name: str) -> list[str]:
    value = params.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
        raise UsageError(f"{name} is no list of texts")
    return [without_surrogates(line) for line in value]
