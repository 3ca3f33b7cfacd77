"""Copies: whose names they may have, what of them is removed, and what keeps one from being a memory."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import LATER, Clock, Log, open_memory, opened

from clawmark import transfer
from clawmark.errors import UsageError
from clawmark.store import copy, db, files, keyfile, migrations, recovery

OLD, NEW = b"o" * 32, b"n" * 32


@pytest.fixture
def memory(db_path: Path, log: Log) -> Path:
    with open_memory(db_path, log) as memory:
        memory.set("pref.editor", "Helix")
    return db_path


# --- names ------------------------------------------------------------------------------------------------------------

OURS = [
    *files.BESIDE,
    *(mark if mark.startswith("-") or not mark.endswith("-") else f"{mark}x" for mark in recovery.MARKS),
    ".new-wal", ".restoring-shm", ".key.new", ".key.old", ".0a1b2c3d.part", ".mine.0a1b2c3d.part",
]  # fmt: skip
THEIRS = [
    ".2026",
    ".bak",
    ".2026.part",
    ".part",
    "-old",
    ".newer",
    ".rebuilt",
    ".0a1b2c3.part",
    ".backup-x",
    ".facts.txt",
]


@pytest.mark.parametrize("end", [end for end in OURS if end not in (copy.PART, ".backup-x")])
def test_no_backup_gets_a_name_that_is_taken_for_one_of_ours(memory: Path, end: str) -> None:
    before = {p.name for p in memory.parent.iterdir()}
    for name in (f"{memory.name}{end}", f"other.db{end}", f"other.db{end.upper()}"):
        with pytest.raises(UsageError, match="name another file"):
            transfer.backup(memory, memory.with_name(name), Clock())
    assert {p.name for p in memory.parent.iterdir()} == before


@pytest.mark.parametrize("end", THEIRS)
def test_a_backup_under_any_other_name_outlives_whatever_clawmark_does(memory: Path, log: Log, end: str) -> None:
    made = transfer.backup(memory, memory.with_name(memory.name + end), Clock())
    held = made.read_bytes()
    transfer.restore(memory, transfer.backup(memory, None, Clock()), Clock(), 1)
    with db.lease(memory, 1):
        copy.remove_leftovers(memory)
    memory.write_bytes(b"garbage" * 2000)
    with open_memory(memory, log) as again:
        again.set("pref.tea", "black")
    assert made.read_bytes() == held


def test_only_parts_of_our_own_making_are_removed(memory: Path) -> None:
    cut_short = [".0a1b2c3d.part", ".restoring.0a1b2c3d.part", ".backup-20261201T120000Z.key.0a1b2c3d.part"]
    kept = [".2026.part", ".part", ".0a1b2c3d.part.old", ".0A1B2C3D.part", "x.0a1b2c3d.part"]
    for end in (*cut_short, *kept):
        memory.with_name(memory.name + end).write_bytes(b"x")
    memory.with_name(f"{memory.name}.0a1b2c3d.part-wal").write_bytes(b"x")
    copy.remove_parts(memory)
    left = {p.name.removeprefix(memory.name) for p in memory.parent.iterdir() if ".part" in p.name}
    assert left == set(kept)


# --- what is no memory ------------------------------------------------------------------------------------------------


def test_a_new_database_is_fit(memory: Path) -> None:
    with db.opened(memory) as connection:
        assert copy.unfit(connection, LATER) == []
        connection.execute("ANALYZE")  # leaves tables of SQLite's own
        assert copy.unfit(connection, LATER) == []


def test_a_migrated_database_is_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "older.db"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:1])
        patch.setattr(migrations, "LATEST", migrations.MIGRATIONS[0][0])
        opened(path)
    opened(path)
    with db.opened(path) as connection:
        assert copy.unfit(connection, LATER) == []


# --- who is to blame --------------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
from datetime import UTC, datetime
from pathlib import Path
from clawmark import transfer
from clawmark.errors import ClawmarkError
place, other, size = Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
clock = lambda: datetime(2026, 12, 1, 12, tzinfo=UTC)
try:
    transfer.backup(place, other, clock) if sys.argv[1] == "backup" else transfer.restore(place, other, clock, 5)
except ClawmarkError as error:
    print(error)
"""


@pytest.mark.parametrize("what", ["backup", "restore"])
def test_the_file_that_could_not_be_written_is_the_one_that_is_named(memory: Path, tmp_path: Path, what: str) -> None:
    other = tmp_path / "mine.db"
    if what == "restore":
        transfer.backup(memory, other, Clock())
    written = other if what == "backup" else copy.restoring(memory)
    size = memory.stat().st_size // 2
    assert size > 20_000 and resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, what, str(memory), str(other), str(size)],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.startswith(f"{written} could not be"), done.stdout
    assert written.exists() is False


# --- a change of key --------------------------------------------------------------------------------------------------


def key_of(path: Path) -> bytes | None:
    return keyfile.known(keyfile.key_path(path))


def belongs_to(path: Path, key: bytes) -> None:
    with db.opened(path) as connection, db.transaction(connection, path):
        copy.note_key(connection, key, LATER)


@pytest.fixture
def changing(memory: Path) -> Path:
    """A memory whose key was changed, before the database that belongs to the new one came."""
    files.replace(keyfile.key_path(memory), OLD, memory.with_name("draft"))
    copy.change_key(memory, NEW)
    assert key_of(memory) == NEW
    return memory


def test_a_key_whose_database_has_come_stays(changing: Path) -> None:
    belongs_to(changing, NEW)
    copy.settle_key(changing)
    assert key_of(changing) == NEW and not changing.with_name("memory.db.key.old").exists()


@pytest.mark.parametrize("noted", [None, OLD])
def test_a_key_whose_database_has_not_come_is_taken_back(changing: Path, noted: bytes | None) -> None:
    if noted:
        belongs_to(changing, noted)
    copy.settle_key(changing)
    assert key_of(changing) == OLD and not changing.with_name("memory.db.key.old").exists()


@pytest.mark.parametrize("content", [None, b"garbage" * 2000])
def test_a_key_is_taken_back_too_where_the_database_says_nothing(changing: Path, content: bytes | None) -> None:
    for end in (*files.COMPANIONS, ""):
        changing.with_name(changing.name + end).unlink(missing_ok=True)
    if content:
        changing.write_bytes(content)
    copy.settle_key(changing)
    assert key_of(changing) == OLD


def test_whoever_opens_leaves_a_change_that_is_going_on_alone(changing: Path) -> None:
    with db.lease(changing, 1):
        copy.finish_key_change(changing)
        assert key_of(changing) == NEW
    copy.finish_key_change(changing)
    assert key_of(changing) == OLD


def test_where_no_change_is_under_way_nothing_is_touched(memory: Path) -> None:
    before = {p.name: p.stat().st_mtime_ns for p in memory.parent.iterdir()}
    copy.finish_key_change(memory)
    assert {p.name: p.stat().st_mtime_ns for p in memory.parent.iterdir()} == before


def test_a_fingerprint_tells_keys_apart_and_is_none_of_their_bytes() -> None:
    assert copy.fingerprint(OLD) != copy.fingerprint(NEW)
    assert len(copy.fingerprint(OLD)) == 16 and copy.fingerprint(OLD) not in OLD.hex()
