"""Evidence: an utterance counts once, in whichever log it stands, and what rests on nothing any more is told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import apsw
import pytest
from helpers import START, opened

from clawmark.model import Evidence
from clawmark.store import db, evidence

SAID = Evidence(b"k" * 16, START, "s1")
LATER_SAID = Evidence(b"k" * 16, START + timedelta(days=1), "s2")


@pytest.fixture
def connection(tmp_path: Path) -> apsw.Connection:
    opened(tmp_path / "memory.db")
    return db.connect(tmp_path / "memory.db")


def test_an_utterance_counts_once(connection: apsw.Connection) -> None:
    assert evidence.add(connection, "main", "pref.editor", "Helix", SAID)
    assert not evidence.add(connection, "main", "pref.editor", " helix", SAID)


def test_the_same_utterance_stamped_by_another_log_counts_once(connection: apsw.Connection) -> None:
    assert evidence.add(connection, "main", "pref.editor", "Helix", SAID)
    other = Evidence(SAID.content_key, SAID.said_at + timedelta(minutes=2), "s1")
    assert not evidence.add(connection, "main", "pref.editor", "Helix", other)


def test_the_same_words_on_another_day_are_another_utterance(connection: apsw.Connection) -> None:
    assert evidence.add(connection, "main", "pref.editor", "Helix", SAID)
    assert evidence.add(connection, "main", "pref.editor", "Helix", LATER_SAID)
    assert evidence.sessions(connection, "main", "pref.editor", "Helix") == 2


def test_each_value_of_a_key_has_its_own(connection: apsw.Connection) -> None:
    evidence.add(connection, "main", "pref.editor", "Helix", SAID)
    evidence.add(connection, "main", "pref.editor", "Kate", LATER_SAID)
    assert evidence.of(connection, "main", "pref.editor", "Kate") == [LATER_SAID]
    assert evidence.of(connection, "main", "pref.editor") == [SAID, LATER_SAID]


def test_a_statement_rests_on_the_same_in_another_place(connection: apsw.Connection) -> None:
    evidence.add(connection, "main", "pref.tool", "Helix", SAID)
    evidence.share(connection, ("main", "pref.tool", "Helix"), ("main", "pref.editor", "Helix 25"))
    assert evidence.of(connection, "main", "pref.editor", "Helix 25") == [SAID]
    assert evidence.of(connection, "main", "pref.tool") == [SAID]


def test_sharing_with_itself_changes_nothing(connection: apsw.Connection) -> None:
    evidence.add(connection, "main", "pref.editor", "Helix", SAID)
    evidence.share(connection, ("main", "pref.editor", "Helix"), ("main", "pref.editor", "helix"))
    assert evidence.of(connection, "main", "pref.editor", "Helix") == [SAID]


def test_what_stands_in_no_log_any_more_is_told_at_the_end(connection: apsw.Connection) -> None:
    evidence.add(connection, "main", "pref.editor", "Helix", SAID)
    evidence.add(connection, "main", "pref.city", "Ghent", Evidence(b"o" * 16, START, "s1"))
    evidence.mark_gone(connection, [SAID.content_key])
    assert evidence.settle(connection) == [("main", "pref.editor", evidence.value_hash("Helix"))]
    assert evidence.of(connection, "main", "pref.editor") == []
    assert evidence.of(connection, "main", "pref.city") != []


def test_what_rests_on_something_else_too_stays(connection: apsw.Connection) -> None:
    evidence.add(connection, "main", "pref.editor", "Helix", SAID)
    evidence.add(connection, "main", "pref.editor", "Helix", Evidence(b"o" * 16, START, "s1"))
    evidence.mark_gone(connection, [SAID.content_key])
    assert evidence.settle(connection) == []


def test_a_message_cleaned_by_other_rules_stays_evidence(connection: apsw.Connection) -> None:
    evidence.add(connection, "main", "pref.editor", "Helix", SAID)
    evidence.note_extracted(connection, [(SAID.content_key, 1_000_000)], by_model=True)
    evidence.rename(connection, {SAID.content_key}, b"n" * 16)
    assert [one.content_key for one in evidence.of(connection, "main", "pref.editor")] == [b"n" * 16]
    assert db.rows(connection, "SELECT content_key, said_at FROM extracted") == [(b"n" * 16, 1_000_000)]


def test_what_rests_on_these_messages_alone(connection: apsw.Connection) -> None:
    other = Evidence(b"o" * 16, START, "s2")
    evidence.add(connection, "main", "pref.editor", "Helix", SAID)
    evidence.add(connection, "main", "pref.shell", "fish", SAID)
    evidence.add(connection, "main", "pref.shell", "fish", other)
    found = evidence.statements_on(connection, [SAID.content_key])
    assert found == [("main", "pref.editor", evidence.value_hash("Helix"))]
