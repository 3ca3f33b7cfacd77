"""What OpenClaw's fields mean: session keys, the turn a block is for, the caller of a tool."""

from __future__ import annotations

from typing import Any

import pytest
from helpers import LATER

from clawmark.errors import UsageError
from clawmark.hosts.openclaw.sessionkey import agent_of, host_run, kind_of
from clawmark.hosts.openclaw.turn import caller, turn

OWN = {"host": "openclaw", "agentId": "main", "sessionKey": "agent:main:main", "sessionId": "s-1", "runId": "r-1"}


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("agent:main:main", "direct"),
        ("agent:main:webchat:7", "direct"),
        ("agent:main:telegram:direct:7", "direct"),
        ("agent:main:discord:dm:7", "direct"),
        ("agent:main:telegram:default:direct:555", "direct"),
        ("agent:main:matrix:room:dm", "group"),
        ("agent:main:matrix:room:direct:dm", "group"),
        ("agent:main:discord:thread:direct", "group"),
        ("agent:main:telegram:group:7", "group"),
        ("agent:main:discord:channel:7", "group"),
        ("agent:main:telegram:7", "group"),
        ("agent:main:newthing:room:7", "group"),
        ("agent:main", "group"),
        ("agent:", "group"),
        ("agent::main", "group"),
        ("global", "group"),
        ("", "group"),
        ("agent:main:subagent:7", "host"),
        ("agent:main:cron:daily:run:1", "host"),
        ("cron:daily", "host"),
        ("hook:mail", "host"),
        ("agent:main:acp:7", "host"),
        ("agent:main:internal-session-effects:7", "host"),
    ],
)
def test_a_kind_of_session_that_nobody_knows_is_a_group(key: str, kind: str) -> None:
    assert kind_of(key) == kind


def test_only_an_agents_key_names_an_agent() -> None:
    assert agent_of("agent:work:main") == "work"
    assert agent_of("cron:work") == agent_of("") == ""


def test_a_session_that_was_spawned_is_the_hosts() -> None:
    assert host_run("agent:main:main", "agent:main:other") == "subagent"
    assert host_run("agent:main:main") == ""


def test_a_turn_is_its_agents_and_its_sessions() -> None:
    made = turn({**OWN, "prompt": "Where do I live?", "recent": ["Hello", "Hi"]}, LATER)
    assert (made.host, made.scope, made.session, made.kind, made.run) == ("openclaw", "main", "s-1", "direct", "r-1")
    assert (made.prompt, list(made.recent), made.now) == ("Where do I live?", ["Hello", "Hi"], LATER)


def test_what_the_host_puts_around_a_prompt_is_no_part_of_it() -> None:
    made = turn({"prompt": "[Sun 2026-11-29 23:25 UTC] Where?", "recent": ["[Sun 2026-11-29 23:24 UTC] Hello"]}, LATER)
    assert (made.prompt, list(made.recent)) == ("Where?", ["Hello"])


def test_a_turn_without_a_session_key_is_no_private_one() -> None:
    made = turn({"prompt": "Where?"}, LATER)
    assert (made.kind, made.scope, made.session) == ("group", None, None)
    assert turn({"prompt": "Where?", "sessionKey": "agent:work:main"}, LATER).scope == "work"


def test_half_a_character_becomes_a_whole_one() -> None:
    turn({"prompt": "a \ud83d b", "recent": ["\udc00"]}, LATER).prompt.encode()


@pytest.mark.parametrize(
    ("key", "owns", "owner"),
    [
        ("agent:main:main", None, True),
        ("agent:main:main", True, True),
        ("agent:main:main", False, False),
        ("agent:main:telegram:group:7", None, False),
        ("agent:main:telegram:group:7", True, True),
        ("agent:main:subagent:7", True, False),
        ("agent:main:cron:daily:run:1", None, False),
        (None, None, False),
    ],
)
def test_the_owner_speaks_alone_or_is_known_to_speak(key: str | None, owns: bool | None, owner: bool) -> None:
    assert caller({**OWN, "sessionKey": key, "senderIsOwner": owns}).owner is owner


@pytest.mark.parametrize(
    ("key", "owns", "kind"),
    [
        ("agent:main:main", True, "direct"),
        ("agent:main:main", None, "direct"),
        ("agent:main:main", False, "group"),
        ("agent:main:telegram:direct:7", False, "group"),
        ("agent:main:telegram:group:7", True, "group"),
    ],
)
def test_who_is_not_the_owner_is_given_what_a_group_is_given(key: str, owns: bool | None, kind: str) -> None:
    said = {**OWN, "sessionKey": key, "senderIsOwner": owns}
    assert turn(said, LATER).kind == caller(said).kind == kind


def test_a_caller_brings_no_words_of_the_owner() -> None:
    made = caller(OWN)
    assert (made.host, made.scope, made.session, made.kind) == ("openclaw", "main", "s-1", "direct")
    assert made.typed is None


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"prompt": 7}, "prompt"),
        ({"agentId": []}, "agentId"),
        ({"sessionKey": {}}, "sessionKey"),
        ({"sessionId": 1}, "sessionId"),
        ({"runId": 1.5}, "runId"),
        ({"recent": "x"}, "recent"),
        ({"recent": ["x", 7]}, "recent"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError, match=field):
        turn({**OWN, **wrong}, LATER)


def test_ownership_is_true_or_false() -> None:
    with pytest.raises(UsageError, match="senderIsOwner"):
        caller({**OWN, "senderIsOwner": "yes"})
