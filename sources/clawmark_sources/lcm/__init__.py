"""Lossless Claw's database: the context engine of OpenClaw that keeps every message in one SQLite file.

One stream is one conversation; the file holds those of all agents. What the person wiped (a manual reset, a deleted
session) and the host's own runs are not listed; what another reader or a repair did to the file is noticed by the
cursor (`position.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from clawmark.errors import SourceError
from clawmark.model import Batch, Fate, Fault, Gone, Message, Stream, Wanted
from clawmark.source import Folders
from clawmark_sources.jsonline import milliseconds
from clawmark_sources.lcm.database import Conversation, Database, Listed, RawListed, Row, Snapshot, read_listed
from clawmark_sources.lcm.messages import Oversize, Past, Run, read_row
from clawmark_sources.lcm.position import Position, Resumed, of_one_life, resume
from clawmark_sources.lcm.unkeyed import NOBODY, Home, SessionFolders, of_key

__all__ = ["LcmSource"]

ROWS_A_READ: Final = 2_000
BYTES_A_READ: Final = 32 << 20
"""A read ends early at either: the caller gets control, and the host's checkpoint its turn."""

_REF: Final = re.compile(r"lcm:(?P<epoch>[1-9]\d{0,8}):(?P<id>[1-9]\d{0,17})", re.ASCII)
_NAME: Final = re.compile(r"[1-9]\d{0,17}", re.ASCII)


class LcmSource:
    """Every conversation that Lossless Claw stored."""

    name = "lcm"
    host = "openclaw"
    expires = False

    def __init__(self, folders: Folders) -> None:
        self._path = folders.lcm or folders.openclaw / "lcm.db"
        self._database = Database(self._path)
        self._sessions = SessionFolders(folders.transcripts or folders.openclaw)
        self._listed: dict[RawListed, Stream | None] = {}

    @property
    def place(self) -> str:
        return str(self._path.absolute())

    def check(self) -> None:
        with self._database.opened() as file:
            file.probe()

    def describe(self) -> str:
        try:
            streams = list(self.streams())
        except SourceError:  # `check` says what is wrong; this only names the place
            return _short(self._path)
        count = f"{len(streams)} conversation{'' if len(streams) == 1 else 's'}"
        newest = max((stream.touched for stream in streams if stream.touched), default=None)
        return f"{_short(self._path)} ({count}{f', the newest of {newest:%Y-%m-%d}' if newest else ''})"

    def streams(self) -> Iterator[Stream]:
        with self._database.opened() as file:
            raw = file.listed()
        known = self._listed
        new = [row for row in raw if row not in known]
        streams = known | dict(zip(new, self._streams([read_listed(row) for row in new]), strict=True))
        # whose a conversation without a key is, other files tell: they are asked each time
        self._listed = {row: streams[row] for row in raw if row[2]}
        yield from [stream for row in raw if (stream := streams[row]) is not None]

    def _streams(self, listed: Sequence[Listed]) -> list[Stream | None]:
        """None for what only its key, looked at closely, shows to be a run of the host's own."""
        homes = self._homes(listed)
        return [None if home.kind == "host" else _stream(one, home) for one, home in zip(listed, homes, strict=True)]

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        number = _number(stream.name)
        with self._database.opened() as file:
            conversation = file.conversation(number)
            if conversation is None or not conversation.is_listed:
                return Batch(messages=(), cursor=cursor or "")
            resumed = resume(file, number, cursor, stream.scope)
            run = Run(stream.name, conversation.session, stream.scope, stream.kind, resumed.position.prefix)
            return _read_on(file, number, run, resumed, max(1, limit))

    def get(self, wanted: Sequence[Wanted]) -> list[Message | Gone]:
        with self._database.opened() as file:
            rows = {ref: row for ref in {want.ref for want in wanted} if (row := _row_of(file, ref)) is not None}
            conversations = {
                number: file.conversation(number) for number in {row.conversation for row in rows.values()}
            }
        known = {number: one for number, one in conversations.items() if one is not None and one.is_listed}
        homes = dict(zip(known, self._homes(list(known.values())), strict=True))
        found: dict[str, Message] = {}
        for ref, row in rows.items():
            home = homes.get(row.conversation)
            if home is None or home.kind == "host":
                continue
            prefix = ref.removesuffix(str(row.id))
            run = Run(str(row.conversation), known[row.conversation].session, home.scope, home.kind, prefix)
            if (message := _read_alone(row, run)) is not None:
                found[ref] = message
        return [found.get(want.ref) or Gone(want.ref) for want in wanted]

    def withdrawn(self, stream: Stream, cursor: str | None, refs: Sequence[str]) -> set[str]:
        """Refs of earlier epochs are never withdrawn: this file says nothing about what stood in another one."""
        position = Position.parse(cursor)
        if position is None:
            return set()
        ids = {
            int(named["id"]): ref for ref in refs if (named := _REF.fullmatch(ref)) and ref.startswith(position.prefix)
        }
        with self._database.opened() as file:
            if not position.fits(file, file.sequence()):
                return set()
            kept = file.kept(list(ids))
        return {ref for row_id, ref in ids.items() if row_id not in kept}

    def fate(self, stream: Stream, cursor: str | None, now: datetime) -> Fate:
        """Nothing is said of a conversation by a file that is not, or may not be, the one it was read from."""
        number = _number(stream.name)
        position = Position.parse(cursor)
        with self._database.opened() as file:
            conversation = file.conversation(number)
            same_file = position is not None and position.fits(file, file.sequence())
            if conversation is not None and conversation.is_wiped:
                return "deleted" if same_file or conversation.session == stream.session else "lost"
            if not same_file or (conversation is not None and file.has_messages(number)):
                return "lost"
            return "gone"

    def _homes(self, conversations: Sequence[Conversation | Listed]) -> list[Home]:
        """Whose each one is; OpenClaw's session files are asked only where a key does not tell it."""
        homes = [of_key(one.key or "") for one in conversations]
        if NOBODY not in homes:
            return homes
        found = self._sessions.homes()
        return [
            found.get(one.session, home) if home is NOBODY else home
            for one, home in zip(conversations, homes, strict=True)
        ]


def _stream(one: Listed, home: Home) -> Stream:
    _, _, created_at = one.newest.split(":", 2)
    named = f"{one.session}\0{one.key}\0{home.scope}\0{home.kind}"
    return Stream(
        name=str(one.id),
        mark=f"{one.newest}:{crc32(named.encode()):x}",
        scope=home.scope,
        session=one.session,
        kind=home.kind,
        touched=_time(created_at),
    )


@lru_cache(maxsize=4096)
def _time(logged: str) -> datetime | None:
    """Cached, since a listing asks for the same times again and again."""
    ms = milliseconds(logged)
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def _read_on(file: Snapshot, number: int, run: Run, resumed: Resumed, limit: int) -> Batch:
    position = resumed.position
    found = file.behind(number, position.id, ROWS_A_READ)
    ids = of_one_life(position, found)
    before = position.before
    messages: list[Message] = []
    skipped: dict[str, int] = {}
    faults: list[Fault] = []
    size = 0
    for row_id in ids:
        row = file.row(row_id)
        if row is None:  # what the transaction listed a moment ago is there
            continue
        position.move(row)
        size += len(row.content or b"")
        try:
            read = read_row(row, run, position.past)
        except Oversize:
            faults.append(Fault("oversize", f"{number}#{row.id}"))
            continue
        if isinstance(read, str):
            skipped[read] = skipped.get(read, 0) + 1
        else:
            messages.append(read)
        if len(messages) >= limit or size >= BYTES_A_READ:
            break
    if messages:
        position.before = _remembered(messages[-1])
    return Batch(
        messages=messages,
        cursor=position.dump(),
        before=_before(file, run, before) if messages else None,
        skipped=skipped,
        faults=faults,
        end=not found or (position.id == found[-1] and len(found) < ROWS_A_READ),
        restarted=resumed.restarted,
        took_back=resumed.took_back,
        renumbered=position.prefix if ids and ids[0] <= position.old else "",
    )


def _remembered(message: Message) -> dict[str, Any]:
    """What reading in order told about an utterance, small enough for a cursor; its text stays in the log."""
    ms = round(message.at.timestamp() * 1000)
    return {"i": int(message.location), "o": message.origin, "k": message.note, "w": message.window, "t": ms}


def _before(file: Snapshot, run: Run, kept: dict[str, Any] | None) -> Message | None:
    """The utterance a cursor remembers, read back from its row with what only reading in order could tell."""
    row = file.row(kept["i"]) if kept else None
    message = _read_alone(row, run) if row else None
    if kept is None or message is None:
        return None
    at = datetime.fromtimestamp(kept["t"] / 1000, UTC)
    return replace(message, origin=kept["o"], note=kept["k"], window=kept["w"], at=at)


def _read_alone(row: Row, run: Run) -> Message | None:
    """The utterance of a row, with no more than the row alone tells."""
    try:
        read = read_row(row, run, Past())
    except Oversize:
        return None
    return read if isinstance(read, Message) else None


def _row_of(file: Snapshot, ref: str) -> Row | None:
    """The row that a ref names in this life of the file. That it still holds what it held is checked by the caller."""
    named = _REF.fullmatch(ref)
    return file.row(int(named["id"])) if named else None


def _number(name: str) -> int:
    """The conversation a stream is called by; 0, which none has, for another name."""
    return int(name) if _NAME.fullmatch(name) else 0


def _short(path: Path) -> str:
    """`path` as a person writes it."""
    home = Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) and path != home else str(path)
