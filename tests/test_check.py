"""A look at the whole file: each fault that SQLite passes over is named, and a sound file has none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest
from helpers import LATER, Log, fake, fill, fixture, open_memory, query

from clawmark.errors import DatabaseDamaged
from clawmark.store import check, db, events, spaces, vectors


@pytest.fixture
def filled(db_path: Path, log: Log) -> Path:
    """A memory at rest, with passages and vectors of 64 numbers."""
    fill(log, 12)
    with open_memory(db_path, log, embedder=fake()) as memory:
        memory.sync()
        memory.set("pref.editor", "Helix")
    assert query(db_path, "SELECT count(*) FROM message_vectors") == [(12,)]
    return db_path


@pytest.fixture
def connection(filled: Path) -> Iterator[apsw.Connection]:
    with db.opened(filled) as opened:
        opened.execute("PRAGMA foreign_keys = OFF")
        yield opened


def test_a_sound_file_has_no_fault(connection: apsw.Connection) -> None:
    assert check.faults(connection) == []
    assert check.broken_vectors(connection) == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("DELETE FROM lexicon WHERE rowid IN (3, 5)", "2 passages outside the lexicon"),
        ("DELETE FROM passage_refs WHERE passage_id = 3", "1 passages without a message"),
        ("UPDATE passages SET author = CAST(x'ff61' AS TEXT) WHERE id = 3", "a text in passages is no UTF-8"),
        ("UPDATE facts SET value = CAST(x'ff61' AS TEXT)", "a text in facts is no UTF-8"),
    ],
)
def test_what_sqlite_passes_over_is_found(connection: apsw.Connection, damage: str, said: str) -> None:
    connection.execute(damage)
    assert db.rows(connection, "PRAGMA integrity_check") == [("ok",)]
    assert check.faults(connection) == [said]


def test_a_stale_passage_is_rightly_outside_the_lexicon(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM lexicon WHERE rowid = 3")
    connection.execute("INSERT INTO stale_passages VALUES (3)")
    assert check.faults(connection) == []


def test_what_sqlite_finds_is_at_most_five_short_lines(filled: Path) -> None:
    data = bytearray(filled.read_bytes())
    data[4096 * 8 : 4096 * 20] = b"\xff" * 4096 * 12
    filled.write_bytes(data)
    with db.opened(filled, readonly=True) as connection:
        found = check.faults(connection)
    assert 1 <= len(found) <= 5
    assert not any("\n" in line or "  " in line for line in found)


def test_texts_of_the_old_clawmark_are_no_fault(tmp_path: Path) -> None:
    fixture("typescript").sample(tmp_path / "old.db")
    query(tmp_path / "old.db", "UPDATE facts SET value = CAST(x'ff61' AS TEXT)")
    with db.opened(tmp_path / "old.db", readonly=True) as connection:
        assert check.faults(connection) == []


# --- text that is none ------------------------------------------------------------------------------------------------


def test_a_text_that_is_no_utf8_is_damage_wherever_it_is_read(filled: Path) -> None:
    query(filled, "UPDATE passages SET scope = CAST(x'ff61' AS TEXT) WHERE id = 3")
    with db.opened(filled, readonly=True) as connection:
        for read in (
            lambda: db.rows(connection, "SELECT scope FROM passages"),
            lambda: list(db.each(connection, "SELECT scope FROM passages")),
            lambda: list(vectors.between(connection, 1, 0, 99)),
        ):
            with pytest.raises(DatabaseDamaged, match="UTF-8") as raised, db.explained(filled):
                read()
            assert str(filled) in str(raised.value)


def test_text_of_somebody_else_is_no_damage(filled: Path) -> None:
    """A source is read while the database is open."""
    with pytest.raises(UnicodeDecodeError), db.explained(filled):
        b"\xff".decode()


# --- vectors ----------------------------------------------------------------------------------------------------------

ONE = np.full(64, 0.125, dtype="<f4")
BROKEN = {
    "short": ONE.tobytes()[:-4],
    "long": ONE.tobytes() + b"\0" * 4,
    "torn": ONE.tobytes()[:-1],
    "empty": b"",
    "a text": "x" * 256,
    "not finite": np.full(64, np.nan, dtype="<f4").tobytes(),
    "infinite": np.full(64, np.inf, dtype="<f4").tobytes(),
    "zero": bytes(256),
    "too long": (ONE * 1.002).astype("<f4").tobytes(),
    "too short": (ONE * 0.998).astype("<f4").tobytes(),
    "huge": np.full(64, 3e38, dtype="<f4").tobytes(),
}


@pytest.mark.parametrize("chunk", [1, 4, 1000])
@pytest.mark.parametrize("name", BROKEN)
def test_a_blob_that_is_no_vector_of_its_space_is_named(
    connection: apsw.Connection, monkeypatch: pytest.MonkeyPatch, name: str, chunk: int
) -> None:
    monkeypatch.setattr(check, "CHUNK", chunk)
    connection.execute("UPDATE message_vectors SET embedding = ? WHERE id IN (2, 7)", (BROKEN[name],))
    assert check.broken_vectors(connection) == [2, 7]


def test_vectors_of_several_spaces_are_held_against_their_own(connection: apsw.Connection) -> None:
    connection.execute(
        "INSERT INTO spaces (model, dimension, document_prefix, query_prefix, probe, created_at)"
        " VALUES ('other', 4, '', '', 'x', 'y')"
    )
    half = np.full(4, 0.5, dtype="<f4").tobytes()
    connection.execute("UPDATE message_vectors SET space_id = 2, embedding = ? WHERE id % 2", (half,))
    assert check.broken_vectors(connection) == []
    connection.execute("UPDATE message_vectors SET space_id = 2 WHERE id = 4")
    connection.execute("UPDATE message_vectors SET space_id = 99 WHERE id = 6")
    assert check.broken_vectors(connection) == [4, 6]


def test_damaged_vectors_are_made_anew(filled: Path, log: Log) -> None:
    before = query(filled, "SELECT passage_id, embedding FROM message_vectors ORDER BY passage_id")
    query(filled, "UPDATE message_vectors SET embedding = zeroblob(256) WHERE id IN (2, 7)")
    with db.opened(filled) as connection:
        generation = vectors.generation(connection, 1)
        with db.transaction(connection, filled):
            vectors.remake(connection, check.broken_vectors(connection))
        assert vectors.pending_by_reason(connection) == {"damaged": 2}
        assert vectors.count_due(connection, 0) == 2
        assert vectors.generation(connection, 1) > generation, "memories that hold them load anew"
        assert vectors.count(connection, 1) == 10
    with open_memory(filled, log, embedder=fake()) as memory:
        assert memory.sync().vectors == 2
    assert query(filled, "SELECT passage_id, embedding FROM message_vectors ORDER BY passage_id") == before


def test_a_damaged_vector_nobody_makes_any_more_only_goes(connection: apsw.Connection) -> None:
    """What waits, waits for the space that is filled."""
    connection.execute("UPDATE spaces SET is_active = 0")
    vectors.remake(connection, [2, 7])
    assert vectors.pending_by_reason(connection) == {}
    assert vectors.count(connection, 1) == 10


def test_what_had_failed_before_is_tried_at_once(connection: apsw.Connection) -> None:
    ((passage,),) = db.rows(connection, "SELECT passage_id FROM message_vectors WHERE id = 2")
    connection.execute("INSERT INTO pending_vectors VALUES (?, 1, 'refused', 9, 99999999, 1)", (passage,))
    vectors.remake(connection, [2])
    assert db.rows(connection, "SELECT reason, tries, next_try, given_up FROM pending_vectors") == [
        ("damaged", 0, 0, 0)
    ]


def test_memories_are_told_when_vectors_of_an_unused_space_go(connection: apsw.Connection, filled: Path) -> None:
    connection.execute(
        "INSERT INTO spaces (model, dimension, document_prefix, query_prefix, probe, created_at)"
        " VALUES ('other', 64, '', '', 'x', 'y')"
    )
    connection.execute("UPDATE spaces SET is_active = (id = 2)")
    first, second = (vectors.generation(connection, number) for number in (1, 2))
    with pytest.raises(KeyboardInterrupt), db.transaction(connection, filled):
        spaces.drop_unused(connection, 5)
        raise KeyboardInterrupt
    assert vectors.generation(connection, 1) == first
    assert spaces.drop_unused(connection, 5) == 5
    assert vectors.generation(connection, 1) > first
    assert vectors.generation(connection, 2) == second, "nothing of it went"
    while spaces.drop_unused(connection, 5):
        pass
    last = vectors.generation(connection, 1)
    assert spaces.drop_unused(connection, 5) == 0
    assert vectors.generation(connection, 1) == last


def test_failed_texts_are_those_that_a_model_refused(connection: apsw.Connection) -> None:
    connection.executemany(
        "INSERT INTO pending_vectors VALUES (?, ?, ?, ?, ?, ?)",
        [
            (1, 10, "new", 0, 0, 0),
            (2, 20, vectors.TEXT_GONE, 5, 1000, 0),
            (3, 30, "refused", 2, 60_000, 0),
            (4, 40, "zero", 10, 60_000, 1),
        ],
    )
    found = vectors.failed(connection, 9)
    assert [(text.reason, text.tries) for text in found] == [("zero", 10), ("refused", 2)]
    assert found[0].next_try is None, "given up"
    assert found[1].next_try is not None and found[1].next_try.timestamp() == 60
    assert vectors.count_failed(connection) == 2
    assert vectors.failed(connection, 1) == found[:1]


# --- numbers of events ------------------------------------------------------------------------------------------------


def test_the_next_event_is_numbered_behind_another_file(connection: apsw.Connection) -> None:
    connection.execute("DELETE FROM memory_events")
    connection.execute("DELETE FROM sqlite_sequence WHERE name = 'memory_events'")
    assert events.newest(connection) == 0
    for number, expected in ((7, 8), (3, 9), (20, 21)):
        events.number_behind(connection, number)
        events.add(connection, "restore", LATER, source="test")
        assert events.newest(connection) == expected
