"""Recovery: a damaged file moves aside, facts come back, what was forgotten does not, and no kill changes that."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from helpers import LATER, REPOSITORY, Clock, Log, fact, opened, query, residue

from clawmark import erase
from clawmark.errors import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseError,
    DatabaseForeign,
    DatabaseNewer,
    DatabaseUnwritable,
)
from clawmark.store import db, events, facts, keyfile, lexicon, migrations, recovery, sidecar

STAMP = "20261201T120000Z"
LOGS = recovery.LOG_SUFFIXES


@contextmanager
def writing(path: Path) -> Iterator[apsw.Connection]:
    connection = db.connect(path)
    try:
        yield connection
    finally:
        connection.close()


def ensure(path: Path) -> list[str]:
    return recovery.ensure(path, Clock())


def remember(path: Path, *pairs: tuple[str, str]) -> None:
    with writing(path) as connection, db.transaction(connection, path):
        for key, value in pairs:
            facts.put(connection, fact(key, value))
            events.add(connection, "create", LATER, source="user", scope="shared", key=key, new=value)


def forget(path: Path, key: str) -> None:
    """As a person's forget does it."""
    with writing(path) as connection:
        with db.transaction(connection, path):
            assert erase.erase_fact(connection, key, "shared", keyfile.secret(keyfile.key_path(path)), LATER)
            sidecar.write(connection, path, LATER)
        sidecar.write(connection, path, LATER)
        assert erase.finish(connection, path)


def write_sidecar(path: Path) -> None:
    with writing(path) as connection:
        sidecar.write(connection, path, LATER)


def known(path: Path) -> dict[str, str]:
    """The live facts of a database that must be sound."""
    assert query(path, "PRAGMA integrity_check") == [("ok",)]
    assert query(path, "SELECT max(version) FROM schema_version") == [(migrations.LATEST,)]
    return dict(query(path, "SELECT key, value FROM facts WHERE is_deleted = 0"))


def tombstones(path: Path) -> int:
    return int(query(path, "SELECT count(*) FROM tombstones")[0][0])


def aside(path: Path, suffix: str = "") -> Path:
    return path.with_name(f"{path.name}.damaged-{STAMP}{suffix}")


def names(path: Path) -> set[str]:
    return {p.name.removeprefix(path.name) for p in path.parent.iterdir()}


def contents(path: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in path.parent.iterdir() if not p.name.endswith(".lock")}


FACTS = {"pref.editor": "Helix", "user.city": "Gothenburg", "user.boat": "Sira"}


@pytest.fixture
def filled(db_path: Path) -> Path:
    """A database with facts, one forgotten fact, many words, and a sidecar of now."""
    ensure(db_path)
    remember(db_path, *FACTS.items(), ("user.secret", "zqmarzipan"))
    forget(db_path, "user.secret")
    fill_lexicon(db_path)
    write_sidecar(db_path)
    return db_path


def fill_lexicon(path: Path, count: int = 3000) -> None:
    with writing(path) as connection:
        with db.transaction(connection, path):
            connection.executemany(
                "INSERT INTO lexicon (rowid, own, context) VALUES (?, ?, ?)",
                [(n, f"word{n} common sentence", f"before{n}") for n in range(1, count)],
            )
        assert db.checkpoint(connection)


def pages_of(path: Path, *tables: str) -> list[int]:
    """Where the pages of these tables, or of all others, lie in the file."""
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    found = connection.execute(
        "SELECT pgoffset FROM dbstat WHERE name IN (SELECT value FROM json_each(?)) ORDER BY pageno",
        (json.dumps(tables),),
    ).fetchall()
    connection.close()
    return [offset for (offset,) in found]


def overwrite(path: Path, at: int, content: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(content)


# --- ways to damage a file --------------------------------------------------------------------------------------------


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(20_000))


def short_garbage(path: Path) -> None:
    path.write_bytes(b"x")


def bad_header(path: Path) -> None:
    overwrite(path, 0, b"\0" * 100)


def bad_first_page(path: Path) -> None:
    overwrite(path, 100, b"\xde\xad\xbe\xef" * 900)


def truncated(path: Path) -> None:
    os.truncate(path, 4096 * 3 + 100)


def zero_bytes(path: Path) -> None:
    os.truncate(path, 0)


def emptied(path: Path) -> None:
    """What is left when the whole schema stood in a write-ahead log that was lost."""
    path.unlink()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("DROP TABLE t")
    connection.close()


DAMAGE: list[Callable[[Path], None]] = [
    garbage, short_garbage, bad_header, bad_first_page, truncated, zero_bytes, emptied,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_facts_and_tombstones_come_back_from_the_sidecar(filled: Path, damage: Callable[[Path], None]) -> None:
    buried, last = tombstones(filled), query(filled, "SELECT max(id) FROM memory_events")[0][0]
    damage(filled)
    broken = filled.read_bytes()
    (line,) = ensure(filled)
    assert known(filled) == FACTS
    assert tombstones(filled) == buried == 2
    assert aside(filled).read_bytes() == broken
    assert aside(filled).name in line
    assert "3 facts and 2 tombstones came back" in line
    ((number, detail),) = query(filled, "SELECT id, detail FROM memory_events WHERE event_type = 'recover'")
    assert number == last + 1, "numbers of events go on"
    assert aside(filled).name in detail
    assert ensure(filled) == []
    assert not {name for name in names(filled) if ".new" in name or ".rebuilt" in name}


@pytest.mark.parametrize("damage", DAMAGE)
def test_without_a_sidecar_a_new_database_stands_there_and_says_what_is_missing(
    filled: Path, damage: Callable[[Path], None]
) -> None:
    sidecar.discard(filled)
    damage(filled)
    broken = filled.read_bytes()
    if damage is zero_bytes:  # nothing says that there was anything
        assert ensure(filled) == []
        return
    (line,) = ensure(filled)
    assert known(filled) == {}
    assert "o fact came back" in line or "0 facts" in line
    assert aside(filled).read_bytes() == broken


def test_a_page_that_is_damaged_is_found_when_it_is_read_and_recovered_then(filled: Path) -> None:
    remember(filled, ("pref.shell", "fish"))
    with writing(filled) as connection:
        db.checkpoint(connection)
    (at, *_) = pages_of(filled, "lexicon_data")[3:]
    overwrite(filled, at, b"\xde\xad\xbe\xef" * 1024)
    assert ensure(filled) == [], "a page is only seen when it is read"
    line = recovery.recover(filled, Clock(), f"{filled} is damaged (CorruptError: x).{db.REMEDY}")
    assert known(filled) == FACTS | {"pref.shell": "fish"}, "facts later than the sidecar are read from the file"
    assert tombstones(filled) == 2
    assert "All 4 facts and 2 tombstones came back from the damaged file" in line
    assert db.REMEDY not in line
    assert aside(filled).exists()


def test_what_is_sound_is_not_recovered(filled: Path, log: Log) -> None:
    with writing(filled) as connection, db.transaction(connection, filled):
        lexicon.remove(connection, [5, 6])
        lexicon.purge(connection)
    before = contents(filled)
    with pytest.raises(DatabaseDamaged, match="it was said"):
        recovery.recover(filled, Clock(), "it was said.")
    assert {k: v for k, v in contents(filled).items() if "-shm" not in k and "-wal" not in k} == before


@pytest.mark.parametrize("has_sidecar", [True, False])
@pytest.mark.parametrize("keep", [0, 1])
def test_facts_in_pieces_come_back_as_far_as_they_can_be_read(db_path: Path, has_sidecar: bool, keep: int) -> None:
    """The sidecar is older than the file, and the file's table of facts has lost pages."""
    ensure(db_path)
    remember(db_path, ("user.old", "from before"), ("user.gone", "zqmarzipan"))
    write_sidecar(db_path)
    older = sidecar.path_of(db_path).read_bytes()
    forget(db_path, "user.gone")
    remember(db_path, *((f"user.k{n:03}", "v" * 200) for n in range(200)))
    sidecar.discard(db_path)
    if has_sidecar:
        sidecar.path_of(db_path).write_bytes(older)  # one that could neither be rewritten nor discarded
    with writing(db_path) as connection:
        db.checkpoint(connection)
    for at in pages_of(db_path, "facts")[-3:-1] if keep else pages_of(db_path, "facts")[-6:]:
        overwrite(db_path, at, b"\xff" * 4096)
    line = recovery.recover(db_path, Clock(), "damaged.")
    found = known(db_path)
    assert "user.gone" not in found, "what a tombstone names stays gone"
    assert "user.old" in found
    assert 20 < len(found) < 201
    assert tombstones(db_path) == 2
    assert "newer ones may be missing" in line
    assert ("memory.db.facts, as of" in line) == has_sidecar


def test_facts_on_a_page_that_reads_as_empty_are_missed(db_path: Path) -> None:
    """Nothing fails while such a table is read; its index knows better."""
    ensure(db_path)
    remember(db_path, *((f"user.k{n:03}", "v" * 200) for n in range(200)))
    with writing(db_path) as connection:
        db.checkpoint(connection)
    overwrite(db_path, pages_of(db_path, "facts")[-2], b"\x0d\0\0\0\0\x10\0\0" + b"\0" * 4088)
    line = recovery.recover(db_path, Clock(), "damaged.")
    assert 100 < len(known(db_path)) < 200
    assert "newer ones may be missing" in line


def test_what_the_person_said_anew_is_not_dropped_for_an_older_tombstone(db_path: Path) -> None:
    ensure(db_path)
    remember(db_path, ("user.city", "Gothenburg"))
    forget(db_path, "user.city")
    remember(db_path, ("user.city", "Gothenburg"), *((f"user.k{n:03}", "v" * 200) for n in range(100)))
    secret = keyfile.secret(keyfile.key_path(db_path))
    with writing(db_path) as connection:
        with db.transaction(connection, db_path):
            hashes = [hashed for _, hashed in facts.tombstones(secret, "shared", "user.city", "Gothenburg")]
            facts.lift(connection, hashes)
        db.checkpoint(connection)
    overwrite(db_path, pages_of(db_path, "facts")[-1], b"\xff" * 4096)
    assert len(sidecar.read(db_path).tombstones) == 2  # type: ignore[union-attr]
    recovery.recover(db_path, Clock(), "damaged.")
    assert known(db_path)["user.city"] == "Gothenburg"
    assert tombstones(db_path) == 0


def test_rows_that_nobody_could_live_with_do_not_come_back(filled: Path) -> None:
    sidecar.discard(filled)
    with writing(filled) as connection:
        facts.put(connection, fact("user.bytes", "x"))
        connection.execute("UPDATE facts SET value = CAST(x'ff' AS TEXT) WHERE key = 'user.bytes'")
        for column, value in (("updated_at", "yesterday"), ("updated_at", "2026-01-01"), ("confidence", "high")):
            key = f"user.{column}{value[:3]}"
            facts.put(connection, fact(key, "x"))
            connection.execute(f"UPDATE facts SET {column} = ? WHERE key = ?", (value, key))
        facts.put(connection, fact("user.last", "read behind them"))
        db.checkpoint(connection)
    overwrite(filled, pages_of(filled, "lexicon_data")[3], b"\xde\xad\xbe\xef" * 1024)
    line = recovery.recover(filled, Clock(), "damaged.")
    assert known(filled) == FACTS | {"user.last": "read behind them"}
    assert "may be missing" in line


# --- a write-ahead log that was lost ----------------------------------------------------------------------------------


@pytest.fixture
def unchecked(filled: Path, tmp_path: Path) -> Path:
    """A copy of a database whose last changes stand in its log alone: a set and a forget."""
    reader = db.connect(filled, readonly=True)
    reader.execute("BEGIN")
    db.rows(reader, "SELECT * FROM facts")
    remember(filled, ("pref.shell", "fish"))
    with writing(filled) as connection:
        with db.transaction(connection, filled):
            secret = keyfile.secret(keyfile.key_path(filled))
            assert erase.erase_fact(connection, "user.boat", "shared", secret, LATER)
            sidecar.write(connection, filled, LATER)
        sidecar.write(connection, filled, LATER)
        copy = tmp_path / "copy"
        shutil.copytree(filled.parent, copy)
    reader.close()
    (copy / "memory.db-shm").unlink()
    return copy / "memory.db"


AFTERWARDS = {"pref.editor": "Helix", "user.city": "Gothenburg", "pref.shell": "fish"}


def test_a_log_that_is_there_is_no_damage(unchecked: Path) -> None:
    assert ensure(unchecked) == []
    assert known(unchecked) == AFTERWARDS


@pytest.mark.parametrize("how", ["zeroed header", "deleted"])
def test_a_lost_log_is_noticed_and_nothing_forgotten_returns(unchecked: Path, how: str) -> None:
    """SQLite shows the older state without any error."""
    wal = unchecked.with_name("memory.db-wal")
    if how == "deleted":
        wal.unlink()
    else:
        overwrite(wal, 0, b"\0" * 32)
    (line,) = ensure(unchecked)
    assert "older state" in line
    assert known(unchecked) == AFTERWARDS
    assert tombstones(unchecked) == 4
    assert ensure(unchecked) == []
    if how == "zeroed header":
        assert aside(unchecked, "-wal").stat().st_size == 0 or aside(unchecked, "-wal").read_bytes()[:32] == b"\0" * 32


def test_the_log_of_an_emptied_file_is_kept_as_it_was(unchecked: Path) -> None:
    """SQLite deletes the log of an empty database when it opens one."""
    log = unchecked.with_name("memory.db-wal").read_bytes()
    zero_bytes(unchecked)
    assert ensure(unchecked)
    assert known(unchecked) == AFTERWARDS
    assert aside(unchecked, "-wal").read_bytes() == log


def test_a_database_behind_a_sidecar_that_was_edited_is_left_alone(filled: Path) -> None:
    """A stamp is believed only when the whole sidecar can be."""
    place = sidecar.path_of(filled)
    stamp = sidecar.stamp(filled)
    place.write_bytes(place.read_bytes().replace(f'"stamp":{stamp}'.encode(), b'"stamp":999'))
    assert sidecar.stamp(filled) == 999
    assert ensure(filled) == []
    assert known(filled) == FACTS


# --- the sidecar itself -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [garbage, bad_header])
def test_a_torn_sidecar_is_set_aside_with_the_database(filled: Path, damage: Callable[[Path], None]) -> None:
    torn = sidecar.path_of(filled).read_bytes()[:-10]
    sidecar.path_of(filled).write_bytes(torn)
    damage(filled)
    (line,) = ensure(filled)
    assert filled.with_name(f"memory.db.facts-{STAMP}").read_bytes() == torn
    assert "is torn and was set aside too" in line
    assert known(filled) == {}


def test_beside_a_torn_sidecar_facts_are_read_from_the_damaged_file(filled: Path) -> None:
    sidecar.path_of(filled).write_bytes(b"torn")
    overwrite(filled, pages_of(filled, "lexicon_data")[3], b"\xde\xad\xbe\xef" * 1024)
    recovery.recover(filled, Clock(), "damaged.")
    assert known(filled) == FACTS
    assert tombstones(filled) == 2


def test_a_database_that_was_deleted_begins_anew_and_its_facts_are_kept_aside(filled: Path) -> None:
    kept = sidecar.path_of(filled).read_bytes()
    filled.unlink()
    (line,) = ensure(filled)
    old = filled.with_name(f"memory.db.facts-{STAMP}")
    assert known(filled) == {}
    assert old.read_bytes() == kept
    assert sidecar.load(old).facts  # type: ignore[union-attr]
    assert f"clawmark restore {old}" in line
    assert old in recovery.set_aside_files(filled)
    assert ensure(filled) == []


def test_a_sidecar_with_nothing_in_it_leaves_no_trace(db_path: Path) -> None:
    ensure(db_path)
    with writing(db_path) as connection:
        events.add(connection, "config_warning", LATER, source="test")
    write_sidecar(db_path)
    db_path.unlink()
    for _ in range(2):
        assert ensure(db_path) == []
        assert recovery.set_aside_files(db_path) == []


def test_a_torn_sidecar_of_a_deleted_database_is_kept_too(filled: Path) -> None:
    sidecar.path_of(filled).write_bytes(b"torn")
    filled.unlink()
    (line,) = ensure(filled)
    assert "cannot be read" in line
    assert filled.with_name(f"memory.db.facts-{STAMP}").read_bytes() == b"torn"


def test_a_sidecar_that_cannot_be_read_keeps_no_sound_database_closed(filled: Path) -> None:
    sidecar.discard(filled)
    os.mkfifo(sidecar.path_of(filled))
    assert ensure(filled) == []
    garbage(filled)
    with pytest.raises(DatabaseUnwritable, match="no file"):  # it may hold the facts: nothing is rebuilt without them
        ensure(filled)
    assert recovery.set_aside_files(filled) == []


# --- forgetting -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("died", ["before the commit", "after it"])
def test_what_was_forgotten_does_not_return_and_all_else_does(
    filled: Path, damage: Callable[[Path], None], died: str
) -> None:
    if died == "after it":
        forget(filled, "user.boat")
    else:
        with writing(filled) as connection, pytest.raises(KeyboardInterrupt), db.transaction(connection, filled):
            secret = keyfile.secret(keyfile.key_path(filled))
            erase.erase_fact(connection, "user.boat", "shared", secret, LATER)
            sidecar.write(connection, filled, LATER)
            raise KeyboardInterrupt
        assert ensure(filled) == [], "an aborted commit is no damage"
    damage(filled)
    ensure(filled)
    assert known(filled) == {key: value for key, value in FACTS.items() if key != "user.boat"}
    assert tombstones(filled) == 4
    left = residue(filled.parent, "Sira")
    assert set(left) <= {p.name for p in recovery.set_aside_files(filled)}


def test_every_file_that_may_hold_what_was_forgotten_is_named(filled: Path) -> None:
    garbage(filled)
    ensure(filled)
    made = [
        "memory.db.backup-20260101T000000Z.db",
        "memory.db.schema-1-20260101T000000Z.backup",
        "memory.db.orphan-17-wal",
        "memory.db.facts-20260101T000000Z",
        "memory.db.rebuilt-20260101T000000Z",
        f"memory.db.damaged-{STAMP}",
    ]
    for name in (*made, "another.db.damaged-20260101T000000Z", "memory.db.key"):
        filled.with_name(name).touch()
    assert {p.name for p in recovery.set_aside_files(filled)} == set(made)
    assert recovery.set_aside_files(filled.parent / "nowhere" / "memory.db") == []


# --- what is no damage ------------------------------------------------------------------------------------------------


def refused(path: Path, error: type[DatabaseError], act: Callable[[], object] | None = None) -> None:
    before = contents(path)
    with pytest.raises(error) as raised:
        (act or (lambda: ensure(path)))()
    assert type(raised.value) is error
    assert str(path) in str(raised.value)
    assert contents(path) == before


def test_a_newer_database_is_refused_and_unchanged(filled: Path) -> None:
    query(filled, "INSERT INTO schema_version VALUES (99, 'later')")
    query(filled, "PRAGMA wal_checkpoint(TRUNCATE)")
    refused(filled, DatabaseNewer)


def test_another_programs_database_is_refused_and_unchanged(db_path: Path) -> None:
    db_path.parent.mkdir()
    connection = apsw.Connection(str(db_path))
    connection.execute("CREATE TABLE recipes (name)")
    connection.close()
    refused(db_path, DatabaseForeign)


def test_another_programs_database_is_no_damage_beside_a_sidecar(filled: Path) -> None:
    filled.unlink()
    connection = apsw.Connection(str(filled))
    connection.execute("CREATE TABLE recipes (name)")
    connection.close()
    refused(filled, DatabaseForeign)


def test_a_folder_in_its_place_is_refused(db_path: Path) -> None:
    db_path.mkdir(parents=True)
    with pytest.raises(DatabaseUnwritable, match="is no file"):
        ensure(db_path)


@pytest.mark.parametrize(
    "error",
    [apsw.BusyError, apsw.FullError, apsw.IOError, apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError],
)
def test_nothing_else_that_sqlite_says_moves_a_file(
    filled: Path, monkeypatch: pytest.MonkeyPatch, error: type[apsw.Error]
) -> None:
    def failing(*args: object, **options: object) -> None:
        raise error("x")

    monkeypatch.setattr(db, "connect", failing)
    before = contents(filled)
    for act in (ensure, lambda path: recovery.recover(path, Clock(), "damaged.")):
        with pytest.raises(DatabaseError) as raised:
            act(filled)
        assert not isinstance(raised.value, DatabaseDamaged)
    assert contents(filled) == before


def test_a_database_that_another_one_locks_is_busy_not_damaged(filled: Path) -> None:
    holder = apsw.Connection(str(filled))
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN IMMEDIATE")
    holder.execute("INSERT INTO cursors VALUES ('a', 'b', 'c')")
    with pytest.raises(DatabaseBusy):
        ensure(filled)
    holder.close()
    assert recovery.set_aside_files(filled) == []


def test_a_damaged_database_that_somebody_writes_is_left_to_him(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What he commits would be lost with the file."""
    overwrite(filled, pages_of(filled, "lexicon_data")[3], b"\xde\xad\xbe\xef" * 1024)
    monkeypatch.setattr(db, "BUSY_SECONDS", 0.05)
    with writing(filled) as connection, db.transaction(connection, filled), pytest.raises(DatabaseBusy):
        recovery.recover(filled, Clock(), "damaged.")
    assert recovery.set_aside_files(filled) == []


def test_a_writer_from_before_the_recovery_cannot_write_to_the_file_set_aside(filled: Path) -> None:
    with writing(filled) as connection:
        db.rows(connection, "SELECT * FROM facts")
        overwrite(filled, pages_of(filled, "lexicon_data")[3], b"\xde\xad\xbe\xef" * 1024)
        recovery.recover(filled, Clock(), "damaged.")
        log = aside(filled, "-wal").read_bytes()
        with pytest.raises(DatabaseBusy), db.transaction(connection, filled):
            pass
    remember(filled, ("pref.shell", "fish"))
    assert aside(filled, "-wal").read_bytes() == log, "closing it takes no log away, its own or the new one's"
    assert known(filled) == FACTS | {"pref.shell": "fish"}


def test_a_recovery_that_fails_leaves_every_byte(unchecked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    overwrite(unchecked, pages_of(unchecked, "lexicon_data")[3], b"\xde\xad\xbe\xef" * 1024)
    before = {p.name: p.read_bytes() for p in unchecked.parent.iterdir() if not p.name.endswith(("-shm", ".lock"))}
    assert len(before["memory.db-wal"]) > 4096

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(db, "build", full)
    with pytest.raises(DatabaseUnwritable, match="No space left"):
        recovery.recover(unchecked, Clock(), "damaged.")
    after = {p.name: p.read_bytes() for p in unchecked.parent.iterdir() if not p.name.endswith(("-shm", ".lock"))}
    assert after == before
    monkeypatch.undo()
    recovery.recover(unchecked, Clock(), "damaged.")
    assert known(unchecked) == AFTERWARDS


def test_a_second_recovery_within_a_second_overwrites_nothing(filled: Path) -> None:
    found = []
    for n in range(3):
        filled.write_bytes(b"garbage %d" % n * 100)
        found.append(filled.read_bytes())
        assert ensure(filled)
    asides = [p for p in recovery.set_aside_files(filled) if p.name[-4:] not in LOGS]
    assert sorted(p.read_bytes() for p in asides) == sorted(found)
    assert known(filled) == FACTS


def test_of_two_that_find_the_damage_one_recovers(filled: Path) -> None:
    garbage(filled)
    said: list[list[str]] = []
    gate = threading.Barrier(4)

    def start() -> None:
        gate.wait()
        said.append(ensure(filled))

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(len, said)) == [0, 0, 0, 1]
    assert known(filled) == FACTS
    assert len([p for p in recovery.set_aside_files(filled) if p.name.endswith("Z")]) == 1


# --- the good path, and older schemas ---------------------------------------------------------------------------------


def test_a_database_that_is_as_it_should_be_is_only_read(filled: Path) -> None:
    before = {p.name: p.stat() for p in filled.parent.iterdir()}
    assert ensure(filled) == []
    assert {p.name: p.stat() for p in filled.parent.iterdir()} == before


def test_it_opens_in_a_place_where_nothing_can_be_written(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert ensure(filled) == []


def test_an_older_schema_is_brought_up_to_date_with_a_word(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latest = migrations.LATEST + 1
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, (latest, ("CREATE TABLE extra (x)",))))
    monkeypatch.setattr(migrations, "LATEST", latest)
    (line,) = ensure(filled)
    assert str(latest) in line
    assert query(filled, "SELECT count(*) FROM extra") == [(0,)]
    assert known(filled) == FACTS
    assert ensure(filled) == []


# --- kills ------------------------------------------------------------------------------------------------------------

KILLED = """
import os, shutil, sys
from datetime import UTC, datetime
from pathlib import Path
from clawmark.store import recovery

damaged, place = Path(sys.argv[1]), Path(sys.argv[2])
folder = str(place.parent)


def kill_before(number):
    count = 0

    def hook(event, args):
        nonlocal count
        if event.startswith(("os.", "open")) and args and str(args[0]).startswith(folder):
            count += 1
            if count == number:
                os._exit(9)

    sys.addaudithook(hook)


number = status = 1
while status:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(damaged, folder)
    child = os.fork()
    if not child:
        kill_before(number)
        recovery.ensure(place, lambda: datetime(2026, 12, 1, 12, tzinfo=UTC))
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    shutil.copytree(folder, f"{folder}-{number}")
    number += 1
print(number)
"""


@pytest.mark.parametrize("how", ["page 1", "lost log", "torn sidecar"])
def test_a_kill_at_any_step_of_a_recovery_loses_nothing(unchecked: Path, tmp_path: Path, how: str) -> None:
    """Before each opening, renaming and removing of a file."""
    expected, buried = AFTERWARDS, 4
    if how == "page 1":
        with writing(unchecked) as connection:
            db.checkpoint(connection)
        bad_first_page(unchecked)
    elif how == "lost log":
        overwrite(unchecked.with_name("memory.db-wal"), 0, b"\0" * 32)
    else:
        with writing(unchecked) as connection:
            db.checkpoint(connection)
        sidecar.path_of(unchecked).write_bytes(b"torn")
        garbage(unchecked)
        expected, buried = {}, 0
    broken = unchecked.read_bytes()
    place = tmp_path / "killed" / "memory.db"
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, unchecked.parent, place],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    steps = int(ran.stdout)
    assert steps > 12
    for number in range(1, steps):
        path = tmp_path / f"killed-{number}" / "memory.db"
        ensure(path)
        assert known(path) == expected, number
        assert tombstones(path) == buried
        asides = [p for p in recovery.set_aside_files(path) if ".damaged-" in p.name and p.name[-4:] not in LOGS]
        assert [p.read_bytes() for p in asides] == [broken], number
        assert not {name for name in names(path) if ".new" in name or ".rebuilt" in name}
        assert ensure(path) == []
        assert query(path, "SELECT count(*) FROM memory_events WHERE event_type = 'recover'") == [(1,)]


def test_a_kill_between_two_names_is_completed_by_the_next_start(filled: Path) -> None:
    """The line is said and nothing is rebuilt twice."""
    garbage(filled)
    whole = filled.parent.parent / "whole"
    shutil.copytree(filled.parent, whole)
    ensure(whole / "memory.db")
    os.rename(filled, aside(filled))
    shutil.copy(whole / "memory.db", filled.with_name(f"memory.db.rebuilt-{STAMP}"))
    filled.with_name("memory.db-wal").write_bytes(b"of the damaged one")
    (line,) = ensure(filled)
    assert aside(filled).name in line
    assert known(filled) == FACTS
    assert aside(filled, "-wal").read_bytes() == b"of the damaged one"


def test_a_rebuilt_file_from_before_anything_moved_is_not_taken_for_a_database(filled: Path) -> None:
    opened(filled.with_name("memory.db.rebuilt-20260101T000000Z"))
    filled.unlink()
    assert ensure(filled)
    assert filled.with_name(f"memory.db.facts-{STAMP}").exists()
    assert ".rebuilt-20260101T000000Z" not in names(filled)
