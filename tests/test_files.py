"""Files beside the database: the owner's alone, whole, never over a link, never somebody else's."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from helpers import Clock, opened, query

from clawmark.errors import DatabaseUnwritable
from clawmark.store import db, files, keyfile, recovery, sidecar

MASKS = [0o000, 0o022, 0o777]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")


@contextmanager
def umask(value: int) -> Iterator[None]:
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def make_everything(path: Path) -> apsw.Connection:
    """All the files there can be beside a database, left open."""
    recovery.ensure(path, Clock())
    keyfile.secret(keyfile.key_path(path))
    connection = db.connect(path)
    sidecar.write(connection, path, Clock()())
    return connection


@pytest.mark.parametrize("mask", MASKS)
def test_files_and_folders_are_the_owners_alone_under_any_umask(db_path: Path, mask: int) -> None:
    path = db_path.parent / "a" / "b" / "memory.db"
    with umask(mask):
        connection = make_everything(path)
        names = {p.name.removeprefix("memory.db"): oct(mode(p)) for p in path.parent.iterdir()}
        connection.close()
    assert names == dict.fromkeys(("", "-wal", "-shm", ".lock", ".key", ".facts"), "0o600")
    assert [oct(mode(folder)) for folder in (path.parent, path.parent.parent, db_path.parent)] == ["0o700"] * 3


@pytest.mark.parametrize("mask", MASKS)
def test_files_of_a_recovery_are_the_owners_alone_under_any_umask(db_path: Path, mask: int) -> None:
    with umask(mask):
        make_everything(db_path).close()
        db_path.write_bytes(b"garbage" * 1000)
        recovery.ensure(db_path, Clock())
    assert {oct(mode(p)) for p in db_path.parent.iterdir()} == {"0o600"}
    assert recovery.set_aside_files(db_path)


def test_looser_files_of_ours_are_closed_when_the_database_is_opened(db_path: Path) -> None:
    connection = make_everything(db_path)
    for path in db_path.parent.iterdir():
        path.chmod(0o644)
    recovery.ensure(db_path, Clock())
    assert {oct(mode(p)) for p in db_path.parent.iterdir()} == {"0o600"}
    connection.close()


def test_files_that_a_umask_closed_to_their_owner_are_opened_to_him(db_path: Path) -> None:
    make_everything(db_path).close()
    for path in db_path.parent.iterdir():
        path.chmod(0o000)
    recovery.ensure(db_path, Clock())
    assert {oct(mode(p)) for p in db_path.parent.iterdir()} == {"0o600"}


def test_a_file_that_is_closer_than_ours_stays_so(db_path: Path) -> None:
    opened(db_path)
    db_path.chmod(0o400)
    recovery.ensure(db_path, Clock())
    assert mode(db_path) == 0o400


def test_closing_files_drops_no_lock_of_an_open_transaction(db_path: Path) -> None:
    """POSIX locks of a process end when it closes any descriptor of the file."""
    connection = make_everything(db_path)
    db_path.chmod(0o644)
    with db.transaction(connection, db_path):
        recovery.ensure(db_path, Clock())
        said = subprocess.run(
            [
                sys.executable,
                "-c",
                "import apsw, sys; apsw.Connection(sys.argv[1]).execute('BEGIN IMMEDIATE')",
                db_path,
            ],
            capture_output=True,
            text=True,
            check=False,
        ).stderr
    assert "BusyError" in said
    connection.close()


# --- links ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", *files.BESIDE])
@pytest.mark.parametrize("leads", ["nowhere", "to a file"])
def test_a_planted_link_is_refused_and_its_target_untouched(
    db_path: Path, tmp_path: Path, suffix: str, leads: str
) -> None:
    target = tmp_path / "target"
    if leads == "to a file":
        target.write_bytes(b"somebody's")
    if suffix:
        make_everything(db_path).close()
    db_path.parent.mkdir(exist_ok=True)
    planted = db_path.with_name(db_path.name + suffix)
    planted.unlink(missing_ok=True)
    planted.symlink_to(target)
    with pytest.raises(DatabaseUnwritable, match="symbolic link") as refused:
        recovery.ensure(db_path, Clock())
    assert str(planted) in str(refused.value)
    assert planted.is_symlink()
    assert (target.read_bytes() == b"somebody's") if leads == "to a file" else not target.exists()


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_sqlite_itself_follows_no_link_to_its_log(db_path: Path, tmp_path: Path, suffix: str) -> None:
    """Between our look and its opening somebody may be quick."""
    opened(db_path)
    db_path.with_name(db_path.name + suffix).symlink_to(tmp_path / "target")
    with pytest.raises(DatabaseUnwritable), db.explained(db_path):
        connection = db.connect(db_path)
        db.rows(connection, "SELECT * FROM facts")
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("name", ["memory.db.damaged-20261201T120000Z", "memory.db.rebuilt-20261201T120000Z"])
def test_a_planted_link_under_a_dated_name_is_neither_followed_nor_replaced(
    db_path: Path, tmp_path: Path, name: str
) -> None:
    target = tmp_path / "target"
    db_path.parent.mkdir()
    db_path.write_bytes(b"garbage" * 1000)
    db_path.with_name(name).symlink_to(target)
    recovery.ensure(db_path, Clock())
    assert not target.exists()
    assert query(db_path, "SELECT count(*) FROM facts") == [(0,)]
    (aside,) = [p for p in recovery.set_aside_files(db_path) if ".damaged-" in p.name and not p.is_symlink()]
    assert aside.read_bytes() == b"garbage" * 1000


def test_a_persons_own_link_to_a_database_is_followed(db_path: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere" / "real.db"
    opened(real)
    between = tmp_path / "between.db"
    between.symlink_to(real)
    db_path.parent.mkdir()
    db_path.symlink_to(Path("..") / "between.db")
    assert files.resolved(db_path) == real.resolve()
    assert files.resolved(real) == real.resolve()


def test_a_link_that_leads_nowhere_is_refused(db_path: Path, tmp_path: Path) -> None:
    db_path.parent.mkdir()
    db_path.symlink_to(tmp_path / "target")
    with pytest.raises(DatabaseUnwritable, match="leads nowhere"):
        files.resolved(db_path)
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(DatabaseUnwritable, match="leads nowhere"):
        files.resolved(loop)


@needs_root
@pytest.mark.parametrize("owner", [1234, 0])
def test_a_link_of_somebody_else_is_refused(tmp_path: Path, owner: int) -> None:
    """Root may lay a link for anybody."""
    real, link = tmp_path / "real.db", tmp_path / "link.db"
    opened(real)
    link.symlink_to(real)
    os.lchown(link, owner, owner)
    if owner == 0:
        assert files.resolved(link) == real.resolve()
    else:
        with pytest.raises(DatabaseUnwritable, match="somebody else"):
            files.resolved(link)


# --- owners -----------------------------------------------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("suffix", ["", "-wal", ".lock", ".key", ".facts"])
def test_a_file_of_another_user_is_refused_and_left_as_it_is(db_path: Path, suffix: str) -> None:
    """Also by root, whose own files beside it would lock that user out."""
    connection = make_everything(db_path)
    theirs = db_path.with_name(db_path.name + suffix)
    os.chown(theirs, 1234, 1234)
    theirs.chmod(0o644)
    before = {p.name: p.read_bytes() for p in db_path.parent.iterdir()}
    with pytest.raises(DatabaseUnwritable, match="1234") as refused:
        recovery.ensure(db_path, Clock())
    assert str(theirs) in str(refused.value)
    assert {p.name: p.read_bytes() for p in db_path.parent.iterdir()} == before
    assert mode(theirs) == 0o644
    connection.close()


@needs_root
@pytest.mark.parametrize("suffix", [".key", ".lock", ".facts"])
def test_a_file_that_somebody_put_there_later_is_refused_too(db_path: Path, suffix: str) -> None:
    opened(db_path)
    theirs = db_path.with_name(db_path.name + suffix)
    theirs.write_bytes(b"x" * 32)
    os.chown(theirs, 1234, 1234)
    with pytest.raises(DatabaseUnwritable, match="1234"):
        if suffix == ".key":
            keyfile.secret(keyfile.key_path(db_path))
        elif suffix == ".facts":
            sidecar.read(db_path)
        else:
            with db.lease(db_path, 0):
                pass


def test_where_all_files_have_one_owner_nobodys_are_anothers(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mounted Windows folder: what we make there is not ours either."""
    make_everything(db_path).close()
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    assert recovery.ensure(db_path, Clock()) == []
    assert not [p for p in db_path.parent.iterdir() if p.name.startswith(".clawmark")]


# --- whole or not at all ----------------------------------------------------------------------------------------------


def test_a_replaced_file_is_whole_and_its_draft_gone(tmp_path: Path) -> None:
    place, draft = tmp_path / "a", tmp_path / "a.new"
    place.write_bytes(b"old")
    draft.write_bytes(b"of a writer that was killed, and longer than what comes now")
    files.replace(place, b"new", draft)
    assert place.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["a"]


def test_no_file_is_made_over_another(tmp_path: Path) -> None:
    place = tmp_path / "a"
    place.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        files.create(place)
    assert place.read_bytes() == b"old"


def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(db_path: Path) -> None:
    opened(db_path)
    for suffix, act in ((".facts", sidecar.read), (".key", lambda p: keyfile.secret(keyfile.key_path(p)))):
        os.mkfifo(db_path.with_name(db_path.name + suffix))
        with pytest.raises(DatabaseUnwritable, match="no file"):
            act(db_path)
