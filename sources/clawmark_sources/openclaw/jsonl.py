"""The era up to 2026.7.1: a folder of session files, one JSON entry a line, and the archives that both eras leave.

What always holds: a bad line costs itself alone, an unreadable file no other one; one file is open at a time. A poll
costs a look at each file's size and times: what is known of an unchanged one is kept.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from clawmark.errors import SourceError
from clawmark.model import Batch, Message, Stream, Wanted
from clawmark_sources.openclaw.branch import Tree
from clawmark_sources.openclaw.files import (
    PLACES,
    File,
    agent_of,
    history,
    holds_transcripts,
    indexed,
    is_kind,
    named,
    readable,
    unreadable,
)
from clawmark_sources.openclaw.known import NOTHING_KNOWN, Known, Session
from clawmark_sources.openclaw.lines import Content, OpenFile, Unpacked, first_bytes
from clawmark_sources.openclaw.messages import Run
from clawmark_sources.openclaw.reading import (
    HEADER_BYTES,
    Position,
    Reading,
    header,
    is_small_number,
    resumed,
    tree_of,
)
from clawmark_sources.openclaw.upkeep import Upkeep, upkeep_of

__all__ = ["PREFIX", "SessionFolder", "agent_of", "holds_transcripts", "is_kind", "old_ref", "readable"]

PREFIX: Final = "file:"
KEPT_UNPACKED: Final = 64 << 20
"""Bytes of the one unpacked archive that is kept, so that excerpts do not unpack it each time."""
KEPT_TREES: Final = 64

_Version = tuple[str, int, int, int]
"""A file's label, inode, size and time: what tells one version of it from the next."""


def old_ref(stream: str, location: str) -> str | None:
    """What the TypeScript clawmark called the message at a location: its file's name and the offset of its line.

    None for an archive: a new file of the same name may have had other messages at the same offsets.
    """
    name = stream.partition("/")[2]
    offset, separator, _ = location.partition(":")
    if not (stream.startswith(PREFIX) and name.endswith(".jsonl") and separator and is_small_number(offset)):
        return None
    return f"{name}:{int(offset)}"


@contextmanager
def _directory(path: Path) -> Iterator[int | None]:
    """A folder to look files up in: the way to it is not walked again for each of thousands. None when it is not there."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    except OSError:
        fd = None
    try:
        yield fd
    finally:
        if fd is not None:
            os.close(fd)


class SessionFolder:
    """Reads one agent's `sessions` folder and the archives beside it."""

    def __init__(self, path: Path, agent: str) -> None:
        self.path = path
        self.agent = agent
        self._base = os.path.join(path, "")
        self._home = os.path.dirname(os.path.abspath(path))
        self._indexed: dict[str, Session] = {}
        self._index_mark: object = None
        self._names: dict[str, dict[str, File | None]] = {}
        self._history: list[File] = []
        self._files: dict[str, File] = {}
        self._listed: dict[str, tuple[_Version, Stream]] = {}
        self._listed_in: object = None
        self._headers: dict[tuple[str, int], tuple[str, str]] = {}
        self._trees: dict[_Version, Tree] = {}
        self._unpacked: tuple[_Version, Unpacked] | None = None

    def streams(self, known: Known) -> Iterator[Stream]:
        """Every transcript whose session was neither forgotten nor, for an archive, deleted in the other era.

        A file that cannot be looked at is raised after all others were: what is not listed is erased.
        """
        self._refresh()
        context = (self._list(), known, self._index_mark)
        before = self._listed if context == self._listed_in else {}
        listed: dict[str, tuple[_Version, Stream]] = {}
        failure: SourceError | None = None
        with _directory(self.path) as folder:
            for name, file in self._files.items():
                try:
                    now = os.stat(file.path if folder is None else file.within, dir_fd=folder)
                    kept = before.get(name)
                    version = (file.label, now.st_ino, now.st_size, now.st_mtime_ns)
                    if kept is None or kept[0] != version:
                        stream = self._stream(name, file, now, known) if stat.S_ISREG(now.st_mode) else None
                        if stream is None:
                            continue
                        kept = version, stream
                except FileNotFoundError:
                    continue
                except OSError as error:
                    if error.errno != errno.ELOOP:  # a link to itself is no file
                        failure = failure or unreadable(Path(file.path), error)
                    continue
                listed[name] = kept
                yield kept[1]
        self._listed, self._listed_in = listed, context
        if failure is not None:
            raise failure

    def read(self, stream: Stream, cursor: str | None, limit: int, told: Callable[[str], Session | None]) -> Batch:
        """`told` says whose a session is that sessions.json does not list."""
        self._refresh()
        file = self._file(stream.name)
        if file is None:
            return Batch(messages=(), cursor=cursor or Position().dump())
        try:
            with self._opened(file, told) as (reading, content):
                return reading.batch(resumed(content, cursor), max(1, limit))
        except FileNotFoundError:
            return Batch(messages=(), cursor=cursor or Position().dump())
        except OSError as error:
            raise unreadable(Path(file.path), error) from error

    def find(self, wanted: Sequence[Wanted], deleted: frozenset[str]) -> dict[str, Message]:
        """Those of the wanted messages that stand here now: at the hint first, then anywhere in the session's files."""
        self._refresh()
        if any(want.stream not in self._files for want in wanted):
            self._list()
        hinted: dict[str, list[Wanted]] = {}
        for want in wanted:
            file = self._files.get(want.stream)
            if file is not None and (file.live or want.ref.partition("/")[0] not in deleted):
                hinted.setdefault(want.stream, []).append(want)
        found: dict[str, Message] = {}
        for name, wants in hinted.items():
            found |= self._at_hints(self._files[name], wants)
        missing: dict[str, set[str]] = {}
        for want in wanted:
            if want.ref not in found:
                missing.setdefault(want.ref.partition("/")[0], set()).add(want.ref)
        files = self._list() if missing else []
        for session, refs in missing.items():
            if session not in deleted:
                found |= self._search(files, session, refs)
        return found

    def withdrawn(self, stream: Stream, refs: Sequence[str]) -> set[str]:
        """Those of the refs that stand in this file off its branch, and on no branch of the session's files.

        What was cut away or rotated stands nowhere: that is no withdrawal.
        """
        self._refresh()
        file = self._file(stream.name)
        if file is None:
            return set()
        try:
            with self._opened(file) as (reading, _):
                off = reading.off_branch(set(refs))
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise unreadable(Path(file.path), error) from error
        by_session: dict[str, set[str]] = {}
        for ref in off:
            by_session.setdefault(ref.partition("/")[0], set()).add(ref)
        files = self._list() if off else []
        for session, some in by_session.items():
            off -= self._search(files, session, some, active=True).keys()
        return off

    def was_cleared(self, stream: Stream, now: datetime) -> bool:
        """Whether the host itself may have removed a stream's file by now."""
        label = stream.name.removeprefix(f"{PREFIX}{self.agent}/")
        if label.partition(".jsonl")[0] in {file.stem for file in self._archived() if file.deleted}:
            return False
        return self._upkeep().removes(label, stream.touched, now)

    def _archived(self) -> Iterator[File]:
        self._list()
        yield from (file for of_place in self._names.values() for file in of_place.values() if file is not None)

    def is_there(self, stream: str) -> bool:
        """Whether the folder in which the stream's file lay is there."""
        label = stream.removeprefix(f"{PREFIX}{self.agent}/")
        return os.path.isdir(self._path(label.rpartition("/")[0]))

    def holds(self, session: str) -> bool:
        """Whether a file that is listed now belongs to the session."""
        self._refresh()
        files = self._list()
        return any(session in (file.session, file.stem) or self._header_or_none(file) == session for file in files)

    # --- finding -----------------------------------------------------------------------------------------------------

    def _at_hints(self, file: File, wants: Sequence[Wanted]) -> dict[str, Message]:
        found = {}
        try:
            with self._opened(file) as (reading, _):
                for want in wants:
                    message = reading.at(want.location)
                    if message is not None and message.ref == want.ref:
                        found[want.ref] = message
        except OSError:
            return {}
        return found

    def _search(
        self, files: Sequence[File], session: str, refs: set[str], *, active: bool = False
    ) -> dict[str, Message]:
        """The refs in the files of one session: those named after it first, newest archive first, then by header."""
        found: dict[str, Message] = {}
        own = sorted((f for f in files if f.session == session), key=lambda f: (not f.live, f.label))
        own = own[:1] + own[:0:-1]
        for file in [*own, *(f for f in files if f.session != session)]:
            if len(found) == len(refs):
                break
            if self._header_or_none(file) != session:
                continue
            try:
                with self._opened(file) as (reading, _):
                    found |= reading.search(refs - found.keys(), active=active)
            except OSError:  # one file costs its own messages alone
                continue
        return found

    # --- one file ----------------------------------------------------------------------------------------------------

    @contextmanager
    def _opened(
        self, file: File, told: Callable[[str], Session | None] | None = None
    ) -> Iterator[tuple[Reading, Content]]:
        fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO must not hold us up
        try:
            now = os.fstat(fd)
            version = (file.label, now.st_ino, now.st_size, now.st_mtime_ns)
            content = self._content(fd, file, version)
            run = self._run(content, file, told)
            yield Reading(content, file, run, lambda: self._tree(content, version)), content
        finally:
            os.close(fd)

    def _content(self, fd: int, file: File, version: _Version) -> Content:
        if not file.packed:
            return OpenFile(fd, version[2])
        if self._unpacked is not None and self._unpacked[0] == version:
            return self._unpacked[1]
        self._unpacked = None  # never two at once
        content = Unpacked(lambda count: os.read(fd, count))
        if content.size <= KEPT_UNPACKED:
            self._unpacked = version, content
        return content

    def _tree(self, content: Content, version: _Version) -> Tree:
        tree = self._trees.get(version)
        if tree is None:
            if len(self._trees) >= KEPT_TREES:
                self._trees.clear()
            tree = self._trees[version] = tree_of(content)
        return tree

    def _header(self, file: File) -> tuple[str, str]:
        """Session and directory of a file; read once, since a header never changes under one inode.

        Without a header the messages belong to the session that the file is named after.
        """
        key = (file.label, os.stat(file.path).st_ino)
        if key not in self._headers:
            fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                start = first_bytes(fd, HEADER_BYTES) if file.packed else os.pread(fd, HEADER_BYTES, 0)
            finally:
                os.close(fd)
            session, folder = header(start)
            if not session:
                return readable(file.stem), folder
            self._headers[key] = session, folder
        return self._headers[key]

    def _header_or_none(self, file: File) -> str | None:
        try:
            return self._header(file)[0]
        except OSError:
            return None

    # --- what is known about a file ----------------------------------------------------------------------------------

    def _list(self) -> list[File]:
        """The files as they are now. What it gave last is kept, so that one scan serves the reading of each file."""
        names = {place: self._scan(place) for place in PLACES}
        if any(names[place].keys() != self._names.get(place, {}).keys() for place in PLACES):
            found = (file for of_place in names.values() for file in of_place.values() if file is not None)
            self._history = sorted(history(found, self._header_or_none), key=_label)
            self._files = {self._name(file): file for file in self._history}
            self._names = names
        return self._history

    def _scan(self, place: str) -> dict[str, File | None]:
        """What lies in one place now, by name; None what is no transcript."""
        known = self._names.get(place, {})
        folder = self._path(place)
        try:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in entries]
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as error:
            raise unreadable(Path(folder), error) from error
        return {name: known[name] if name in known else self._named(place, folder, name) for name in names}

    def _named(self, place: str, folder: str, name: str) -> File | None:
        """A file that the host renamed because nobody used it is history as it was before."""
        file = named(place, folder, name)
        if file is not None and file.deleted and not file.packed:
            try:
                written = datetime.fromtimestamp(os.stat(file.path).st_mtime, UTC)
            except OSError:
                return file
            if self._upkeep().cleared(name, written):
                return replace(file, deleted=False)
        return file

    def _upkeep(self) -> Upkeep:
        return upkeep_of(Path(self._home).parent.parent)

    def _path(self, label: str) -> str:
        """Where a place is. The folder need not be there, and what a link to it says of its parent does not count."""
        if label.startswith("../"):
            return os.path.join(self._home, label[3:])
        return self._base + label

    def _name(self, file: File) -> str:
        return f"{PREFIX}{self.agent}/{readable(file.label)}"

    def _file(self, name: str) -> File | None:
        if name not in self._files:
            self._list()
        return self._files.get(name)

    def _stream(self, name: str, file: File, now: os.stat_result, known: Known) -> Stream | None:
        """The file as a stream; None where its session was forgotten or, for an archive, deleted in the other era."""
        session = file.session or known.cold.get(file.name) or self._header(file)[0]
        if not known.forgotten.isdisjoint((session, file.stem)):
            return None
        if not known.deleted.isdisjoint((session, file.stem)) and not any(
            other.live and other.stem == file.stem for other in self._history
        ):
            return None
        return Stream(
            name=name,
            mark=f"{now.st_size}:{now.st_mtime_ns}:{now.st_ino}",
            scope=self.agent,
            session=readable(session),
            kind=self._session(file, session, known.sessions.get).kind,
            losses=known.losses.get(session, ""),
            touched=_moment(now),
        )

    def _run(self, content: Content, file: File, told: Callable[[str], Session | None] | None) -> Run:
        session, folder = header(content.pread(HEADER_BYTES, 0))
        session = session or readable(file.stem)
        whose = self._session(file, file.session or session, told or NOTHING_KNOWN.sessions.get)
        return Run(self._name(file), session, self.agent, whose.kind, whose.note, folder)

    def _session(self, file: File, session: str, told: Callable[[str], Session | None]) -> Session:
        known = self._indexed.get(f"{file.stem}.jsonl") or self._indexed.get(session) or told(session)
        # a topic is a channel's; whether others read along is unknown, and unknown counts as group
        return known or Session("group" if file.topic else "direct")

    def _refresh(self) -> None:
        try:
            now = os.stat(self.path / "sessions.json")
            mark = (now.st_ino, now.st_size, now.st_mtime_ns)
        except OSError:
            mark = None
        if mark != self._index_mark:
            self._indexed = indexed(self.path)
            self._index_mark = mark


def _label(file: File) -> str:
    return file.label


def _moment(now: os.stat_result) -> datetime | None:
    try:
        return datetime.fromtimestamp(now.st_mtime, UTC)
    except (OverflowError, ValueError, OSError):
        return None
