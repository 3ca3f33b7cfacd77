"""One transcript that lies in a file: read forward from a position, at a place, or searched.

A position is a byte offset that is believed only while the bytes at the beginning and just before the offset are still
the same: the host renames, cuts and rewrites these files, and then reading begins anew. Reading follows the links from
entry to entry at the price of a glance; the tree of the whole file is asked for only once an entry goes back to an
earlier one. What stood on the branch that was left has then been delivered: `Batch.took_back` says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final

from clawmark.model import Batch, Fault, Message
from clawmark_sources.jsonline import LINE_LIMIT, Unreadable, parse, whole
from clawmark_sources.openclaw.branch import Link, Tree, following, grown, link, link_of
from clawmark_sources.openclaw.files import File
from clawmark_sources.openclaw.lines import Content, lines
from clawmark_sources.openclaw.messages import (
    Past,
    Run,
    header_of,
    passed_over,
    read_entry,
    remembered,
    restored,
)

BYTES_A_READ: Final = 64 << 20
FAULTS_A_READ: Final = 1_000
"""A read ends early at either: the caller gets control, and a file of garbage no memory."""
HEADER_BYTES: Final = 16 << 10
_HEAD_BYTES: Final = 256
_TAIL_BYTES: Final = 512


@dataclass(slots=True)
class Position:
    """Where reading of one file goes on, what proves that it is the same file, and the latest utterance before.

    session   whose file it is, for the day it is gone
    leaf      the entry that the next one is expected to follow; "" = any
    forked    an entry has gone back to an earlier one, and the end was not reached since
    """

    offset: int = 0
    head: str = ""
    tail: str = ""
    past: Past = field(default_factory=Past)
    before: dict[str, Any] | None = None
    session: str = ""
    leaf: str = ""
    forked: bool = False

    @classmethod
    def parse(cls, cursor: str) -> Position | None:
        try:
            value = json.loads(cursor)
            place = int(value["o"]), value["h"], value["t"], Past(**value["p"]), value["b"]
            return cls(*place, str(value["s"]), str(value["l"]), bool(value["f"]))
        except (ValueError, TypeError, KeyError, OverflowError):
            return None

    def dump(self) -> str:
        value = {"o": self.offset, "h": self.head, "t": self.tail, "p": self.past.as_json(), "b": self.before}
        value |= {"s": self.session, "l": self.leaf, "f": self.forked}
        return json.dumps(value, separators=(",", ":"))


def resumed(content: Content, cursor: str | None) -> Position:
    position = Position.parse(cursor) if cursor else None
    if position is None or not 0 <= position.offset <= content.size:
        return Position()
    return position if _proof(content, position.offset) == (position.head, position.tail) else Position()


def _proof(content: Content, offset: int) -> tuple[str, str]:
    """Hashes of the first bytes (the header) and of the last ones that were consumed."""
    head = content.pread(min(_HEAD_BYTES, offset), 0)
    back = min(_TAIL_BYTES, offset)
    return _hash(head), _hash(content.pread(back, offset - back))


def _hash(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def header(start: bytes) -> tuple[str, str]:
    """Session id and directory in the header line that a transcript starts with; "" each without one."""
    line, newline, _ = start.partition(b"\n")
    if not newline:
        return "", ""
    try:
        return header_of(parse(line))
    except Unreadable:
        return "", ""


def tree_of(content: Content) -> Tree:
    """The tree of all complete lines."""
    return grown(_links(content))


def _links(content: Content) -> Iterator[tuple[int, Link]]:
    for data, start, stop, base in lines(content, 0, content.size):
        if data is not None and (node := _link(data, start, stop)) is not None:
            yield base + start, node


def _link(data: bytes, start: int, stop: int) -> Link | None:
    node = link(data, start, stop)
    if node is not None or stop <= start:
        return node
    try:
        return link_of(parse(data[start:stop]))
    except Unreadable:
        return None


def _is_one_array(content: Content) -> bool:
    """Whether the whole file is one JSON array, as other programs export it."""
    first, _, rest = content.pread(HEADER_BYTES, 0).removeprefix(b"\xef\xbb\xbf").partition(b"\n")
    if not first.lstrip().startswith(b"["):
        return False
    if not content.pread(64, max(0, content.size - 64)).rstrip().endswith(b"]"):
        return False
    if not rest.strip():
        return True
    try:
        parse(first)
    except Unreadable:
        return True
    return False


class Reading:
    """One open transcript. `tree` gives the tree of just this version of it."""

    def __init__(self, content: Content, file: File, run: Run, tree: Callable[[], Tree]) -> None:
        self._content = content
        self._file = file
        self._run = run
        self._tree = tree

    def batch(self, position: Position, limit: int) -> Batch:
        anew = position.offset == 0
        position.session = self._run.session
        if anew and self._content.fault == "oversize":
            return self._unread(position, "oversize")
        if anew and _is_one_array(self._content):
            return self._unread(position, "json_array")
        before = self._before(position)
        begun = position.offset
        taken = _Taken(self, position)
        end = taken.all_of(self._content, limit)
        if end:
            position.forked = False  # the last entry is where the conversation stands
            if self._content.fault and (anew or position.offset > begun):
                taken.faults.append(Fault(self._content.fault, self.where(position.offset)))
        took_back = taken.jumped and bool(self._tree().gaps)
        position.leaf = taken.leaf.decode("utf-8", "replace")
        position.head, position.tail = _proof(self._content, position.offset)
        if taken.messages:
            position.before = {"l": taken.messages[-1].location, **remembered(taken.messages[-1])}
        return Batch(
            messages=taken.messages,
            cursor=position.dump(),
            before=before if taken.messages else None,
            skipped=taken.skipped,
            faults=taken.faults,
            end=end,
            restarted=anew,
            took_back=took_back,
        )

    def _unread(self, position: Position, reason: str) -> Batch:
        """Nothing of a file that is no transcript as a whole."""
        position.offset = self._content.size
        position.head, position.tail = _proof(self._content, position.offset)
        return Batch((), position.dump(), faults=[Fault(reason, self.where(0))], restarted=True)

    def entry(self, entry: Any, location: str, past: Past) -> Message | str:
        return read_entry(entry, self._run, past, location)

    def abandoned(self, offset: int) -> bool:
        return self._tree().abandoned(offset)

    def at(self, location: str, past: Past | None = None) -> Message | None:
        """The message whose line stands at a location, if one does: one bounded read."""
        offset, _, length = location.partition(":")
        if not (is_small_number(offset) and is_small_number(length) and int(length) <= LINE_LIMIT):
            return None
        return self._message(self._content.pread(int(length), int(offset)), location, past or Past())

    def search(self, refs: AbstractSet[str], *, active: bool = False) -> dict[str, Message]:
        """The messages of these refs, wherever they stand; with `active`, only on the branch."""
        found: dict[str, Message] = {}
        needles = [_needle(ref.partition("/")[2]) for ref in refs]
        for data, start, stop, base in lines(self._content, 0, self._content.size):
            if data is None or not any(n is None or data.find(n, start, stop) >= 0 for n in needles):
                continue
            message = self._message(data[start:stop], f"{base + start}:{stop - start}", Past())
            if message is None or message.ref not in refs or (active and self.abandoned(base + start)):
                continue
            found.setdefault(message.ref, message)
            if len(found) == len(refs):
                break
        return found

    def off_branch(self, refs: AbstractSet[str]) -> set[str]:
        """Those of the refs that stand off the branch, whether or not they stand on it too."""
        found: set[str] = set()
        for begin, end in self._tree().gaps:
            for data, start, stop, _ in lines(self._content, begin, end):
                message = None if data is None else self._message(data[start:stop], "", Past())
                if message is not None and message.ref in refs:
                    found.add(message.ref)
        return found

    def _message(self, line: bytes, location: str, past: Past) -> Message | None:
        try:
            read = read_entry(parse(line), self._run, past, location)
        except Unreadable:
            return None
        return read if isinstance(read, Message) else None

    def _before(self, position: Position) -> Message | None:
        kept = position.before
        return restored(self.at(kept["l"], Past(at=kept["t"])), kept) if kept else None

    def where(self, offset: int) -> str:
        return f"{whole(self._file.label)}:{offset}"


class _Taken:
    """What one batch takes from the lines it passes."""

    def __init__(self, reading: Reading, position: Position) -> None:
        self._reading = reading
        self._position = position
        self.leaf = position.leaf.encode()
        self.jumped = False
        self.messages: list[Message] = []
        self.skipped: dict[str, int] = {}
        self.faults: list[Fault] = []

    def all_of(self, content: Content, limit: int) -> bool:
        """Take the lines from the position on, until one of the limits; whether none is left."""
        position, skipped = self._position, self.skipped
        stop_at = position.offset + BYTES_A_READ
        for data, start, stop, base in lines(content, position.offset, content.size):
            behind = position.offset = base + stop + 1
            node = reason = None
            if data is not None:
                node = following(data, start, stop, self.leaf) or link(data, start, stop)
                if node is not None:
                    reason = passed_over(data, start, stop)
            if reason is None or node is None:
                self._take(None if data is None else data[start:stop], node, base + start)
                if len(self.messages) >= limit or len(self.faults) >= FAULTS_A_READ:
                    return behind >= content.size
            else:
                self._follow(node)
                skipped[reason] = skipped.get(reason, 0) + 1
            if behind >= stop_at:
                return behind >= content.size
        return True

    def _take(self, line: bytes | None, node: Link | None, at: int) -> None:
        try:
            read = self._parsed(line, node, at)
        except Unreadable as unreadable:
            self.faults.append(Fault(unreadable.reason, self._reading.where(at)))
            return
        if isinstance(read, str):
            self.skipped[read] = self.skipped.get(read, 0) + 1
        else:
            self.messages.append(read)

    def _parsed(self, line: bytes | None, node: Link | None, at: int) -> Message | str:
        if line is None:
            raise Unreadable("oversize")
        try:
            entry = parse(line)
        except Unreadable:
            if line.strip():
                raise
            return "blank"
        node = node or link_of(entry)
        if node is not None:
            self._follow(node)
        if self._position.forked and self._reading.abandoned(at):
            return "off_branch"
        return self._reading.entry(entry, f"{at}:{len(line)}", self._position.past)

    def _follow(self, node: Link) -> None:
        if node[1] != self.leaf and node[1] is not None and self.leaf:
            self.jumped = self._position.forked = True
        self.leaf = node[0]


def is_small_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18


def _needle(entry: str) -> bytes | None:
    """Bytes that every line with this entry id holds; None where the id may be written in several ways."""
    plain = entry.isascii() and entry.isprintable() and not set(entry) & set('"\\/@')
    return entry.encode() if plain and entry else None
