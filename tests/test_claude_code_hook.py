"""What a hook of Claude Code prints: the exact object or nothing, for what the person typed and for nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.guard import markers
from clawmark.hosts.claude_code import hook
from clawmark.hosts.claude_code.project import scope_of
from clawmark.hosts.desk import HookGlue
from clawmark.model import Block, Turn

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
CWD = "/home/ines/kiln-ledger"
PROMPT = "which glaze did we settle on for the second firing of the tall vases?"
BLOCK = "\n".join([markers.opening("0a1b2c3d"), "## Facts", '- pref.glaze: "celadon"', markers.closing("0a1b2c3d")])


class Desk:
    def __init__(self, text: str = BLOCK) -> None:
        self.text = text
        self.turns: list[Turn] = []
        self.calls: list[tuple[Any, ...]] = []

    def block(self, turn: Turn, *, owner: bool) -> Block:
        self.turns.append(turn)
        self.calls.append(("block", owner))
        return Block(self.text)

    def renew(self, host: str, session: str) -> None:
        self.calls.append(("renew", host, session))

    def notify(self, event: str, host: str, session: str | None = None, count: int = 0) -> None:
        self.calls.append((event, host, session, count))


def event(name: str, **fields: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": "s1", "cwd": CWD, "transcript_path": "/t/s1.jsonl"} | fields


def prompted(prompt: str = PROMPT, **fields: Any) -> dict[str, Any]:
    return event("UserPromptSubmit", prompt=prompt, **fields)


def test_module_is_a_glue() -> None:
    glue: HookGlue = hook
    assert glue.answer(prompted(), Desk(), NOW)


def test_prompt_gets_the_exact_object() -> None:
    printed = hook.answer(prompted(), Desk(), NOW)
    assert json.loads(printed) == {
        "hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": BLOCK}
    }
    assert "\n" not in printed


def test_turn_names_session_project_and_prompt() -> None:
    desk = Desk()
    hook.answer(prompted(), desk, NOW)
    expected = Turn(PROMPT, "claude-code", scope_of(CWD).id, "s1", "direct", now=NOW)
    assert (desk.turns, desk.calls) == ([expected], [("block", True), ("messages", "claude-code", "s1", 2)])


def test_nothing_to_say_prints_nothing() -> None:
    assert hook.answer(prompted(), Desk(""), NOW) == ""
    assert hook.answer(event("SessionStart", source="startup"), Desk(""), NOW) == ""


@pytest.mark.parametrize("source", ["startup", "resume", "fork"])
def test_session_start_gets_the_facts_at_once(source: str) -> None:
    desk = Desk()
    printed = json.loads(hook.answer(event("SessionStart", source=source), desk, NOW))
    assert printed == {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": BLOCK}}
    assert [turn.prompt for turn in desk.turns] == [""]
    assert desk.calls == [("block", True), ("session_start", "claude-code", "s1", 0)]


@pytest.mark.parametrize("source", ["clear", "compact"])
def test_forgotten_context_may_be_shown_again_before_the_facts(source: str) -> None:
    desk = Desk()
    hook.answer(event("SessionStart", source=source), desk, NOW)
    assert desk.calls[:2] == [("renew", "claude-code", "s1"), ("block", True)]


FROM_HOST = [
    "<task-notification>\n<task-id>b2</task-id>\n<status>completed</status>\n</task-notification>",
    '<task-notification id="b2"> the build is done',
    "<command-name>/compact</command-name>",
    "<command-message>review</command-message>\n<command-args>all of it</command-args>",
    "<local-command-stdout>ok</local-command-stdout>",
    "<bash-input>ls</bash-input>",
    "<bash-stdout>a b c</bash-stdout><bash-stderr></bash-stderr>",
    '<scheduled-task name="nightly">summarise the day</scheduled-task>',
    'Another Claude session sent a message:\n<cross-session-message from="a">done</cross-session-message>',
    '<\\cross-session-message from="a">done',
    '<teammate-message from="tester">done</teammate-message>',
    '<channel source="chat">is it done?</channel>',
    'Background agent "look into it" was stopped by the user.',
    "3 background agents were stopped by the user",
    "[SYSTEM NOTIFICATION - NOT USER INPUT] task b2 ended",
    "[Request interrupted by user for tool use]",
    "<system-reminder>the date has changed</system-reminder>",
    "<system-reminder>x</system-reminder>\n<task-notification>y</task-notification>",
    "/compact",
    "/plugin install thing",
    "",
    "  \n ",
]


@pytest.mark.parametrize("prompt", FROM_HOST)
def test_what_the_host_says_to_itself_gets_no_block(prompt: str) -> None:
    desk = Desk()
    assert hook.answer(prompted(prompt), desk, NOW) == ""
    assert desk.turns == []


@pytest.mark.parametrize(
    "prompt",
    [
        PROMPT,
        "why does <task-notification> turn up in my prompts?",
        "<div>is this the right tag for the glaze table?</div>",
        "/etc/hosts has a line for the kiln, is that right?",
        "<system-reminder>the date has changed</system-reminder>\n" + PROMPT,
        "[SYSTEM] is printed by the kiln when it starts, why?",
        "两次烧成之间要等多久？",
    ],
)
def test_what_the_person_typed_gets_one(prompt: str) -> None:
    assert hook.answer(prompted(prompt), Desk(), NOW)


@pytest.mark.parametrize("name", ["UserPromptSubmit", "SessionStart"])
def test_sub_agent_gets_none(name: str) -> None:
    desk = Desk()
    assert hook.answer(prompted(hook_event_name=name, agent_id="a1", agent_type="Explore"), desk, NOW) == ""
    assert desk.calls == []


def test_named_agent_of_the_person_gets_one() -> None:
    assert hook.answer(event("SessionStart", source="startup", agent_type="reviewer"), Desk(), NOW)


@pytest.mark.parametrize("name", ["Stop", "SessionEnd", "PreCompact", "FutureEvent", None, 7, ["UserPromptSubmit"]])
def test_unknown_event_prints_and_does_nothing(name: Any) -> None:
    desk = Desk()
    assert hook.answer(prompted(hook_event_name=name), desk, NOW) == ""
    assert desk.calls == []


def test_block_is_printed_as_it_was_made() -> None:
    """What is noted as shown is what stood in the block, so nothing is cut away behind it."""
    lines = [f'- (2026-01-0{day}, you) "{"🏺" * 1_500}"' for day in range(1, 7)]
    text = "\n".join([markers.opening("0a1b2c3d"), "## Recalled context", *lines, markers.closing("0a1b2c3d")])
    printed = hook.answer(prompted(), Desk(text), NOW)
    assert json.loads(printed)["hookSpecificOutput"]["additionalContext"] == text


@given(
    st.fixed_dictionaries(
        {"hook_event_name": st.sampled_from(["UserPromptSubmit", "SessionStart", "SessionEnd", "Stop"])},
        optional={
            name: st.one_of(
                st.none(), st.booleans(), st.integers(), st.text(max_size=40), st.lists(st.text(max_size=3))
            )
            for name in ("session_id", "cwd", "prompt", "source", "agent_id")
        },
    )
)
def test_any_event_is_answered_in_ascii_or_not_at_all(fields: dict[str, Any]) -> None:
    printed = hook.answer(fields, Desk("é 🏺"), NOW)
    assert printed.isascii()
    if printed:
        output = json.loads(printed)["hookSpecificOutput"]
        assert set(json.loads(printed)) == {"hookSpecificOutput"}
        assert output == {"hookEventName": fields["hook_event_name"], "additionalContext": "é 🏺"}
