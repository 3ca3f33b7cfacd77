"""The era up to 2026.7.1: a folder of session files, one JSON entry a line.

What always holds: a line without its newline is not there yet; a bad line costs itself alone; memory stays bounded
however long a line is; one file is open at a time. A position is a byte offset that is believed only while the bytes at
the file's beginning and just before the offset are still the same: the host renames, cuts and rewrites these files, and
then reading begins anew. File names come from listing the folder, never from what stands in a log.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from clawmark.errors import SourceError
from clawmark.model import Batch, Fault, Message, Stream, StreamKind, Wanted
from clawmark_sources.openclaw.messages import (
    LINE_LIMIT,
    Past,
    Run,
    Unreadable,
    conversation_kind,
    entry_id,
    host_run,
    parse,
    passed_over,
    read_entry,
    remembered,
    restored,
    whole,
)

PREFIX: Final = "file:"
CHUNK: Final = 128 << 10
"""Small enough to stay in a processor's cache while its lines are looked at."""
BYTES_A_READ: Final = 64 << 20
FAULTS_A_READ: Final = 1_000
"""A read ends early at either: the caller gets control, and a file of garbage no memory."""

_TRANSCRIPT: Final = re.compile(r"(?P<stem>.+?)\.jsonl(?P<archive>\.reset\.[^/]+)?", re.DOTALL)
_DELETED: Final = re.compile(r"(?P<stem>.+?)\.jsonl\.deleted\..+", re.DOTALL)
_MAYBE: Final = re.compile(r"\.jsonl(?:\.(?:reset|deleted)\..*)?$", re.DOTALL)
_TOPIC: Final = "-topic-"
_HEAD_BYTES: Final = 256
_TAIL_BYTES: Final = 512
_HEADER_BYTES: Final = 16 << 10
_INDEX_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class _Named:
    """A transcript as its name tells it; `session` is the id the name begins with, the header's may be another."""

    name: str
    stem: str
    inode: int

    @property
    def session(self) -> str:
        return self.stem.partition(_TOPIC)[0]


def holds_transcripts(folder: Path) -> bool:
    """Whether sessions were ever kept here, deleted ones included. Stops at the first: this runs on the prompt path."""
    try:
        with os.scandir(folder) as entries:
            return any(_MAYBE.search(entry.name) is not None and _is_transcript(entry.name) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unreadable(folder, error) from error


def agent_of(folder: Path) -> str | None:
    """The agent whose `sessions` folder this is, told from where it lies or from the keys of its sessions.json."""
    home = folder.absolute().parent
    if home.parent.name == "agents":
        return home.name
    keys = (key.split(":") for key in _load_index(folder))
    return next((parts[1] for parts in keys if len(parts) > 2 and parts[0] == "agent" and parts[1]), None)


def old_ref(stream: str, location: str) -> str | None:
    """What the TypeScript clawmark called the message at a location: its file's name and the offset of its line.

    None for an archive: a new file of the same name may have had other messages at the same offsets.
    """
    name = stream.partition("/")[2]
    offset, separator, _ = location.partition(":")
    if not (stream.startswith(PREFIX) and name.endswith(".jsonl") and separator and _is_small_number(offset)):
        return None
    return f"{name}:{int(offset)}"


def _names(folder: Path) -> list[_Named]:
    """The transcripts of a folder in the order of their names.

    Archives of a session that was deleted since are none: what the person deleted is not brought back by older copies.
    """
    transcripts, deleted = [], set()
    for entry in _files(folder):
        if gone := _DELETED.fullmatch(entry.name):
            deleted.add(gone["stem"])
        elif (named := _TRANSCRIPT.fullmatch(entry.name)) and _is_transcript(entry.name):
            transcripts.append((named["archive"], _Named(entry.name, named["stem"], entry.inode())))
    live = {file.stem for archive, file in transcripts if not archive}
    removed = deleted - live
    return sorted((file for _, file in transcripts if file.stem not in removed), key=attrgetter("name"))


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    """The files of a folder that is there, in no order."""
    try:
        with os.scandir(folder) as entries:
            yield from (e for e in entries if ".jsonl" in e.name and is_kind(e, os.DirEntry.is_file))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _unreadable(folder, error) from error


def readable(name: str) -> str:
    """A file's name as text; bytes that are none stay apart from each other."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def is_kind(entry: os.DirEntry[str], test: Callable[[os.DirEntry[str]], bool]) -> bool:
    """`test` of a directory's entry; a link that leads nowhere or to itself is of no kind."""
    try:
        return test(entry)
    except OSError:
        return False


def _is_transcript(name: str) -> bool:
    return ".trajectory.jsonl" not in name and not name.endswith((".zst", ".lock"))


def _unreadable(path: Path, error: OSError) -> SourceError:
    return SourceError(f"{path} cannot be read ({error.strerror}); check its permissions, then try again")


# --- sessions.json ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Session:
    """What sessions.json says about a session; one it does not list is the owner's own, without a channel."""

    kind: StreamKind = "direct"
    note: str = ""


def _load_index(folder: Path) -> dict[str, dict[str, Any]]:
    """Session key -> entry. The host rewrites this file while it runs: what cannot be read now counts as empty."""
    try:
        with open(folder / "sessions.json", "rb") as file:
            raw = file.read(_INDEX_BYTES + 1)
        value = json.loads(raw) if len(raw) <= _INDEX_BYTES else None
    except (OSError, ValueError, RecursionError):
        return {}
    return {k: v for k, v in value.items() if isinstance(v, dict)} if isinstance(value, dict) else {}


def _sessions(index: dict[str, dict[str, Any]]) -> dict[str, _Session]:
    """By session id and by file name: topics of one session share its id, never its file."""
    known: dict[str, _Session] = {}
    for key, entry in index.items():
        note = host_run(key, entry.get("spawnedBy"))
        origin = entry.get("origin")
        chat_type = entry.get("chatType") or (origin.get("chatType") if isinstance(origin, dict) else None)
        session = _Session("host" if note else conversation_kind(key, chat_type), note)
        for name in (entry.get("sessionId"), entry.get("sessionFile")):
            if isinstance(name, str) and name:
                known[name.replace("\\", "/").rpartition("/")[2]] = session
    return known


# --- positions -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Position:
    """Where reading of one file goes on, what proves that it is the same file, and the latest utterance before."""

    offset: int = 0
    head: str = ""
    tail: str = ""
    past: Past = field(default_factory=Past)
    before: dict[str, Any] | None = None

    @classmethod
    def parse(cls, cursor: str) -> Position | None:
        try:
            value = json.loads(cursor)
            return cls(int(value["o"]), value["h"], value["t"], Past(**value["p"]), value["b"])
        except (ValueError, TypeError, KeyError):
            return None

    def dump(self) -> str:
        value = {"o": self.offset, "h": self.head, "t": self.tail, "p": self.past.as_json(), "b": self.before}
        return json.dumps(value, separators=(",", ":"))


def _proof(fd: int, offset: int) -> tuple[str, str]:
    """Hashes of the file's first bytes (its header) and of the last ones that were consumed."""
    head = os.pread(fd, min(_HEAD_BYTES, offset), 0)
    back = min(_TAIL_BYTES, offset)
    return _hash(head), _hash(os.pread(fd, back, offset - back))


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _resume(fd: int, size: int, cursor: str | None) -> Position:
    position = Position.parse(cursor) if cursor else None
    if position is None or not 0 <= position.offset <= size:
        return Position()
    return position if _proof(fd, position.offset) == (position.head, position.tail) else Position()


# --- lines -----------------------------------------------------------------------------------------------------------


class _Lines:
    """The lines of an open file from an offset on: yields those that must be parsed, counts the others in `skipped`.

    Yields (data, start, stop, offset): the line is data[start:stop], in place; data is None for one over LINE_LIMIT,
    which is never held. `offset` stands behind all that was passed; `end` turns True where no complete line is left.
    """

    def __init__(self, fd: int, offset: int, size: int, stop_at: int | None = None) -> None:
        self._fd = fd
        self._size = size
        self._stop_at = size if stop_at is None else stop_at
        self.offset = offset
        self.skipped: dict[str, int] = {}
        self.end = False

    def __iter__(self) -> Iterator[tuple[bytes | None, int, int, int]]:
        chunk = CHUNK
        while self.offset < self._size:
            base = self.offset
            if base >= self._stop_at:
                return
            asked = min(chunk, self._size - base)
            data = os.pread(self._fd, asked, base)
            start = 0
            while (stop := data.find(b"\n", start)) >= 0:
                reason = passed_over(data, start, stop)
                if reason is None:
                    self.offset = base + stop + 1
                    yield data, start, stop, base + start
                else:
                    self.skipped[reason] = self.skipped.get(reason, 0) + 1
                start = stop + 1
            self.offset = base + start
            if len(data) < asked:  # the file was cut while it was read
                break
            if start:
                chunk = CHUNK
            elif base + asked >= self._size:
                break
            elif asked <= LINE_LIMIT:
                chunk = min(chunk * 2, LINE_LIMIT + 1)
            else:
                after = _behind_newline(self._fd, base + asked, self._size)
                if after is None:
                    break
                self.offset, chunk = after, CHUNK
                yield None, 0, 0, base
        self.end = True


def _behind_newline(fd: int, offset: int, end: int) -> int | None:
    while offset < end:
        data = os.pread(fd, min(CHUNK, end - offset), offset)
        found = data.find(b"\n")
        if found >= 0:
            return offset + found + 1
        if not data:
            return None
        offset += len(data)
    return None


@contextmanager
def _opened(path: Path) -> Iterator[tuple[int, os.stat_result]]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO by that name must not hold us up
    try:
        yield fd, os.fstat(fd)
    finally:
        os.close(fd)


def _header_session(fd: int) -> str:
    """The session id in the file's header line, "" without one."""
    line, newline, _ = os.pread(fd, _HEADER_BYTES, 0).partition(b"\n")
    if not newline:
        return ""
    try:
        header = parse(line)
    except Unreadable:
        return ""
    if not isinstance(header, dict) or header.get("type") != "session":
        return ""
    session = entry_id(header)
    return "" if "/" in session else session  # a ref is split at its first slash


def _is_one_array(fd: int, size: int) -> bool:
    """Whether the whole file is one JSON array, as other programs export it."""
    first, _, rest = os.pread(fd, _HEADER_BYTES, 0).removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    if not first.lstrip().startswith(b"["):
        return False
    if not os.pread(fd, 64, max(0, size - 64)).rstrip().endswith(b"]"):
        return False
    if not rest.strip():
        return True
    try:
        parse(first)
    except Unreadable:
        return True
    return False


# --- one folder ------------------------------------------------------------------------------------------------------


class SessionFolder:
    """Reads one agent's `sessions` folder."""

    def __init__(self, path: Path, agent: str) -> None:
        self.path = path
        self.agent = agent
        self._known: dict[str, _Session] = {}
        self._known_mark: object = None
        self._headers: dict[tuple[str, int], str] = {}
        self._files: dict[str, _Named] = {}

    def streams(self, forgotten: frozenset[str], deleted: frozenset[str]) -> Iterator[Stream]:
        """Every transcript whose session was neither forgotten nor, for an archive, deleted in the other era."""
        self._refresh()
        names = self._list()
        live = {file.stem for file in names if file.name == f"{file.stem}.jsonl"}
        base = os.path.join(self.path, "")
        for file in names:
            if file.stem in forgotten or file.session in forgotten:
                continue
            if file.stem in deleted and file.stem not in live:
                continue
            try:
                stat = os.stat(base + file.name)
            except FileNotFoundError:
                continue
            except OSError as error:  # not "gone": what is not listed is erased
                raise _unreadable(self.path / file.name, error) from error
            yield Stream(
                name=self._stream(file),
                mark=f"{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ino}",
                scope=self.agent,
                session=readable(file.session),
                kind=self._session(file).kind,
            )

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        self._refresh()
        if stream.name not in self._files:
            self._list()
        file = self._files.get(stream.name)
        if file is None:
            return Batch(messages=(), cursor=cursor or Position().dump())
        try:
            with _opened(self.path / file.name) as (fd, stat):
                position = _resume(fd, stat.st_size, cursor)
                reading = _Reading(fd, stat, file, self._run(fd, file))
                return reading.batch(position, max(1, limit))
        except FileNotFoundError:
            return Batch(messages=(), cursor=cursor or Position().dump())
        except OSError as error:
            raise _unreadable(self.path / file.name, error) from error

    def find(self, wanted: Sequence[Wanted], deleted: frozenset[str]) -> dict[str, Message]:
        """Those of the wanted messages that stand here now: at the hint first, then anywhere in the session's files."""
        self._refresh()
        if any(want.stream not in self._files for want in wanted):
            self._list()
        hinted: dict[_Named, list[Wanted]] = {}
        for want in wanted:
            if want.stream in self._files:
                hinted.setdefault(self._files[want.stream], []).append(want)
        found: dict[str, Message] = {}
        for file, wants in hinted.items():
            found |= self._at_hints(file, wants)
        missing: dict[str, set[str]] = {}
        for want in wanted:
            if want.ref not in found:
                missing.setdefault(want.ref.partition("/")[0], set()).add(want.ref)
        names = self._list() if missing else []
        for session, refs in missing.items():
            if session not in deleted:
                found |= self._search(names, session, refs)
        return found

    # --- finding -----------------------------------------------------------------------------------------------------

    def _at_hints(self, file: _Named, wants: Sequence[Wanted]) -> dict[str, Message]:
        found = {}
        try:
            with _opened(self.path / file.name) as (fd, stat):
                reading = _Reading(fd, stat, file, self._run(fd, file))
                for want in wants:
                    message = reading.at(want.location)
                    if message is not None and message.ref == want.ref:
                        found[want.ref] = message
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise _unreadable(self.path / file.name, error) from error
        return found

    def _search(self, names: Sequence[_Named], session: str, refs: set[str]) -> dict[str, Message]:
        """The refs in the files of one session: those named after it first, newest archive first, then by header."""
        found: dict[str, Message] = {}
        own = sorted((f for f in names if f.session == session), key=lambda f: (f.name != f"{session}.jsonl", f.name))
        own = own[:1] + own[:0:-1]
        for file in [*own, *(f for f in names if f.session != session)]:
            if len(found) == len(refs):
                break
            try:
                if self._header(file) == session:
                    with _opened(self.path / file.name) as (fd, stat):
                        reading = _Reading(fd, stat, file, self._run(fd, file))
                        found |= reading.search(refs - found.keys())
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _unreadable(self.path / file.name, error) from error
        return found

    def _header(self, file: _Named) -> str:
        """The session that a file's messages belong to; read once, since a header never changes under one inode."""
        key = (file.name, file.inode)
        if key not in self._headers:
            with _opened(self.path / file.name) as (fd, _):
                header = _header_session(fd)
            if not header:
                return file.stem
            self._headers[key] = header
        return self._headers[key]

    # --- what is known about a file ----------------------------------------------------------------------------------

    def _list(self) -> list[_Named]:
        """The folder as it is now. What it gave last is kept, so that one scan serves the reading of each file."""
        names = _names(self.path)
        self._files = {self._stream(file): file for file in names}
        return names

    def _stream(self, file: _Named) -> str:
        return f"{PREFIX}{self.agent}/{readable(file.name)}"

    def _run(self, fd: int, file: _Named) -> Run:
        session = self._session(file)
        name = _header_session(fd) or readable(file.stem)
        return Run(self._stream(file), name, self.agent, session.kind, session.note)

    def _session(self, file: _Named) -> _Session:
        known = self._known.get(f"{file.stem}.jsonl") or self._known.get(file.session)
        # a topic is a channel's; whether others read along is unknown, and unknown counts as group
        return known or _Session("group" if _TOPIC in file.stem else "direct")

    def _refresh(self) -> None:
        try:
            stat = os.stat(self.path / "sessions.json")
            mark = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        except OSError:
            mark = None
        if mark != self._known_mark:
            self._known = _sessions(_load_index(self.path))
            self._known_mark = mark


class _Reading:
    """One open file."""

    def __init__(self, fd: int, stat: os.stat_result, file: _Named, run: Run) -> None:
        self._fd = fd
        self._size = stat.st_size
        self._written_ms = stat.st_mtime_ns // 1_000_000
        self._file = file
        self._run = run

    def batch(self, position: Position, limit: int) -> Batch:
        before = self._before(position)
        anew = position.offset == 0
        if anew and _is_one_array(self._fd, self._size):
            position.offset = self._size
            return self._done(position, [], {}, [Fault("json_array", self._where(0))], None, restarted=True)
        messages: list[Message] = []
        faults: list[Fault] = []
        lines = _Lines(self._fd, position.offset, self._size, position.offset + BYTES_A_READ)
        for data, start, stop, at in lines:
            try:
                read = self._line(data, start, stop, at, position.past)
            except Unreadable as unreadable:
                faults.append(Fault(unreadable.reason, self._where(at)))
            else:
                if isinstance(read, str):
                    lines.skipped[read] = lines.skipped.get(read, 0) + 1
                else:
                    messages.append(read)
            if len(messages) >= limit or len(faults) >= FAULTS_A_READ:
                break
        position.offset = lines.offset
        end = lines.end or lines.offset >= self._size
        return self._done(position, messages, lines.skipped, faults, before, end, restarted=anew)

    def _done(
        self,
        position: Position,
        messages: list[Message],
        skipped: dict[str, int],
        faults: list[Fault],
        before: Message | None,
        end: bool = True,
        *,
        restarted: bool,
    ) -> Batch:
        position.head, position.tail = _proof(self._fd, position.offset)
        if messages:
            position.before = {"l": messages[-1].location, **remembered(messages[-1])}
        return Batch(messages, position.dump(), before if messages else None, skipped, faults, end, restarted)

    def _line(self, data: bytes | None, start: int, stop: int, at: int, past: Past) -> Message | str:
        if data is None:
            raise Unreadable("oversize")
        line = data[start:stop]
        try:
            entry = parse(line)
        except Unreadable:
            if line.strip():
                raise
            return "blank"
        return read_entry(entry, self._run, past, f"{at}:{stop - start}", self._written_ms)

    def at(self, location: str, past: Past | None = None) -> Message | None:
        """The message whose line stands at a location, if one does: one bounded read."""
        offset, _, length = location.partition(":")
        if not (_is_small_number(offset) and _is_small_number(length) and int(length) <= LINE_LIMIT):
            return None
        line = os.pread(self._fd, int(length), int(offset))
        try:
            read = read_entry(parse(line), self._run, past or Past(), location, self._written_ms)
        except Unreadable:
            return None
        return read if isinstance(read, Message) else None

    def search(self, refs: set[str]) -> dict[str, Message]:
        """The messages of these refs, wherever they stand."""
        found: dict[str, Message] = {}
        needles = [_needle(ref.partition("/")[2]) for ref in refs]
        for data, start, stop, at in _Lines(self._fd, 0, self._size):
            if data is None or not any(n is None or data.find(n, start, stop) >= 0 for n in needles):
                continue
            try:
                read = self._line(data, start, stop, at, Past())
            except Unreadable:
                continue
            if isinstance(read, Message) and read.ref in refs:
                found.setdefault(read.ref, read)
                if len(found) == len(refs):
                    break
        return found

    def _before(self, position: Position) -> Message | None:
        kept = position.before
        return restored(self.at(kept["l"], Past(at=kept["t"])), kept) if kept else None

    def _where(self, offset: int) -> str:
        return f"{whole(self._file.name)}:{offset}"


def _is_small_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18


def _needle(entry: str) -> bytes | None:
    """Bytes that every line with this entry id holds; None where the id may be written in several ways."""
    plain = entry.isascii() and entry.isprintable() and not set(entry) & set('"\\/@')
    return entry.encode() if plain and entry else None
