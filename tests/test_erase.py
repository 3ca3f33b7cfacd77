"""Erase: what is forgotten is in no file, and its tombstone tells nothing."""

from __future__ import annotations

import importlib.util
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import ModuleType

import apsw
import pytest
from helpers import LATER, START, Clock, Log, dump, fake, open_memory, query, recalled, residue, shared, words_of

from clawmark import erase
from clawmark.errors import DatabaseDamaged, SourceAbsent, SourceBusy, UsageError
from clawmark.jobs import runner
from clawmark.memory import Memory
from clawmark.settings import Settings
from clawmark.store import db, files, recovery, sidecar, tombstones

CANARY = "zqcanaryxenon7731"


def harness() -> ModuleType:
    path = shared("harness", "crash", "forget_residue.py")
    if path is None:
        pytest.skip("the shared harness crash/forget_residue.py is not here (CLAWMARK_SHARED names its folder)")
    spec = importlib.util.spec_from_file_location("forget_residue", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def filled(memory: Memory, log: Log) -> None:
    """Enough around the canary that its pages and segments hold other things too."""
    for number in range(60):
        log.say(f"plain sentence number {number} about gardens, sheds and fences", f"s{number % 4}")
        memory.set(f"pref.thing{number}", f"plain value number {number}")
    log.say(f"the {CANARY} word stands between others in a sentence of its own", "gone")
    log.say("the answer that follows it speaks of lavender", "gone", origin="assistant")


# --- facts ------------------------------------------------------------------------------------------------------------


def test_a_forgotten_value_is_in_no_file(memory: Memory, log: Log, db_path: Path) -> None:
    filled(memory, log)
    memory.set("user.address", f"{CANARY} street 4")
    memory.set("user.address", f"{CANARY} street 5")
    assert residue(db_path.parent, CANARY)
    assert memory.forget("user.address") == ["shared"]
    assert not residue(db_path.parent, CANARY)


def test_a_forgotten_value_leaves_no_form_of_itself(memory: Memory, log: Log, db_path: Path) -> None:
    left = harness().residue
    filled(memory, log)
    memory.set("user.address", f"{CANARY} street 4")
    assert left([str(db_path.parent)], [CANARY])
    memory.forget("user.address")
    assert left([str(db_path.parent)], [CANARY]) == {}


def test_forgetting_keeps_the_trail_without_its_values(memory: Memory) -> None:
    memory.set("user.address", "Elm Street 4")
    memory.set("user.address", "Elm Street 5")
    memory.forget("user.address")
    trail = memory.events()
    assert [e.event_type for e in trail] == ["forget", "update", "create"]
    assert {(e.old_value, e.new_value) for e in trail} == {(None, None)}


def test_forgetting_one_fact_leaves_every_other(memory: Memory) -> None:
    memory.set("user.address", "Elm Street 4")
    memory.set("user.address", "Oak Lane 1", scope="work")
    memory.set("user.address_work", "Dock 7")
    memory.forget("user.address", scope="work")
    assert [(f.key, f.scope) for f in memory.facts()] == [("user.address", "shared"), ("user.address_work", "shared")]
    assert [e.new_value for e in memory.events() if e.event_type == "create"] == ["Dock 7", None, "Elm Street 4"]


def test_forgetting_what_is_not_there_changes_nothing(memory: Memory) -> None:
    assert memory.forget("user.nothing") == []
    assert memory.events() == []


def test_forgetting_needs_a_key(memory: Memory) -> None:
    with pytest.raises(UsageError):
        memory.forget("everything")


def test_tombstones_tell_nothing_and_only_the_same_words_match(memory: Memory, db_path: Path) -> None:
    memory.set("user.address", "Elm Street 4")
    memory.forget("user.address")
    hashes = {bytes(row[0]) for row in query(db_path, "SELECT hash FROM tombstones WHERE kind IN ('key', 'value')")}
    secret = db_path.with_name("memory.db.key").read_bytes()
    same = {h for _, h in tombstones.hashes(secret, "shared", "user.address", "  ELM  street 4")}
    assert hashes == same
    assert not hashes & {h for _, h in tombstones.hashes(b"guess" * 8, "shared", "user.address", "Elm Street 4")}
    assert not hashes & {h for _, h in tombstones.hashes(secret, "work", "user.address", "Elm Street 4")}


def test_a_tombstone_stays_until_the_person_says_it_anew(memory: Memory, db_path: Path) -> None:
    memory.set("user.address", "Elm Street 4")
    memory.forget("user.address")
    assert query(db_path, "SELECT count(*), count(expires_at) FROM tombstones") == [(3 + 3, 0)], "elm, street and 4"
    memory.set("user.address", "Elm Street 4")
    assert query(db_path, "SELECT count(*) FROM tombstones") == [(0,)]
    assert [f.value for f in memory.facts()] == ["Elm Street 4"]


def test_a_reader_that_holds_a_snapshot_only_delays_forgetting(
    memory: Memory, log: Log, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.say("a sentence about the harbour")
    memory.set("user.address", f"{CANARY} street 4")
    reader = apsw.Connection(str(db_path))
    reader.set_busy_timeout(0)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM facts").fetchall()
    monkeypatch.setattr(db, "connect", partial(db.connect, busy_seconds=0.05))
    assert memory.forget("user.address") == ["shared"]
    reader.execute("COMMIT")
    reader.close()
    memory.sync()
    assert not residue(db_path.parent, CANARY)


def test_a_fact_that_was_only_hidden_is_erased_too(memory: Memory, db_path: Path) -> None:
    memory.set("user.address", f"{CANARY} street 4")
    query(db_path, "UPDATE facts SET is_deleted = 1")
    assert memory.facts() == []
    assert memory.forget("user.address") == ["shared"]
    assert query(db_path, "SELECT count(*) FROM facts") == [(0,)]
    assert query(db_path, "SELECT count(*) FROM tombstones WHERE kind IN ('key', 'value')") == [(2,)]
    assert not residue(db_path.parent, CANARY)


def test_forgetting_a_fact_does_not_rewrite_the_lexicon(
    memory: Memory, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.say("a sentence about the harbour")
    memory.sync()
    memory.set("user.address", "Elm Street 4")
    purged: list[int] = []
    monkeypatch.setattr(erase.lexicon, "purge", lambda connection: purged.append(1))
    memory.forget("user.address")
    assert purged == []


def held_back(memory: Memory, db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget a fact while another process's snapshot keeps the write-ahead log back."""
    memory.set("user.address", f"{CANARY} street 4")
    memory.facts()  # a connection stays open: who closes the last one empties the log
    reader = apsw.Connection(str(db_path))
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM facts").fetchall()
    with monkeypatch.context() as patch:
        patch.setattr(db, "connect", partial(db.connect, busy_seconds=0.05))
        assert memory.forget("user.address") == ["shared"]
    reader.execute("COMMIT")
    reader.close()
    assert residue(db_path.parent, CANARY)


def test_an_unfinished_erasure_is_finished_by_a_sync_without_a_source(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(Settings(db_path=db_path, embedder="none")) as memory:
        held_back(memory, db_path, monkeypatch)
        with pytest.raises(SourceAbsent):
            memory.sync()
        assert not residue(db_path.parent, CANARY)


def test_an_unfinished_erasure_is_finished_before_a_log_that_is_busy(
    memory: Memory, log: Log, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.say("a sentence about the harbour")
    held_back(memory, db_path, monkeypatch)
    monkeypatch.setattr(log, "check", lambda: None)

    def busy(*args: object) -> None:
        raise SourceBusy("the log is held")

    monkeypatch.setattr(log, "read", busy)
    with pytest.raises(SourceBusy):
        memory.sync()
    assert not residue(db_path.parent, CANARY)


def test_an_erasure_that_comes_while_another_one_finishes_stays_to_be_finished(
    memory: Memory, log: Log, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass in another process erases passages just when a fact's erasure takes its note away."""
    log.say(f"my question holds the word {CANARY}")
    memory.sync()
    memory.set("user.address", "Elm Street 4")
    checkpoint = db.checkpoint

    def meanwhile(connection: apsw.Connection) -> bool:
        done = checkpoint(connection)
        other = db.connect(db_path)
        with db.transaction(other, db_path):
            erase.erase_passages(other, [1], LATER)
        other.close()
        return done

    with monkeypatch.context() as patch:
        patch.setattr(db, "checkpoint", meanwhile)
        memory.forget("user.address")
    with memory._writing() as connection:
        assert erase.finish(connection, db_path)
    assert not residue(db_path.parent, CANARY)


# --- passages ---------------------------------------------------------------------------------------------------------


def test_a_deleted_streams_passages_words_and_vectors_are_gone(db_path: Path, log: Log, clock: Clock) -> None:
    embedder = fake()
    with open_memory(db_path, log, embedder=embedder, clock=clock) as memory:
        filled(memory, log)
        memory.sync()
        ((vector,),) = query(
            db_path,
            "SELECT embedding FROM message_vectors WHERE passage_id = (SELECT min(passage_id) FROM passage_refs r"
            " JOIN streams s ON s.id = r.stream_id WHERE s.name = 'gone')",
        )
        assert residue(db_path.parent, CANARY)
        log.delete("gone")
        report = memory.sync()
        assert report.pruned == 2
        assert "gone" not in {e.conversation for e in recalled(memory, f"{CANARY} lavender", limit=50)}
        assert not residue(db_path.parent, CANARY, "lavend")
        data = b"".join(path.read_bytes() for path in db_path.parent.iterdir())
        assert not any(vector[at : at + 40] in data for at in (40, 120, 200))
        assert [e.event_type for e in memory.events(1)] == ["prune"]
    for table in ("passages", "passage_refs", "message_vectors", "pending_vectors"):
        assert query(db_path, f"SELECT count(*) FROM {table}")[0][0] in (0, 60), table
    assert query(db_path, "SELECT count(*) FROM cursors WHERE name LIKE '%gone%'") == [(0,)]


def test_a_successor_in_another_stream_stays_findable_without_the_erased_words(
    memory: Memory, log: Log, db_path: Path
) -> None:
    log.say(f"my question holds the word {CANARY}", "a")
    answer = log.say("the answer speaks of lavender and of nothing that came before it", "a", origin="assistant")
    copy = log.copy(answer, "b")
    memory.sync()
    assert any(CANARY in found for found in words_of(db_path, "context").values())
    log.delete("a")
    memory.sync()
    assert [e.ref for e in recalled(memory, "lavender")] == [copy.ref]
    assert query(db_path, "SELECT count(*) FROM passages WHERE previous_id IS NOT NULL") == [(0,)]
    assert not recalled(memory, CANARY)
    assert not residue(db_path.parent, CANARY)


def test_a_passage_with_two_refs_lives_as_long_as_one_of_them(memory: Memory, log: Log) -> None:
    said = log.say("the spare key hangs on the hook behind the boiler", "a")
    log.copy(said, "b")
    memory.sync()
    log.delete("a")
    memory.sync()
    assert len(recalled(memory, "spare key")) == 1
    log.delete("b")
    memory.sync()
    assert not recalled(memory, "spare key")


def test_a_prune_that_was_cut_short_is_finished_by_the_next_pass(
    memory: Memory, log: Log, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(memory, log)
    memory.sync()
    log.delete("gone")

    def killed(*args: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runner, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            memory.sync()
    memory.sync()
    assert not residue(db_path.parent, CANARY)


def test_erasing_nothing_moves_no_generation(memory: Memory, db_path: Path) -> None:
    query(db_path, "INSERT INTO spaces (model, dimension, document_prefix, query_prefix, probe, created_at)"
                   " VALUES ('m', 1, '', '', '', '')")  # fmt: skip
    with memory._writing() as connection:
        erase.erase_passages(connection, [], LATER)
    assert query(db_path, "SELECT generation FROM spaces") == [(0,)]


def test_erased_passages_leave_a_running_memory_too(db_path: Path, log: Log, clock: Clock) -> None:
    """A second process that keeps vectors in memory must not answer from them."""
    embedder = fake()
    log.say("the kayak hangs under the roof of the boathouse", "gone")
    log.say("an unrelated sentence about the price of printer ink", at=START + timedelta(days=1))
    with (
        open_memory(db_path, log, embedder=embedder, clock=clock) as first,
        open_memory(db_path, log, embedder=embedder, clock=clock) as second,
    ):
        first.sync()
        assert recalled(second, "kayak boathouse roof")
        log.delete("gone")
        first.sync()
        assert "gone" not in {e.conversation for e in recalled(second, "kayak boathouse roof")}
    assert not any("kayak" in row for row in dump(db_path)["lexicon"])


def test_old_vectors_of_what_was_erased_do_not_outlive_it(memory: Memory, log: Log, db_path: Path) -> None:
    """They bear the names of the TypeScript clawmark, which lead to no passage."""
    log.say(f"the {CANARY} word stands between others in a sentence of its own", "gone")
    log.say("a sentence that stays where it is", "s1")
    memory.sync()
    query(db_path, "INSERT INTO old_vectors VALUES ('gone.jsonl:17', x'0000803f')")
    memory.sync()
    assert query(db_path, "SELECT count(*) FROM old_vectors") == [(1,)], "nothing was erased"
    log.delete("gone")
    memory.sync()
    assert query(db_path, "SELECT count(*) FROM old_vectors") == [(0,)]


def test_a_database_that_cannot_be_read_forgets_nothing_and_keeps_its_sidecar(memory: Memory, db_path: Path) -> None:
    memory.set("pref.editor", "Helix")
    memory.set("user.boat", "Sira")
    before = sidecar.path_of(db_path).read_bytes()
    query(db_path, "UPDATE facts SET updated_at = 'yesterday' WHERE key = 'user.boat'")
    with pytest.raises(DatabaseDamaged):
        memory.forget("pref.editor")
    assert query(db_path, "SELECT count(*) FROM facts") == [(2,)]
    assert sidecar.path_of(db_path).read_bytes() == before
    assert recovery.is_suspect(db_path)


def test_a_sidecar_that_cannot_be_written_goes_with_what_is_forgotten(
    memory: Memory, db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.set("user.address", f"{CANARY} street 4")
    with db.opened(db_path) as connection, monkeypatch.context() as patch:

        def full(*args: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(files, "replace", full)
        with db.transaction(connection, db_path):
            assert erase.erase_fact(connection, "user.address", "shared", b"s" * 32, LATER)
            erase.forget_in_sidecar(connection, db_path, LATER)
    assert not sidecar.path_of(db_path).exists()


@pytest.mark.parametrize("how", ["forget", "accept", "reject"])
def test_no_erasure_stays_in_a_sidecar_that_cannot_be_written(
    memory: Memory, db_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.set("user.address", f"{CANARY} street 4")
    waiting = {
        "accept": lambda: memory.propose(
            "forget", "user.address", f"{CANARY} street 4", origin="agent", reason="unasked"
        ),
        "reject": lambda: memory.propose("set", "user.boat", f"the {CANARY}", origin="agent", reason="unasked"),
    }
    name = waiting[how]().name if how in waiting else ""
    if how == "reject":
        memory.forget("user.address")
    assert CANARY.encode() in sidecar.path_of(db_path).read_bytes()

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "replace", full)
    if how == "forget":
        memory.forget("user.address")
    elif how == "accept":
        memory.accept(name)
    else:
        memory.reject(name)
    assert not sidecar.path_of(db_path).exists()
