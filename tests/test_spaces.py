"""Spaces: a changed model is noticed, never compared, and takes over only when its vectors are complete."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import Clock, Log, fake, fill, open_memory, query, recalled

from clawmark import memory as memories
from clawmark import status, transfer
from clawmark.embed import Failure, Kind
from clawmark.embed.probe import PROBE, Prober, same
from clawmark.errors import EmbedderDown, EmbedderError, SourceAbsent
from clawmark.jobs import embedder as policy
from clawmark.jobs import vectors as job
from clawmark.memory import Memory
from clawmark.model import Space
from clawmark.recall.meaning import Meaning
from clawmark.settings import Settings
from clawmark.store.spaces import Stored
from clawmark.testing import FakeEmbedder

SPACE_OF_EACH_VECTOR = (
    "SELECT s.model, count(*) FROM message_vectors v JOIN spaces s ON s.id = v.space_id GROUP BY s.id"
)


def event_types(memory: Memory) -> list[str]:
    return [event.event_type for event in reversed(memory.events())]


PROBES = 2
"""How often a new model is asked for its probe before its space is opened."""


def fails_after(embedder: FakeEmbedder, batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedder goes down after so many batches in a new space."""
    ask, left = embedder.embed, [PROBES + batches]

    def few(texts: Sequence[str], kind: Kind = "document") -> Any:
        embedder.down = embedder.down or left[0] == 0
        left[0] -= 1
        return ask(texts, kind)

    monkeypatch.setattr(embedder, "embed", few)


def noted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, Any]]:
    """(model of the vectors that are looked at, the query's vector) of every search from now on."""
    seen: list[tuple[str | None, Any]] = []
    original = memories.recall

    def recall(connection: Any, reader: Any, asked: Any, vector: Any, snapshot: Any) -> list[Any]:
        seen.append((None if snapshot is None else snapshot.space.model, vector))
        return original(connection, reader, asked, vector, snapshot)

    monkeypatch.setattr(memories, "recall", recall)
    return seen


# --- the probe --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, 2, 3, 32])
@pytest.mark.parametrize("kind", ["document", "query"])
def test_the_probe_goes_along_and_the_results_keep_their_places(count: int, kind: Kind) -> None:
    texts = [f"text about topic{number}" for number in range(count)]
    embedder = fake()
    probed = Prober(embedder).embed(texts, kind)
    assert len(probed.results) == count
    for text, result in zip(texts, probed.results, strict=True):
        (alone,) = embedder.embed([text])
        assert not isinstance(result, Failure) and not isinstance(alone, Failure)
        assert np.array_equal(result, alone)
    (alone,) = embedder.embed([PROBE])
    assert probed.probe is not None and np.array_equal(probed.probe, np.asarray(alone))


def test_without_the_probe_nothing_is_taken() -> None:
    with pytest.raises(EmbedderDown, match="probe"):
        Prober(fake(poisoned=["brown fox"])).embed(["some text"], "document")


def test_a_model_that_cannot_change_is_asked_without_its_probe() -> None:
    embedder = fake()
    embedder.fixed = True
    calls: list[int] = []
    ask = embedder.embed
    embedder.embed = lambda texts, kind="document": (calls.append(len(texts)), ask(texts, kind))[1]  # type: ignore[method-assign]
    assert Prober(embedder).embed(["one", "two"], "document").probe is None
    assert calls == [2]


def test_other_weights_are_another_probe() -> None:
    one, two = (Prober(fake(weights=weights)).probe("document") for weights in (0, 1))
    assert same(one, one)
    assert not same(one, two)


# --- a changed model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("swapped", [{"model": "two"}, {"weights": 1}, {"dimension": 32}], ids=str)
def test_a_changed_model_is_noticed_within_one_run(
    swapped: dict[str, Any], db_path: Path, log: Log, clock: Clock
) -> None:
    """D1, D2: another name, other weights under the same name and dimension, another dimension under the same name."""
    fill(log)
    with open_memory(db_path, log, embedder=fake(), clock=clock) as memory:
        memory.sync()
    with open_memory(db_path, log, embedder=FakeEmbedder(**swapped), clock=clock) as memory:
        report = memory.sync()
        assert (report.vectors, report.pending) == (40, 0)
        assert event_types(memory) == ["space_opened", "space_opened", "space_switched"]
        assert memory.sync().vectors == 0
        assert event_types(memory) == ["space_opened", "space_opened", "space_switched"]
    assert query(db_path, "SELECT count(*) FROM spaces WHERE is_active") == [(1,)]
    assert query(db_path, "SELECT count(DISTINCT space_id), count(*) FROM message_vectors") == [(1, 40)]


def test_a_model_that_changes_in_the_middle_of_a_run_mixes_nothing(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log)
    embedder = fake()
    ask, calls = embedder.embed, [0]

    def swapping(texts: Sequence[str], kind: Kind = "document") -> Any:
        calls[0] += 1
        embedder.weights = int(calls[0] > PROBES + 2)
        return ask(texts, kind)

    monkeypatch.setattr(embedder, "embed", swapping)
    monkeypatch.setattr(job, "BATCH", 10)
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        memory.sync()
    assert query(db_path, "SELECT count(*) FROM pending_vectors") == [(0,)]
    found = query(
        db_path,
        "SELECT s.is_active, v.embedding, p.at FROM message_vectors v JOIN spaces s ON s.id = v.space_id"
        " JOIN passages p ON p.id = v.passage_id ORDER BY p.at",
    )
    assert len(found) == 40
    new = fake(weights=1)
    for message, (is_active, blob, _) in zip(log.messages(), found, strict=True):
        (expected,) = new.embed([message.text])
        assert is_active and np.allclose(np.frombuffer(blob, "<f4"), np.asarray(expected))


def test_models_that_answer_in_turn_are_said_and_never_mixed(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name behind which a balancer asks two models."""
    fill(log)
    embedder = fake()
    ask, calls = embedder.embed, [0]

    def turning(texts: Sequence[str], kind: Kind = "document") -> Any:
        calls[0] += 1
        embedder.weights = calls[0] % 2
        return ask(texts, kind)

    monkeypatch.setattr(embedder, "embed", turning)
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        assert memory.sync().vectors == 0
        assert any("in turn" in (event.detail or "") for event in memory.events())
    assert calls[0] < 20


def test_the_old_space_serves_until_the_new_one_is_complete(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, 30)
    old, new = fake("one"), fake("two")
    with open_memory(db_path, log, embedder=old, clock=clock) as memory:
        memory.sync()
    monkeypatch.setattr(job, "BATCH", 5)
    fails_after(new, 2, monkeypatch)
    with open_memory(db_path, log, embedder=new, clock=clock) as memory:
        assert memory.sync().vectors == 10
        status = memory.status()
        assert status.space is not None and (status.space.model, status.space.vectors) == ("one", 30)
        assert status.filling is not None and (status.filling.model, status.filling.vectors) == ("two", 10)
        assert status.pending == {"space": 20}
    seen = noted(monkeypatch)
    with open_memory(db_path, log, embedder=old, clock=clock) as memory:
        memory.search("topic3")
    new.down = False
    monkeypatch.undo()
    with open_memory(db_path, log, embedder=new, clock=clock) as memory:
        assert memory.sync().vectors == 20
        assert event_types(memory)[-2:] == ["space_switched", "embedder_available"]
    assert [(model, vector is None) for model, vector in seen] == [("one", False)]
    assert query(db_path, SPACE_OF_EACH_VECTOR) == [("two", 30)]


def test_where_the_old_model_is_gone_the_growing_space_is_searched(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same name, other weights: the old vectors are never looked at again, the new ones at once."""
    fill(log, 30)
    with open_memory(db_path, log, embedder=fake(), clock=clock) as memory:
        memory.sync()
    monkeypatch.setattr(job, "BATCH", 5)
    new = fake(weights=1)
    fails_after(new, 2, monkeypatch)
    with open_memory(db_path, log, embedder=new, clock=clock) as memory:
        memory.sync()
        new.down = False
        monkeypatch.undo()
        seen = noted(monkeypatch)
        memory.search("topic29")
        with memory._reading() as connection:
            space = memory._meaning.spaces(connection)[1].space
            snapshot = memory._meaning.snapshot(connection, space)
    assert seen[0][1] is not None and snapshot is not None
    ours = query(db_path, "SELECT passage_id FROM message_vectors WHERE space_id = 2 ORDER BY 1")
    assert 0 < len(ours) < 30
    assert sorted(snapshot.ids.tolist()) == [row[0] for row in ours]


@pytest.mark.parametrize("swapped", [{"model": "two"}, {"weights": 1}, {"dimension": 32}], ids=str)
def test_a_query_of_another_model_is_never_compared(
    swapped: dict[str, Any], db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R11. Also before any job has seen the change."""
    fill(log)
    with open_memory(db_path, log, embedder=fake(), clock=clock) as memory:
        memory.sync()
    seen = noted(monkeypatch)
    with open_memory(db_path, log, embedder=FakeEmbedder(**swapped), clock=clock) as memory:
        assert recalled(memory, "topic17")[0].excerpt == "sentence number 17 speaks of topic17 at some length"
    assert seen == [(None, None)]


def test_a_change_under_a_running_process_is_noticed_by_the_next_query(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fill(log)
    embedder = fake()
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        memory.sync()
        seen = noted(monkeypatch)
        memory.search("topic17")
        embedder.weights = 1
        memory.search("topic18")
        memory.search("topic19")
        embedder.weights = 0
        memory.search("topic20")
    assert [vector is None for _, vector in seen] == [False, True, True, False]
    assert caplog.text.count("another model") == 1, "one line per change of state"


def test_a_cached_query_is_compared_with_its_own_space_alone(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, 5)
    one = fake("one")
    seen = noted(monkeypatch)
    with open_memory(db_path, log, embedder=one, clock=clock) as memory:
        memory.sync()
        memory.search("topic3")
        memory.search("topic3")
        assert one.asked.count("topic3") == 1, "remembered in its own space"
        with open_memory(db_path, log, embedder=fake("two"), clock=clock) as other:
            other.sync()
        memory.search("topic3")
    assert [(model, vector is None) for model, vector in seen] == [("one", False), ("one", False), (None, True)]


def test_a_query_is_embedded_anew_when_the_model_changed(db_path: Path, log: Log, clock: Clock) -> None:
    fill(log, 5)
    embedder = fake("one")
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        memory.sync()
        memory.search("topic3")
        embedder.space = Space("two", 64)
        memory.sync()
        memory.search("topic3")
        memory.search("topic3")
    assert embedder.asked.count("topic3") == 2


# --- changes of mind --------------------------------------------------------------------------------------------------


def test_a_change_that_is_taken_back_costs_only_what_is_new(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, 30)
    with open_memory(db_path, log, embedder=fake("one"), clock=clock) as memory:
        memory.sync()
    fill(log, 2)
    new = fake("two")
    monkeypatch.setattr(job, "BATCH", 5)
    fails_after(new, 2, monkeypatch)
    with open_memory(db_path, log, embedder=new, clock=clock) as memory:
        memory.sync()
    with open_memory(db_path, log, embedder=fake("one"), clock=clock) as memory:
        report = memory.sync()
        assert (report.vectors, report.pending) == (2, 0)
        assert memory.status().filling is None
    assert query(db_path, SPACE_OF_EACH_VECTOR) == [("one", 32)]


def test_a_third_model_takes_the_place_of_the_second(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log, 30)
    with open_memory(db_path, log, embedder=fake("one"), clock=clock) as memory:
        memory.sync()
    new = fake("two")
    fails_after(new, 1, monkeypatch)
    with open_memory(db_path, log, embedder=new, clock=clock) as memory:
        memory.sync()
    with open_memory(db_path, log, embedder=fake("three"), clock=clock) as memory:
        assert memory.sync().vectors == 30
    assert query(db_path, SPACE_OF_EACH_VECTOR) == [("three", 30)]


def test_a_text_that_one_model_refused_is_tried_by_the_next(db_path: Path, log: Log, clock: Clock) -> None:
    fill(log, 5)
    log.say("the lapisgecko sits on the warm wall again")
    with open_memory(db_path, log, embedder=fake("one", poisoned=["lapisgecko"]), clock=clock) as memory:
        assert memory.sync().pending == 1
    with open_memory(db_path, log, embedder=fake("two"), clock=clock) as memory:
        report = memory.sync()
        assert (report.vectors, report.pending) == (6, 0)


def test_a_refused_text_does_not_hold_up_the_switch(db_path: Path, log: Log, clock: Clock) -> None:
    fill(log, 5)
    log.say("the lapisgecko sits on the warm wall again")
    with open_memory(db_path, log, embedder=fake("one"), clock=clock) as memory:
        memory.sync()
    with open_memory(db_path, log, embedder=fake("two", poisoned=["lapisgecko"]), clock=clock) as memory:
        memory.sync()
        space = memory.status().space
        assert space is not None and (space.model, space.vectors) == ("two", 5)


def test_a_space_of_a_version_without_probes_is_taken_over(db_path: Path, log: Log, clock: Clock) -> None:
    fill(log, 5)
    with open_memory(db_path, log, embedder=fake(), clock=clock) as memory:
        memory.sync()
        with memory._writing() as connection:
            connection.execute("UPDATE spaces SET probe = '', document_probe = NULL, query_probe = NULL")
    with open_memory(db_path, log, embedder=fake(), clock=clock) as memory:
        assert memory.sync().vectors == 0
        assert event_types(memory) == ["space_opened"]
    assert query(db_path, "SELECT count(*) FROM spaces WHERE probe != '' AND query_probe NOT NULL") == [(1,)]


def test_nothing_is_asked_while_there_is_nothing_to_embed(db_path: Path, log: Log, clock: Clock) -> None:
    embedder = fake()
    embedder.down = True
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        assert memory.sync().vectors == 0
        assert event_types(memory) == []


# --- what failed ------------------------------------------------------------------------------------------------------


@pytest.fixture
def refusing(db_path: Path, log: Log, clock: Clock) -> Callable[[], Memory]:
    log.say("the lapisgecko sits on the warm wall again")
    fill(log, 3)
    return lambda: open_memory(db_path, log, embedder=fake(poisoned=["lapisgecko"]), clock=clock)


def test_what_failed_is_named_with_its_reason_and_next_try(refusing: Callable[[], Memory], log: Log) -> None:
    with refusing() as memory:
        memory.sync()
        status = memory.status()
    (failed,) = status.failed
    assert (failed.source, failed.ref, failed.reason, failed.tries) == ("log", log.messages()[0].ref, "poisoned", 1)
    assert failed.next_try is not None
    assert any(failed.ref in problem and "poisoned" in problem for problem in status.problems)
    assert "lapisgecko" not in str(status)


def test_a_text_refused_too_often_is_given_up_until_a_person_says_otherwise(
    refusing: Callable[[], Memory], clock: Clock
) -> None:
    with refusing() as memory:
        for _ in range(job.MOST_TRIES + 3):
            memory.sync()
            clock.advance(days=1.5)
        status = memory.status()
        assert (status.given_up, status.failed[0].tries) == (1, job.MOST_TRIES)
        assert any("clawmark reembed" in problem for problem in status.problems)
        memory.reembed()
        assert (memory.status().given_up, memory.status().failed[0].tries) == (0, 2)


def test_reembed_makes_what_is_missing(refusing: Callable[[], Memory], db_path: Path, log: Log, clock: Clock) -> None:
    with refusing() as memory:
        memory.sync()
    with open_memory(db_path, log, embedder=fake(), clock=clock) as memory:
        report = memory.reembed()
        assert (report.vectors, report.pending) == (1, 0)


def test_a_text_that_cannot_be_read_is_never_given_up(db_path: Path, log: Log, clock: Clock) -> None:
    fill(log, 3)
    embedder = fake()
    embedder.down = True
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        memory.sync()
        embedder.down = False
        with memory._writing() as connection:
            connection.execute("UPDATE passage_refs SET text_hash = x'00'")
        for _ in range(job.MOST_TRIES + 3):
            memory.sync()
            clock.advance(days=1.5)
        assert memory.status().pending == {"text_gone": 3}
        assert memory.status().given_up == 0


# --- what must not happen ---------------------------------------------------------------------------------------------


def test_a_log_that_is_absent_switches_nothing(db_path: Path, log: Log, clock: Clock) -> None:
    """A disk that is not mounted: every text is gone for now, and no model has made a single vector."""
    fill(log, 20)
    with open_memory(db_path, log, embedder=fake("one"), clock=clock) as memory:
        memory.sync()
    log.absent = True
    with open_memory(db_path, log, embedder=fake("two"), clock=clock) as memory:
        with pytest.raises(SourceAbsent):
            memory.sync()
        with pytest.raises(SourceAbsent):
            memory.reembed()
    assert query(db_path, SPACE_OF_EACH_VECTOR) == [("one", 20)]
    log.absent = False
    with open_memory(db_path, log, embedder=fake("two"), clock=clock) as memory:
        assert memory.sync().vectors == 20


def test_a_stream_that_cannot_be_read_holds_up_the_switch(db_path: Path, log: Log, clock: Clock) -> None:
    fill(log, 20)
    log.say("the boat is called Sira and lies in the harbour", "other")
    with open_memory(db_path, log, embedder=fake("one"), clock=clock) as memory:
        memory.sync()
    log.say("a new sentence about something else entirely", "other")
    log.broken.add("other")
    with open_memory(db_path, log, embedder=fake("two"), clock=clock) as memory:
        assert memory.sync().failures
        space = memory.status().space
        assert space is not None and (space.model, space.vectors) == ("one", 21)
        log.broken.clear()
        memory.sync()
        space = memory.status().space
        assert space is not None and space.model == "two"


def test_a_restored_backup_of_another_model_meets_no_kept_query(db_path: Path, log: Log, clock: Clock) -> None:
    """Row numbers of spaces come anew with a backup; the spaces themselves do not."""
    fill(log, 5)
    elsewhere = db_path.with_name("other.db")
    with open_memory(elsewhere, log, embedder=fake("two", 32), clock=clock) as memory:
        memory.sync()
    copied = transfer.backup(elsewhere, None, clock)
    embedder = fake("one")
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        memory.sync()
        assert memory.search("topic3").recalled
        transfer.restore(db_path, copied, clock, wait_seconds=5)
        assert memory.search("topic3").recalled, "by its words"


def test_reembed_says_why_there_is_no_embedder(db_path: Path, log: Log, clock: Clock) -> None:
    settings = Settings(db_path=db_path, embedding_url="http://192.0.2.7/v1", embedding_model="m")
    with open_memory(db_path, log, embedder=fake("m"), clock=clock) as memory:
        fill(log, 3)
        memory.sync()
    opened = Memory.open(settings, sources=[log], clock=clock)
    with opened as memory, pytest.raises(EmbedderError, match="CLAWMARK_ALLOW_REMOTE"):
        memory.reembed()


def test_nothing_is_embedded_while_clawmark_is_off(db_path: Path, log: Log, clock: Clock) -> None:
    fill(log, 3)
    embedder = fake()
    embedder.down = True
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        memory.sync()
        embedder.down = False
    with Memory.open(Settings(db_path=db_path, disabled=True), sources=[log], embedder=embedder, clock=clock) as memory:
        assert (memory.sync().vectors, memory.reembed().vectors) == (0, 0)


def test_an_embedder_that_answers_again_is_said_though_it_refuses_the_text(
    db_path: Path, log: Log, clock: Clock
) -> None:
    log.say("the lapisgecko sits on the warm wall again")
    embedder = fake(poisoned=["lapisgecko"])
    embedder.down = True
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        memory.sync()
        embedder.down = False
        memory.sync()
        assert event_types(memory)[-1] == "embedder_available"
        assert not any("down" in problem for problem in memory.status().problems)


@pytest.mark.parametrize("seed", range(12))
def test_a_balancer_over_two_models_never_has_them_compared(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Each answer is of the one or the other model, by chance: passages of one are never met by queries of the other."""
    fill(log, 20)
    embedder = fake()
    ask, rng = embedder.embed, random.Random(seed)

    def by_chance(texts: Sequence[str], kind: Kind = "document") -> Any:
        embedder.weights = rng.randrange(2)
        return ask(texts, kind)

    monkeypatch.setattr(embedder, "embed", by_chance)
    compared: list[tuple[Stored, str, Any]] = []
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        for _ in range(3):
            memory.sync()
        with memory._reading() as connection:
            used = memory._meaning.spaces(connection)
            held = [memory._meaning.snapshot(connection, stored.space) for stored in used]
        for number in range(20):
            space, vector = memory._meaning.vector(used, f"topic{number}") or (None, None)
            compared += [(stored, f"topic{number}", vector) for stored in used if stored.space == space]
    model_of = {
        stored.space: weights
        for stored in used
        for weights in (0, 1)
        if same(stored.document_probe or b"", Prober(fake(weights=weights)).probe("query"))
    }
    for stored, said, vector in compared:
        assert np.allclose(vector, np.asarray(fake(weights=model_of[stored.space]).embed([said])[0]))
    said_in = dict(enumerate((message.text for message in log.messages()), 1))
    for snapshot in held:
        assert snapshot is not None
        for passage, vector in zip(snapshot.ids.tolist(), snapshot.vectors, strict=True):
            (expected,) = fake(weights=model_of[snapshot.space]).embed([said_in[passage]])
            assert np.allclose(vector, np.asarray(expected))


def test_a_model_that_refuses_everything_takes_nobodys_place(db_path: Path, log: Log, clock: Clock) -> None:
    """It answers the probe and nothing else: the old vectors stay, and nothing negative is reported."""
    fill(log, 50)
    with open_memory(db_path, log, embedder=fake("one"), clock=clock) as memory:
        memory.sync()
    with open_memory(db_path, log, embedder=fake("two", poisoned=["sentence"]), clock=clock) as memory:
        for _ in range(4):
            assert memory.sync().vectors == 0
            clock.advance(days=2)
        space = memory.status().space
        assert space is not None and (space.model, space.vectors) == ("one", 50)
    assert query(db_path, SPACE_OF_EACH_VECTOR) == [("one", 50)]


def test_a_few_texts_that_are_refused_hold_up_no_switch_and_many_do(db_path: Path, log: Log, clock: Clock) -> None:
    for number in range(100):
        log.say(f"{'rare' if number < 8 else 'some'} sentence number {number} of some length")
    with open_memory(db_path, log, embedder=fake("one"), clock=clock) as memory:
        memory.sync()
    for model, poisoned, expected in (("two", "some", "one"), ("three", "rare", "three")):
        with open_memory(db_path, log, embedder=fake(model, poisoned=[poisoned]), clock=clock) as memory:
            memory.sync()
            space = memory.status().space
            assert space is not None and space.model == expected


def test_prompts_do_not_wait_for_each_others_embedding(db_path: Path, log: Log, clock: Clock) -> None:
    fill(log, 5)
    embedder = fake()
    embedder.endpoint = "http://127.0.0.1:1"
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        memory.sync()
        ask, together = embedder.embed, threading.Barrier(4)

        def all_at_once(texts: Sequence[str], kind: Kind = "document") -> Any:
            together.wait(timeout=10)  # breaks unless the others are being embedded too
            return ask(texts, kind)

        embedder.embed = all_at_once  # type: ignore[method-assign]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(memory.search, [f"topic{number}" for number in range(4)]))
    assert all(answer.recalled for answer in found)


def test_an_embedder_that_fails_slowly_is_left_alone(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it answers: a refusal and another model's vector cost the next prompts as little as a hanging server."""
    now = [0.0]
    calls: list[int] = []

    class Slow(FakeEmbedder):
        def embed(self, texts: Sequence[str], kind: Kind = "document") -> Any:
            if kind == "query":
                calls.append(len(texts))
                now[0] += 0.9
            return super().embed(texts, kind)

    fill(log, 5)
    embedder = Slow(64)
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        memory.sync()
        calls.clear()
        memory._meaning = Meaning(memory.settings, embedder, monotonic=lambda: now[0])
        for break_ in ({"poisoned": ("topic",)}, {"weights": 1}, {"down": True}):
            for name, value in break_.items():
                monkeypatch.setattr(embedder, name, value)
            for number in range(3):
                assert memory.search(f"topic{number}").recalled
            assert len(calls) == 1, break_
            monkeypatch.undo()
            calls.clear()
            now[0] += 60


def test_an_outage_of_another_kind_or_server_is_another_event(db_path: Path, log: Log, clock: Clock) -> None:
    fill(log, 3)

    class Failing(FakeEmbedder):
        reason = "answered 503"

        def embed(self, texts: Sequence[str], kind: Kind = "document") -> Any:
            raise EmbedderDown(f"{self.name} {self.reason}, ask again in {random.randrange(100)} s")

    embedder = Failing(64)
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        for name, reason in (("one", "answered 503"), ("one", "answered 401"), ("two", "answered 401")):
            embedder.name, embedder.reason = name, reason
            memory.sync()
            memory.sync()
            assert any(name in problem and reason in problem for problem in memory.status().problems)
        assert event_types(memory) == ["embedder_unavailable"] * 3


def test_an_outage_is_said_although_every_vector_is_made(db_path: Path, log: Log, clock: Clock) -> None:
    """Prompts run on words then."""
    fill(log, 3)
    embedder = fake()
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        memory.sync()
        embedder.down = True
        memory.sync()
        assert any("down" in problem for problem in memory.status().problems)


def test_a_shell_without_the_url_makes_nothing_anew(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway has CLAWMARK_EMBEDDING_URL and a cron job has not: the local model must not take the store over."""
    fill(log, 3)
    remote = fake("served")
    remote.endpoint = "http://127.0.0.1:9"
    with open_memory(db_path, log, embedder=remote, clock=clock) as memory:
        memory.sync()
    fill(log, 1)
    local = fake("local")
    for module in (policy, status):
        monkeypatch.setattr(module, "choose", lambda settings, background: local)
    with Memory.open(Settings(db_path=db_path), sources=[log], clock=clock) as memory:
        assert memory.sync().pending == 1
        assert "CLAWMARK_EMBEDDER=local" in str(memory.events(1)[0].detail)
        assert any("CLAWMARK_EMBEDDER=local" in problem for problem in memory.status().problems)
    with Memory.open(Settings(db_path=db_path, embedder="local"), sources=[log], clock=clock) as memory:
        assert memory.sync().vectors == 4


def test_a_server_that_moved_is_asked_where_it_is_now(db_path: Path, log: Log, clock: Clock) -> None:
    """The same model at another address is the same space, though there is nothing new to embed."""
    fill(log, 3)
    embedder = fake()
    for address in ("http://127.0.0.1:1", "http://127.0.0.1:2"):
        embedder.endpoint = address
        with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
            memory.sync()
        assert query(db_path, "SELECT endpoint FROM spaces") == [(address,)]
