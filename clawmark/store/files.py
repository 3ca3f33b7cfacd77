"""Files beside the database: private to their owner whatever the umask says, made whole, never reached over a link.

Everything clawmark writes is made here, or by SQLite, which gives its files the mode of the database. A file that
belongs to somebody else is refused, also to root: what root leaves beside it would lock its owner out. Where the file
system gives all files one owner (a mounted Windows or network folder), a file is ours when a new one would look the same.
"""

from __future__ import annotations

import contextlib
import os
import secrets as entropy
import stat
from pathlib import Path

from clawmark.errors import DatabaseUnwritable

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700

BESIDE = ("-wal", "-shm", "-journal", ".new", ".lock", ".key", ".facts", ".facts.new")
"""What stands beside a database under its name, next to the dated files."""


def create(path: Path) -> int:
    """A descriptor to write a file that was not there before, for its owner alone."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE_FILE)
    os.fchmod(handle, PRIVATE_FILE)  # a umask can only take away, but it can take away the owner's own bits
    return handle


def open_or_create(path: Path) -> int:
    """A descriptor to read and write a file of ours, made when there is none."""
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise DatabaseUnwritable(f"{path} is no file; remove it and try again.")
        refuse_anothers(path, status)
        if stat.S_IMODE(status.st_mode) != PRIVATE_FILE:
            _tighten(path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def replace(path: Path, content: bytes, draft: Path) -> None:
    """Put `content` at `path`, whole or not at all, over `draft` beside it. One writer at a time: the caller sees to it."""
    draft.unlink(missing_ok=True)  # of a writer that was killed
    handle = create(draft)
    with open(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(handle)
    os.rename(draft, path)
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


def make_folder(folder: Path) -> None:
    """Every folder that is missing, each for the owner alone."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        folder.chmod(PRIVATE_FOLDER)


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
    """
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
    return path.resolve()


def secure(database: Path) -> None:
    """Refuse links and other people's files under the names we use, and close our own to everybody but their owner.

    Looks at names alone and opens nothing: closing any descriptor of a database drops the locks that SQLite holds on
    it for this process.
    """
    for path in (database, *(database.with_name(database.name + suffix) for suffix in BESIDE)):
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            continue
        if stat.S_ISLNK(status.st_mode):
            raise DatabaseUnwritable(f"{path} is a symbolic link, which is not followed. Remove it and try again.")
        refuse_anothers(path, status)
        if stat.S_ISREG(status.st_mode) and (status.st_mode & 0o177 or not status.st_mode & 0o400):
            _tighten(path)


def _tighten(path: Path) -> None:
    """On a read-only disk, and where the file system knows no modes, the file stays as it is: it can still be read."""
    with contextlib.suppress(OSError):
        os.chmod(path, PRIVATE_FILE)


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
