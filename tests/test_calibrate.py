"""Calibration: what extraction would make of the last weeks, what was decided, and when a threshold follows from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from helpers import LATER, REPOSITORY, Clock, Log, open_memory, query
from hypothesis import given
from hypothesis import strategies as st

from clawmark.cli.calibrate import ENOUGH, TARGET, Measure, calibrate, measured, of_extraction, recommended, summed
from clawmark.errors import UsageError
from clawmark.memory import Memory
from clawmark.model import Decision


def decision(
    confidence: float = 0.8, *, accepted: bool = True, edited: bool = False, origin: str = "owner", days_ago: float = 1
) -> Decision:
    return Decision(confidence, accepted, edited, origin, LATER - timedelta(days=days_ago))


def decided(labelled: Sequence[tuple[float, bool]]) -> list[Decision]:
    return [decision(confidence, accepted=accepted) for confidence, accepted in labelled]


SINCE = LATER - timedelta(days=30)


# --- decisions --------------------------------------------------------------------------------------------------------


def test_decisions_are_counted_with_their_edits() -> None:
    found = summed([decision(edited=True), decision(), decision(), decision(accepted=False)])
    assert (found.accepted, found.edited, found.rejected, found.rate) == (3, 1, 1, 0.75)
    assert summed([]).rate is None


def test_what_was_decided_before_does_not_count() -> None:
    assert of_extraction([decision(days_ago=31), decision(days_ago=29)], SINCE) == [decision(days_ago=29)]


def test_what_agents_proposed_is_no_judgement_about_extraction() -> None:
    said = [decision(origin=origin) for origin in ("owner", "participant", "assistant", "host")]
    assert of_extraction([decision(0.9, origin="agent")] * ENOUGH + said, SINCE) == said


# --- the threshold ----------------------------------------------------------------------------------------------------


def test_without_enough_decisions_no_threshold_is_recommended() -> None:
    assert recommended(decided([(0.9, True)] * (ENOUGH - 1))) is None
    assert recommended(decided([(0.9, True)] * ENOUGH)) == 0.9


def test_the_threshold_stands_where_enough_is_accepted() -> None:
    labelled = [(0.5, False)] * 10 + [(0.7, True), (0.7, False)] * 5 + [(0.9, True)] * 10
    assert recommended(decided(labelled)) == 0.7  # 15 of 20 from there on


def test_decisions_are_the_labels_of_precision_and_recall() -> None:
    found = measured(decided([(0.9, True)] * 3 + [(0.9, False)] + [(0.6, True)] * 3 + [(0.6, False)] * 5), 0.8)
    assert (found.decided, found.precision, found.recall) == (4, 0.75, 0.5)
    assert measured([], 0.8) == Measure(0.8, 0, None, None)
    assert measured(decided([(0.6, True)]), 0.8) == Measure(0.8, 0, None, 0.0)


def test_a_few_sure_ones_make_no_threshold() -> None:
    assert recommended(decided([(0.5, False)] * 30 + [(0.99, True)] * 4)) is None


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0]), st.booleans()), max_size=60))
def test_from_a_recommended_threshold_on_the_target_is_met_and_below_it_is_not(
    labelled: list[tuple[float, bool]],
) -> None:
    found = recommended(decided(labelled))

    def rate(threshold: float) -> float:
        above = [accepted for confidence, accepted in labelled if confidence >= threshold]
        return sum(above) / len(above)

    if found is None:
        return
    assert rate(found) >= TARGET
    assert all(rate(lower) < TARGET for lower, _ in labelled if lower < found)


# --- decided proposals in the file ------------------------------------------------------------------------------------


def test_decisions_are_read_with_the_confidence_they_were_made_on(memory: Memory, clock: Clock) -> None:
    for number in range(4):
        origin = "agent" if number == 3 else "owner"
        memory.propose("set", f"pref.n{number}", f"value {number} of some kind", "main", origin=origin, reason="marker")
    memory.propose("forget", "pref.n9", "old", "main", origin="agent", reason="unasked")
    waiting = {one.key: one.name for one in memory.proposals()}
    at = [clock.now]
    for decide in (
        lambda: memory.accept(waiting["pref.n0"]),
        lambda: memory.accept(waiting["pref.n1"], value="another value"),
        lambda: memory.reject(waiting["pref.n2"]),
        lambda: memory.accept(waiting["pref.n3"]),
        lambda: memory.reject(waiting["pref.n9"]),
    ):
        decide()
        clock.advance(minutes=1)
        at.append(clock.now)
    assert memory.decisions() == [
        Decision(0.9, True, False, "owner", at[0]),
        Decision(0.9, True, True, "owner", at[1]),
        Decision(0.9, False, False, "owner", at[2]),
        Decision(0.9, True, False, "agent", at[3]),
    ]


@pytest.mark.parametrize("detail", [None, "", "no JSON", "[]", "7", '{"edited": "yes"}'])
def test_a_trail_that_says_nothing_of_an_edit_stops_nothing(memory: Memory, db_path: Path, detail: str | None) -> None:
    memory.propose("set", "pref.n", "value of some kind", "main", origin="owner", reason="marker")
    memory.accept(memory.proposals()[0].name, value="another value")
    query(db_path, "UPDATE memory_events SET detail = ? WHERE event_type = 'accept'", detail)
    assert [one.edited for one in memory.decisions()] == [False]


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def at(db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A memory with one decision of each kind, over a log that is not there any more."""
    monkeypatch.setenv("CLAWMARK_DB_PATH", str(db_path))
    monkeypatch.setenv("CLAWMARK_EMBEDDER", "none")
    monkeypatch.setenv("CLAWMARK_TRANSCRIPTS_DIR", str(tmp_path / "nothing"))
    with open_memory(db_path, log) as memory:
        for number in range(2):
            memory.propose(
                "set", f"pref.n{number}", f"value {number} of some kind", "main", origin="owner", reason="marker"
            )
        waiting = [one.name for one in memory.proposals()]
        memory.accept(waiting[0], value="another value")
        memory.reject(waiting[1])
    return db_path


def run(*arguments: str) -> Any:
    return CliRunner().invoke(calibrate, list(arguments))


def content(path: Path) -> dict[str, list[Any]]:
    tables = [name for (name,) in query(path, "SELECT name FROM sqlite_master WHERE rootpage > 0 AND type = 'table'")]
    return {table: sorted(query(path, f"SELECT * FROM {table}"), key=repr) for table in sorted(tables)}


def test_the_command_writes_nothing(at: Path) -> None:
    before = content(at)
    assert run("--facts", "--days", "3650").exit_code == 0
    assert content(at) == before


def test_the_command_tells_what_was_decided(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = json.loads(run("--facts", "--days", "3650", "--json").stdout)
    assert told["decisions"] == {"accepted": 1, "edited": 1, "rejected": 1, "rate": 0.5, "target": 0.7}
    assert (told["recommended"], told["days"]) == (None, 3650)
    assert told["measured"] == [{"threshold": 0.8, "decided": 2, "precision": 0.5, "recall": 1.0}]
    assert set(told["counts"]) == {"store", "propose", "refuse"}
    assert "without a model whatever is found waits" in run("--facts", "--days", "3650").output
    monkeypatch.setenv("CLAWMARK_EXTRACT_URL", "http://127.0.0.1:9/v1")  # nothing is there to be asked about
    monkeypatch.setenv("CLAWMARK_EXTRACT_MODEL", "m")
    assert f"with {ENOUGH} decisions one can be recommended, there are 2" in run("--facts", "--days", "3650").output


def test_without_facts_the_command_says_what_to_say(at: Path) -> None:
    failed = run().exception
    assert isinstance(failed, UsageError) and "--facts" in str(failed)


def test_extraction_that_is_off_is_named(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWMARK_EXTRACT_URL", "off")
    failed = run("--facts").exception
    assert isinstance(failed, UsageError) and "CLAWMARK_EXTRACT_URL" in str(failed)


def test_what_was_said_is_judged_as_extraction_would(db_path: Path, log: Log, clock: Clock) -> None:
    """And writes nothing, whatever comes of it."""
    log.say("From now on I always use Helix for editing.", at=LATER - timedelta(days=3))
    log.say("Remember: I never eat hazelnuts.", at=LATER - timedelta(days=40))
    with open_memory(db_path, log) as memory:
        memory.sync()
        before = content(db_path)
        near, far = memory.dry_run(30), memory.dry_run(60)
        assert content(db_path) == before
    assert len(near) == 1 and len(far) == 2
    assert [ruling.outcome for _, ruling in far] == ["propose", "propose"]


def test_the_command_lists_what_would_wait(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAWMARK_DB_PATH", str(db_path))
    monkeypatch.setenv("CLAWMARK_EMBEDDER", "none")
    monkeypatch.setenv("OPENCLAW_STATE_DIR", str(REPOSITORY / "tests" / "fixtures" / "openclaw" / "sqlite"))
    with Memory.open() as memory:
        memory.sync()
    told = json.loads(run("--facts", "--days", "3650", "--json").stdout)
    assert told["extractor"] == "embedded markers"
    assert sum(sum(rules.values()) for rules in told["counts"].values()) == len(told["rulings"]) > 0
    assert all(one["value"] for one in told["rulings"] if one["outcome"] != "refuse")
    assert not any(one["value"] for one in told["rulings"] if one["outcome"] == "refuse")
    printed = run("--facts", "--days", "3650").output
    assert all(one["value"] in printed for one in told["rulings"][:20] if one["outcome"] == "propose")
