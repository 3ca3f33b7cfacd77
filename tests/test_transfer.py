"""Backup and restore: what comes back, what stays forgotten, and what a bad backup or a kill leaves."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from helpers import DYING, LATER, Clock, Log, dump, fixture, open_memory, opened, query, recalled, residue

from clawmark import arrival, keys, transfer
from clawmark.errors import (
    ClawmarkError,
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseForeign,
    DatabaseNewer,
    DatabaseUnwritable,
    UsageError,
)
from clawmark.memory import Memory
from clawmark.model import Forgetting, Said
from clawmark.settings import Settings
from clawmark.store import copy as copies
from clawmark.store import db, files, keyfile, migrations, recovery, sidecar, tombstones

STAMP = "20261201T120000Z"


def restore(path: Path, source: Path, clock: Clock | None = None) -> str:
    return transfer.restore(path, source, clock or Clock(), 1)


def backup(path: Path, target: Path | None = None) -> Path:
    return transfer.backup(path, target, Clock())


def content(path: Path) -> dict[str, list[Any]]:
    tables = [name for (name,) in query(path, "SELECT name FROM sqlite_master WHERE rootpage > 0 AND type = 'table'")]
    return {table: sorted(query(path, f"SELECT * FROM {table}"), key=repr) for table in sorted(tables)}


def values(path: Path) -> dict[str, str]:
    return dict(query(path, "SELECT key, value FROM facts WHERE is_deleted = 0"))


def beside(path: Path) -> set[str]:
    return {p.name for p in path.parent.iterdir()}


def spoken(log: Log) -> None:
    for number in range(40):
        log.say(f"sentence number {number} speaks of rhubarb, sheds and the ferry to Hönö", f"s{number % 3}")


@pytest.fixture
def filled(db_path: Path, log: Log) -> Path:
    """A memory at rest, with facts and passages."""
    spoken(log)
    with open_memory(db_path, log) as memory:
        memory.sync()
        memory.set("pref.editor", "Helix")
        memory.set("user.city", "Gothenburg")
    return db_path


# --- backup -----------------------------------------------------------------------------------------------------------


def test_a_backup_stands_beside_the_memory_with_its_key(filled: Path) -> None:
    made = backup(filled)
    assert made == filled.with_name(f"memory.db.backup-{STAMP}")
    assert content(made) == content(filled)
    assert keyfile.known(keyfile.key_path(made)) == keyfile.known(keyfile.key_path(filled)) is not None


def test_a_backup_is_made_while_the_memory_is_in_use(filled: Path, log: Log) -> None:
    with open_memory(filled, log) as memory:
        stop, failures = threading.Event(), []

        def write() -> None:
            number = 0
            while not stop.is_set():
                try:
                    memory.set("pref.counter", f"value {number}")
                    number += 1
                except ClawmarkError as error:
                    failures.append(error)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            made = [backup(filled) for _ in range(4)]
        finally:
            stop.set()
            thread.join()
        assert failures == []
    for one in made:
        ((value,),) = query(one, "SELECT value FROM facts WHERE key = 'pref.counter'") or [("value 0",)]
        newest = query(one, "SELECT new_value FROM memory_events WHERE memory_key = 'pref.counter' ORDER BY id DESC")
        assert not newest or newest[0][0] == value
        assert query(one, "PRAGMA integrity_check") == [("ok",)]


def test_a_folder_gets_the_backup_under_a_dated_name(filled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "stick"
    folder.mkdir()
    made = backup(filled, folder)
    assert made == folder / f"memory.db.backup-{STAMP}"
    assert beside(made) == {made.name, f"{made.name}.key"}
    assert backup(filled, folder).name == f"{made.name}-2"


def test_a_backup_overwrites_nothing(filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.db"
    target.write_text("precious")
    with pytest.raises(UsageError, match=r"mine\.db"):
        backup(filled, target)
    assert target.read_text() == "precious"
    assert not keyfile.key_path(target).exists()


def test_the_key_of_a_memory_and_its_backups_counts_once(filled: Path) -> None:
    """All tombstones are read anew for each key."""
    backup(filled)
    other = keyfile.key_path(backup(filled))
    assert arrival.keys_beside(filled) == [keyfile.known(keyfile.key_path(filled))]
    other.write_bytes(b"k" * 32)
    assert set(arrival.keys_beside(filled)) == {keyfile.known(keyfile.key_path(filled)), b"k" * 32}


def test_another_key_beside_the_target_is_kept(filled: Path, tmp_path: Path) -> None:
    target = tmp_path / "mine.db"
    keyfile.key_path(target).write_bytes(b"k" * 32)
    keyfile.key_path(target).chmod(0o600)
    with pytest.raises(UsageError, match=r"mine\.db\.key"):
        backup(filled, target)
    assert keyfile.key_path(target).read_bytes() == b"k" * 32 and not target.exists()


@pytest.mark.parametrize("name", ["mine.db", "mine.db.key"])
def test_no_link_is_followed(filled: Path, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / name).symlink_to(victim)
    with pytest.raises(ClawmarkError, match=r"mine\.db"):
        backup(filled, tmp_path / "mine.db")
    assert victim.read_text() == "precious"


@pytest.fixture(params=[0o000, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_every_file_is_the_owners_alone(filled: Path, umask: int) -> None:
    made = backup(filled)
    restore(filled, made)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in filled.parent.iterdir()}
    assert len(modes) >= 6 and set(modes.values()) == {0o600}


def test_without_a_memory_there_is_nothing_to_back_up(db_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to back up"):
        backup(db_path)
    assert not db_path.parent.exists()


def test_a_damaged_memory_is_not_backed_up(filled: Path, tmp_path: Path) -> None:
    spoil(filled, "page")
    with pytest.raises(DatabaseDamaged, match=r"memory\.db"):
        backup(filled, tmp_path / "mine.db")
    assert not list(tmp_path.glob("mine.db*"))


def test_a_linked_memory_is_copied_and_restored_where_it_really_is(filled: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(filled)
    made = backup(link)
    assert made.parent == filled.parent
    restore(link, made)
    assert link.is_symlink() and beside(filled) >= {f"memory.db.replaced-{STAMP}"}


def foreign(path: Path) -> bytes:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    return path.read_bytes()


def test_another_programs_database_is_not_backed_up(tmp_path: Path) -> None:
    path = tmp_path / "theirs" / "state.db"
    path.parent.mkdir()
    before = foreign(path)
    with pytest.raises(DatabaseForeign, match=r"state\.db"):
        backup(path)
    path.write_text("ten years of notes")
    with pytest.raises(DatabaseForeign, match=r"state\.db"):
        backup(path)
    path.write_bytes(before)
    assert beside(path) == {"state.db"}


def test_a_database_of_the_old_clawmark_is_backed_up(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    fixture("typescript").sample(path)
    before = content(path)
    made = backup(path)
    assert content(made) == content(path) == before


def test_schema_1_of_another_program_is_not_backed_up(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    fixture("typescript").sample(path)
    query(path, "DROP TABLE message_vectors")
    with pytest.raises(DatabaseForeign, match=r"old\.db"):
        backup(path)


def test_a_folder_that_is_missing_is_named(filled: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        backup(filled, tmp_path / "nowhere" / "mine.db")


# --- what comes back --------------------------------------------------------------------------------------------------


def test_a_restored_memory_is_what_it_was(filled: Path, log: Log) -> None:
    before, facts_before = dump(filled), values(filled)
    made = backup(filled)
    with open_memory(filled, log) as memory:
        memory.set("pref.editor", "Emacs")
        log.say("something new about marzipan", "s9")
        log.delete("s1")
        memory.sync()
        assert dump(filled) != before
    said = restore(filled, made)
    assert dump(filled) == before
    assert values(filled) == facts_before
    assert f"{len(facts_before)} facts" in said
    for pragma, value in {"journal_mode": "wal", "application_id": db.APPLICATION_ID, "integrity_check": "ok"}.items():
        assert query(filled, f"PRAGMA {pragma}") == [(value,)]


def test_a_restored_memory_goes_on(filled: Path, log: Log) -> None:
    restore(filled, backup(filled))
    with open_memory(filled, log) as memory:
        log.say("an utterance about marzipan made after the restore", "s9")
        memory.sync()
        assert [found.ref[:2] for found in recalled(memory, "marzipan")][:1] == ["s9"]
        memory.set("pref.tea", "black")
    assert query(filled, "PRAGMA foreign_key_check") == []


def test_what_is_replaced_is_set_aside_whole(filled: Path) -> None:
    made = backup(filled)
    query(filled, "UPDATE facts SET value = 'Emacs' WHERE key = 'pref.editor'")
    before = content(filled)
    said = restore(filled, made)
    aside = filled.with_name(f"memory.db.replaced-{STAMP}")
    assert content(aside) == before
    assert keyfile.known(keyfile.key_path(aside)) == keyfile.known(keyfile.key_path(filled))
    assert str(aside) in said


def test_a_restore_can_be_undone(filled: Path) -> None:
    made = backup(filled)
    query(filled, "UPDATE facts SET value = 'Emacs' WHERE key = 'pref.editor'")
    restore(filled, made)
    restore(filled, filled.with_name(f"memory.db.replaced-{STAMP}"))
    assert values(filled)["pref.editor"] == "Emacs"


def test_a_restore_onto_an_empty_machine(filled: Path, tmp_path: Path) -> None:
    made = backup(filled, tmp_path / "mine.db")
    new = tmp_path / "new" / "deep" / "memory.db"
    restore(new, made)
    assert dump(new) == dump(filled) and values(new) == values(filled)
    assert keyfile.known(keyfile.key_path(new)) == keyfile.known(keyfile.key_path(filled))
    assert stat.S_IMODE(new.parent.stat().st_mode) == 0o700
    assert not [name for name in beside(new) if "restoring" in name or "part" in name or "replaced" in name]


def test_an_open_memory_sees_what_was_restored(filled: Path, log: Log) -> None:
    made = backup(filled)
    with open_memory(filled, log) as memory:
        log.say("an utterance about marzipan that the backup does not know", "s9")
        memory.sync()
        memory.set("pref.editor", "Emacs")
        assert recalled(memory, "marzipan")
        restore(filled, made)
        assert {f.key: f.value for f in memory.facts()}["pref.editor"] == "Helix"
        assert not [found for found in recalled(memory, "marzipan") if "marzipan" in found.excerpt]
        memory.set("pref.tea", "black")
        memory.sync()
        assert recalled(memory, "marzipan")
    assert values(filled)["pref.tea"] == "black"


def test_vectors_held_in_memory_are_told_apart_from_the_restored(filled: Path) -> None:
    query(
        filled,
        "INSERT INTO spaces (model, dimension, document_prefix, query_prefix, probe, generation, created_at)"
        " VALUES ('m', 8, '', '', '', 7, '')",
    )
    made = backup(filled)
    query(filled, "UPDATE spaces SET generation = 12")
    restore(filled, made)
    assert query(filled, "SELECT generation FROM spaces") == [(13,)]


def test_the_numbers_of_events_go_on(filled: Path, log: Log) -> None:
    made = backup(filled)
    with open_memory(filled, log) as memory:
        for number in range(20):
            memory.set("pref.counter", f"value {number}")
    ((before,),) = query(filled, "SELECT max(id) FROM memory_events")
    restore(filled, made)
    ((after, kind),) = query(filled, "SELECT id, event_type FROM memory_events ORDER BY id DESC LIMIT 1")
    assert after > before and kind == "restore"
    assert recovery.ensure(filled, Clock()) == []  # it is not taken for a database that lost its last changes
    assert "pref.counter" not in values(filled)


def test_the_restore_event_names_the_backup(filled: Path) -> None:
    made = backup(filled)
    restore(filled, made)
    ((detail,),) = query(filled, "SELECT detail FROM memory_events WHERE event_type = 'restore'")
    assert made.name in detail


def test_the_sidecar_shows_what_was_restored(filled: Path, log: Log) -> None:
    made = backup(filled)
    with open_memory(filled, log) as memory:
        memory.set("pref.editor", "Emacs")
    restore(filled, made)
    found = sidecar.read(filled)
    assert found is not None
    assert {row["key"]: row["value"] for row in found.facts} == values(filled)


def test_an_older_schema_is_brought_up_to_date(db_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    older = tmp_path / "older.db"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:1])
        patch.setattr(migrations, "LATEST", migrations.MIGRATIONS[0][0])
        opened(older)
    restore(db_path, older)
    assert query(db_path, "SELECT max(version) FROM schema_version") == [(migrations.LATEST,)]
    assert query(older, "SELECT max(version) FROM schema_version") == [(2,)]


def test_a_database_of_the_old_clawmark_is_upgraded(filled: Path, tmp_path: Path, log: Log) -> None:
    fixture("typescript").sample(tmp_path / "old.db")
    before = (tmp_path / "old.db").read_bytes()
    restore(filled, tmp_path / "old.db")
    assert values(filled) == {"pref.editor": "Helix", "project.boat": "The boat is called Sjöbris"}
    assert (tmp_path / "old.db").read_bytes() == before
    secret = keyfile.secret(keyfile.key_path(filled))
    hashes = {row[0] for row in query(filled, "SELECT hash FROM tombstones")}
    assert {h for _, h in tombstones.hashes(secret, "shared", "user.landlord", "Mr Ebersbach")} <= hashes
    assert not keyfile.key_path(tmp_path / "old.db").exists()


def test_pages_of_another_size_are_restored(filled: Path, tmp_path: Path) -> None:
    made = backup(filled, tmp_path / "mine.db")
    query(made, "PRAGMA page_size = 8192")
    connection = apsw.Connection(str(made))
    connection.execute("PRAGMA page_size = 8192")
    connection.execute("VACUUM")
    connection.close()
    assert query(made, "PRAGMA page_size") == [(8192,)]
    before = dump(filled)
    restore(filled, made)
    assert dump(filled) == before


# --- what stays forgotten ---------------------------------------------------------------------------------------------


CANARY = "zqcanaryxenon7731"


def test_what_was_forgotten_since_the_backup_stays_forgotten(filled: Path, log: Log) -> None:
    with open_memory(filled, log) as memory:
        memory.set("user.address", f"{CANARY} street 3")
        memory.set("user.address", f"{CANARY} street 4")
    made = backup(filled)
    with open_memory(filled, log) as memory:
        memory.forget("user.address")
    hashes = query(filled, "SELECT hash FROM tombstones")
    said = restore(filled, made)
    assert "user.address" not in values(filled)
    assert residue(filled.parent, CANARY).keys() == {made.name}
    assert set(hashes) <= set(query(filled, "SELECT hash FROM tombstones"))
    assert "forgotten since is not in it: 1 fact." in said
    assert values(filled).keys() == {"pref.editor", "user.city"}


def test_what_the_backup_never_knew_stays_forgotten(filled: Path, log: Log) -> None:
    made = backup(filled)
    with open_memory(filled, log) as memory:
        memory.set("user.address", f"{CANARY} street 4")
        memory.forget("user.address")
    hashes = set(query(filled, "SELECT hash, kind, created_at, expires_at FROM tombstones"))
    restore(filled, made)
    assert hashes and hashes <= set(query(filled, "SELECT hash, kind, created_at, expires_at FROM tombstones"))


def test_what_was_forgotten_a_second_time_stays_forgotten(filled: Path, log: Log) -> None:
    """The backup knows of the first time alone, and what was said in between counts as said after it."""
    clock = Clock()
    said = f"The cottage by the lake is called {CANARY}."
    log.say(said)
    with open_memory(filled, log, clock=clock) as memory:
        memory.sync()
        memory.erase(Forgetting(query=CANARY))
        made = backup(filled)
        log.say(said, at=clock.now + timedelta(days=1))
        clock.advance(days=2)
        memory.sync()
        assert recalled(memory, CANARY)
        memory.erase(Forgetting(query=CANARY))
    clock.advance(days=1)
    restore(filled, made, clock)
    with open_memory(filled, log, clock=clock) as memory:
        memory.sync()
        assert not recalled(memory, CANARY)
    assert filled.name not in residue(filled.parent, CANARY)


def test_a_fact_that_was_hidden_is_erased_too(filled: Path, log: Log) -> None:
    with open_memory(filled, log) as memory:
        memory.set("user.address", f"{CANARY} street 4")
    query(filled, "UPDATE facts SET is_deleted = 1 WHERE key = 'user.address'")
    made = backup(filled)
    with open_memory(filled, log) as memory:
        memory.forget("user.address")
    restore(filled, made)
    assert residue(filled.parent, CANARY).keys() == {made.name}


def test_a_forgotten_value_is_erased_under_another_key(filled: Path, log: Log) -> None:
    with open_memory(filled, log) as memory:
        memory.set("user.home", f"{CANARY} street 4")
        memory.set("user.address", f"{CANARY}  Street 4")
    made = backup(filled)
    with open_memory(filled, log) as memory:
        memory.set("user.home", "somewhere else")
        memory.forget("user.address")
    restore(filled, made)
    assert "user.home" not in values(filled)
    assert filled.name not in residue(filled.parent, CANARY)
    secret = keyfile.secret(keyfile.key_path(filled))
    ((_, of_key), (_, of_value)) = tombstones.hashes(secret, "shared", "user.home", f"{CANARY} street 4")
    hashes = {row[0] for row in query(filled, "SELECT hash FROM tombstones")}
    assert of_key not in hashes and of_value in hashes


def forgotten_by_query(memory: Memory) -> None:
    memory.erase(Forgetting(query=CANARY))


def forgotten_with_its_conversation(memory: Memory) -> None:
    memory.erase(Forgetting(conversation="old"))


@pytest.mark.parametrize("forget", [forgotten_by_query, forgotten_with_its_conversation])
@pytest.mark.parametrize("is_said_in_backup", [False, True])
def test_an_earlier_value_that_was_forgotten_stays_forgotten_and_every_other_comes_back(
    db_path: Path, log: Log, clock: Clock, forget: Callable[[Memory], None], is_said_in_backup: bool
) -> None:
    """In the backup it is what the fact says, or what it once said."""
    with open_memory(db_path, log, clock=clock) as memory:
        for day, (session, value) in enumerate((("first", "Lisbon"), ("old", CANARY), ("new", "Porto"))):
            if is_said_in_backup and session == "new":
                made = transfer.backup(db_path, None, clock)
            message = log.say(f"I live in {value}.", session, at=LATER + timedelta(days=day))
            clock.now = message.at
            memory.sync()
            memory.set("user.city", value, "main", typed=Said(message.text, message.at), session=session)
            if forget is forgotten_by_query:
                memory.set("pref.hand", value)
        clock.advance(hours=1)
        if not is_said_in_backup:
            made = transfer.backup(db_path, None, clock)
        forget(memory)
    restore(db_path, made, clock)
    assert residue(db_path.parent, CANARY).keys() <= {made.name}
    assert values(db_path).get("user.city") == (None if is_said_in_backup else "Porto")
    told = query(
        db_path, "SELECT new_value FROM memory_events WHERE memory_key = 'user.city' AND new_value IS NOT NULL"
    )
    assert [value for (value,) in told] == (["Lisbon"] if is_said_in_backup else ["Lisbon", "Porto"])
    sessions = {row for (row,) in query(db_path, "SELECT session FROM evidence")}
    assert sessions == ({"first"} if is_said_in_backup else {"first", "new"})
    with open_memory(db_path, log, clock=clock) as memory:
        assert memory.set("user.city", "Ghent", "main").value == "Ghent"
        memory.sync()
        assert not residue(db_path, CANARY)


def test_a_key_of_which_one_earlier_value_was_forgotten_comes_back_with_the_others(
    db_path: Path, log: Log, clock: Clock
) -> None:
    with open_memory(db_path, log, clock=clock) as memory:
        for value in (CANARY, "Emacs"):
            memory.set("user.editor", value, "main")
            clock.advance(days=1)
        made = transfer.backup(db_path, None, clock)
        clock.advance(days=1)
        one = memory.propose("set", "pref.tool", "Helix", "main", origin="agent", reason="x", against="user.editor")
        memory.accept(one.name, way="supersede")
        memory.erase(Forgetting(query=CANARY))
        assert "forget" not in [event.event_type for event in memory.events()]
    restore(db_path, made, clock)
    assert values(db_path) == {"user.editor": "Emacs"}
    with open_memory(db_path, log, clock=clock) as memory:
        memory.forget("user.editor")
        assert memory.events(1)[0].event_type == "forget"
    restore(db_path, made, clock)
    assert values(db_path) == {}


def test_an_agent_may_state_anew_what_no_forgetting_was_about(db_path: Path, log: Log, clock: Clock) -> None:
    with open_memory(db_path, log, clock=clock) as memory:
        memory.set("user.editor", CANARY, "main", writer="agent")
        memory.set("user.editor", "Emacs", "main", writer="agent")
        one = memory.propose("set", "pref.tool", "Helix", "main", origin="agent", reason="x", against="user.editor")
        memory.accept(one.name, way="supersede")
        memory.erase(Forgetting(query=CANARY))
        assert memory.set("user.editor", "Nano", "main", writer="agent").value == "Nano"


def test_what_a_person_wrote_of_a_rejection_stays_forgotten(db_path: Path, log: Log, clock: Clock) -> None:
    with open_memory(db_path, log, clock=clock) as memory:
        one = memory.propose("set", "user.ill", CANARY, "main", origin="agent", reason="x")
        memory.reject(one.name, f"{CANARY} is private")
        memory.set("user.note", CANARY, "main")
        made = transfer.backup(db_path, None, clock)
        clock.advance(minutes=1)
        memory.forget("user.note")
    restore(db_path, made, clock)
    assert residue(db_path.parent, CANARY).keys() == {made.name}


def test_what_was_set_anew_after_it_was_forgotten_is_kept(filled: Path, log: Log) -> None:
    made = backup(filled)
    with open_memory(filled, log) as memory:
        memory.forget("user.city")
        memory.set("user.city", "gothenburg")
    restore(filled, made)
    assert values(filled)["user.city"] == "Gothenburg"


def test_a_value_from_before_a_forgotten_one_stays_away(filled: Path, log: Log) -> None:
    made, clock = backup(filled), Clock()
    clock.advance(hours=1)
    with open_memory(filled, log, clock=clock) as memory:
        memory.set("user.city", "Umeå")
        memory.forget("user.city")
        memory.set("user.city", "Borås")
    restore(filled, made, clock)
    assert "user.city" not in values(filled)


def test_with_another_key_what_was_forgotten_is_erased_and_the_line_says_so(
    filled: Path, log: Log, tmp_path: Path
) -> None:
    made = backup(filled, tmp_path / "mine.db")
    other = b"o" * 32
    keyfile.key_path(made).write_bytes(other)
    own = keyfile.known(keyfile.key_path(filled))
    with open_memory(filled, log) as memory:
        memory.forget("user.city")
    kept = query(filled, "SELECT hash FROM tombstones")
    said = restore(filled, made)
    assert "user.city" not in values(filled)
    assert "another key; tombstones of what was forgotten here under the one before were kept" in said
    assert f"memory.db.replaced-{STAMP}.key" in said
    assert kept and set(kept) <= set(query(filled, "SELECT hash FROM tombstones"))
    assert keyfile.known(keyfile.key_path(filled)) == other
    assert keyfile.known(keyfile.key_path(filled.with_name(f"memory.db.replaced-{STAMP}"))) == own
    hashes = {row[0] for row in query(filled, "SELECT hash FROM tombstones")}
    assert {h for _, h in tombstones.hashes(other, "shared", "user.city", "Gothenburg")} <= hashes


def test_with_another_key_a_forgotten_value_is_erased_wherever_it_stands(
    filled: Path, log: Log, tmp_path: Path
) -> None:
    with open_memory(filled, log) as memory:
        memory.set("user.home", f"{CANARY} street 4")
        memory.set("user.address", f"{CANARY} street 4")
    made = backup(filled, tmp_path / "mine.db")
    keyfile.key_path(made).write_bytes(b"o" * 32)
    with open_memory(filled, log) as memory:
        memory.set("user.home", "somewhere else")
        memory.forget("user.address")
    restore(filled, made)
    assert not {"user.home", "user.address"} & values(filled).keys()
    assert filled.name not in residue(filled.parent, CANARY)


def test_restoring_twice_with_another_key_brings_nothing_back(filled: Path, log: Log, tmp_path: Path) -> None:
    made = backup(filled, tmp_path / "mine.db")
    keyfile.key_path(made).write_bytes(b"o" * 32)
    with open_memory(filled, log) as memory:
        memory.forget("user.city")
    for _ in range(3):
        restore(filled, made)
        assert "user.city" not in values(filled)


def test_tombstones_outlive_another_key_without_a_trail(filled: Path, log: Log, tmp_path: Path) -> None:
    first, other = backup(filled, tmp_path / "first.db"), backup(filled, tmp_path / "other.db")
    query(other, "DELETE FROM facts")
    keyfile.key_path(other).write_bytes(b"o" * 32)
    with open_memory(filled, log) as memory:
        memory.forget("user.city")
    spoil(filled, "header")
    recovery.ensure(filled, Clock())
    assert not query(filled, "SELECT 1 FROM memory_events WHERE event_type = 'forget'")
    restore(filled, other)
    restore(filled, first)
    assert values(filled) == {"pref.editor": "Helix"}


def test_with_the_key_lost_and_the_right_one_beside_the_backup_nothing_is_lost_or_noted(
    filled: Path, log: Log, tmp_path: Path
) -> None:
    made = backup(filled, tmp_path / "mine.db")
    with open_memory(filled, log) as memory:
        memory.set("user.address", f"{CANARY} street 4")
        memory.forget("user.address")
    hashes = set(query(filled, "SELECT hash, kind FROM tombstones"))
    keyfile.key_path(filled).unlink()
    said = restore(filled, made)
    assert hashes and hashes == set(query(filled, "SELECT hash, kind FROM tombstones"))
    assert "Note" not in said


@pytest.mark.parametrize("given", [None, b"o" * 32])
def test_with_the_key_lost_and_another_one_beside_the_backup_the_line_says_so(
    filled: Path, log: Log, tmp_path: Path, given: bytes | None
) -> None:
    made = backup(filled, tmp_path / "mine.db")
    with open_memory(filled, log) as memory:
        memory.forget("user.city")
    keyfile.key_path(filled).unlink()
    keyfile.key_path(made).unlink()
    if given:
        files.replace(keyfile.key_path(made), given, tmp_path / "draft")
    said = restore(filled, made)
    assert "the key of this memory was missing" in said
    assert values(filled) == {"pref.editor": "Helix"}  # the trail knows


def test_what_was_said_anew_under_another_key_has_no_tombstone_once_the_first_is_back(
    filled: Path, log: Log, tmp_path: Path
) -> None:
    first, other = backup(filled, tmp_path / "first.db"), backup(filled, tmp_path / "other.db")
    keyfile.key_path(other).write_bytes(b"o" * 32)
    with open_memory(filled, log) as memory:
        memory.forget("user.city")
    restore(filled, other)
    with open_memory(filled, log) as memory:
        memory.set("user.city", "Gothenburg")
    restore(filled, first)
    assert values(filled)["user.city"] == "Gothenburg"
    secret = keyfile.secret(keyfile.key_path(filled))
    assert secret == keyfile.known(keyfile.key_path(first))
    own = {h for _, h in tombstones.hashes(secret, "shared", "user.city", "Gothenburg")}
    assert not own & {row[0] for row in query(filled, "SELECT hash FROM tombstones")}


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE facts SET updated_at = 'yesterday'",
        "UPDATE facts SET value = CAST(x'ff' AS TEXT)",
        "UPDATE memory_events SET created_at = 'yesterday'",
        "INSERT INTO tombstones (hash, kind, created_at) VALUES (x'00', 'key', 'yesterday')",
    ],
)
def test_a_memory_with_rows_that_nobody_can_read_can_be_replaced(filled: Path, log: Log, sql: str) -> None:
    made = backup(filled)
    with open_memory(filled, log) as memory:
        memory.forget("user.city")
    query(filled, sql)
    restore(filled, made)
    assert values(filled) == {"pref.editor": "Helix"}
    assert recovery.ensure(filled, Clock()) == []
    with open_memory(filled, log) as memory:
        assert [fact.key for fact in memory.facts()] == ["pref.editor"]


def test_a_damaged_database_is_set_aside_and_its_sidecar_says_what_was_forgotten(filled: Path, log: Log) -> None:
    made = backup(filled)
    with open_memory(filled, log) as memory:
        memory.forget("user.city")
    connection = db.connect(filled)
    sidecar.write(connection, filled, LATER)
    db.checkpoint(connection)
    connection.close()
    damaged = b"garbage" * 2000
    filled.write_bytes(damaged)
    restore(filled, made)
    assert values(filled) == {"pref.editor": "Helix"}
    assert filled.with_name(f"memory.db.replaced-{STAMP}").read_bytes() == damaged
    assert recovery.ensure(filled, Clock()) == []


def test_without_a_sidecar_the_line_says_what_could_not_be_known(filled: Path) -> None:
    made = backup(filled)
    sidecar.discard(filled)
    filled.write_bytes(b"garbage" * 2000)
    assert "could not be read" in restore(filled, made)


def test_what_a_killed_recovery_left_goes_with_a_restore(filled: Path, tmp_path: Path) -> None:
    made, left = backup(filled, tmp_path / "mine.db"), filled.with_name(f"memory.db.rebuilt-{STAMP}")
    shutil.copy(filled, left)
    spoil(made, "page")
    with pytest.raises(DatabaseDamaged):
        restore(filled, made)
    assert left.exists()
    made.unlink()
    keyfile.key_path(made).unlink()
    restore(filled, backup(filled, made))
    assert not left.exists()


def test_a_log_without_its_database_is_not_read_into_the_new_one(filled: Path, log: Log, tmp_path: Path) -> None:
    made = backup(filled, tmp_path / "mine.db")
    connection = apsw.Connection(str(filled))
    connection.execute("UPDATE facts SET value = 'Emacs'")
    wal = filled.with_name("memory.db-wal").read_bytes()
    connection.close()
    filled.unlink()
    filled.with_name("memory.db-wal").write_bytes(wal)
    restore(filled, made)
    assert values(filled)["pref.editor"] == "Helix"
    assert filled.with_name(f"memory.db.replaced-{STAMP}-wal").read_bytes() == wal


# --- what is refused --------------------------------------------------------------------------------------------------


def spoil(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "page":
        data[4096 * 3 : 4096 * 6] = b"\xff" * 4096 * 3
    elif how == "header":
        data[:100] = b"\x00" * 100
    elif how == "torn":
        del data[len(data) // 2 :]
    elif how == "empty":
        data.clear()
    elif how == "text":
        data[:] = b"{not a sidecar"
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["page", "header", "torn", "empty", "text"])
def test_a_damaged_backup_is_refused_and_nothing_changes(filled: Path, tmp_path: Path, how: str) -> None:
    made = backup(filled, tmp_path / "mine.db")
    spoil(made, how)
    before, names = content(filled), beside(filled)
    with pytest.raises(DatabaseDamaged, match=r"mine\.db"):
        restore(filled, made)
    assert (content(filled), beside(filled)) == (before, names)


WRONG = {
    "time of a fact": ("UPDATE facts SET updated_at = 'yesterday'", "facts"),
    "time without offset": ("UPDATE facts SET observed_at = '2026-01-01'", "facts"),
    "writer": ("UPDATE facts SET source = 'nobody'", "facts"),
    "confidence": ("UPDATE facts SET confidence = 'much'", "facts"),
    "key": ("UPDATE facts SET key = 'pref.x' || char(10) || 'y' WHERE key = 'pref.editor'", r"pref\.x\\ny"),
    "scope": ("UPDATE facts SET scope = 'a' || char(27) || '[2J' WHERE key = 'pref.editor'", r"pref\.editor"),
    "time of an event": ("UPDATE memory_events SET created_at = 'yesterday'", "memory_events"),
    "tombstone": ("INSERT INTO tombstones (hash, kind, created_at) VALUES ('text', 'key', 'yesterday')", "tombstones"),
    "no UTF-8": ("UPDATE facts SET value = CAST(x'ff' AS TEXT)", "facts"),
    "lexicon": ("DELETE FROM lexicon WHERE rowid = 1", "lexicon"),
    "trigger": ("CREATE TRIGGER t AFTER INSERT ON memory_events BEGIN DELETE FROM facts; END", "the trigger 't'"),
    "view": ("CREATE VIEW v AS SELECT 1", "the view 'v'"),
    "table": ("CREATE TABLE more (x)", "the table 'more'"),
    "index": ("CREATE INDEX one ON memory_events (source)", "the index 'one'"),
    "table is missing": ("DROP TABLE facts", "the table 'facts' is missing"),
    "index is missing": ("DROP INDEX memory_events_by_key", "memory_events_by_key' is missing"),
    "column": ("ALTER TABLE facts ADD COLUMN more", "the table 'facts' is not as"),
    "step": ("DELETE FROM schema_version WHERE version = 6", "evidence"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_backup_that_can_be_no_memory_is_refused_in_a_line_that_says_why(
    filled: Path, tmp_path: Path, wrong: str
) -> None:
    made = backup(filled, tmp_path / "mine.db")
    sql, named = WRONG[wrong]
    query(made, sql)
    check_refused(filled, made, named)


def test_a_view_in_the_place_of_a_table_is_refused(filled: Path, tmp_path: Path) -> None:
    made = backup(filled, tmp_path / "mine.db")
    query(made, "DROP TABLE tombstones")
    query(made, "CREATE VIEW tombstones AS SELECT x'00' AS hash, 'key' AS kind, '' AS created_at, NULL AS expires_at")
    check_refused(filled, made, "the view 'tombstones'")


def check_refused(filled: Path, made: Path, named: str) -> None:
    before, names, stored = content(filled), beside(filled), made.read_bytes()
    with pytest.raises(DatabaseDamaged, match=rf"mine\.db.*{named}") as refused:
        restore(filled, made)
    assert "nothing was changed" in str(refused.value) and "\n" not in str(refused.value)
    assert "restoring" not in str(refused.value)
    assert (content(filled), beside(filled), made.read_bytes()) == (before, names, stored)


def test_a_newer_backup_is_refused(filled: Path, tmp_path: Path) -> None:
    made = backup(filled, tmp_path / "mine.db")
    query(made, "INSERT INTO schema_version VALUES (99, 'x')")
    before, names = content(filled), beside(filled)
    with pytest.raises(DatabaseNewer, match="99"):
        restore(filled, made)
    assert (content(filled), beside(filled)) == (before, names)


@pytest.mark.parametrize("version", [None, 1, 3])
def test_another_programs_database_is_refused(filled: Path, tmp_path: Path, version: int | None) -> None:
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE facts (x)")
    if version:
        connection.execute("CREATE TABLE schema_version (version INTEGER, applied_at TEXT)")
        connection.execute("INSERT INTO schema_version VALUES (?, '')", (version,))
    connection.close()
    before, names = content(filled), beside(filled)
    with pytest.raises(DatabaseForeign, match=r"other\.db"):
        restore(filled, path)
    assert (content(filled), beside(filled)) == (before, names)


def test_another_programs_database_is_not_replaced(filled: Path, tmp_path: Path) -> None:
    made = backup(filled, tmp_path / "mine.db")
    other = tmp_path / "other" / "state.db"
    other.parent.mkdir()
    before = foreign(other)
    other.chmod(0o644)
    lock = other.with_name("state.db.lock")
    lock.write_text("4242")
    lock.chmod(0o644)
    for source in (made, sidecar.path_of(filled)):
        with pytest.raises(DatabaseForeign, match=r"state\.db"):
            restore(other, source)
        assert other.read_bytes() == before and lock.read_text() == "4242"
        assert {stat.S_IMODE(path.stat().st_mode) for path in (other, lock)} == {0o644}
        assert beside(other) == {"state.db", "state.db.lock"}


def test_a_text_that_is_no_memory_is_not_replaced(filled: Path, tmp_path: Path) -> None:
    made = backup(filled, tmp_path / "mine.db")
    notes = tmp_path / "other" / "notes"
    notes.parent.mkdir()
    notes.write_text("ten years of notes\n" * 100)
    for source in (made, sidecar.path_of(filled)):
        with pytest.raises(DatabaseForeign, match="notes"):
            restore(notes, source)
        assert notes.read_text() == "ten years of notes\n" * 100 and beside(notes) == {"notes"}


def test_the_memory_itself_is_no_backup(filled: Path) -> None:
    with pytest.raises(UsageError, match="itself"):
        restore(filled, filled)


def test_a_backup_that_is_missing_is_named(filled: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.db"):
        restore(filled, tmp_path / "nowhere.db")


def test_a_writer_makes_it_busy(filled: Path, tmp_path: Path) -> None:
    made = backup(filled, tmp_path / "mine.db")
    writer = apsw.Connection(str(filled))
    writer.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseBusy):
        transfer.restore(filled, made, Clock(), 0.2)
    writer.execute("ROLLBACK")
    writer.close()
    assert not [name for name in beside(filled) if "replaced" in name or "restoring" in name]


def test_a_pass_of_the_jobs_makes_it_busy(filled: Path, tmp_path: Path) -> None:
    made = backup(filled, tmp_path / "mine.db")
    with db.lease(filled, 1), pytest.raises(DatabaseBusy):
        transfer.restore(filled, made, Clock(), 0.2)


def test_a_reader_does_not_stop_a_restore(filled: Path, tmp_path: Path) -> None:
    made = backup(filled, tmp_path / "mine.db")
    query(filled, "UPDATE facts SET value = 'Emacs' WHERE key = 'pref.editor'")
    reader = apsw.Connection(str(filled))
    reader.execute("BEGIN")
    first = list(reader.execute("SELECT value FROM facts WHERE key = 'pref.editor'"))
    restore(filled, made)
    assert list(reader.execute("SELECT value FROM facts WHERE key = 'pref.editor'")) == first == [("Emacs",)]
    reader.execute("COMMIT")
    assert list(reader.execute("SELECT value FROM facts WHERE key = 'pref.editor'")) == [("Helix",)]
    reader.close()


def test_a_link_in_the_place_of_the_draft_is_not_followed(filled: Path, tmp_path: Path) -> None:
    made, victim = backup(filled, tmp_path / "mine.db"), tmp_path / "victim"
    victim.write_text("precious")
    filled.with_name("memory.db.restoring").symlink_to(victim)
    filled.with_name(f"memory.db.replaced-{STAMP}").symlink_to(victim)
    restore(filled, made)
    assert victim.read_text() == "precious"


# --- a kill -----------------------------------------------------------------------------------------------------------

KILLED = (
    DYING
    + """
from clawmark import erase, transfer
from clawmark.store import copy, db, events, files, sidecar
place, source = Path(sys.argv[1]), Path(sys.argv[2])
for module, name in [
    (os, "link"), (os, "rename"), (os, "replace"), (events, "add"), (erase, "finish"), (transfer, "_present"),
    (copy, "copy_database"), (copy, "write_new"), (copy, "exchange"), (copy, "empty_log"), (files, "replace"),
    (copy, "change_key"), (copy, "settle_key"), (sidecar, "write"),
]:
    setattr(module, name, dying(getattr(module, name)))
transfer.restore(place, source, lambda: datetime(2026, 12, 1, 12, tzinfo=UTC), 5)
os._exit(0)
"""
)


def killed(path: Path, source: Path, step: int) -> bool:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(source), str(step)], capture_output=True, timeout=60, check=False
    )
    assert done.returncode in (0, 9), done.stderr.decode()
    return done.returncode == 9


@pytest.mark.parametrize("state", ["sound", "damaged", "other key"])
def test_a_kill_leaves_the_old_database_or_the_new_one(tmp_path: Path, log: Log, state: str) -> None:
    start = tmp_path / "start" / "memory.db"
    with open_memory(start, log) as memory:
        memory.set("pref.editor", "Helix")
        memory.set("user.address", f"{CANARY} street 4")
    made = backup(start, tmp_path / "mine.db")
    if state == "other key":
        keyfile.key_path(made).write_bytes(b"o" * 32)
    with open_memory(start, log) as memory:
        memory.set("pref.editor", "Emacs")
        memory.forget("user.address")
    connection = db.connect(start)
    sidecar.write(connection, start, LATER)
    db.checkpoint(connection)
    connection.close()
    if state == "damaged":
        start.write_bytes(b"garbage" * 2000)
    own = keyfile.known(keyfile.key_path(start))
    outcomes = set()
    step = 0
    while True:
        step += 1
        path = tmp_path / str(step) / "memory.db"
        shutil.copytree(start.parent, path.parent)
        was_killed = killed(path, made, step)
        copies.finish_key_change(path)
        if state == "other key":
            key = keyfile.known(keyfile.key_path(path))
            assert key == (b"o" * 32 if values(path)["pref.editor"] == "Helix" else own)
            assert not [name for name in beside(path) if ".key.old" in name]
        recovery.ensure(path, Clock())  # brings a damaged one back from its sidecar
        found = values(path)
        assert found in ({"pref.editor": "Emacs"}, {"pref.editor": "Helix"})
        outcomes.add(found["pref.editor"])
        restore(path, made)
        assert values(path) == {"pref.editor": "Helix"}
        assert query(path, "PRAGMA integrity_check") == [("ok",)]
        assert not residue(path.parent, CANARY)
        assert not [name for name in beside(path) if "restoring" in name or ".part" in name]
        if not was_killed:
            break
    assert step > 10 and outcomes == {"Emacs", "Helix"}


def test_a_restore_that_fails_leaves_the_key(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, own = backup(filled, tmp_path / "mine.db"), keyfile.known(keyfile.key_path(filled))
    keyfile.key_path(made).write_bytes(b"o" * 32)
    change = copies.change_key

    def fail(path: Path, key: bytes) -> None:
        change(path, key)
        raise apsw.FullError("no room")

    monkeypatch.setattr(copies, "change_key", fail)
    with pytest.raises(DatabaseUnwritable):
        restore(filled, made)
    assert keyfile.known(keyfile.key_path(filled)) == own
    assert not [name for name in beside(filled) if ".key.old" in name or "restoring" in name]


# --- a sidecar --------------------------------------------------------------------------------------------------------


@pytest.fixture
def kept(filled: Path, tmp_path: Path) -> Path:
    """A sidecar of the filled memory, somewhere else."""
    connection = db.connect(filled)
    sidecar.write(connection, filled, LATER)
    connection.close()
    place = tmp_path / "memory.db.facts-kept"
    place.write_bytes(sidecar.path_of(filled).read_bytes())
    place.chmod(0o600)
    return place


def test_facts_come_back_from_a_sidecar(kept: Path, tmp_path: Path, filled: Path) -> None:
    new = tmp_path / "new" / "memory.db"
    said = restore(new, kept)
    columns = "key, value, confidence, source, created_at, scope, observed_at, reinforced_at"
    assert query(new, f"SELECT {columns} FROM facts ORDER BY key") == query(
        filled, f"SELECT {columns} FROM facts ORDER BY key"
    )
    assert "2 new" in said
    kinds = [row[0] for row in query(new, "SELECT event_type FROM memory_events ORDER BY id")]
    assert kinds == ["create", "create", "restore"]


def test_a_sidecar_replaces_nothing_that_was_said_later(kept: Path, filled: Path, log: Log) -> None:
    clock = Clock()
    clock.advance(days=1)
    with open_memory(filled, log, clock=clock) as memory:
        memory.set("pref.editor", "Emacs")
    restore(filled, kept)
    assert values(filled) == {"pref.editor": "Emacs", "user.city": "Gothenburg"}


def test_a_sidecar_replaces_what_was_said_earlier_or_by_a_weaker_writer(kept: Path, filled: Path) -> None:
    query(filled, "UPDATE facts SET value = 'Vim', reinforced_at = '2020-01-01T00:00:00+00:00' WHERE key LIKE 'pref%'")
    query(
        filled,
        "UPDATE facts SET value = 'Borås', source = 'extracted', reinforced_at = '2027-01-01T00:00:00+00:00'"
        " WHERE key = 'user.city'",
    )
    restore(filled, kept)
    assert values(filled) == {"pref.editor": "Helix", "user.city": "Gothenburg"}


def test_a_sidecar_brought_in_twice_changes_nothing_more(kept: Path, tmp_path: Path) -> None:
    new = tmp_path / "new" / "memory.db"
    restore(new, kept)
    before = query(new, "SELECT * FROM facts ORDER BY key")
    restore(new, kept)
    assert query(new, "SELECT * FROM facts ORDER BY key") == before
    assert query(new, "SELECT count(*) FROM memory_events WHERE event_type = 'reinforce'") == [(0,)]


def test_a_sidecar_brings_nothing_forgotten_back(kept: Path, filled: Path, log: Log) -> None:
    with open_memory(filled, log) as memory:
        memory.forget("user.city")
    restore(filled, kept)
    assert values(filled) == {"pref.editor": "Helix"}


def test_a_sidecar_brings_nothing_forgotten_back_where_the_key_is_lost(kept: Path, filled: Path, log: Log) -> None:
    with open_memory(filled, log) as memory:
        memory.forget("user.city")
    keyfile.key_path(filled).unlink()
    assert "1 forgotten" in restore(filled, kept)
    assert values(filled) == {"pref.editor": "Helix"}
    assert not residue(filled.parent, "Gothenburg")
    assert keyfile.known(keyfile.key_path(filled)) is None  # a new one would only look like the one that is lost


def test_what_was_said_after_it_was_forgotten_comes_back_from_a_sidecar(
    kept: Path, filled: Path, log: Log, tmp_path: Path
) -> None:
    clock = Clock()
    with open_memory(filled, log, clock=clock) as memory:
        memory.forget("user.city")
        clock.advance(hours=1)
        memory.set("user.city", "Umeå")
    later = tmp_path / "later.facts"
    later.write_bytes(sidecar.path_of(filled).read_bytes())
    query(filled, "DELETE FROM facts WHERE key = 'user.city'")
    keyfile.key_path(filled).unlink()
    restore(filled, later, clock)
    assert values(filled)["user.city"] == "Umeå"


def test_tombstones_of_a_sidecar_are_taken_over(filled: Path, log: Log, tmp_path: Path) -> None:
    with open_memory(filled, log) as memory:
        memory.forget("user.city")
        memory.forget("pref.editor")
    connection = db.connect(filled)
    sidecar.write(connection, filled, LATER)
    connection.close()
    place = tmp_path / "kept.facts"
    place.write_bytes(sidecar.path_of(filled).read_bytes())
    before = set(query(filled, "SELECT hash FROM tombstones"))
    query(filled, "DELETE FROM tombstones")
    with open_memory(filled, log) as memory:
        memory.set("user.city", "Gothenburg")
    restore(filled, place)
    secret = keyfile.secret(keyfile.key_path(filled))
    live = {(h,) for _, h in tombstones.hashes(secret, "shared", "user.city", "Gothenburg")}
    left = set(query(filled, "SELECT hash FROM tombstones"))
    assert left < before and not left & live
    with db.opened(filled) as connection:
        known = tombstones.Tombstones(connection, secret)
    assert known.covers(["shared"], "pref.editor", "Helix") and not known.covers(["shared"], "user.city", "Gothenburg")


def test_a_torn_sidecar_is_refused(kept: Path, filled: Path) -> None:
    kept.write_bytes(kept.read_bytes()[:-20])
    before = content(filled)
    with pytest.raises(DatabaseDamaged, match=r"memory\.db\.facts-kept"):
        restore(filled, kept)
    assert content(filled) == before


def test_a_memory_survives_its_own_sidecar(filled: Path, log: Log) -> None:
    with open_memory(filled, log):
        pass
    connection = db.connect(filled)
    sidecar.write(connection, filled, LATER)
    connection.close()
    before = values(filled)
    restore(filled, sidecar.path_of(filled))
    assert values(filled) == before


def test_a_copy_of_what_is_restored_is_never_open_to_others(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = backup(filled)
    seen: set[int] = set()
    exchange = copies.copy_database

    def looked_at(*args: Any, **kwargs: Any) -> None:
        exchange(*args, **kwargs)
        seen.update(stat.S_IMODE(p.stat().st_mode) for p in filled.parent.iterdir())

    monkeypatch.setattr(copies, "copy_database", looked_at)
    restore(filled, made)
    assert seen == {0o600}


# --- a sidecar, and the state of the database -------------------------------------------------------------------------


def lose(path: Path) -> bytes:
    """Remove the database; returns what its sidecar says."""
    with db.opened(path) as connection:
        sidecar.write(connection, path, LATER)
    for suffix in ("", *files.COMPANIONS):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return sidecar.path_of(path).read_bytes()


def test_facts_of_elsewhere_overwrite_no_sidecar_of_a_database_that_is_gone(kept: Path, filled: Path, log: Log) -> None:
    with open_memory(filled, log) as memory:
        memory.set("user.boat", "Sira")
    own = lose(filled)
    said = restore(filled, kept)
    assert filled.with_name(f"memory.db.facts-{STAMP}").read_bytes() == own
    assert values(filled) == {"pref.editor": "Helix", "user.city": "Gothenburg"}
    assert f"clawmark restore {filled}.facts-{STAMP}" in said and "2 new" in said
    restore(filled, filled.with_name(f"memory.db.facts-{STAMP}"))
    assert values(filled) == {"pref.editor": "Helix", "user.city": "Gothenburg", "user.boat": "Sira"}


def test_a_database_that_is_gone_comes_back_from_its_own_sidecar(filled: Path) -> None:
    before, own = values(filled), lose(filled)
    restore(filled, sidecar.path_of(filled))
    assert values(filled) == before
    assert filled.with_name(f"memory.db.facts-{STAMP}").read_bytes() == own
    assert recovery.ensure(filled, Clock()) == []


def test_a_torn_sidecar_makes_no_database(kept: Path, filled: Path, tmp_path: Path) -> None:
    kept.write_bytes(kept.read_bytes()[:-20])
    own = lose(filled)
    with pytest.raises(DatabaseDamaged, match=r"memory\.db\.facts-kept"):
        restore(filled, kept)
    assert not filled.exists() and sidecar.path_of(filled).read_bytes() == own


def test_facts_come_into_a_damaged_database_once_it_is_rebuilt(kept: Path, filled: Path, log: Log) -> None:
    with open_memory(filled, log) as memory:
        memory.set("user.boat", "Sira")
    with db.opened(filled) as connection:
        sidecar.write(connection, filled, LATER)
    filled.write_bytes(b"garbage" * 2000)
    assert "set aside" in restore(filled, kept)
    assert values(filled) == {"pref.editor": "Helix", "user.city": "Gothenburg", "user.boat": "Sira"}


def test_rows_of_a_sidecar_that_nobody_could_live_with_stay_out(kept: Path, filled: Path, tmp_path: Path) -> None:
    found = sidecar.load(kept)
    assert found is not None
    found.facts[0]["observed_at"] = "yesterday"
    del found.facts[1]["scope"]
    tables = {"facts": found.facts, "tombstones": [{"hash": "no bytes"}, {"hash": b"h" * 32, "kind": "key"}]}
    kept.write_bytes(sidecar._text(sidecar.State(found.stamp, tables), found.written_at))
    new = tmp_path / "new" / "memory.db"
    assert "2 refused" in restore(new, kept)
    assert values(new) == {} and query(new, "SELECT * FROM tombstones") == []


def test_facts_wait_for_a_pass_of_the_jobs(kept: Path, filled: Path) -> None:
    with db.lease(filled, 1), pytest.raises(DatabaseBusy):
        transfer.restore(filled, kept, Clock(), 0.1)


SCOPES = [
    "main",
    "agent 7",
    "Ägent",
    "a" * 200,
    "a" * 201,
    " ",
    "",
    "a\nb",
    "a\x1b[2Jb",
    "a\u2028b",
    "a\u202eb",
    "\ud800",
]


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_of_a_sidecar_is_one_that_set_would_take(kept: Path, tmp_path: Path, log: Log, scope: str) -> None:
    with open_memory(tmp_path / "other" / "memory.db", log) as memory:
        try:
            memory.set("pref.editor", "Helix", scope=scope)
            is_scope = True
        except UsageError:
            is_scope = False
    assert (keys.scope_fault(scope) is None) == is_scope
    if scope == "\ud800":
        return  # no file can hold it
    found = sidecar.load(kept)
    assert found is not None
    found.facts[0]["scope"] = scope
    kept.write_bytes(sidecar._text(sidecar.State(found.stamp, found.tables), found.written_at))
    new = tmp_path / "new" / "memory.db"
    said = restore(new, kept)
    assert ("refused" not in said) == is_scope
    assert (scope in {row[0] for row in query(new, "SELECT scope FROM facts")}) == is_scope


# --- keys that change -------------------------------------------------------------------------------------------------


def of_another_machine(tmp_path: Path, log: Log) -> Path:
    """A backup with a key of its own."""
    with open_memory(tmp_path / "other" / "memory.db", log) as memory:
        memory.set("pref.shell", "fish")
    return backup(tmp_path / "other" / "memory.db")


def test_a_forgotten_fact_stays_away_after_a_damaged_memory_got_another_key(
    filled: Path, log: Log, tmp_path: Path
) -> None:
    """The trail went with the damaged file; the key that was replaced still stands beside it."""
    old = tmp_path / "old.facts"
    with open_memory(filled, log) as memory:
        shutil.copy(sidecar.path_of(filled), old)
        memory.forget("user.city")
    with filled.open("r+b") as file:
        file.write(b"\xff" * 4096)
    restore(filled, of_another_machine(tmp_path, log))
    assert "1 forgotten" in restore(filled, old)
    assert "user.city" not in values(filled)


def test_a_process_that_goes_on_after_a_killed_restore_forgets_under_the_right_key(
    filled: Path, log: Log, tmp_path: Path
) -> None:
    """The key of the backup is in place, and its database never came."""
    other = of_another_machine(tmp_path, log)
    right = keyfile.secret(keyfile.key_path(filled))
    with open_memory(filled, log) as memory:
        with db.lease(filled, 1):
            copies.change_key(filled, keyfile.secret(keyfile.key_path(other)))
        memory.forget("user.city")
    assert keyfile.secret(keyfile.key_path(filled)) == right
    expected = {hashed for _, hashed in tombstones.hashes(right, "shared", "user.city", "Gothenburg")}
    assert expected <= {row[0] for row in query(filled, "SELECT hash FROM tombstones")}


def test_a_backup_that_a_restore_overtook_is_taken_back(
    filled: Path, log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would hold one database and the key of another."""
    other = of_another_machine(tmp_path, log)
    target = tmp_path / "mine.db"
    copy_database = copies.copy_database

    def overtaken(source: Path, made: Path, **options: Any) -> None:
        if made == target:
            with monkeypatch.context() as calm:
                calm.setattr(copies, "copy_database", copy_database)
                restore(filled, other)
        copy_database(source, made, **options)

    monkeypatch.setattr(copies, "copy_database", overtaken)
    with pytest.raises(DatabaseBusy, match="Try again"):
        backup(filled, target)
    assert not target.exists() and not keyfile.key_path(target).exists()


def test_a_backup_that_could_not_be_restored_says_so_in_few_words(
    filled: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    connection = apsw.Connection(str(filled))
    for number in range(500):
        connection.execute(
            "INSERT INTO facts SELECT ?, value, confidence, source, created_at, updated_at, 0, scope, observed_at,"
            " reinforced_at FROM facts LIMIT 1",
            (f"user.line\n{number}",),
        ).fetchall()
    connection.close()
    backup(filled, tmp_path / "mine.db")
    assert "would refuse it" in caplog.text and len(caplog.text) < 2000


def test_a_session_that_was_deleted_since_stays_so_after_a_restore(db_path: Path, tmp_path: Path, clock: Clock) -> None:
    one, other = Log("one", host="h"), Log("other", host="h")
    said = one.say("the surprise is a kayak", "s1")
    other.copy(said, "s1", ref="s1/entry0001")
    other.say("the boat is called Sira", "s2")

    def memory() -> Memory:
        return Memory.open(Settings(db_path=db_path, embedder="none"), sources=[one, other], clock=clock)

    with memory() as before:
        before.sync()
    made = backup(db_path, tmp_path / "mine.db")
    one.end("s1", "deleted")
    with memory() as now:
        now.sync()
    restore(db_path, made)
    with memory() as after:
        assert not recalled(after, "kayak") and recalled(after, "boat")
        after.sync()
        assert not recalled(after, "kayak") and recalled(after, "boat")
        assert not {"memory.db", "memory.db-wal"} & residue(db_path.parent, "kayak").keys()
