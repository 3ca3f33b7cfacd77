"""Recovery: a damaged file moves aside, facts come back, what was forgotten does not, and no kill changes that."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import apsw
import pytest
from helpers import LATER, REPOSITORY, Clock, Log, fact, fill, open_memory, opened, query, recalled, residue

from clawmark import erase
from clawmark.errors import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseError,
    DatabaseForeign,
    DatabaseNewer,
    DatabaseUnwritable,
)
from clawmark.settings import Settings
from clawmark.store import copy, db, events, facts, files, keyfile, lexicon, migrations, recovery, sidecar
from clawmark.store.tombstones import bury, hashes, remove

STAMP = "20261201T120000Z"
LOGS = files.COMPANIONS

PASSAGE = (
    "INSERT INTO passages (id, conversation_id, previous_id, part, scope, origin, author, at, content_key, recipe)"
)
STREAM = "INSERT INTO streams (id, source, name, scope, session, kind, mark, place)"


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
    """Of keys and values: those of their stems, and of both together, left out."""
    counted = "SELECT count(*) FROM tombstones WHERE kind <> 'statement' AND kind NOT LIKE 'stem:%'"
    return int(query(path, counted)[0][0])


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
            of_city = [hashed for _, hashed in hashes(secret, "shared", "user.city", "Gothenburg")]
            remove(connection, of_city)
        db.checkpoint(connection)
    overwrite(db_path, pages_of(db_path, "facts")[-1], b"\xff" * 4096)
    kinds = {row["kind"][:5] for row in sidecar.read(db_path).tombstones}  # type: ignore[union-attr]
    assert kinds == {"key", "value", "state", "stem:"}
    recovery.recover(db_path, Clock(), "damaged.")
    assert known(db_path)["user.city"] == "Gothenburg"
    assert tombstones(db_path) == 0


def test_the_later_of_two_forgettings_comes_back_whichever_file_knows_of_it(db_path: Path) -> None:
    """The sidecar is the older one as a whole, and the later file cannot be read to its end."""
    ensure(db_path)
    hashed = [number.to_bytes(2, "big") * 16 for number in range(300)]
    again = LATER + timedelta(days=2)
    with writing(db_path) as connection:
        with db.transaction(connection, db_path):
            for one in hashed:
                bury(connection, "message", one, LATER)
            for one in (hashed[0], hashed[-1]):
                bury(connection, "message", one, again)
        sidecar.write(connection, db_path, LATER)
        with db.transaction(connection, db_path):
            connection.execute("UPDATE tombstones SET created_at = ? WHERE hash = ?", (LATER.isoformat(), hashed[0]))
            bury(connection, "message", hashed[1], again)
            events.add(connection, "hide", LATER, source="user", scope="shared", key="pref.later")
    overwrite(db_path, pages_of(db_path, "tombstones")[-1], b"\xff" * 4096)
    line = recovery.recover(db_path, Clock(), "damaged.")
    assert "300 tombstones came back from it and from" in line
    times = dict(query(db_path, "SELECT hash, created_at FROM tombstones"))
    twice = {one for one, at in times.items() if at == again.isoformat()}
    assert twice == {hashed[0], hashed[1], hashed[-1]} and len(times) == 300


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


# --- damage that only readers meet ------------------------------------------------------------------------------------

LEAF = b"\xde\xad\xbe\xef" * 1024


def damaged_leaf(path: Path) -> None:
    """A page of the lexicon: opening does not look at it, and neither does a sync that has nothing to do."""
    overwrite(path, pages_of(path, "lexicon_data")[3], LEAF)


def test_damage_that_a_reader_met_is_mended_by_the_next_start(filled: Path) -> None:
    damaged_leaf(filled)
    broken = filled.read_bytes()
    assert ensure(filled) == [], "a page is only seen when it is read"
    with db.opened(filled, readonly=True) as connection, pytest.raises(DatabaseDamaged), db.explained(filled):
        db.rows(connection, "SELECT id, block FROM lexicon_data")
    recovery.suspect(filled)
    assert recovery.is_suspect(filled)
    (line,) = ensure(filled)
    assert "lexicon_data" in line or "is damaged" in line
    assert known(filled) == FACTS
    assert tombstones(filled) == 2
    assert aside(filled).read_bytes() == broken
    assert not recovery.is_suspect(filled)
    assert ensure(filled) == []


@pytest.mark.parametrize("then", ["opened", "synced"])
def test_damage_that_a_search_met_is_mended(db_path: Path, log: Log, then: str) -> None:
    """A sync that has nothing to do reads no such page."""
    fill(log, 300)
    with open_memory(db_path, log) as memory:
        memory.sync()
        memory.set("pref.editor", "Helix")
    for at in pages_of(db_path, "lexicon_data")[1:]:
        overwrite(db_path, at, LEAF)
    with open_memory(db_path, log) as memory:
        found = memory.search("Helix topic7")
        assert [fact.value for fact in found.facts] == ["Helix"] and not found.recalled, "recall fails, facts do not"
        assert recovery.is_suspect(db_path)
        if then == "synced":
            memory.sync()
            assert recalled(memory, "topic7")
    with open_memory(db_path, log) as memory:
        assert memory.facts()[0].value == "Helix"
        memory.sync()
        assert recalled(memory, "topic7")
    assert aside(db_path).exists()


def test_a_mark_at_a_sound_file_goes_and_nothing_moves(filled: Path) -> None:
    lexicon_of_passages_alone(filled)
    before = known(filled), names(filled) - set(LOGS)
    recovery.suspect(filled)
    assert ensure(filled) == []
    assert not recovery.is_suspect(filled)
    assert (known(filled), names(filled) - set(LOGS)) == before


def lexicon_of_passages_alone(path: Path) -> None:
    with writing(path) as connection:
        lexicon.remove(connection, range(1, 3000))
        lexicon.purge(connection)
        db.checkpoint(connection)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE facts SET value = CAST(x'ff61' AS TEXT) WHERE key = 'user.boat'",
        "UPDATE facts SET updated_at = 'yesterday' WHERE key = 'user.boat'",
        "UPDATE facts SET value = x'00' WHERE key = 'user.boat'",
    ],
)
def test_a_fact_that_nobody_can_read_is_damage_and_the_others_come_back(filled: Path, damage: str) -> None:
    sidecar.discard(filled)
    query(filled, damage)
    recovery.suspect(filled)
    (line,) = ensure(filled)
    assert "facts" in line
    assert known(filled) == {key: value for key, value in FACTS.items() if key != "user.boat"}


def test_a_fact_that_nobody_can_read_comes_back_from_no_sidecar_either(filled: Path) -> None:
    """Else the rebuilt database would be rebuilt for ever."""
    query(filled, "UPDATE facts SET updated_at = 'yesterday' WHERE key = 'user.boat'")
    kept = sidecar.read(filled)
    assert kept is not None
    rows = [row | {"updated_at": "yesterday"} if row["key"] == "user.boat" else row for row in kept.facts]
    sidecar.put(filled, sidecar.State(kept.stamp, {**kept.tables, "facts": rows}), LATER)
    recovery.suspect(filled)
    assert ensure(filled)
    recovery.suspect(filled)
    assert ensure(filled) == []
    assert known(filled) == {key: value for key, value in FACTS.items() if key != "user.boat"}


def test_a_row_that_contradicts_another_is_damage(filled: Path) -> None:
    query(filled, "INSERT INTO conversations VALUES (1, 'main', 's', '', 'direct', 1)")
    query(
        filled,
        f"{PASSAGE} VALUES (9000, 1, NULL, 0, 'main', 'owner', NULL, 1, x'00', 1)",
    )
    recovery.suspect(filled)
    (line,) = ensure(filled)
    assert "1 passages outside the lexicon" in line
    assert known(filled) == FACTS


def test_damaged_vectors_are_no_reason_to_rebuild(filled: Path) -> None:
    query(filled, "INSERT INTO conversations VALUES (1, 'main', 's', '', 'direct', 1)")
    query(
        filled,
        f"{PASSAGE} VALUES (9, 1, NULL, 0, 'main', 'owner', NULL, 1, x'00', 1)",
    )
    query(
        filled,
        f"{STREAM} VALUES (1, 'log', 's', 'main', 's', 'direct', '', '')",
    )
    query(filled, "INSERT INTO passage_refs VALUES ('r', 1, 9, '', x'00')")
    query(
        filled,
        "INSERT INTO spaces (model, dimension, document_prefix, query_prefix, probe, is_active, created_at)"
        " VALUES ('m', 2, '', '', '', 1, '')",
    )
    query(filled, "INSERT INTO message_vectors VALUES (1, 9, 1, zeroblob(8), '')")
    recovery.suspect(filled)
    (line,) = ensure(filled)
    assert "1 damaged vectors" in line
    assert query(filled, "SELECT passage_id, reason FROM pending_vectors") == [(9, "damaged")]
    assert recovery.set_aside_files(filled) == []
    assert not recovery.is_suspect(filled)


def test_the_mark_waits_for_whoever_works_on_the_file(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged_leaf(filled)
    recovery.suspect(filled)
    monkeypatch.setattr(db, "QUICK_BUSY_SECONDS", 0.05)
    with db.lease(filled, 1):
        (line,) = ensure(filled)
    assert "could not be looked at now" in line
    assert recovery.is_suspect(filled) and recovery.set_aside_files(filled) == []
    assert ensure(filled) and known(filled) == FACTS


def test_a_mark_is_the_owners_alone_and_making_it_never_fails(filled: Path, tmp_path: Path) -> None:
    recovery.suspect(filled)
    recovery.suspect(filled)
    place = filled.with_name("memory.db.check")
    assert place.stat().st_mode & 0o777 == 0o600 and place.stat().st_size == 0
    recovery.suspect(tmp_path / "nowhere" / "memory.db")
    place.unlink()
    place.symlink_to(tmp_path / "victim")
    recovery.suspect(filled)
    assert not (tmp_path / "victim").exists()


def test_a_mark_that_was_left_at_a_file_set_aside_goes_with_it(filled: Path) -> None:
    recovery.suspect(filled)
    garbage(filled)
    assert len(ensure(filled)) == 1
    assert not recovery.is_suspect(filled)


def test_nothing_moves_because_of_a_look_without_locks(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a look at a file that a writer comes to just then may see half of what he did."""
    looks: list[bool] = []
    connect = db.connect

    def watched(path: Path, **options: bool) -> apsw.Connection:
        looks.append(options.get("leave_no_trace", False))
        return connect(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(db, "connect", watched)
    damaged_leaf(filled)
    recovery.recover(filled, Clock(), "damaged.")
    assert looks and not any(looks)


# --- a database without a write-ahead log -----------------------------------------------------------------------------


def by_hand(path: Path) -> None:
    """A copy that a person puts in the database's place."""
    made = path.with_name("mine.db")
    copy.copy_database(path, made)
    for suffix in ("", *LOGS):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    made.rename(path)
    assert query(path, "PRAGMA journal_mode") == [("delete",)]


def test_a_copy_put_in_place_by_hand_gets_a_log_again(filled: Path) -> None:
    by_hand(filled)
    assert ensure(filled) == []
    assert query(filled, "PRAGMA journal_mode") == [("wal",)]
    assert known(filled) == FACTS
    with writing(filled) as writer, db.opened(filled, readonly=True, busy_seconds=0.1) as reader:
        db.rows(reader, "BEGIN")
        db.rows(reader, "SELECT * FROM facts")
        with db.transaction(writer, filled):
            facts.remove(writer, "user.boat", "shared")


def test_a_copy_in_use_gets_its_log_later(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_hand(filled)
    monkeypatch.setattr(db, "QUICK_BUSY_SECONDS", 0.05)
    with db.opened(filled, readonly=True) as reader:
        db.rows(reader, "BEGIN")
        db.rows(reader, "SELECT * FROM facts")
        assert ensure(filled) == []
    assert query(filled, "PRAGMA journal_mode") == [("delete",)]
    assert ensure(filled) == []
    assert query(filled, "PRAGMA journal_mode") == [("wal",)]


def test_what_a_killed_writer_left_half_done_in_a_copy_is_taken_back(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a write-ahead log it stands in the file, and what was there before in a journal beside it."""
    by_hand(filled)
    writer = apsw.Connection(str(filled))
    writer.execute("PRAGMA cache_size = 1")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE facts SET value = 'half done'")
    writer.execute("UPDATE lexicon_data SET block = zeroblob(length(block))")
    killed = tmp_path / "killed"
    shutil.copytree(filled.parent, killed)
    writer.close()
    assert (killed / "memory.db-journal").stat().st_size > 512
    assert b"half done" in (killed / "memory.db").read_bytes()
    with monkeypatch.context() as patch, pytest.raises(DatabaseUnwritable):
        patch.setattr(os, "access", lambda *_: False)
        ensure(killed / "memory.db")  # where it cannot be taken back, it is not shown either
    assert ensure(killed / "memory.db") == []
    assert known(killed / "memory.db") == FACTS
    assert query(killed / "memory.db", "PRAGMA journal_mode") == [("wal",)]


def test_a_journal_follows_the_file_it_belongs_to(filled: Path) -> None:
    """Read into the rebuilt one it would be damage again."""
    shutil.copy(filled, filled.with_name(f"memory.db.rebuilt-{STAMP}"))
    os.rename(filled, aside(filled))
    filled.with_name("memory.db-journal").write_bytes(b"of the damaged one")
    assert ensure(filled)
    assert known(filled) == FACTS
    assert aside(filled, "-journal").read_bytes() == b"of the damaged one"


def test_a_journal_without_its_database_is_not_read_into_a_new_one(db_path: Path) -> None:
    db_path.parent.mkdir(parents=True)
    db_path.with_name("memory.db-journal").write_bytes(b"of another one")
    assert ensure(db_path) == []
    assert known(db_path) == {}
    assert [p.read_bytes() for p in recovery.set_aside_files(db_path)] == [b"of another one"]


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
        "memory.db.restoring",
        "memory.db.restoring-wal",
        "memory.db.backup-20260101T000000Z.0badcafe.part",
        "memory.db.restoring.0badcafe.part-journal",
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
    with pytest.raises(DatabaseForeign, match="is no file"):
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
    asides = [p for p in recovery.set_aside_files(filled) if not p.name.endswith(LOGS)]
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


@pytest.mark.parametrize("how", ["page 1", "lost log", "torn sidecar", "marked page"])
def test_a_kill_at_any_step_of_a_recovery_loses_nothing(unchecked: Path, tmp_path: Path, how: str) -> None:
    """Before each opening, renaming and removing of a file."""
    expected, buried = AFTERWARDS, 4
    if how == "page 1":
        with writing(unchecked) as connection:
            db.checkpoint(connection)
        bad_first_page(unchecked)
    elif how == "marked page":
        with writing(unchecked) as connection:
            db.checkpoint(connection)
        damaged_leaf(unchecked)
        recovery.suspect(unchecked)
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
        asides = [p for p in recovery.set_aside_files(path) if ".damaged-" in p.name and not p.name.endswith(LOGS)]
        assert [p.read_bytes() for p in asides] == [broken], number
        assert not {name for name in names(path) if ".new" in name or ".rebuilt" in name or ".check" in name}
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


# --- a rebuilt file that came too late ----------------------------------------------------------------------------------


def leave_rebuilt(path: Path) -> Path:
    """As a recovery that is killed between its two names leaves it; the damaged file is set aside."""
    garbage(path)
    whole = path.parent.parent / "whole"
    shutil.copytree(path.parent, whole)
    ensure(whole / path.name)
    os.rename(path, aside(path))
    rebuilt = path.with_name(f"{path.name}.rebuilt-{STAMP}")
    shutil.copy(whole / path.name, rebuilt)
    return rebuilt


def test_a_rebuilt_file_that_is_older_than_the_sidecar_brings_nothing_forgotten_back(filled: Path) -> None:
    rebuilt = leave_rebuilt(filled)
    kept = rebuilt.read_bytes()
    ensure(filled)
    forget(filled, "user.city")
    rebuilt.write_bytes(kept)  # as if it had never been removed
    for name in ("memory.db", "memory.db-wal", "memory.db-shm"):
        filled.with_name(name).unlink(missing_ok=True)
    (line,) = ensure(filled)
    assert "was gone" in line and "memory.db.facts" in line
    assert known(filled) == {key: value for key, value in FACTS.items() if key != "user.city"}
    assert tombstones(filled) == 4
    assert not rebuilt.exists()
    assert ensure(filled) == []


def test_a_rebuilt_file_goes_as_soon_as_a_sound_database_stands_there(filled: Path) -> None:
    before = known(filled)
    rebuilt = filled.with_name("memory.db.rebuilt-20260101T000000Z")
    for busy in (True, False):
        rebuilt.write_bytes(b"of another time")
        if busy:
            with db.lease(filled, 0):  # somebody may be rebuilding now
                assert ensure(filled) == []
            assert rebuilt.exists()
        else:
            assert ensure(filled) == []
    assert not rebuilt.exists()
    assert known(filled) == before


# --- a look at the whole file, every week --------------------------------------------------------------------------------


def damage_an_unread_page(path: Path) -> None:
    """A row that only a look at the whole file can find."""
    query(
        path,
        f"{PASSAGE} VALUES (7, 1, NULL, 0, 'main', 'owner', NULL, 0, x'00', 1)",
    )


def test_damage_that_nobody_reads_is_found_within_a_week(filled: Path) -> None:
    lexicon_of_passages_alone(filled)
    clock = Clock()
    assert recovery.due(filled, clock.now), "it was never looked at"
    assert recovery.ensure_checked(filled, clock) == []
    damage_an_unread_page(filled)
    assert recovery.ensure(filled, clock) == []
    clock.advance(days=7, seconds=-1)
    assert not recovery.due(filled, clock.now)
    assert recovery.ensure_checked(filled, clock) == []
    clock.advance(seconds=1)
    (line,) = recovery.ensure_checked(filled, clock)
    assert "passages outside the lexicon" in line
    assert known(filled) == FACTS
    assert not recovery.due(filled, clock.now), "what was just rebuilt is sound"


def test_a_note_that_cannot_be_read_puts_the_look_off_no_further(filled: Path) -> None:
    lexicon_of_passages_alone(filled)
    recovery.ensure_checked(filled, Clock())
    ((root,),) = query(filled, "SELECT rootpage FROM sqlite_master WHERE name = 'cursors'")
    data = bytearray(filled.read_bytes())
    data[(root - 1) * 4096 : (root - 1) * 4096 + 8] = b"\xff" * 8
    filled.write_bytes(data)
    (line,) = recovery.ensure_checked(filled, Clock())
    assert "set aside" in line
    assert known(filled) == FACTS


def test_a_clock_that_was_wrong_does_not_put_the_look_off(filled: Path) -> None:
    lexicon_of_passages_alone(filled)
    clock = Clock()
    clock.advance(days=3000)
    recovery.ensure_checked(filled, clock)
    assert recovery.due(filled, LATER)


def test_a_look_that_is_due_waits_for_whoever_works_and_says_nothing(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "QUICK_BUSY_SECONDS", 0.05)
    with db.lease(filled, 0):
        assert recovery.ensure_checked(filled, Clock()) == []
    assert recovery.due(filled, LATER)


@pytest.mark.parametrize("cell", ["created_at = '2026-11-30Tp8:00:00+00:00'", "created_at = 7", "event_type = x'00'"])
def test_an_event_that_nobody_can_read_is_damage(filled: Path, cell: str) -> None:
    query(filled, f"UPDATE memory_events SET {cell} WHERE id = 2")
    with db.opened(filled, readonly=True) as connection, pytest.raises(DatabaseDamaged), db.explained(filled):
        events.latest(connection, 50)
    recovery.suspect(filled)
    (line,) = ensure(filled)
    assert "rows of memory_events that cannot be used" in line
    assert known(filled) == FACTS


# --- what is not known to be ours -----------------------------------------------------------------------------------------


def foreign_database(application: int, *, table: str = "recipes") -> bytes:
    connection = apsw.Connection("")
    connection.execute(f"PRAGMA application_id = {application:d}")
    connection.execute(f"CREATE TABLE {table} (name)")
    data = bytearray(connection.serialize("main"))
    connection.close()
    data[100:140] = b"\xff" * 40
    return bytes(data)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", b"ten years of notes\n"),
        ("notes.txt", b"x" * 9000),
        ("browser.db", foreign_database(0)),
        ("memory.db", foreign_database(7)),
    ],
)
def test_what_is_not_shown_to_be_ours_does_not_move(db_path: Path, name: str, content: bytes) -> None:
    path = db_path.with_name(name)
    path.parent.mkdir()
    path.write_bytes(content)
    path.chmod(0o644)
    recovery.suspect(path)
    for act in (ensure, recovery.must_be_ours, lambda p: recovery.recover(p, Clock(), "damaged.")):
        with pytest.raises(DatabaseForeign, match="CLAWMARK_DB_PATH"):
            act(path)
    assert [p.name for p in path.parent.iterdir()] == [name]
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (content, 0o644)


@pytest.mark.parametrize("content", [b"garbage" * 1000, foreign_database(0), b"x"])
@pytest.mark.parametrize(("sign", "said"), [(".facts", b"torn"), (".key", b"k" * 32), (".lock", b"4711")])
def test_what_only_clawmark_leaves_beside_a_file_shows_that_it_is_ours(
    db_path: Path, content: bytes, sign: str, said: bytes
) -> None:
    path = db_path.with_name("mine.sqlite")
    path.parent.mkdir()
    path.write_bytes(content)
    path.with_name(path.name + sign).write_bytes(said)
    recovery.must_be_ours(path)
    (line,) = ensure(path)
    assert aside(path).read_bytes() == content
    assert "set aside" in line


@pytest.mark.parametrize(
    ("sign", "said"), [(".key", b"-----BEGIN"), (".key", b"x" * 900), (".lock", b""), (".lock", b"GEM\n")]
)
def test_what_others_leave_beside_a_file_shows_nothing(db_path: Path, sign: str, said: bytes) -> None:
    path = db_path.with_name("Gemfile")
    path.parent.mkdir()
    path.write_bytes(b"source 'https://example.org'\n")
    path.with_name(path.name + sign).write_bytes(said)
    before = contents(path)
    with pytest.raises(DatabaseForeign):
        ensure(path)
    assert contents(path) == before


def test_the_name_that_nobody_gave_is_the_settings_default() -> None:
    assert Settings().db_path.name == recovery.NAME


@pytest.mark.parametrize("kind", ["folder", "pipe", "socket"])
def test_what_is_no_file_is_refused_in_a_line(db_path: Path, kind: str) -> None:
    db_path.parent.mkdir()
    if kind == "folder":
        db_path.mkdir()
    elif kind == "pipe":
        os.mkfifo(db_path)
    else:
        os.mknod(db_path, 0o600 | stat.S_IFSOCK)
    before = os.lstat(db_path)
    for act in (ensure, recovery.must_be_ours):
        with pytest.raises(DatabaseForeign, match="is no file") as raised:
            act(db_path)
        assert raised.value.exit_code == 1
    assert os.lstat(db_path) == before
    assert names(db_path) == {""}
