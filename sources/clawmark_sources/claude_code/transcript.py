"""One transcript, read from a position on.

What always holds: a line without its newline is not there yet; a bad line costs itself alone; memory stays bounded
however long a line is. A position is a byte offset that is believed only while the bytes at the file's beginning and
just before the offset are still the same. The lines of one answer are one message, under the ref of the first of them
that has text, and are never parted while they stand in the file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from clawmark.model import Batch, Fault, Message
from clawmark_sources.claude_code.branches import Branches, Node, branches, node_of
from clawmark_sources.claude_code.entry import DERIVED, Entry, read_line, skim
from clawmark_sources.jsonline import LINE_LIMIT, Unreadable

CHUNK: Final = 128 << 10
BYTES_A_READ: Final = 64 << 20
FAULTS_A_READ: Final = 1_000
"""A read ends early at either: the caller gets control, and a file of garbage no memory."""

_HEAD_BYTES: Final = 256
_TAIL_BYTES: Final = 512
_TIPS: Final = 24
_NO_TIP: Final = ""
"""Stands for tips where there are none: no tips at all is the beginning, which every line follows."""
_UUID: Final = b'"uuid":'
OVERLAP: Final = 1_024
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


@contextmanager
def opened(path: Path) -> Iterator[tuple[int, os.stat_result]]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a FIFO by that name must not hold us up
    try:
        yield fd, os.fstat(fd)
    finally:
        os.close(fd)


# --- positions -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Position:
    """Where reading goes on, what proves that it is the same file, and what earlier lines say about the next one.

    begun     how far it is from a prompt that follows nothing, since the beginning or a compaction: 0 none was met, 1 it
              was, 2 a line was linked to another behind it
    tips      the latest line that said something and those behind it: a line that follows one of them leaves nothing
              behind that was said
    settled   up to here the file's branches were looked at; what was left behind is not delivered
    roots     where the branches begin that were left behind
    group     the answer that the latest utterance is, whose next lines belong to it
    last      the latest utterance; `earlier` is the one before it
    """

    scope: str
    offset: int = 0
    head: str = ""
    tail: str = ""
    window: str = ""
    at: datetime | None = None
    begun: int = 0
    tips: list[str] = field(default_factory=list)
    settled: int = 0
    roots: tuple[str, ...] = ()
    group: str = ""
    last: dict[str, Any] | None = None
    earlier: dict[str, Any] | None = None

    @classmethod
    def parse(cls, cursor: str | None) -> Position | None:
        try:
            value = json.loads(cursor or "")
            return cls(
                scope=str(value["scope"]),
                offset=int(value["offset"]),
                head=str(value["head"]),
                tail=str(value["tail"]),
                window=str(value["window"]),
                at=datetime.fromisoformat(value["at"]) if value["at"] else None,
                begun=int(value["begun"]),
                tips=[str(tip) for tip in value["tips"]],
                settled=int(value["settled"]),
                roots=tuple(str(root) for root in value["roots"]),
                group=str(value["group"]),
                last=value["last"],
                earlier=value["earlier"],
            )
        except (ValueError, TypeError, KeyError, OverflowError):
            return None

    def dump(self) -> str:
        value = {name: getattr(self, name) for name in self.__slots__}
        value["at"] = self.at.isoformat() if self.at else ""
        return json.dumps(value, separators=(",", ":"))

    def follows(self, entry: Entry) -> bool:
        """Whether nothing that was said lies between a line and the one it follows."""
        if entry.begins and self.begun == 2:
            return False
        return not (entry.on_tree and entry.parent and self.tips) or entry.parent in self.tips

    def settle(self, tree: Branches, size: int) -> None:
        """Takes over what the branches of a file of this size are. What was left behind is no tip."""
        self.settled, self.roots = size, tree.roots
        self.tips = [tip for tip in self.tips if tip not in tree.left] or [_NO_TIP]

    def goes_on(self, entry: Entry) -> bool:
        """Whether a line is one more of the answer that was the latest utterance."""
        return bool(entry.group) and entry.group == self.group

    def _begin(self, entry: Entry) -> None:
        if entry.opens:
            self.begun = 0
        elif entry.begins:
            self.begun = self.begun if self.begun == 2 else 1
        elif entry.on_tree and (entry.text or entry.turn) and entry.parent and self.begun:
            self.begun = 2

    def pass_by(self, entry: Entry) -> None:
        """Moves on over a line. One that says nothing and hangs elsewhere is no tip: what follows it may leave
        something behind."""
        self.window = entry.opens or self.window
        self._begin(entry)
        if not entry.on_tree or not (entry.text or self.follows(entry)):
            return
        if entry.text:
            self.tips.clear()
        elif len(self.tips) >= _TIPS:
            del self.tips[1]
        self.tips.append(entry.uuid)


def resumed(fd: int, size: int, cursor: str | None, scope: str) -> Position:
    """The position of a cursor, or the beginning where the cursor does not fit the file any more.

    The scope stays the one under which something was first delivered: a folder that is deleted or gets a remote must
    not split a memory.
    """
    position = Position.parse(cursor)
    if position is None:
        return Position(scope)
    if position.last is None:
        position.scope = scope
    if 0 <= position.offset <= size and _proof(fd, position.offset) == (position.head, position.tail):
        position.settled = min(position.settled, size)
        return position
    return Position(position.scope)  # a file that was rewritten, or another one in its place


def _proof(fd: int, offset: int) -> tuple[str, str]:
    """Hashes of the file's first bytes and of the last ones that were consumed."""
    head = os.pread(fd, min(_HEAD_BYTES, offset), 0)
    back = min(_TAIL_BYTES, offset)
    return _hash(head), _hash(os.pread(fd, back, offset - back))


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def _remembered(message: Message) -> dict[str, Any]:
    """What reading in order told about `message`, small enough for a cursor; its text stays in the log."""
    return {
        "ref": message.ref,
        "location": message.location,
        "at": message.at.isoformat(),
        "dated": message.dated,
        "window": message.window,
    }


# --- lines -----------------------------------------------------------------------------------------------------------


class Lines:
    """The lines of an open file from an offset on, as (data, start, stop, offset): the line is data[start:stop], in
    place; data is None for one over LINE_LIMIT, which is never held.

    `offset` stands behind the last line given; `end` turns True where no complete line is left.
    """

    def __init__(self, fd: int, offset: int, size: int, stop_at: int | None = None) -> None:
        self._fd = fd
        self._size = size
        self._stop_at = size if stop_at is None else stop_at
        self.offset = offset
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
                self.offset = base + stop + 1
                yield data, start, stop, base + start
                start = stop + 1
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


def holds(fd: int, size: int, uuids: Collection[bytes]) -> bool:
    """Whether a line in the file has one of these uuids, in bounded memory. Nothing is parsed."""
    offset = 0
    while offset < size:
        data = os.pread(fd, min(8 * CHUNK, size - offset), offset)
        last = offset + len(data) >= size or not data
        at = data.find(_UUID)
        while at >= 0 and (last or at < len(data) - OVERLAP):
            start = at + len(_UUID)
            start += data.startswith(b" ", start)
            if data[start + 1 : data.find(b'"', start + 1, start + OVERLAP)] in uuids:
                return True
            at = data.find(_UUID, start)
        if last:
            return False
        offset += max(1, len(data) - OVERLAP)
    return False


# --- one open file ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Transcript:
    """A file as its place tells it. helper: a sub-agent's own; helpers: what sub-agents said counts."""

    path: Path
    stream: str
    session: str
    helper: bool = False
    helpers: bool = False


class _Said:
    """What one batch says, from the two utterances before it on."""

    def __init__(self, latest: Message | None, earlier: Message | None) -> None:
        self._latest = latest
        self._earlier = earlier
        self.before = latest
        self.messages: list[Message] = []

    def join(self, entry: Entry, location: str) -> bool:
        """Makes a line part of the answer before it, if that is there; one delivered already is given again, whole."""
        if self.messages:
            self.messages[-1] = _joined(self.messages[-1], entry.text, location)
        elif self._latest is not None:
            self.messages.append(_joined(self._latest, entry.text, location))
            self.before = self._earlier
        return bool(self.messages)


class Reading:
    """Reads one open file. `tree` gives the branches of the file as it is now, when they are needed."""

    def __init__(self, fd: int, size: int, transcript: Transcript, tree: Callable[[], Branches]) -> None:
        self._fd = fd
        self._size = size
        self._transcript = transcript
        self._tree = tree

    def batch(self, position: Position, limit: int) -> Batch:
        """The next messages. `position` moves on; it must be nobody else's."""
        restarted, took_back = position.offset == 0, False
        said = _Said(self._restored(position.last, position), self._restored(position.earlier, position))
        left = self._tree().left if position.offset < position.settled else frozenset()
        skipped: dict[str, int] = {}
        faults: list[Fault] = []
        lines = Lines(self._fd, position.offset, self._size, position.offset + BYTES_A_READ)
        for data, start, stop, at in lines:
            try:
                entry = self._entry(data, start, stop)
            except Unreadable as unreadable:
                faults.append(Fault(unreadable.reason, f"{self._transcript.stream}.jsonl:{at}"))
                if len(faults) >= FAULTS_A_READ:
                    break
                continue
            if at >= position.settled and not position.follows(entry):
                tree = self._tree()
                if not tree.left.issuperset(position.roots):  # the person went back to a branch: it counts again
                    return self.batch(Position(position.scope, settled=self._size, roots=tree.roots), limit)
                took_back = took_back or tree.roots != position.roots
                left = tree.left
                position.settle(tree, self._size)
            if entry.uuid in left:
                skipped["abandoned"] = skipped.get("abandoned", 0) + 1
                continue
            if not entry.text:
                skipped[entry.reason] = skipped.get(entry.reason, 0) + 1
            elif len(said.messages) < limit or position.goes_on(entry):
                location = f"{at}:{stop - start}"
                if not (position.goes_on(entry) and said.join(entry, location)):
                    said.messages.append(self._message(entry, position, location))
                    position.earlier = position.last
                position.last, position.group = _remembered(said.messages[-1]), entry.group
            else:
                lines.offset = at
                break
            position.pass_by(entry)
        position.offset = lines.offset
        position.head, position.tail = _proof(self._fd, position.offset)
        return Batch(
            messages=said.messages,
            cursor=position.dump(),
            before=said.before if said.messages else None,
            skipped=skipped,
            faults=faults,
            end=lines.end or lines.offset >= self._size,
            restarted=restarted,
            took_back=took_back,
        )

    def at(self, location: str, position: Position) -> Message | None:
        """The message whose lines stand at a location, if they do: bounded reads."""
        message: Message | None = None
        group = ""
        for part in location.split("+"):
            offset, _, length = part.partition(":")
            if not (_is_small_number(offset) and _is_small_number(length) and int(length) <= LINE_LIMIT):
                return None
            line = os.pread(self._fd, int(length), int(offset))
            try:
                entry = self._entry(line, 0, len(line))
            except Unreadable:
                return None
            if not entry.text or (message is not None and (not group or entry.group != group)):
                return None
            group = entry.group
            message = self._message(entry, position, part) if message is None else _joined(message, entry.text, part)
        return message

    def search(self, refs: set[str], scope: str) -> dict[str, Message]:
        """The messages of these refs, wherever they stand in the file."""
        found: dict[str, Message] = {}
        needles = needles_of(refs)
        for data, start, stop, at in Lines(self._fd, 0, self._size):
            if data is None or (needles and not any(data.find(needle, start, stop) >= 0 for needle in needles)):
                continue
            try:
                entry = self._entry(data, start, stop)
            except Unreadable:
                continue
            if entry.ref in refs and entry.ref not in found:
                message = self._whole(at, scope)
                if message is not None and message.ref == entry.ref:
                    found[entry.ref] = message
                    if len(found) == len(refs):
                        break
        return found

    def _whole(self, offset: int, scope: str) -> Message | None:
        """The message that begins with the line at `offset`, with all lines of its answer."""
        message: Message | None = None
        group = ""
        for data, start, stop, at in Lines(self._fd, offset, self._size):
            try:
                entry = self._entry(data, start, stop)
            except Unreadable:
                continue
            location = f"{at}:{stop - start}"
            if not entry.text:
                continue
            if message is None:
                message, group = self._message(entry, Position(scope), location), entry.group
            elif group and entry.group == group:
                message = _joined(message, entry.text, location)
            else:
                break
        return message

    def nodes(self) -> Iterator[Node]:
        """The lines of the conversation's tree; what cannot be read hangs nowhere."""
        for data, start, stop, _ in Lines(self._fd, 0, self._size):
            try:
                node = node_of(self._entry(data, start, stop))
            except Unreadable:
                continue
            if node is not None:
                yield node

    def _entry(self, data: bytes | None, start: int, stop: int) -> Entry:
        if data is None:
            raise Unreadable("oversize")
        entry = skim(data, start, stop) or read_line(data[start:stop])
        if entry.aside and not self._transcript.helpers:
            return entry._replace(text="", reason="sidechain")
        if self._transcript.helper and entry.origin == "owner":
            return entry._replace(origin="host", note="subagent")
        return entry

    def _message(self, entry: Entry, position: Position, location: str) -> Message:
        position.at = entry.at or position.at
        return Message(
            ref=entry.ref,
            stream=self._transcript.stream,
            session=self._transcript.session,
            scope=position.scope,
            origin=entry.origin,
            text=entry.text,
            at=position.at or _BEGINNING,
            window=position.window,
            note=entry.note,
            location=location,
            dated=entry.at is not None,
            folder=entry.folder,
        )

    def _restored(self, kept: dict[str, Any] | None, position: Position) -> Message | None:
        """An utterance that a cursor remembers, as it was delivered; None when another one stands there now."""
        try:
            message = self.at(kept["location"], Position(position.scope)) if kept else None
            if kept is None or message is None or message.ref != kept["ref"]:
                return None
            at = datetime.fromisoformat(kept["at"])
            return replace(message, at=at, dated=kept["dated"], window=kept["window"])
        except (KeyError, TypeError, ValueError, AttributeError):
            return None


def tree_of(fd: int, size: int, transcript: Transcript) -> Branches:
    return branches(Reading(fd, size, transcript, Branches).nodes())


def needles_of(refs: Set[str]) -> list[bytes]:
    """Bytes of which every line with one of these refs holds some; none where any line may be one."""
    plain = all(
        r.isascii() and r.isprintable() and not set(r) & set('"\\/') and r[:1] not in ("", DERIVED) for r in refs
    )
    return [ref.encode() for ref in refs] if plain else []


def _joined(message: Message, text: str, location: str) -> Message:
    return replace(message, text=f"{message.text}\n{text}", location=f"{message.location}+{location}")


def _is_small_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18
