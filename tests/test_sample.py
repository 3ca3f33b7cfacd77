"""The sample history, read as a person's own: words alone, both eras."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import REPOSITORY, query

from clawmark.memory import Memory
from clawmark.model import Turn
from clawmark.settings import Settings

STATES = REPOSITORY / "tests" / "fixtures" / "openclaw"
QUESTIONS: list[dict[str, Any]] = json.loads((STATES / "questions.json").read_text(encoding="utf-8"))
FORGOTTEN = {"deleted in the gateway": "f1ea5aa0-fdba-4282-a07e-3a053c702eb2",
             "deleted as a file": "121864ed-67ad-4ca1-853d-33641a9f6d1b"}  # fmt: skip
DECOYS = ("DECOY", "Trajektoria", "Felmarina")


def opened(state: Path, path: Path) -> Memory:
    settings = Settings(db_path=path, transcripts_dir=state, openclaw_state_dir=state, embedder="none")
    return Memory.open(settings)


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Memory]]:
    """The two states, and one in which both eras of each agent stand together, as after an update."""
    folder = tmp_path_factory.mktemp("sample")
    for state in ("files", "sqlite"):
        shutil.copytree(STATES / state, folder / state)
        shutil.copytree(STATES / state, folder / "both", dirs_exist_ok=True)
    memories = {
        name: opened(folder / name, folder / f"{name}.data" / "memory.db") for name in ("files", "sqlite", "both")
    }
    for memory in memories.values():
        report = memory.sync()
        assert not report.failures
    yield memories
    for memory in memories.values():
        memory.close()


def answered(memory: Memory, question: dict[str, Any]) -> bool:
    found = memory.search(question["q"], limit=6, scope=question["scope"]).recalled
    return any(e.ref == f"{question['session']}/{question['entry']}" for e in found)


@pytest.mark.parametrize(("state", "bound"), [("files", 0.5), ("sqlite", 0.6), ("both", 0.55)])
def test_most_questions_find_their_answer_among_the_first_six(
    states: dict[str, Memory], state: str, bound: float
) -> None:
    asked = [q for q in QUESTIONS if state == "both" or state in q["states"]]
    share = sum(answered(states[state], question) for question in asked) / len(asked)
    assert share >= bound, f"{share:.2f} of {len(asked)} questions"


def test_an_answer_is_shown_with_the_words_that_answer(states: dict[str, Memory]) -> None:
    asked = [q for q in QUESTIONS if answered(states["both"], q)]
    shown = 0
    for question in asked:
        found = states["both"].search(question["q"], limit=6, scope=question["scope"]).recalled
        shown += any(question["answer_contains"] in e.excerpt for e in found)
    assert shown / len(asked) >= 0.6


@pytest.mark.parametrize("state", ["files", "sqlite", "both"])
def test_no_utterance_is_recalled_twice(states: dict[str, Memory], state: str) -> None:
    for question in QUESTIONS:
        found = states[state].search(question["q"], limit=50).recalled
        assert max(Counter((e.ref, e.excerpt) for e in found).values(), default=1) == 1
        assert max(Counter((e.excerpt, e.at) for e in found).values(), default=1) == 1


def test_the_session_that_stands_in_both_eras_is_one(states: dict[str, Memory]) -> None:
    def entries(memory: Memory) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for (ref,) in query(memory.path, "SELECT DISTINCT ref FROM passage_refs"):
            session, _, entry = ref.partition("/")
            found.setdefault(session, set()).add(entry)
        return found

    files, stored, both = (entries(states[name]) for name in ("files", "sqlite", "both"))
    (session,) = files.keys() & stored.keys()
    assert files[session] and files[session] <= stored[session]
    assert both[session] == stored[session]
    refs = "SELECT count(*), count(DISTINCT stream_id), count(DISTINCT passage_id) FROM passage_refs WHERE ref LIKE ?"
    ((places, streams, passages),) = query(states["both"].path, refs, f"{session}/%")
    ((alone, _, _),) = query(states["sqlite"].path, refs, f"{session}/%")
    assert (places, streams, passages) == (alone + len(files[session]), 2, alone)
    recalled = [e for e in states["both"].search("a week of sailing", limit=50).recalled if e.conversation == session]
    assert recalled and len({e.ref for e in recalled}) == len(recalled)


def test_reading_both_eras_again_changes_nothing(states: dict[str, Memory]) -> None:
    report = states["both"].sync()
    assert (report.read, report.kept, report.pruned) == (0, 0, 0)


@pytest.mark.parametrize("state", ["files", "sqlite", "both"])
def test_deleted_and_forgotten_sessions_are_never_found(states: dict[str, Memory], state: str) -> None:
    history = REPOSITORY / "scripts" / "fixtures" / "history"
    gone = [*FORGOTTEN.values(), *tombstoned(STATES / "sqlite")]
    assert len(gone) >= 3
    sessions = {row[0].partition("/")[0] for row in query(states[state].path, "SELECT ref FROM passage_refs")}
    assert not sessions & set(gone)
    for name in ("2026-05-deleted", "2026-06-forgotten", "2025-12-gift"):
        said = [line for line in (history / f"{name}.txt").read_text(encoding="utf-8").splitlines() if len(line) > 60]
        for line in said[:5]:
            found = states[state].search(line, limit=50).recalled
            assert not {e.conversation for e in found} & set(gone)
            assert not any(e.excerpt[:50] in line for e in found)


def tombstoned(state: Path) -> list[str]:
    found: list[str] = []
    for database in state.rglob("openclaw-agent.sqlite"):
        columns = [row[1] for row in query(database, "PRAGMA table_info(memory_session_tombstones)")]
        if "session_id" in columns:
            found += [row[0] for row in query(database, "SELECT session_id FROM memory_session_tombstones")]
    return found


@pytest.mark.parametrize("state", ["files", "sqlite", "both"])
def test_a_trajectory_is_no_transcript(states: dict[str, Memory], state: str) -> None:
    """R18."""
    for decoy in DECOYS:
        found = states[state].search(decoy, limit=50).recalled
        assert not any(decoy.lower() in e.excerpt.lower() for e in found)


def test_agents_do_not_mix(states: dict[str, Memory]) -> None:
    """H4."""
    memory = states["both"]
    scope = dict(query(memory.path, "SELECT session, scope FROM streams"))
    assert set(scope.values()) == {"main", "work"}
    for question in QUESTIONS:
        for agent in ("main", "work"):
            found = memory.search(question["q"], limit=50, scope=agent).recalled
            assert {scope[e.conversation] for e in found} <= {agent}


def test_what_others_said_in_the_group_stays_there(states: dict[str, Memory]) -> None:
    memory = states["both"]
    private = query(
        memory.path,
        "SELECT DISTINCT r.ref, c.session FROM passages p JOIN passage_refs r ON r.passage_id = p.id"
        " JOIN conversations c ON c.id = p.conversation_id WHERE p.origin = 'participant'",
    )
    assert private
    refs = {ref for ref, _ in private}
    for question in QUESTIONS:
        assert not refs & {e.ref for e in memory.search(question["q"], limit=50).recalled}
        assert not refs & {e.ref for e in memory.block(Turn(question["q"], scope="main")).recalled}


def test_cron_heartbeat_and_subagents_are_counted_not_kept(states: dict[str, Memory]) -> None:
    """A4, A5."""
    for memory in states.values():
        for trigger in ("Read HEARTBEAT.md if it exists", "HEARTBEAT_OK"):
            assert not [e for e in memory.search(trigger, limit=50).recalled if "HEARTBEAT" in e.excerpt]
