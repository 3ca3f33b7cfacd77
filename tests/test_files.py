"""Files beside the database: the owner's alone, whole, never over a link, never somebody else's."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from helpers import LATER, Clock, opened, query

from clawmark import transfer
from clawmark.errors import DatabaseError, DatabaseForeign, DatabaseUnwritable, UsageError
from clawmark.store import copy, db, files, keyfile, recovery, sidecar

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


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_look_drops_no_lock_of_an_open_transaction(db_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """POSIX locks of a process end when it closes any descriptor of the file."""
    monkeypatch.setattr(db, "QUICK_BUSY_SECONDS", 0.05)
    connection = make_everything(db_path)
    assert db.rows(connection, f"PRAGMA journal_mode = {mode}") == [(mode,)]
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


# --- file systems that know no modes, and no second names (FAT, exFAT, a folder of another machine) -------------------


def failing(number: int) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return fail


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_file_whose_mode_cannot_be_set_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(os, "fchmod", failing(number))
    before = descriptors()
    for _ in range(3):
        with pytest.raises(OSError):
            files.create(tmp_path / "a")
    assert descriptors() == before
    assert list(tmp_path.glob("a*")) == []


@pytest.fixture(params=[errno.EPERM, errno.ENOTSUP])
def plain_disk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fchmod", "chmod", "link"):
        monkeypatch.setattr(os, name, failing(request.param))
    monkeypatch.setattr(Path, "chmod", failing(request.param))


@pytest.mark.usefixtures("plain_disk")
def test_everything_is_made_where_files_have_no_modes_and_one_name(db_path: Path, tmp_path: Path) -> None:
    make_everything(db_path).close()
    secret = keyfile.secret(keyfile.key_path(db_path))
    assert keyfile.secret(keyfile.key_path(db_path)) == secret and len(secret) == 32
    copy.copy_database(db_path, tmp_path / "copy.db")
    assert query(tmp_path / "copy.db", "PRAGMA integrity_check") == [("ok",)]
    assert not [p.name for p in (*tmp_path.iterdir(), *db_path.parent.iterdir()) if ".part" in p.name]
    db_path.write_bytes(b"garbage" * 1000)
    copy.copy_database(tmp_path / "copy.db", db_path.with_name("memory.db.restoring"))
    copy.exchange(db_path, db_path.with_name("memory.db.restoring"), db_path.with_name("memory.db.replaced"))
    assert db_path.with_name("memory.db.replaced").read_bytes() == b"garbage" * 1000
    assert recovery.ensure(db_path, Clock()) == []
    assert {p.name for p in db_path.parent.iterdir() if len(p.name.split(".")) > 4} == set()


@pytest.mark.usefixtures("plain_disk")
def test_without_second_names_nothing_is_overwritten_either(db_path: Path, tmp_path: Path) -> None:
    opened(db_path)
    (tmp_path / "mine.db").write_bytes(b"precious")
    with pytest.raises(UsageError, match="there already"):
        copy.copy_database(db_path, tmp_path / "mine.db")
    assert (tmp_path / "mine.db").read_bytes() == b"precious"
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError):
        files.give_name(tmp_path / "a", tmp_path / "link")
    assert not (tmp_path / "victim").exists() and (tmp_path / "a").read_bytes() == b"a"


def test_of_two_that_make_the_key_at_once_the_first_ones_is_everybodys(
    db_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    db_path.parent.mkdir()
    first = keyfile.secret(keyfile.key_path(db_path))
    assert keyfile._made(keyfile.key_path(db_path)) == first
    assert [p.name for p in db_path.parent.iterdir()] == ["memory.db.key"]


def test_another_error_of_a_second_name_is_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"a")
    monkeypatch.setattr(os, "link", failing(errno.EIO))
    with pytest.raises(OSError):
        files.give_name(tmp_path / "a", tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_a_name_that_could_not_be_given_is_free_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"a")
    monkeypatch.setattr(os, "link", failing(errno.EPERM))
    monkeypatch.setattr(os, "rename", failing(errno.EIO))
    with pytest.raises(OSError):
        files.give_name(tmp_path / "a", tmp_path / "b")
    assert not (tmp_path / "b").exists()


# --- leftovers of copies ----------------------------------------------------------------------------------------------


def test_leftovers_of_killed_backups_and_restores_go_and_all_else_stays(db_path: Path) -> None:
    make_everything(db_path).close()
    before = {p.name for p in db_path.parent.iterdir()}
    for name in (".restoring", ".restoring-wal", ".restoring-journal", ".0badcafe.part", ".backup-1.0badcafe.part"):
        db_path.with_name(db_path.name + name).write_bytes(b"left")
    with copy._draft(db_path.with_name("memory.db.backup-2")) as (part, _), db.lease(db_path, 1):
        copy.remove_leftovers(db_path)
        assert {p.name for p in db_path.parent.iterdir()} == before | {part.name}, "somebody works on that one"


def test_a_backup_leaves_a_restore_alone(db_path: Path) -> None:
    """It holds no lease, so that it cannot tell a dead one."""
    make_everything(db_path).close()
    draft = db_path.with_name("memory.db.restoring")
    draft.write_bytes(b"in use")
    transfer.backup(db_path, None, Clock())
    assert draft.read_bytes() == b"in use"


# --- second names, and what is not ours -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", files.IN_PLACE)
def test_what_is_written_in_place_is_not_written_into_a_second_name(db_path: Path, tmp_path: Path, suffix: str) -> None:
    opened(db_path)
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    victim.chmod(0o644)
    planted = db_path.with_name(db_path.name + suffix)
    planted.unlink(missing_ok=True)
    os.link(victim, planted)
    with pytest.raises(DatabaseUnwritable, match="second name") as refused:
        recovery.ensure(db_path, Clock())
    assert str(planted) in str(refused.value)
    if suffix in files.COMPANIONS:
        with pytest.raises(DatabaseUnwritable, match="second name"):
            db.connect(db_path, readonly=True)
    assert (victim.read_bytes(), victim.stat().st_mode & 0o777) == (b"precious", 0o644)


@pytest.mark.parametrize("suffix", ["", ".key", ".facts"])
def test_a_second_name_of_what_is_never_written_in_place_is_left_alone(
    db_path: Path, tmp_path: Path, suffix: str
) -> None:
    """A copy that somebody keeps by `ln`; a restore that was killed leaves one too."""
    make_everything(db_path).close()
    with db.opened(db_path) as connection:
        sidecar.write(connection, db_path, LATER)
    place = db_path.with_name(db_path.name + suffix)
    os.link(place, tmp_path / "kept")
    place.chmod(0o644)
    recovery.ensure(db_path, Clock())
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o644
    assert files.has_second_name(place) and not files.has_second_name(tmp_path / "none")


def test_a_folder_that_anybody_may_write_to_is_told_from_one_with_a_sticky_bit(tmp_path: Path) -> None:
    found = {}
    for mode in (0o700, 0o755, 0o770, 0o777, 0o1777):
        tmp_path.chmod(mode)
        found[mode] = files.open_to_others(tmp_path)
    assert found == {0o700: False, 0o755: False, 0o770: False, 0o777: True, 0o1777: False}
    assert not files.open_to_others(tmp_path / "none")


@pytest.mark.parametrize("name", [b"/", b"data/m\xff.db", b"data/" + b"x" * 210, b"data/" + b"x" * 300])
def test_a_path_that_can_name_no_database_is_said_so_in_one_line(tmp_path: Path, name: bytes) -> None:
    path = Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), name)))
    with pytest.raises(DatabaseError) as refused:
        recovery.ensure(files.resolved(path), Clock())
    said = str(refused.value)
    assert said.encode() and "\n" not in said and "CLAWMARK_DB_PATH" in said
    assert refused.value.exit_code == 1


def test_the_longest_name_leaves_room_for_all_that_stands_beside_it(tmp_path: Path) -> None:
    path = files.resolved(tmp_path / ("x" * files.LONGEST_NAME))
    assert recovery.ensure(path, Clock()) == []
    path.with_name(path.name + ".facts").write_bytes(b"torn")
    path.write_bytes(b"garbage" * 1000)
    (line,) = recovery.ensure(path, Clock())
    assert "set aside" in line


def test_a_file_in_the_place_of_the_folder_is_no_reason_to_try_again(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    with pytest.raises(DatabaseError, match=r"plain/memory\.db: Not a directory") as refused:
        recovery.ensure(tmp_path / "plain" / "memory.db", Clock())
    assert refused.value.exit_code == 1


def test_an_error_names_the_file_it_is_about(db_path: Path) -> None:
    db_path.parent.mkdir()
    key = db_path.with_name("memory.db.key")
    key.mkdir()
    with pytest.raises(DatabaseUnwritable, match=r"memory\.db\.key is no file"):
        keyfile.known(key)
    draft = OSError(28, "No space left on device", str(db_path) + ".new")
    assert str(files.told(draft, db_path)).startswith(f"{db_path}.new: No space")


def test_another_programs_file_keeps_its_mode_and_gets_no_lock(db_path: Path) -> None:
    place = db_path.with_name("lcm.db")
    place.parent.mkdir()
    connection = apsw.Connection(str(place))
    connection.execute("CREATE TABLE messages (t)")
    connection.close()
    place.chmod(0o644)
    with pytest.raises(DatabaseForeign):
        recovery.ensure(place, Clock())
    assert {p.name: p.stat().st_mode & 0o777 for p in place.parent.iterdir()} == {"lcm.db": 0o644}
