"""Files beside the database: private to their owner whatever the umask says, made whole, never reached over a link.

What is not known to be ours is looked at and left as it is: `refuse` comes first, `secure` once the database is ours.

Everything clawmark writes is made here, or by SQLite, which gives its files the mode of the database. A file that
belongs to somebody else is refused, also to root: what root leaves beside it would lock its owner out. Where the file
system gives all files one owner (a mounted Windows or network folder), a file is ours when a new one would look the same.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import secrets as entropy
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from clawmark.errors import DatabaseError, DatabaseUnwritable

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700

COMPANIONS = ("-wal", "-shm", "-journal")
"""What SQLite keeps beside a database. It belongs to that file, and is read into any other that gets its name."""

LOCKS = (".lock", ".extract.lock")
"""The leases: of whoever changes the database as a whole, and of whoever extracts."""

BESIDE = (*COMPANIONS, *LOCKS, ".new", ".key", ".key.old", ".key.new", ".check", ".serve", ".facts", ".facts.new")
"""What stands beside a database under its name, next to the dated files."""

IN_PLACE = (*COMPANIONS, *LOCKS, ".check", ".serve")
"""Of these, what is written where it stands and never has two names by our doing: a second name was planted."""

LONGEST_NAME = 190
"""In bytes. File systems end at 255, and a dated file beside the database has a longer name than it."""

_NO_PLACE = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL)
"""What the system says of a path that no waiting makes right."""

_NOT_HERE = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP)
"""What a file system says that knows no modes, or no second names: FAT, exFAT, a folder of another machine."""


def create(path: Path) -> int:
    """A descriptor to write a file that was not there before, for its owner alone."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        os.fchmod(handle, PRIVATE_FILE)  # a umask can only take away, but it can take away the owner's own bits
    except OSError as error:
        if error.errno not in _NOT_HERE:
            os.close(handle)
            os.unlink(path)
            raise
    return handle


def written(path: Path, content: bytes) -> Path:
    """A file that was not there before and holds `content`, on the disk already, for its owner alone."""
    with open(create(path), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return path


def give_name(path: Path, name: Path) -> None:
    """Call the file at `path` also `name`, which nothing has; or only `name`, where a file cannot have two names.

    Raises FileExistsError when something has it: it is not overwritten.
    """
    try:
        os.link(path, name, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
        os.close(create(name))  # whoever wants the name too finds it taken
        try:
            os.rename(path, name)
        except OSError:
            os.unlink(name)
            raise


def dated(path: Path, what: str, now: datetime, suffix: str = "") -> Path:
    """`memory.db.<what>-20261201T120000Z<suffix>` beside `path`, or the next such name that is free with all that may
    stand beside a file of that name."""
    stem = f"{path.name}.{what}-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    for number in itertools.count(1):
        name = path.with_name(f"{stem}{'' if number == 1 else f'-{number}'}{suffix}")
        if not any(os.path.lexists(name.with_name(name.name + end)) for end in ("", ".key", *COMPANIONS)):
            return name
    raise AssertionError("numbers do not end")


def open_or_create(path: Path) -> int:
    """A descriptor to read and write a file of ours, made when there is none."""
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise DatabaseUnwritable(f"{path} is no file; remove it and try again.")
        refuse_anothers(path, status)
        _refuse_second_name(path, status)
        if stat.S_IMODE(status.st_mode) != PRIVATE_FILE:
            _tighten(path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def replace(path: Path, content: bytes, draft: Path) -> None:
    """Put `content` at `path`, whole or not at all, over `draft` beside it. One writer at a time: the caller sees to it."""
    draft.unlink(missing_ok=True)  # of a writer that was killed
    os.rename(written(draft, content), path)
    sync_folder(path.parent)


def read(path: Path, most: int = -1) -> bytes | None:
    """The first `most` bytes of a file of ours; None when there is none. Neither a link nor a pipe holds us up."""
    try:
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise DatabaseUnwritable(f"{path} is no file; remove it and try again.")
            refuse_anothers(path, status)
            return file.read(most)
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise DatabaseUnwritable(f"{path} is no file; remove it and try again.") from None


def make_folder(folder: Path) -> None:
    """Every folder that is missing, each for the owner alone."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        try:
            folder.chmod(PRIVATE_FOLDER)
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise


def sync_folder(folder: Path) -> None:
    """Make names that were given and taken in `folder` last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def resolved(path: Path) -> Path:
    """Where `path` really is: what stands beside a database stands beside its real place.

    A link of the person's own, or of root's, to a database that exists is followed. One of somebody else, or one that
    leads nowhere, was planted or is a mistake: a database made behind it would stand where its owner chose.
    Raises DatabaseError for a path that can name no database.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise DatabaseError(f"{str(path)!a} is no UTF-8; name another file in CLAWMARK_DB_PATH.") from None
    try:
        real = _followed(path).resolve()
    except OSError as error:
        raise told(error, path) from error
    except RuntimeError:  # what `resolve` raises for links in a ring
        raise DatabaseError(f"{path} leads over links in a ring; name another file in CLAWMARK_DB_PATH.") from None
    if not real.name:
        raise DatabaseError(f"{path} is a folder; name a file in CLAWMARK_DB_PATH.")
    if len(os.fsencode(real.name)) > LONGEST_NAME:
        raise DatabaseError(
            f"{real} has too long a name (at most {LONGEST_NAME} bytes); shorten it in CLAWMARK_DB_PATH."
        )
    return real


def _followed(path: Path) -> Path:
    """`path`, whose links were looked at."""
    link = path
    while link.is_symlink():
        if os.lstat(link).st_uid not in (0, os.geteuid()):
            raise DatabaseUnwritable(f"{link} is a symbolic link of somebody else; it is not followed. Remove it.")
        try:
            os.stat(link)
        except OSError as error:
            raise DatabaseUnwritable(
                f"{link} is a symbolic link that leads nowhere ({error.strerror}); remove it, or name the real place "
                "in CLAWMARK_DB_PATH."
            ) from error
        link = link.parent / os.readlink(link)
    return path


def refuse(database: Path) -> None:
    """Refuse links and other people's files under the names we use; nothing is changed.

    Looks at names alone and opens nothing: closing any descriptor of a database drops the locks that SQLite holds on
    it for this process. The database itself may have a second name: a restore gives it one for a moment, and people
    keep copies that way. Nothing is lost by it, since what is not ours is never written to.
    """
    for path, status in _standing(database):
        if stat.S_ISLNK(status.st_mode):
            raise DatabaseUnwritable(f"{path} is a symbolic link, which is not followed. Remove it and try again.")
        refuse_anothers(path, status)
        if path.name.removeprefix(database.name) in IN_PLACE:
            _refuse_second_name(path, status)


def secure(database: Path) -> None:
    """`refuse`, and close our own files to everybody but their owner. For a database that is known to be ours."""
    refuse(database)
    for path, status in _standing(database):
        if _is_plain(status) and (status.st_mode & 0o177 or not status.st_mode & 0o400):
            _tighten(path)


def open_to_owner(database: Path) -> None:
    """Give the owner back what a umask took from him: without it nobody can tell whose file this is."""
    for path, status in _standing(database):
        if _is_plain(status) and not status.st_mode & 0o400:
            _tighten(path)


def _is_plain(status: os.stat_result) -> bool:
    """Whether it is a file of one name: the mode of another one's second name is not ours to change."""
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def refuse_planted_logs(database: Path) -> None:
    """SQLite writes into whatever has the name of its log. Of a hard link it knows nothing."""
    for suffix in COMPANIONS:
        path = database.with_name(database.name + suffix)
        with contextlib.suppress(FileNotFoundError):
            _refuse_second_name(path, os.lstat(path))


def _standing(database: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The database and what stands beside it; of our own, files and links alone."""
    for path in (database, *(database.with_name(database.name + suffix) for suffix in BESIDE)):
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid():
                yield path, status


def open_to_others(folder: Path) -> bool:
    """Whether anybody on this machine may put files into `folder` and take ours away, as a mode like 0777 allows."""
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_IWOTH and not mode & stat.S_ISVTX)


def has_second_name(database: Path) -> bool:
    """Whether a hard link leads to the database too: who opens it under that name has another log, and spoils it."""
    try:
        return os.lstat(database).st_nlink > 1
    except OSError:
        return False


def mark_of(database: Path) -> Path:
    """The mark of damage that somebody met: the whole file is looked at because of it."""
    return database.with_name(database.name + ".check")


def leave_mark(database: Path) -> None:
    """Never raises: where no mark can be made, nothing can be rebuilt either."""
    with contextlib.suppress(DatabaseError, OSError):
        os.close(open_or_create(mark_of(database)))


def told(error: OSError, path: Path) -> DatabaseError:
    """The system's error about a file of ours as one of ours: it names the file it is about, else `path`."""
    named = error.filename if isinstance(error.filename, str) else path
    if error.errno in _NO_PLACE:
        return DatabaseError(f"{named}: {error.strerror}; name another file in CLAWMARK_DB_PATH.")
    return DatabaseUnwritable(f"{named}: {error.strerror or error}; check the path, its permissions and the disk.")


def _tighten(path: Path) -> None:
    """On a read-only disk, and where the file system knows no modes, the file stays as it is: it can still be read."""
    with contextlib.suppress(OSError):
        os.chmod(path, PRIVATE_FILE)


def _refuse_second_name(path: Path, status: os.stat_result) -> None:
    if status.st_nlink > 1:
        raise DatabaseUnwritable(
            f"{path} has a second name (a hard link), and what is written to it would stand there too. Remove it and "
            "try again."
        )


def refuse_anothers(path: Path, status: os.stat_result) -> None:
    if status.st_uid == os.geteuid() or status.st_uid == _owner_of_new(path.parent):
        return
    raise DatabaseUnwritable(
        f"{path} belongs to the user with number {status.st_uid}, and this process is {os.geteuid()}. Run clawmark as "
        "that user, or give the file to this one (chown); it was left as it is."
    )


def _owner_of_new(folder: Path) -> int | None:
    """Who a file made in `folder` belongs to; None when none can be made."""
    probe = folder / f".clawmark-{entropy.token_hex(8)}"
    try:
        handle = create(probe)
    except OSError:
        return None
    try:
        return os.fstat(handle).st_uid
    finally:
        os.close(handle)
        probe.unlink()
