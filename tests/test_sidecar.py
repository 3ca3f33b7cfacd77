"""The sidecar: as the database, whole, private, never older than what it replaces."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from helpers import LATER, Clock, Log, fact, open_memory, opened, query, residue
from hypothesis import given
from hypothesis import strategies as st

from clawmark import erase
from clawmark.errors import DatabaseDamaged, DatabaseUnwritable
from clawmark.model import Evidence
from clawmark.store import db, events, evidence, facts, files, migrations, sidecar, streams, tombstones

SECRET = b"s" * 32


@pytest.fixture
def connection(db_path: Path) -> Any:
    opened(db_path)
    made = db.connect(db_path)
    yield made
    made.close()


def remember(connection: apsw.Connection, path: Path, key: str, value: str) -> None:
    with db.transaction(connection, path):
        facts.put(connection, fact(key, value))
        events.add(connection, "create", LATER, source="user", scope="shared", key=key, new=value)


def rows_of(connection: apsw.Connection, table: str) -> list[tuple[Any, ...]]:
    listed = ", ".join(sidecar.TABLES[table])
    return sorted(db.rows(connection, f"SELECT {listed} FROM {table}"), key=repr)


def read(path: Path) -> sidecar.Sidecar:
    found = sidecar.read(path)
    assert found is not None
    return found


def keys(path: Path) -> list[str]:
    return [row["key"] for row in read(path).facts]


def test_there_is_none_before_one_is_written(db_path: Path) -> None:
    opened(db_path)
    assert sidecar.read(db_path) is None
    assert sidecar.stamp(db_path) is None


def test_it_holds_every_row_and_column(connection: apsw.Connection, db_path: Path) -> None:
    remember(connection, db_path, "pref.editor", 'Helix "τ" \u2028 \x85 \n {} 日本')
    remember(connection, db_path, "pref.hidden", "x")
    connection.execute("UPDATE facts SET is_deleted = 1, confidence = 0.1 WHERE key = 'pref.hidden'")
    tombstones.bury(connection, "key", bytes(range(32)), LATER)
    connection.execute("UPDATE tombstones SET expires_at = ?", (LATER.isoformat(),))
    tombstones.bury(connection, "value", b"\0" * 32, LATER)
    streams.bury_session(connection, "main", "a session", "log", "a host", LATER)
    tombstones.put_horizon(connection, "work", LATER)
    evidence.add(connection, "main", "pref.editor", "Helix", Evidence(b"k" * 16, LATER, "s1"))
    for state in ("pending", "rejected"):
        connection.execute(
            "INSERT INTO proposals VALUES (NULL, 'set', 'main', 'pref.x', 'y', 0.7, 'owner', 'marker', 'none', NULL, ?1,"
            " ?2, ?2, ?2, ?2, NULL)",
            (state, LATER.isoformat()),
        )
    sidecar.write(connection, db_path, LATER)
    found = read(db_path)
    for table in sidecar.TABLES:
        assert sorted((tuple(row.values()) for row in found.tables[table]), key=repr) == rows_of(connection, table)
    assert len(found.facts) == len(found.tombstones) == 2
    assert found.stamp == sidecar.stamp(db_path) == events.newest(connection) == 2


@given(st.lists(st.tuples(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")))))
def test_any_text_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, said: list[tuple[str, str]]) -> None:
    path = tmp_path_factory.mktemp("any") / "memory.db"
    opened(path)
    connection = db.connect(path)
    for key, value in said:
        facts.put(connection, fact(key, value))
    sidecar.write(connection, path, LATER)
    assert {row["key"]: row["value"] for row in read(path).facts} == dict(said)
    connection.execute("DELETE FROM facts")
    sidecar.insert(connection, read(path).tables)
    assert {f.key: f.value for f in facts.live(connection)} == dict(said)
    connection.close()


def test_every_table_it_keeps_is_there_with_all_its_columns(connection: apsw.Connection) -> None:
    """A column that a later schema adds must not be lost in a recovery."""
    for table, columns in sidecar.TABLES.items():
        found = [row[0] for row in db.rows(connection, "SELECT name FROM pragma_table_info(?)", (table,))]
        assert sorted(found) == sorted(columns), table


def test_it_is_a_file_that_people_can_read(connection: apsw.Connection, db_path: Path) -> None:
    remember(connection, db_path, "pref.editor", "Helix")
    sidecar.write(connection, db_path, LATER)
    header, row, end = map(json.loads, sidecar.path_of(db_path).read_text().splitlines())
    assert header == {"clawmark": "facts", "version": 1, "stamp": 1, "written_at": LATER.isoformat()}
    assert row["table"] == "facts"
    assert row["row"]["value"] == "Helix"
    assert end["rows"] == 1


def test_one_that_says_the_same_already_is_left_alone(connection: apsw.Connection, db_path: Path) -> None:
    remember(connection, db_path, "pref.editor", "Helix")
    sidecar.write(connection, db_path, LATER)
    before = sidecar.path_of(db_path).stat()
    sidecar.write(connection, db_path, Clock(LATER.replace(year=2027))())
    after = sidecar.path_of(db_path).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    remember(connection, db_path, "pref.editor", "Kakoune")
    sidecar.write(connection, db_path, LATER)
    assert [row["value"] for row in read(db_path).facts] == ["Kakoune"]


def test_its_stamp_does_not_fall_when_events_are_pruned(connection: apsw.Connection, db_path: Path) -> None:
    remember(connection, db_path, "pref.editor", "Helix")
    connection.execute("DELETE FROM memory_events")
    sidecar.write(connection, db_path, LATER)
    assert read(db_path).stamp == 1


# --- with erasure -----------------------------------------------------------------------------------------------------


def forget(connection: apsw.Connection, path: Path, key: str) -> None:
    with db.transaction(connection, path):
        assert erase.erase_fact(connection, key, "shared", SECRET, LATER)
        sidecar.write(connection, path, LATER)


def test_what_a_committed_erasure_took_is_not_in_it(connection: apsw.Connection, db_path: Path) -> None:
    for key, value in (("pref.editor", "zqmarzipan"), ("user.city", "Gothenburg")):
        remember(connection, db_path, key, value)
    sidecar.write(connection, db_path, LATER)
    forget(connection, db_path, "pref.editor")
    assert keys(db_path) == ["user.city"]
    assert len(read(db_path).tombstones) == 4, "key, value, both together, and its one stem"
    assert "memory.db.facts" not in residue(db_path.parent, "zqmarzipan")


def test_inside_a_transaction_its_stamp_is_what_an_aborted_commit_leaves(
    connection: apsw.Connection, db_path: Path
) -> None:
    remember(connection, db_path, "pref.editor", "Helix")
    with pytest.raises(KeyboardInterrupt), db.transaction(connection, db_path):
        erase.erase_fact(connection, "pref.editor", "shared", SECRET, LATER)
        sidecar.write(connection, db_path, LATER)
        raise KeyboardInterrupt
    assert read(db_path).stamp == events.newest(connection) == 1
    forget(connection, db_path, "pref.editor")
    assert read(db_path).stamp == 1
    sidecar.write(connection, db_path, LATER)
    assert read(db_path).stamp == events.newest(connection) == 2


def write_of_its_own(path: Path) -> None:
    connection = db.connect(path)
    sidecar.write(connection, path, LATER)
    connection.close()


def test_a_writer_that_read_before_an_erasure_cannot_write_after_it(connection: apsw.Connection, db_path: Path) -> None:
    """Else an acknowledged forget is undone by the older state of a slower process."""
    remember(connection, db_path, "pref.editor", "Helix")
    with db.transaction(connection, db_path):
        erase.erase_fact(connection, "pref.editor", "shared", SECRET, LATER)
        thread = threading.Thread(target=write_of_its_own, args=(db_path,))
        thread.start()
        thread.join(0.2)
        assert thread.is_alive(), "it waits for the transaction's end before it reads"
        sidecar.write(connection, db_path, LATER)
    thread.join()
    assert keys(db_path) == []


def test_discarding_leaves_nothing(connection: apsw.Connection, db_path: Path) -> None:
    remember(connection, db_path, "pref.editor", "zqmarzipan")
    sidecar.write(connection, db_path, LATER)
    db_path.with_name("memory.db.facts.new").write_bytes(b"zqmarzipan")
    sidecar.discard(db_path)
    assert not [name for name in residue(db_path.parent, "zqmarzipan") if "facts" in name]
    sidecar.discard(db_path)


# --- torn, edited, newer ----------------------------------------------------------------------------------------------


@pytest.fixture
def written(connection: apsw.Connection, db_path: Path) -> Path:
    remember(connection, db_path, "pref.editor", "Helix")
    remember(connection, db_path, "user.city", "Gothenburg")
    tombstones.bury(connection, "key", b"k" * 32, LATER)
    sidecar.write(connection, db_path, LATER)
    return sidecar.path_of(db_path)


def test_one_that_is_torn_anywhere_is_damaged(written: Path, db_path: Path) -> None:
    whole = written.read_bytes()
    for length in range(len(whole)):
        written.write_bytes(whole[:length])
        with pytest.raises(DatabaseDamaged, match=r"memory\.db\.facts"):
            sidecar.read(db_path)


def test_one_that_was_edited_anywhere_is_damaged(written: Path, db_path: Path) -> None:
    whole = written.read_bytes()
    for at in range(len(whole)):
        written.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(DatabaseDamaged, match=r"memory\.db\.facts"):
            sidecar.read(db_path)


@pytest.mark.parametrize(
    "content",
    [b"\n", b"[]\n{}\n", b"null\nnull\n", b"{}\n", b"[" * 100_000, b"\xff\xfe\n", b'{"stamp":1e999}\n', b"\0" * 5000],
)
def test_garbage_is_damaged_and_has_no_stamp(db_path: Path, content: bytes) -> None:
    opened(db_path)
    sidecar.path_of(db_path).write_bytes(content)
    assert sidecar.stamp(db_path) is None
    with pytest.raises(DatabaseDamaged):
        sidecar.read(db_path)


def test_one_of_a_later_version_is_said_to_be(written: Path, db_path: Path) -> None:
    written.write_bytes(written.read_bytes().replace(b'"version":1', b'"version":2'))
    with pytest.raises(DatabaseDamaged, match="later clawmark"):
        sidecar.read(db_path)


def test_a_damaged_one_is_written_anew_with_a_word(
    written: Path, connection: apsw.Connection, db_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = written.read_bytes()
    written.write_bytes(whole[:-3])
    sidecar.write(connection, db_path, LATER)
    assert written.read_bytes() == whole
    assert "sidecar_rewritten" in caplog.text


def test_an_older_one_without_a_later_column_can_be_put_back(connection: apsw.Connection) -> None:
    now = datetime.isoformat(LATER)
    row = {"hash": b"h", "kind": "key", "created_at": now}
    sidecar.insert(connection, {"tombstones": [row], "unknown": [{"a": 1}]})
    assert db.rows(connection, "SELECT hash, expires_at FROM tombstones") == [(b"h", None)]


# --- faults -----------------------------------------------------------------------------------------------------------


def test_a_writer_that_was_killed_leaves_the_old_one_and_holds_nobody_up(
    written: Path, connection: apsw.Connection, db_path: Path
) -> None:
    whole = written.read_bytes()
    draft = db_path.with_name("memory.db.facts.new")
    draft.write_bytes(b"half of")
    remember(connection, db_path, "pref.shell", "fish")
    sidecar.write(connection, db_path, LATER)
    assert not draft.exists()
    assert written.read_bytes() != whole
    assert keys(db_path) == ["pref.editor", "pref.shell", "user.city"]
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["memory.db.facts", "memory.db.facts.new"])
def test_a_planted_link_is_not_followed(connection: apsw.Connection, db_path: Path, tmp_path: Path, name: str) -> None:
    remember(connection, db_path, "pref.editor", "Helix")
    target = tmp_path / "target"
    target.write_bytes(b"somebody's")
    db_path.with_name(name).symlink_to(target)
    try:
        sidecar.write(connection, db_path, LATER)
    except DatabaseUnwritable:
        assert name == "memory.db.facts"
    assert target.read_bytes() == b"somebody's"
    assert query(db_path, "SELECT count(*) FROM facts") == [(1,)]
    assert os.path.islink(sidecar.path_of(db_path)) == (name == "memory.db.facts")


def test_a_sidecar_that_cannot_be_saved_is_only_said(
    connection: apsw.Connection, db_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sidecar.path_of(db_path).symlink_to(db_path.parent / "elsewhere")
    sidecar.save(connection, db_path, LATER)
    assert "sidecar_not_written reason=" in caplog.text
    sidecar.path_of(db_path).unlink()
    sidecar.save(connection, db_path, LATER)
    assert sidecar.read(db_path) is not None


# --- what a database must not do to it --------------------------------------------------------------------------------


def test_a_later_one_gets_another_name_when_the_database_has_lost_something(
    connection: apsw.Connection, db_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    remember(connection, db_path, "pref.editor", "Helix")
    sidecar.write(connection, db_path, LATER)
    later = sidecar.State(99, {"facts": read(db_path).facts, "tombstones": []})
    sidecar.put(db_path, later, LATER)
    content = sidecar.path_of(db_path).read_bytes()
    sidecar.write(connection, db_path, LATER)
    (aside,) = db_path.parent.glob("memory.db.facts-*")
    assert aside.read_bytes() == content
    assert "sidecar_set_aside" in caplog.text
    assert read(db_path).stamp == events.newest(connection)
    remember(connection, db_path, "pref.shell", "fish")
    sidecar.write(connection, db_path, LATER)  # an older one is replaced
    assert list(db_path.parent.glob("memory.db.facts-*")) == [aside]


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE facts SET updated_at = '2026-11-30Tp8:00:00+00:00'",
        "UPDATE facts SET source = 'uses'",
        "UPDATE facts SET confidence = 'high'",
        "INSERT INTO tombstones VALUES (x'00', 'key', 'once', NULL)",
    ],
)
def test_a_row_that_nobody_can_use_does_not_take_the_place_of_a_good_one(
    connection: apsw.Connection, db_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    remember(connection, db_path, "pref.editor", "Helix")
    sidecar.write(connection, db_path, LATER)
    before = sidecar.path_of(db_path).read_bytes()
    connection.execute(damage)
    with pytest.raises(DatabaseDamaged, match="cannot be used"):
        sidecar.write(connection, db_path, LATER)
    assert not files.mark_of(db_path).exists()
    sidecar.save(connection, db_path, LATER)
    assert "sidecar_not_written" in caplog.text
    assert files.mark_of(db_path).exists()
    assert sidecar.path_of(db_path).read_bytes() == before


@pytest.mark.parametrize("place", ["key", "value", "scope", "written_at"])
def test_half_a_character_makes_a_sidecar_unreadable_and_no_command(db_path: Path, log: Log, place: str) -> None:
    """A file can be crafted, checksum and all; what no database takes must not end each command."""
    with open_memory(db_path, log) as memory:
        memory.set("pref.editor", "Helix")
    path = sidecar.path_of(db_path)
    lines = path.read_text(encoding="utf-8").splitlines()
    if place == "written_at":
        lines[0] = json.dumps(json.loads(lines[0]) | {place: "\ud800"})
    else:
        entry = json.loads(lines[1])
        entry["row"][place] += "\ud800"
        lines[1] = json.dumps(entry)
    body = "".join(line + "\n" for line in lines[:-1]).encode()
    end = {"rows": len(lines) - 2, "sha256": hashlib.sha256(body).hexdigest()}
    path.write_bytes(body + json.dumps(end, separators=(",", ":")).encode() + b"\n")
    with pytest.raises(DatabaseDamaged):
        sidecar.read(db_path)
    with db_path.open("r+b") as file:
        file.write(b"\xff" * 100)
    with open_memory(db_path, log) as memory:
        memory.facts()


def test_a_row_that_stands_twice_is_taken_once(db_path: Path, log: Log) -> None:
    with open_memory(db_path, log) as memory:
        memory.set("pref.editor", "Helix")
    kept = sidecar.read(db_path)
    assert kept is not None
    connection = apsw.Connection(":memory:")
    migrations.migrate(connection, LATER)
    sidecar.insert(connection, {"facts": [*kept.facts, *kept.facts]})
    assert connection.execute("SELECT count(*) FROM facts").fetchall() == [(1,)]
