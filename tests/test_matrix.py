"""The resident vectors: a copy of the file, kept current, with what may be seen as a mask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from helpers import Clock, Log, fake, open_memory, query

from clawmark.errors import DatabaseBusy
from clawmark.memory import Memory
from clawmark.recall.matrix import Matrix, Snapshot
from clawmark.store import spaces, vectors


@pytest.fixture
def filled(db_path: Path, log: Log, clock: Clock) -> Iterator[Memory]:
    log.session("w", scope="work")
    log.session("g", kind="group")
    for number in range(4):
        log.say(f"sentence {number} of the main agent about harbours", "a")
        log.say(f"sentence {number} of the work agent about ledgers", "w")
        log.say(f"sentence {number} of somebody in the group chat", "g", origin="participant", author="Jonas")
    with open_memory(db_path, log, embedder=fake(), clock=clock) as opened:
        opened.sync()
        yield opened


def snapshot(memory: Memory, matrix: Matrix | None = None) -> Snapshot:
    with memory._reading() as connection:
        active = spaces.active(connection)
        assert active is not None
        return (matrix or Matrix()).current(connection, active.id, active.space)


def test_rows_are_what_the_file_holds(filled: Memory, db_path: Path) -> None:
    held = snapshot(filled)
    stored = {
        i: np.frombuffer(b, "<f4") for i, b in query(db_path, "SELECT passage_id, embedding FROM message_vectors")
    }
    assert sorted(held.ids.tolist()) == sorted(stored)
    assert all(np.array_equal(held.vectors[row], stored[i]) for row, i in enumerate(held.ids.tolist()))


def test_appending_gives_what_loading_anew_gives(filled: Memory, log: Log) -> None:
    matrix = Matrix()
    first = snapshot(filled, matrix)
    log.say("one more sentence about harbours and their dues", "a")
    log.say("one more sentence in a session that is new to it", "new")
    filled.sync()
    appended, anew = snapshot(filled, matrix), snapshot(filled)
    assert len(appended.ids) == len(first.ids) + 2
    assert appended.ids.tolist() == anew.ids.tolist()
    assert np.array_equal(appended.vectors, anew.vectors)
    for session in ("a", "g", "new", "none"):
        assert np.array_equal(
            np.asarray(appended.allowed(["main"], session, False)), np.asarray(anew.allowed(["main"], session, False))
        )


def test_nothing_new_is_the_same_snapshot(filled: Memory) -> None:
    matrix = Matrix()
    assert snapshot(filled, matrix) is snapshot(filled, matrix)


def test_a_snapshot_never_changes_after_it_was_given(filled: Memory, log: Log) -> None:
    matrix = Matrix()
    first = snapshot(filled, matrix)
    ids = first.ids.tolist()
    log.delete("a")
    filled.sync()
    assert first.ids.tolist() == ids
    assert len(snapshot(filled, matrix).ids) == len(ids) - 4


def test_who_may_see_what(filled: Memory, db_path: Path) -> None:
    held = snapshot(filled)
    session = dict(
        query(db_path, "SELECT p.id, c.session FROM passages p JOIN conversations c ON c.id = p.conversation_id")
    )

    def seen(scopes: list[str] | None, of: str | None, only: bool) -> set[str]:
        mask = held.allowed(scopes, of, only)
        rows = held.ids if mask is None else held.ids[mask]
        return {session[i] for i in rows.tolist()}

    assert seen(None, None, False) == {"a", "w"}
    assert seen(["main"], None, False) == {"a"}
    assert seen(["main"], "g", False) == {"a", "g"}
    assert seen(["main"], "g", True) == {"g"}
    assert seen(["work", "shared"], "g", True) == set()
    assert seen(["nobody"], None, False) == set()
    assert seen(None, None, True) == set()


def test_rows_of_unknown_passages_are_minus_one(filled: Memory) -> None:
    held = snapshot(filled)
    ids = held.ids.tolist()
    assert held.rows_of([ids[3], 10**9, ids[0], -5]).tolist() == [3, -1, 0, -1]


def test_a_damaged_vector_is_passed_over(filled: Memory, db_path: Path) -> None:
    query(db_path, "UPDATE message_vectors SET embedding = x'00' WHERE id = 2")
    assert len(snapshot(filled).ids) == 11
    filled.search("harbours")


def test_without_a_space_nothing_means_anything(db_path: Path, log: Log, clock: Clock) -> None:
    log.say("a sentence that waits for its vector")
    with open_memory(db_path, log, embedder=None, clock=clock) as memory:
        memory.sync()
        with memory._reading() as connection:
            assert memory._meaning.spaces(connection) == []


def test_an_older_snapshot_knows_nothing_of_rows_appended_since(filled: Memory, log: Log) -> None:
    matrix = Matrix()
    first = snapshot(filled, matrix)
    before = first.vectors.copy()
    for number in range(30):
        log.say(f"sentence {number} that comes later and speaks of moorings", "later")
    filled.sync()
    second = snapshot(filled, matrix)
    assert len(second.ids) == len(first.ids) + 30
    assert first.rows_of(second.ids[-3:].tolist()).tolist() == [-1, -1, -1]
    assert np.array_equal(first.vectors, before)
    mask = first.allowed(None, "later", True)
    assert mask is not None and mask.shape == first.ids.shape and not mask.any()


def test_a_load_that_was_broken_off_leaves_no_row_twice(
    filled: Memory, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix = Matrix()
    snapshot(filled, matrix)
    for number in range(3):
        log.say(f"sentence {number} that comes later and speaks of moorings", "later")
    filled.sync()

    def broken(*args: Any) -> Iterator[Any]:
        yield next(iter(between(*args)))
        raise apsw.BusyError("in the middle of it")

    between = vectors.between
    with monkeypatch.context() as patch:
        patch.setattr(vectors, "between", broken)
        with pytest.raises(DatabaseBusy):
            snapshot(filled, matrix)
    assert snapshot(filled, matrix).ids.tolist() == snapshot(filled).ids.tolist()
