"""Vectors: little-endian float32 of length 1, newest first, nothing lost when the embedder fails."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import LATER, Clock, Log, fill, open_memory, query, recalled
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from clawmark.embed import Failure, checked
from clawmark.jobs import vectors as job
from clawmark.memory import Memory
from clawmark.recall.matrix import Matrix, Snapshot
from clawmark.store import spaces, vectors
from clawmark.testing import FakeEmbedder

POISON = "lapisgecko"
FLOATS = st.floats(-(2.0**100), 2.0**100, width=32)


@pytest.fixture
def with_vectors(db_path: Path, log: Log, embedder: FakeEmbedder, clock: Clock) -> Iterator[Memory]:
    with open_memory(db_path, log, embedder=embedder, clock=clock) as opened:
        yield opened


def searched(matrix: Matrix, connection: Any) -> Snapshot:
    active = spaces.active(connection)
    assert active is not None
    return matrix.current(connection, active.id, active.space)


# --- the form ---------------------------------------------------------------------------------------------------------


@given(arrays(np.float32, st.integers(1, 40), elements=FLOATS))
def test_what_is_stored_has_length_one_or_is_refused(raw: Any) -> None:
    made = checked(raw, len(raw))
    if isinstance(made, Failure):
        assert np.linalg.norm(raw.astype(np.float64)) < 1e-8
    else:
        assert made.dtype == np.float32
        assert abs(float(np.linalg.norm(made.astype(np.float64))) - 1) < 1e-5


@given(arrays(np.float32, st.integers(1, 40), elements=FLOATS))
def test_encoding_is_little_endian_float32_and_loses_nothing(vector: Any) -> None:
    blob = vectors.encode(vector)
    assert len(blob) == 4 * len(vector)
    assert np.array_equal(np.frombuffer(blob, dtype="<f4"), vector)
    assert vectors.encode(vector.astype(">f4")) == blob


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ([1.0, float("nan")], "not_finite"),
        ([float("inf"), 1.0], "not_finite"),
        ([0.0, 0.0], "zero"),
        ([1.0], "dimension"),
        ([1.0, 0.0, 0.0], "dimension"),
    ],
)
def test_what_is_no_direction_is_refused_with_its_reason(raw: list[float], reason: str) -> None:
    """D4."""
    assert checked(np.array(raw, dtype=np.float32), 2) == Failure(reason)


def test_stored_vectors_are_of_length_one(with_vectors: Memory, log: Log, db_path: Path) -> None:
    fill(log)
    assert with_vectors.sync().vectors == 40
    blobs = [row[0] for row in query(db_path, "SELECT embedding FROM message_vectors")]
    assert {len(blob) for blob in blobs} == {64 * 4}
    norms = [float(np.linalg.norm(np.frombuffer(blob, dtype="<f4").astype(np.float64))) for blob in blobs]
    assert all(abs(norm - 1) < 1e-5 for norm in norms)


# --- an embedder that fails -------------------------------------------------------------------------------------------


def test_an_embedder_that_is_down_leaves_everything_pending_and_words_still_work(
    with_vectors: Memory, log: Log, embedder: FakeEmbedder
) -> None:
    fill(log)
    embedder.down = True
    report = with_vectors.sync()
    assert (report.vectors, report.pending) == (0, 40)
    assert recalled(with_vectors, "topic17")[0].excerpt == "sentence number 17 speaks of topic17 at some length"
    embedder.down = False
    report = with_vectors.sync()
    assert (report.vectors, report.pending) == (40, 0)


def test_one_event_for_each_change_of_state(
    with_vectors: Memory, log: Log, embedder: FakeEmbedder, clock: Clock
) -> None:
    for down in (False, True, True, True, False, False, True):
        embedder.down = down
        fill(log, 1)
        clock.advance(hours=1)
        with_vectors.sync()
    changes = [e.event_type for e in with_vectors.events() if e.event_type.startswith("embedder_")]
    assert changes[::-1] == ["embedder_unavailable", "embedder_available", "embedder_unavailable"]


def test_an_embedder_that_is_down_is_a_problem_in_the_status(
    with_vectors: Memory, log: Log, embedder: FakeEmbedder
) -> None:
    fill(log, 1)
    embedder.down = True
    with_vectors.sync()
    assert any("embedder" in problem for problem in with_vectors.status().problems)
    embedder.down = False
    with_vectors.sync()
    assert with_vectors.status().problems == []


def test_a_poisoned_text_holds_up_no_other(
    with_vectors: Memory, log: Log, embedder: FakeEmbedder, db_path: Path
) -> None:
    """D3: even when it is the newest, and alone in what is left."""
    fill(log)
    log.say(f"the {POISON} sits on the windowsill in the sun")
    embedder.poisoned = (POISON,)
    report = with_vectors.sync()
    assert (report.vectors, report.pending) == (40, 1)
    assert query(db_path, "SELECT reason, tries FROM pending_vectors") == [("poisoned", 1)]
    assert POISON in recalled(with_vectors, POISON)[0].excerpt


def test_a_failed_text_is_tried_again_with_back_off(
    with_vectors: Memory, log: Log, embedder: FakeEmbedder, clock: Clock, db_path: Path
) -> None:
    log.say(f"the {POISON} sits on the windowsill in the sun")
    embedder.poisoned = (POISON,)
    waits = []
    for _ in range(4):
        with_vectors.sync()
        asked = len(embedder.asked)
        with_vectors.sync()
        assert len(embedder.asked) == asked, "not before its time"
        ((next_try,),) = query(db_path, "SELECT next_try FROM pending_vectors")
        due = datetime.fromtimestamp(next_try / 1000, UTC)
        waits.append((due - clock.now).total_seconds())
        clock.now = due
    assert waits == sorted(waits)
    assert all(0.9 <= later / (60 * 2**n) <= 1.1 for n, later in enumerate(waits))
    embedder.poisoned = ()
    assert with_vectors.sync().vectors == 1


def test_a_wait_never_exceeds_a_day_and_a_tenth() -> None:
    rng = random.Random(1)
    for tries in (0, 1, 10, 50, 10_000):
        assert 0 < job._wait(tries, rng) <= 1.1 * timedelta(days=1) / timedelta(milliseconds=1)


def test_a_batch_that_fails_keeps_those_before_it(
    with_vectors: Memory, log: Log, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D6: what was committed stays, and is sent once."""
    fill(log, 3 * job.BATCH)
    ask = embedder.embed

    def third_fails(texts: list[str], kind: Any = "document") -> Any:
        embedder.down = len(embedder.asked) >= 2 * job.BATCH
        return ask(texts, kind)

    with monkeypatch.context() as patch:
        patch.setattr(embedder, "embed", third_fails)
        report = with_vectors.sync()
    assert (report.vectors, report.pending) == (2 * job.BATCH, job.BATCH)
    embedder.down = False
    with_vectors.sync()
    sent = embedder.asked
    assert len(sent) == len(set(sent)) == 3 * job.BATCH


def test_vectors_come_newest_first(with_vectors: Memory, log: Log, embedder: FakeEmbedder) -> None:
    fill(log, 5)
    with_vectors.sync()
    assert [said.split()[2] for said in embedder.asked] == ["4", "3", "2", "1", "0"]


def test_a_vector_that_comes_late_is_noticed(with_vectors: Memory, log: Log, embedder: FakeEmbedder) -> None:
    fill(log, 2)
    with_vectors.sync()
    matrix = Matrix()
    with with_vectors._reading() as connection:
        first = searched(matrix, connection)
    fill(log, 3)
    with_vectors.sync()
    with with_vectors._reading() as connection:
        second = searched(matrix, connection)
    assert (len(first.ids), len(second.ids)) == (2, 5)


def test_a_passage_erased_meanwhile_gets_no_vector(with_vectors: Memory, log: Log, db_path: Path) -> None:
    fill(log, 2)
    with_vectors.sync()
    with with_vectors._writing() as connection:
        vectors.add(connection, 1, [(999, np.ones(64, dtype=np.float32))], LATER)
    assert query(db_path, "SELECT count(*) FROM message_vectors") == [(2,)]


def test_a_part_of_an_older_recipe_is_not_embedded_as_the_whole_message(
    with_vectors: Memory, log: Log, embedder: FakeEmbedder, db_path: Path
) -> None:
    """Where the borders lay then is unknown now; a vector of other words would stand for ever."""
    embedder.down = True
    log.say("a paragraph of a long message about planks and paint. " * 60)
    with_vectors.sync()
    query(db_path, "UPDATE passages SET recipe = recipe - 1")
    embedder.down = False
    assert with_vectors.sync().vectors == 0
    assert not any("planks" in said for said in embedder.asked)
    assert query(db_path, "SELECT DISTINCT reason FROM pending_vectors") == [("text_gone",)]
