"""A session of Claude Code end to end: the installed hook's own command, the real resident process, the person's log."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from helpers import audit
from resident import Home, home, hooked, wait_for

from clawmark.hosts.claude_code import install
from clawmark.memory import Memory
from clawmark.model import Turn
from clawmark.settings import load

PROMPT = "before I load the kiln again: how long did we say to leave between the two firings of the tall vases?"


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with home(tmp_path, monkeypatch) as made:
        yield made


def remembered(person: Home, **facts: str) -> Memory:
    """The memory of this person, with their log read and some facts set."""
    person.say()
    memory = Memory.open(load())
    memory.sync()
    for name, value in facts.items():
        memory.set(f"pref.{name}", value)
    return memory


def event(person: Home, name: str, session: str = "now", **fields: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": session, "cwd": str(person.project)} | fields


def prompted(person: Home, prompt: str = PROMPT, session: str = "now") -> dict[str, Any]:
    return event(person, "UserPromptSubmit", session, prompt=prompt, permission_mode="default")


def added(person: Home, what: dict[str, Any]) -> str:
    """What the hook adds before the model, held to the host's contract."""
    done = hooked(person, what, "--budget", "30")
    assert (done.returncode, done.stderr) == (0, b"")
    if not done.stdout:
        return ""
    assert done.stdout.startswith(b"{")
    printed = json.loads(done.stdout)
    output = printed["hookSpecificOutput"]
    assert printed == {"hookSpecificOutput": output}
    assert output == {"hookEventName": what["hook_event_name"], "additionalContext": output["additionalContext"]}
    text: str = output["additionalContext"]
    assert 0 < len(text.encode("utf-16-le")) // 2 <= 9_500
    return text


def items(text: str) -> set[str]:
    return {line for line in text.splitlines() if line.startswith("- ")}


def is_noted(person: Home, blocks: int) -> bool:
    return shown(person) == blocks


def shown(person: Home) -> int:
    (found,) = audit(person.database, "SELECT coalesce(sum(blocks), 0) FROM sessions")
    count: int = found[0]
    return count


# --- one conversation, three ways in ----------------------------------------------------------------------------------


def test_same_conversation_same_answers(person: Home) -> None:
    pytest.importorskip("mcp_types")
    from test_mcp import asked_all

    with remembered(person, glaze="celadon", firings="three days apart") as memory:
        turn = Turn(PROMPT, "claude-code", person.scope, "now", "direct")
        block = memory.block(turn)
        found = memory.search(PROMPT, 3, person.scope)
    assert len(block.facts) == 2
    assert any("three days between the firings" in excerpt.excerpt for excerpt in block.recalled)
    assert [e.ref for e in found.recalled] == [e.ref for e in block.recalled]
    with person.resident():
        assert added(person, prompted(person)) == block.text
        tool, prompt, facts = asked_all(person, PROMPT, limit=3)
    quoted = {line for line in items(block.text) if "pref." not in line}
    assert len(quoted) == 3
    assert quoted <= items(tool)
    assert items(tool) <= items(block.text)
    assert quoted <= items(prompt)
    assert items(facts) == items(block.text) - quoted


# --- the session ------------------------------------------------------------------------------------------------------


def test_session_is_shown_each_thing_once_until_its_model_forgets(person: Home) -> None:
    with remembered(person, glaze="celadon"), person.resident():
        start = added(person, event(person, "SessionStart", source="startup"))
        assert "celadon" in start
        assert "firings" not in start
        wait_for(lambda: shown(person) == 1)
        first = added(person, prompted(person))
        assert "three days between the firings" in first
        assert "celadon" not in first.partition("## Recalled context")[0]
        wait_for(lambda: shown(person) == 2)
        assert added(person, prompted(person)) == ""
        assert added(person, event(person, "SessionStart", source="resume")) == ""
        assert added(person, event(person, "SessionStart", source="compact")) == start


def test_short_prompt_gets_no_recall(person: Home) -> None:
    with remembered(person), person.resident():
        assert added(person, prompted(person, "how long between firings?")) == ""
        assert added(person, prompted(person)) != ""


def test_another_project_is_not_told(person: Home, tmp_path: Path) -> None:
    with remembered(person), person.resident():
        assert added(person, prompted(person) | {"cwd": str(tmp_path)}) == ""


def test_what_the_host_says_to_itself_gets_nothing(person: Home) -> None:
    with remembered(person, glaze="celadon"), person.resident():
        assert added(person, prompted(person, f"<task-notification>{PROMPT}</task-notification>")) == ""
        assert added(person, prompted(person) | {"agent_id": "a1"}) == ""


def test_every_fact_is_shown_once_however_many_and_however_they_are_counted(person: Home) -> None:
    """The host counts a picture as two characters: `added` holds every block to its cap."""
    facts = {f"p{number:02}": f"{number} " + "🏺" * 400 for number in range(18)}
    told: list[str] = []
    with remembered(person, **facts), person.resident():
        for blocks in range(1, 99):
            text = added(person, event(person, "SessionStart", source="resume"))
            if not text:
                break
            assert text.splitlines()[-1].startswith("[End Memory ")
            told += sorted(items(text))
            wait_for(partial(is_noted, person, blocks))
    assert [line.partition(":")[0] for line in told] == [f"- pref.{name}" for name in sorted(facts)]


def test_what_a_full_block_left_out_comes_with_the_next_prompt(person: Home) -> None:
    facts = {f"p{number:02}": f"{number} 🏺 " + "a glaze of many words " * 25 for number in range(40)}
    with remembered(person, **facts), person.resident():
        first = items(added(person, event(person, "SessionStart", source="startup")))
        wait_for(lambda: shown(person) == 1)
        second = items(added(person, prompted(person)))
    assert len(first) > 5 and len(second) > 5
    assert not first & second


def test_new_words_are_found_in_the_next_session(person: Home) -> None:
    """The jobs run beside the hooks, and of no hook's time."""
    prompt = "the glaze bucket with the iron in it is nowhere to be found, where did we put it the other day?"
    with remembered(person), person.resident():
        person.say("s2", [("where do we keep the bucket?", "The iron glaze bucket stands under the blue stairs.")])
        assert added(person, event(person, "SessionStart", "s3", source="startup")) == ""
        count = iter(range(10_000))
        wait_for(lambda: "blue stairs" in added(person, prompted(person, prompt, session=f"s3-{next(count)}")))


# --- what never harms the host ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [b"", b"{", b"[]", b"null", b'{"hook_event_name": "UserPromptSubmit"}', b"\xff\xfe", b'{"a": NaN}', b"{}" * 9_999],
    ids=["empty", "half", "list", "null", "without prompt", "no text", "nan", "garbage"],
)
def test_any_input_ends_well_and_prints_nothing(person: Home, given: bytes) -> None:
    with remembered(person), person.resident():
        done = hooked(person, given)
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("prompt", ["", "x" * 200_000, "\ud83d half a picture " * 5, "🏺" * 60])
def test_any_prompt_is_answered(person: Home, prompt: str) -> None:
    with remembered(person, glaze="celadon"), person.resident():
        text = added(person, prompted(person, prompt))
    assert ("celadon" in text) == bool(prompt)


def test_without_a_memory_the_hook_prints_nothing_within_its_budget(person: Home) -> None:
    """A database that nobody can open: the resident process says why, the host goes on."""
    person.database.mkdir(parents=True)
    began = time.monotonic()
    done = hooked(person, prompted(person), "--budget", "1")
    assert (done.returncode, done.stdout) == (0, b"")
    assert time.monotonic() - began < 30


def test_installed_hook_is_the_command_that_these_tests_run(person: Home) -> None:
    (person.folder / ".claude").mkdir()
    install.install(load(), python=sys.executable, environment={}).apply(datetime(2026, 3, 1, tzinfo=UTC))
    hooks = json.loads((install.folder(load()) / "hooks" / "hooks.json").read_text())["hooks"]
    hook = hooks["UserPromptSubmit"][0]["hooks"][0]
    with remembered(person), person.resident():
        done = hooked(person, b"{}")
    assert [hook["command"], *hook["args"]] == done.args


def test_first_hook_starts_the_resident_process(person: Home) -> None:
    remembered(person, glaze="celadon").close()
    wait_for(lambda: "celadon" in added(person, event(person, "SessionStart", source="startup")))
