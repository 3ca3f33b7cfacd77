"""The file: made whole, private to its owner, never mistaken, never touched when it is not ours."""

from __future__ import annotations

import multiprocessing
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from helpers import LATER, Log, audit, fake, migrate, open_memory, opened, query

from clawmark.errors import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseError,
    DatabaseForeign,
    DatabaseNewer,
    DatabaseUnwritable,
)
from clawmark.facts import ladder
from clawmark.memory import Memory
from clawmark.store import db, facts, migrations


@contextmanager
def umask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def other_database(path: Path, *statements: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


# --- modes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_every_file_is_the_owners_alone_under_any_umask(db_path: Path, log: Log, mask: int) -> None:
    """R15."""
    log.say("a sentence long enough to want a vector of its own")
    with umask(mask), open_memory(db_path, log, embedder=fake()) as memory:
        memory.sync()
        memory.set("pref.editor", "Helix")
        assert memory.block("which editor do I like").text
        names = sorted(path.name for path in db_path.parent.iterdir())
        assert {"memory.db", "memory.db-shm", "memory.db-wal", "memory.db.key", "memory.db.lock"} <= set(names)
        assert {name: oct(mode(db_path.parent / name)) for name in names} == dict.fromkeys(names, "0o600")
        assert mode(db_path.parent) == 0o700
        memory.forget("pref.editor")
        assert {oct(mode(path)) for path in db_path.parent.iterdir()} == {"0o600"}


def test_no_symlink_is_followed_to_a_key(db_path: Path, log: Log, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_bytes(b"x" * 32)
    with open_memory(db_path, log) as memory:
        db_path.with_name("memory.db.key").symlink_to(target)
        with pytest.raises(DatabaseUnwritable):
            memory.set("pref.editor", "Helix")


def test_no_symlink_is_followed_to_a_lease(db_path: Path, tmp_path: Path) -> None:
    opened(db_path)
    lock = db_path.with_name("memory.db.lock")
    lock.unlink()
    lock.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DatabaseUnwritable, match=r"memory\.db"), db.lease(db_path, 0):
        pass
    assert not (tmp_path / "elsewhere").exists()


# --- what a connection really does ------------------------------------------------------------------------------------


def test_pragmas_are_really_set(db_path: Path) -> None:
    opened(db_path)
    connection = db.connect(db_path)
    assert connection.pragma("synchronous") == 2
    assert connection.pragma("secure_delete") == 1
    assert connection.pragma("foreign_keys") == 1
    assert connection.pragma("temp_store") == 2
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("application_id") == db.APPLICATION_ID == 0x434C4D4B
    assert connection.pragma("user_version") == migrations.LATEST
    connection.close()


def test_a_reading_connection_cannot_write(db_path: Path) -> None:
    opened(db_path)
    connection = db.connect(db_path, readonly=True)
    with pytest.raises(apsw.ReadOnlyError):
        connection.execute("DELETE FROM facts")
    connection.close()


def test_a_new_file_stands_in_the_file_itself_not_in_its_log(db_path: Path) -> None:
    """A write-ahead log that gets lost would leave an empty database without an error."""
    opened(db_path)
    for name in ("memory.db-wal", "memory.db-shm"):
        db_path.with_name(name).unlink(missing_ok=True)
    assert query(db_path, "SELECT max(version) FROM schema_version") == [(migrations.LATEST,)]


def test_a_transaction_that_fails_leaves_nothing(db_path: Path) -> None:
    opened(db_path)
    connection = db.connect(db_path)
    with pytest.raises(KeyboardInterrupt), db.transaction(connection, db_path):
        connection.execute("INSERT INTO cursors VALUES ('a', 'b', 'c')")
        raise KeyboardInterrupt
    assert not connection.in_transaction
    assert db.rows(connection, "SELECT * FROM cursors") == []
    connection.close()


def test_a_transaction_is_a_writer_from_its_beginning(db_path: Path) -> None:
    opened(db_path)
    first, second = db.connect(db_path), db.connect(db_path, busy_seconds=0)
    with db.transaction(first, db_path), pytest.raises(DatabaseBusy), db.transaction(second, db_path):
        pass
    first.close()
    second.close()


# --- files that are not ours to touch ---------------------------------------------------------------------------------


def refused_unchanged(path: Path, error: type[DatabaseError], *said: str) -> None:
    before = path.read_bytes()
    with pytest.raises(error) as refused:
        opened(path)
    assert path.read_bytes() == before
    assert str(path) in str(refused.value)
    for word in said:
        assert word in str(refused.value)
    leftovers = {p.name for p in path.parent.iterdir()} - {path.name, f"{path.name}.lock"}
    assert leftovers == set()


def test_a_newer_schema_is_refused_and_its_bytes_unchanged(db_path: Path) -> None:
    """G5."""
    opened(db_path)
    query(db_path, "INSERT INTO schema_version VALUES (99, 'later')")
    query(db_path, "PRAGMA wal_checkpoint(TRUNCATE)")
    refused_unchanged(db_path, DatabaseNewer, "99", str(migrations.LATEST), "unchanged")


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE recipes (name TEXT)"],
        ["PRAGMA application_id = 7"],
        ["CREATE TABLE schema_version (version)", "INSERT INTO schema_version VALUES (2)"],
        ["CREATE TABLE schema_version (number)", "INSERT INTO schema_version VALUES (2)"],
        ["CREATE TABLE schema_version (version)", "INSERT INTO schema_version VALUES ('1.0')"],
        ["CREATE TABLE schema_version (version)", "CREATE TABLE users (name)", "INSERT INTO schema_version VALUES (1)"],
    ],
)
def test_another_programs_database_is_refused_and_unchanged(db_path: Path, statements: list[str]) -> None:
    other_database(db_path, *statements)
    refused_unchanged(db_path, DatabaseForeign, "another program's", "CLAWMARK_DB_PATH")


@pytest.mark.parametrize(
    "statements",
    [
        ["PRAGMA journal_mode = WAL", "CREATE TABLE t (x)", "DROP TABLE t"],
        [f"PRAGMA application_id = {db.APPLICATION_ID}"],
        [f"PRAGMA application_id = {db.APPLICATION_ID}", "CREATE TABLE facts (x)"],
        [f"PRAGMA application_id = {db.APPLICATION_ID}", "CREATE TABLE schema_version (version)"],
    ],
)
def test_a_database_that_lost_its_schema_is_damaged(db_path: Path, statements: list[str]) -> None:
    """What is left when a write-ahead log was lost before its first checkpoint."""
    other_database(db_path, *statements)
    refused_unchanged(db_path, DatabaseDamaged, "sets it aside")


def test_a_database_of_the_typescript_version_is_not_migrated_as_ours(db_path: Path) -> None:
    other_database(
        db_path,
        "CREATE TABLE schema_version (version INTEGER)",
        "INSERT INTO schema_version VALUES (1)",
        "CREATE TABLE facts (key TEXT, value TEXT)",
    )
    refused_unchanged(db_path, DatabaseError, "TypeScript")


@pytest.mark.parametrize("content", [b"garbage " * 1000, b"x", b"SQLite format 3\0" + b"\xff" * 5000])
def test_garbage_is_refused_and_unchanged(db_path: Path, content: bytes) -> None:
    db_path.parent.mkdir(parents=True)
    db_path.write_bytes(content)
    refused_unchanged(db_path, DatabaseDamaged)


def test_a_zero_byte_file_is_a_new_database(db_path: Path) -> None:
    db_path.parent.mkdir(parents=True)
    db_path.touch()
    opened(db_path)
    assert query(db_path, "SELECT count(*) FROM facts") == [(0,)]
    assert mode(db_path) == 0o600


def test_a_folder_in_its_place_is_said_so(db_path: Path) -> None:
    db_path.mkdir(parents=True)
    with pytest.raises(DatabaseError, match=r"memory\.db"):
        opened(db_path)


def test_an_interrupted_creation_leaves_no_database_and_the_next_one_succeeds(db_path: Path) -> None:
    def killed(connection: apsw.Connection) -> None:
        migrate(connection)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        db.open_database(db_path, killed, migrations.LATEST)
    assert not db_path.exists()
    opened(db_path)


# --- more than one ----------------------------------------------------------------------------------------------------


def test_threads_that_open_a_new_file_at_once_all_succeed(db_path: Path) -> None:
    """G2."""
    failures: list[BaseException] = []
    gate = threading.Barrier(6)

    def start() -> None:
        gate.wait()
        try:
            opened(db_path)
        except BaseException as error:  # noqa: BLE001 - reported by the main thread
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert query(db_path, "SELECT max(version) FROM schema_version") == [(migrations.LATEST,)]


def _start(path: str, number: int) -> str:
    try:
        with open_memory(Path(path), Log()) as memory:
            memory.set(f"pref.key{number}", "value")
            return memory.block("hello there, which value").text[:16]
    except Exception as error:  # noqa: BLE001 - carried to the parent
        return repr(error)


def test_processes_that_open_a_new_file_at_once_all_succeed(db_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        said = pool.starmap(_start, [(str(db_path), number) for number in range(3)])
    assert set(said) == {said[0]}, "one key file, so one nonce"
    assert said[0].startswith("[Memory ")
    assert query(db_path, "SELECT count(*) FROM facts") == [(3,)]


def test_a_locked_database_is_busy_within_its_timeout(db_path: Path) -> None:
    opened(db_path)
    holder = apsw.Connection(str(db_path))
    holder.execute("BEGIN IMMEDIATE")
    waiting = db.connect(db_path, busy_seconds=0.05)
    with pytest.raises(DatabaseBusy) as busy, db.transaction(waiting, db_path):
        pass
    assert busy.value.exit_code == 75
    holder.execute("ROLLBACK")
    with db.transaction(waiting, db_path):
        pass
    holder.close()
    waiting.close()


def _hold(path: str, held: Any, done: Any) -> None:
    with db.lease(Path(path), 0):
        connection = db.connect(Path(path))
        with db.transaction(connection, Path(path)):
            held.set()
            done.wait(30)
        connection.close()


def test_a_busy_database_names_the_process_that_runs_jobs(db_path: Path) -> None:
    opened(db_path)
    context = multiprocessing.get_context("spawn")
    held, done = context.Event(), context.Event()
    holder = context.Process(target=_hold, args=(str(db_path), held, done))
    holder.start()
    try:
        assert held.wait(30)
        waiting = db.connect(db_path, busy_seconds=0)
        with pytest.raises(DatabaseBusy, match=f"held by process {holder.pid};"), db.transaction(waiting, db_path):
            pass
        waiting.close()
    finally:
        done.set()
        holder.join()


def test_a_process_that_is_done_is_not_named(db_path: Path) -> None:
    """Its number still stands in the lock's file."""
    opened(db_path)
    with db.lease(db_path, 0):
        pass
    holder, waiting = apsw.Connection(str(db_path)), db.connect(db_path, busy_seconds=0)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseBusy, match="held by another process"), db.transaction(waiting, db_path):
        pass
    holder.close()
    waiting.close()


def test_nothing_is_written_to_a_file_that_lost_its_name(db_path: Path) -> None:
    """What was acknowledged would stand in a file that nobody opens again."""
    opened(db_path)
    writer = db.connect(db_path)
    os.rename(db_path, db_path.with_name("aside"))
    opened(db_path)
    with pytest.raises(DatabaseBusy, match="set aside or replaced"), db.transaction(writer, db_path):
        writer.execute("INSERT INTO cursors VALUES ('a', 'b', 'c')")
    writer.close()


def test_who_waits_gets_the_database_when_it_is_free(db_path: Path) -> None:
    """G2: a writer that comes while another one writes waits instead of failing."""
    opened(db_path)
    holder = apsw.Connection(str(db_path))
    holder.execute("BEGIN IMMEDIATE")
    waiting, began, done = db.connect(db_path), threading.Event(), threading.Event()

    def write() -> None:
        began.set()
        with db.transaction(waiting, db_path):
            waiting.execute("INSERT INTO cursors VALUES ('a', 'b', 'c')")
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    began.wait()
    assert not done.wait(0.05)
    holder.execute("COMMIT")
    thread.join()
    assert done.is_set()
    holder.close()
    waiting.close()


def test_the_lease_names_who_holds_it_and_is_freed_with_it(db_path: Path) -> None:
    opened(db_path)
    with db.lease(db_path, 0), pytest.raises(DatabaseBusy, match=str(os.getpid())), db.lease(db_path, 0):
        pass
    with db.lease(db_path, 0):
        pass


def test_one_process_at_a_time_runs_jobs(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("the boat is called Sira")
    with db.lease(db_path, 0), pytest.raises(DatabaseBusy):
        memory.sync(wait_seconds=0)
    assert memory.sync().kept == 1


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (apsw.BusyError("x"), DatabaseBusy),
        (apsw.LockedError("x"), DatabaseBusy),
        (apsw.NotADBError("x"), DatabaseDamaged),
        (apsw.CorruptError("x"), DatabaseDamaged),
        (apsw.FullError("x"), DatabaseUnwritable),
        (apsw.IOError("x"), DatabaseUnwritable),
        (apsw.CantOpenError("x"), DatabaseUnwritable),
        (apsw.ReadOnlyError("x"), DatabaseUnwritable),
        (apsw.SQLError("x"), DatabaseError),
    ],
)
def test_every_error_of_sqlite_is_one_of_ours_and_names_the_file(
    db_path: Path, error: Exception, expected: type[DatabaseError]
) -> None:
    with pytest.raises(expected, match=r"memory\.db"), db.explained(db_path):
        raise error


def test_an_error_of_the_system_about_our_file_is_ours_and_names_it(db_path: Path) -> None:
    with pytest.raises(DatabaseUnwritable, match=r"memory\.db.*No space left"), db.system_explained(db_path):
        raise OSError(28, "No space left on device")


def test_an_error_of_the_system_about_anothers_file_is_not_said_to_be_ours(db_path: Path) -> None:
    """Around a source or an embedder: blaming the database would send the person to the wrong file."""
    with pytest.raises(PermissionError), db.explained(db_path):
        raise PermissionError(13, "Permission denied", "somebody-elses.jsonl")


def test_a_file_that_is_as_it_should_be_is_only_read(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(db_path)
    modes: list[bool] = []
    connect = db.connect

    def watched(path: Path, *, readonly: bool = False, **options: Any) -> apsw.Connection:
        modes.append(readonly)
        return connect(path, readonly=readonly, **options)

    writer = connect(db_path)
    with db.transaction(writer, db_path):
        monkeypatch.setattr(db, "connect", watched)
        opened(db_path)
    writer.close()
    assert modes == [True]


# --- what people audit with -------------------------------------------------------------------------------------------


def test_the_audit_queries_run_in_any_sqlite(memory: Memory, log: Log, db_path: Path) -> None:
    log.say("the boat is called Sira")
    memory.sync()
    memory.set("pref.editor", "Helix")
    memory.set("pref.editor", "Kakoune")
    memory.set("user.city", "Gothenburg")
    counted = audit(db_path, "SELECT event_type, COUNT(*) FROM memory_events GROUP BY 1")
    assert counted == [("create", 2), ("update", 1)]
    shown = audit(
        db_path, "SELECT key, confidence, source FROM facts WHERE is_deleted=0 ORDER BY updated_at DESC LIMIT 20"
    )
    assert sorted(shown) == [("pref.editor", 1.0, "user"), ("user.city", 1.0, "user")]


# What is no file


def test_a_special_file_is_refused_and_left_as_it_is(db_path: Path) -> None:
    db_path.parent.mkdir(parents=True)
    os.mkfifo(db_path)
    with pytest.raises(DatabaseForeign, match="is no file"):
        opened(db_path)
    assert stat.S_ISFIFO(db_path.stat().st_mode)


def test_a_link_leads_to_the_database(db_path: Path, log: Log, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere" / "memory.db"
    opened(real)
    db_path.parent.mkdir(parents=True)
    db_path.symlink_to(real)
    with open_memory(db_path, log) as memory:
        memory.set("pref.editor", "Helix")
    assert db_path.is_symlink() and real.is_file()
    assert {p.name for p in db_path.parent.iterdir()} == {"memory.db"}


def test_a_key_that_is_no_file_holds_nobody_up(memory: Memory, db_path: Path) -> None:
    os.mkfifo(db_path.with_name(db_path.name + ".key"))
    with pytest.raises(DatabaseUnwritable, match="no file"):
        memory.set("pref.editor", "Helix")


@pytest.mark.parametrize("name", ["ftruncate", "pwrite"])
def test_a_full_disk_keeps_nobody_from_his_turn(db_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The number in the lease only tells others whom they wait for."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    opened(db_path)
    monkeypatch.setattr(os, name, full)
    with db.lease(db_path, 0.1), pytest.raises(DatabaseBusy), db.lease(db_path, 0.1):
        pass


# --- emptying the log -------------------------------------------------------------------------------------------------


def test_a_reader_does_not_make_emptying_the_log_keep_writers_out_for_long(db_path: Path) -> None:
    """It holds the lock of writers while it waits, and a reader may hold its snapshot for as long as it likes."""
    opened(db_path)
    writer, reader, other = db.connect(db_path), db.connect(db_path, readonly=True), db.connect(db_path)
    with db.transaction(writer, db_path):
        writer.execute("INSERT INTO cursors VALUES ('a', 'b', 'c')")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM cursors").fetchall()
    with db.transaction(writer, db_path):
        writer.execute("INSERT INTO cursors VALUES ('d', 'b', 'c')")
    began = time.monotonic()
    assert not db.checkpoint(writer)
    assert time.monotonic() - began < 2
    assert writer.pragma("busy_timeout") == db.BUSY_SECONDS * 1000
    reader.execute("COMMIT")
    assert db.checkpoint(writer)
    other.execute("BEGIN IMMEDIATE")
    assert db.checkpoint(writer), "where nothing is to be moved nobody is waited for"
    for connection in (writer, reader, other):
        connection.close()


# --- whose lock it is -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"GEM\n  remote: x\n", b"1" * 21, b"12\n", b"\xff", b"-1"])
def test_a_lock_file_of_another_program_is_left_as_it_is(db_path: Path, content: bytes) -> None:
    db_path.parent.mkdir()
    lock = db_path.with_name("memory.db.lock")
    lock.write_bytes(content)
    lock.chmod(0o644)
    with pytest.raises(DatabaseForeign, match=r"memory\.db\.lock is not clawmark's"), db.lease(db_path, 0):
        pass
    assert (lock.read_bytes(), stat.S_IMODE(lock.stat().st_mode)) == (content, 0o644)


@pytest.mark.parametrize("content", [b"", b"7", b"9" * 20])
def test_a_lock_file_of_ours_is_taken_whatever_it_says(db_path: Path, content: bytes) -> None:
    db_path.parent.mkdir()
    db_path.with_name("memory.db.lock").write_bytes(content)
    with db.lease(db_path, 0):
        assert db.lock_says(db_path) == str(os.getpid())


# --- what is said -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, 7, b"x", "", "yesterday", "2026-13-01T00:00:00+00:00", "2026-12-01T12:00:00"])
def test_a_time_that_is_none_is_damage(db_path: Path, text: Any) -> None:
    with pytest.raises(DatabaseDamaged, match=r"memory\.db is damaged \(a time"), db.explained(db_path):
        db.time_of(text)
    assert db.time_of("2026-12-01T12:00:00+00:00") == LATER


@pytest.mark.parametrize(("error", "said"), [(apsw.FullError, "the disk is full"), (apsw.IOError, "disk I/O error")])
def test_a_disk_that_fails_is_said_to(db_path: Path, error: type[apsw.Error], said: str) -> None:
    """SQLite's own words are "not an error" where a copy fails."""
    with pytest.raises(DatabaseUnwritable, match=said) as raised, db.explained(db_path):
        raise error("not an error")
    assert "not an error" not in str(raised.value)


def test_a_database_that_is_gone_is_said_to_be_gone(db_path: Path) -> None:
    opened(db_path)
    db_path.unlink()
    with pytest.raises(DatabaseUnwritable, match=r"memory\.db is gone"), db.explained(db_path):
        db.connect(db_path)


@pytest.mark.parametrize(
    ("error", "expected"), [(apsw.CorruptError("x"), DatabaseUnwritable), (apsw.FullError("x"), DatabaseUnwritable)]
)
def test_an_error_of_a_draft_is_not_the_databases(db_path: Path, error: apsw.Error, expected: type[Exception]) -> None:
    """Damage would set a sound database aside."""

    def fill(connection: apsw.Connection) -> None:
        raise error

    opened(db_path)
    with pytest.raises(expected, match=r"memory\.db\.new"):
        db.build(db_path, fill)


def test_the_ladder_knows_the_writers_that_the_store_knows() -> None:
    assert set(ladder.STRENGTH) == set(facts.WRITERS)
