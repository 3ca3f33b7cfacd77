"""A turn or a caller out of a request's parameters: in clawmark's words, or in a host's own through its glue.

The parameters come from a program of the same user; a wrong one is named, never shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from clawmark.errors import UsageError
from clawmark.model import Turn
from clawmark.serve.message import PARAMS, Failure

if TYPE_CHECKING:
    from clawmark.tools import Caller

GLUE = {"openclaw": "clawmark.hosts.openclaw.turn"}
"""Hosts that speak of turns and callers in their own words."""

HOOKS = {"claude-code": "clawmark.hosts.claude_code.hook"}
"""Hosts whose hooks are answered."""

WITHOUT_OWNER = ("mcp", "cli")
"""Hosts that show nobody what the owner types."""

RECENT = 10
"""Lines that are looked at; more are left out."""


def turn(params: Mapping[str, Any], now: datetime) -> tuple[Turn, bool]:
    """The turn, and whether its owner typed the prompt."""
    said = an_object(params, "turn")
    glue = _glue(said)
    if glue is not None:
        try:
            found: Turn = glue.turn(said, now)
            return found, bool(glue.caller(said).owner)
        except UsageError as wrong:
            raise Failure(PARAMS, f"turn: {wrong}") from None
    kind = _kind(said)
    owner = _flag(said, "owner")
    recent = said.get("recent") or ()
    if not isinstance(recent, list | tuple) or not all(isinstance(line, str) for line in recent):
        raise Failure(PARAMS, "recent is no list of texts")
    found = Turn(
        a_text(said, "prompt"),
        host=_text(said, "host") or "cli",
        scope=_scope(said),
        session=_text(said, "session"),
        kind=kind,
        recent=tuple(recent[-RECENT:]),
        run=_text(said, "run"),
        now=now,
    )
    return found, owner is True or (owner is None and kind == "direct")


def caller(params: Mapping[str, Any]) -> Caller:
    """In whose name a tool is called; without what the owner typed."""
    from clawmark.tools import Caller

    said = params.get("caller")
    if said is None:
        return Caller()
    said = an_object(params, "caller")
    glue = _glue(said)
    if glue is not None:
        try:
            spoken: Caller = glue.caller(said)
        except UsageError as wrong:
            raise Failure(PARAMS, f"caller: {wrong}") from None
        return spoken
    return Caller(
        host=_text(said, "host") or "mcp",
        scope=_scope(said),
        session=_text(said, "session"),
        kind=_kind(said),
        owner=_flag(said, "owner") is True,
    )


def an_object(params: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = params.get(name)
    if not isinstance(value, dict):
        raise Failure(PARAMS, f"{name} is no object")
    return value


def a_text(params: Mapping[str, Any], name: str) -> str:
    value = params.get(name)
    if not isinstance(value, str):
        raise Failure(PARAMS, f"{name} is no text")
    return value


def _glue(said: Mapping[str, Any]) -> Any:
    """A host's module. Its fields and ours have no name in common but `host`, `prompt` and `recent`."""
    place = GLUE.get(_text(said, "host") or "")
    return None if place is None else import_module(place)


def _scope(said: Mapping[str, Any]) -> str | None:
    """As it is named, else that of the project a folder belongs to."""
    named, folder = _text(said, "scope"), _text(said, "folder")
    if named or not folder:
        return named
    from clawmark.hosts.claude_code.project import scope_of

    return scope_of(folder).id


def _text(said: Mapping[str, Any], name: str) -> str | None:
    return None if said.get(name) is None else a_text(said, name)


def _flag(said: Mapping[str, Any], name: str) -> bool | None:
    value = said.get(name)
    if value is not None and not isinstance(value, bool):
        raise Failure(PARAMS, f"{name} is neither true nor false")
    return value


def _kind(said: Mapping[str, Any]) -> Literal["direct", "group"] | None:
    kind = _text(said, "kind")
    if kind == "direct":
        return "direct"
    if kind == "group":
        return "group"
    if kind is not None:
        raise Failure(PARAMS, "kind is neither direct nor group")
    return None
