"""What tests share: a message log in memory, a clock that is set, and looks into the file."""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import apsw
import apsw.unicode

from clawmark.errors import SourceAbsent, SourceBusy, SourceError
from clawmark.memory import Memory
from clawmark.model import Batch, Excerpt, Fact, Fate, Fault, Gone, Message, Origin, Stream, StreamKind, Wanted
from clawmark.settings import Settings
from clawmark.source import MessageSource
from clawmark.store import db, migrations
from clawmark.testing import FakeEmbedder

START = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
LATER = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
REPOSITORY = Path(__file__).resolve().parent.parent


def shared(*parts: str) -> Path | None:
    """A file of the shared corpora and harnesses, or None where they are not at hand."""
    root = Path(os.environ.get("CLAWMARK_SHARED") or REPOSITORY.parent / "shared")
    path = root.joinpath(*parts)
    return path if path.exists() else None


def fixture(name: str) -> ModuleType:
    """A module of `scripts/fixtures`, which writes what a test needs."""
    place = REPOSITORY / "scripts" / "fixtures" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Clock:
    """Gives the time it was set to."""

    def __init__(self, now: datetime = LATER) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **amount: float) -> None:
        self.now += timedelta(**amount)


class Seconds:
    """A clock in seconds, and the sleep that moves it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


DYING = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
count, step = 0, int(sys.argv[-1])
def dying(original):
    def die_before(*args, **kwargs):
        global count
        count += 1
        if count == step:
            os._exit(9)
        return original(*args, **kwargs)
    return die_before
"""
"""The beginning of a program that ends without a word at the n-th call of what it wraps, n being its last argument."""


# --- a host's log -----------------------------------------------------------------------------------------------------

Entry = Message | Fault | str
"""A message, an entry that cannot be read, or the reason why an entry carries no utterance."""


@dataclass
class Session:
    """One stream: its entries in order, and what it says of itself. `era` changes when the log is rewritten."""

    session: str
    scope: str = "main"
    kind: StreamKind = "direct"
    entries: list[Entry] = field(default_factory=list)
    era: int = 0


class Log:
    """A host's log in memory, with what `clawmark.testing.ListSource` leaves out: scopes, groups, entries without an
    utterance, faults, forks, edits. Positions are counts of entries; `most` caps a batch;
    `busy`, `absent` and `broken` make it fail."""

    def __init__(self, name: str = "log", *, expires: bool = False, host: str = "") -> None:
        self.name = name
        self.host = host or name
        self.expires = expires
        self.place = "memory"
        self.fates: dict[str, Fate] = {}
        self.taken: set[str] = set()
        self.losses = 0
        self.touched: datetime | None = None
        self.renumbered = ""
        self.unlisted: SourceError | None = None
        self.sessions: dict[str, Session] = {}
        self.most = 10_000
        self.busy = False
        self.absent = False
        self.broken: set[str] = set()
        self.reads = 0
        self._count = 0
        self._at = START

    # what a host does

    def session(self, stream: str, *, session: str = "", scope: str = "main", kind: StreamKind = "direct") -> Session:
        return self.sessions.setdefault(stream, Session(session or stream, scope, kind))

    def say(
        self,
        said: str,
        stream: str = "s1",
        *,
        origin: Origin = "owner",
        after: timedelta | None = None,
        at: datetime | None = None,
        window: str = "",
        author: str | None = None,
        ref: str = "",
        note: str = "",
    ) -> Message:
        """Append an utterance, a minute after the last one of the whole log unless told otherwise."""
        home = self.session(stream)
        self._count += 1
        self._at = at if at is not None else self._at + (after or timedelta(minutes=1))
        message = Message(
            ref=ref or f"{home.session}/e{self._count:05d}",
            stream=stream,
            session=home.session,
            scope=home.scope,
            origin=origin,
            text=said,
            at=self._at,
            window=window,
            author=author,
            note=note,
        )
        home.entries.append(message)
        return message

    def copy(self, message: Message, stream: str, **changes: Any) -> Message:
        """The same utterance in another stream (a fork, a second era), under its own ref unless `changes` names one."""
        home = self.session(stream)
        self._count += 1
        changes = {"ref": f"{home.session}/e{self._count:05d}", "session": home.session, "stream": stream} | changes
        copied = replace(message, **changes)
        home.entries.append(copied)
        return copied

    def note(self, entry: Entry, stream: str = "s1") -> None:
        """Append an entry that carries no utterance."""
        self.session(stream).entries.append(entry)

    def edit(self, message: Message, said: str) -> Message:
        """Change a message's text in place; the log is read anew from its beginning."""
        home = self.sessions[message.stream]
        edited = replace(message, text=said)
        home.entries = [edited if entry is message else entry for entry in home.entries]
        home.era += 1
        return edited

    def delete(self, stream: str) -> None:
        del self.sessions[stream]

    def end(self, stream: str, fate: Fate) -> None:
        """The stream is listed no more, and this became of it."""
        self.delete(stream)
        self.fates[stream] = fate

    def take_back(self, message: Message) -> None:
        """The person edited a message away."""
        home = self.sessions[message.stream]
        home.entries = [entry for entry in home.entries if entry is not message]
        home.era += 1
        self.taken.add(message.ref)
        self.losses += 1

    def rename(self, stream: str, new: str) -> None:
        """Rotation: the same entries and refs under another stream name."""
        home = self.sessions.pop(stream)
        home.entries = [replace(e, stream=new) if isinstance(e, Message) else e for e in home.entries]
        self.sessions[new] = home

    def messages(self) -> list[Message]:
        return [e for home in self.sessions.values() for e in home.entries if isinstance(e, Message)]

    # what a source does

    def check(self) -> None:
        if self.absent:
            raise SourceAbsent("the log is not there")
        if self.busy:
            raise SourceBusy("the log is held")

    def describe(self) -> str:
        return "a log in memory"

    def streams(self) -> Iterator[Stream]:
        for name, home in list(self.sessions.items()):
            mark = f"{home.era}:{len(home.entries)}"
            touched = self.touched or max((e.at for e in home.entries if isinstance(e, Message)), default=None)
            losses = str(self.losses) if self.losses else ""
            yield Stream(name, mark, home.scope, home.session, home.kind, losses, touched)
        if self.unlisted is not None:
            raise self.unlisted

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        self.reads += 1
        self.check()
        if stream.name in self.broken:
            raise SourceError(f"{stream.name} cannot be read")
        home = self.sessions[stream.name]
        era, _, position = (cursor or "0:0").partition(":")
        at = start = int(position) if int(era) == home.era else 0
        messages: list[Message] = []
        skipped: dict[str, int] = {}
        faults: list[Fault] = []
        while at < len(home.entries) and len(messages) < min(limit, self.most):
            entry = home.entries[at]
            at += 1
            if isinstance(entry, Message):
                messages.append(entry)
            elif isinstance(entry, Fault):
                faults.append(entry)
            else:
                skipped[entry] = skipped.get(entry, 0) + 1
        earlier = [e for e in home.entries[:start] if isinstance(e, Message)]
        before = earlier[-1] if earlier and messages else None
        return Batch(
            messages,
            f"{home.era}:{at}",
            before,
            skipped,
            faults,
            at == len(home.entries),
            restarted=not start,
            renumbered=self.renumbered,
        )

    def withdrawn(self, stream: Stream, cursor: str | None, refs: Sequence[str]) -> set[str]:
        return self.taken.intersection(refs)

    def fate(self, stream: Stream, cursor: str | None, now: datetime) -> Fate:
        return self.fates.get(stream.name, "deleted")

    def get(self, wanted: Sequence[Wanted]) -> list[Message | Gone]:
        self.check()
        found = {(m.stream, m.ref): m for m in self.messages()} | {("", m.ref): m for m in self.messages()}
        return [found.get((w.stream, w.ref)) or found.get(("", w.ref)) or Gone(w.ref) for w in wanted]


def fill(log: Log, count: int = 40) -> None:
    """So many more messages, each about a topic of its own."""
    first = len(log.messages())
    for number in range(first, first + count):
        log.say(f"sentence number {number} speaks of topic{number} at some length")


# --- an embedder ------------------------------------------------------------------------------------------------------


def fake(model: str = "fake", dimension: int = 64, *, poisoned: Sequence[str] = (), weights: int = 0) -> FakeEmbedder:
    return FakeEmbedder(dimension, model=model, poisoned=poisoned, weights=weights)


# --- a memory, and what stands in its file ----------------------------------------------------------------------------


def migrate(connection: apsw.Connection) -> None:
    """Every step of the schema, at a fixed time."""
    migrations.migrate(connection, LATER)


def opened(path: Path) -> None:
    """Make or check the file, without a memory over it."""
    db.open_database(path, migrate, migrations.LATEST)


def open_memory(
    path: Path, log: MessageSource, *, embedder: Any = None, clock: Clock | None = None, **changes: Any
) -> Memory:
    settings = Settings(db_path=path, embedder="none", **changes)
    return Memory.open(settings, sources=[log], embedder=embedder, clock=clock or Clock())


def query(path: Path, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Rows, over a connection of our own."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(10_000)
        return list(connection.execute(sql, parameters))
    finally:
        connection.close()


def audit(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Rows, with the sqlite3 that comes with Python."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def dump(path: Path) -> dict[str, list[Any]]:
    """What a file says about messages, without row ids: passages, refs, every word of the lexicon, what is pending."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.set_busy_timeout(10_000)
        connection.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, lexicon, instance)")
        name = {
            row[0]: f"{row[1]}#{row[2]}"
            for row in connection.execute(
                "SELECT p.id, min(r.ref), p.part FROM passages p JOIN passage_refs r ON r.passage_id = p.id GROUP BY p.id"
            )
        }
        passages = [
            [name[i], name.get(previous), *rest]
            for i, previous, *rest in connection.execute(
                "SELECT p.id, p.previous_id, p.part, p.scope, p.origin, p.author, p.at, hex(p.content_key),"
                " c.scope, c.session, c.window, c.started_at"
                " FROM passages p JOIN conversations c ON c.id = p.conversation_id"
            )
        ]
        return {
            "passages": sorted(passages, key=repr),
            "refs": sorted(
                connection.execute(
                    "SELECT s.source, s.name, r.ref, p.part, hex(r.text_hash) FROM passage_refs r"
                    " JOIN streams s ON s.id = r.stream_id JOIN passages p ON p.id = r.passage_id"
                )
            ),
            "lexicon": sorted(
                (name[doc], column, offset, term)
                for term, doc, column, offset in connection.execute("SELECT term, doc, col, offset FROM temp.words")
            ),
            "pending": sorted(name[i] for (i,) in connection.execute("SELECT passage_id FROM pending_vectors")),
        }
    finally:
        connection.close()


def words_of(path: Path, column: str = "own") -> dict[str, set[str]]:
    """Passage name → its words in one column of the lexicon."""
    found: dict[str, set[str]] = {}
    for name, its_column, _, term in dump(path)["lexicon"]:
        if its_column == column:
            found.setdefault(name, set()).add(term)
    return found


def residue(folder: Path, *needles: str) -> dict[str, list[str]]:
    """File → the needles whose bytes stand in it, in UTF-8 or UTF-16."""
    found: dict[str, list[str]] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        data = path.read_bytes()
        left = [n for n in needles if n.encode() in data or n.encode("utf-16-le") in data]
        if left:
            found[path.name] = left
    return found


def recalled(memory: Memory, wanted: str, limit: int = 20, scope: str | None = None) -> list[Excerpt]:
    return list(memory.search(wanted, limit=limit, scope=scope).recalled)


def fact(key: str = "pref.editor", value: str = "Helix", **changes: Any) -> Fact:
    made = Fact(key, value, 1.0, "user", START, "shared", START, START, START)
    return replace(made, **changes)


def excerpt(said: str = "the ferry leaves at nine", **changes: Any) -> Excerpt:
    return replace(Excerpt("s1/e1", "log", "s1", "user", START, said, 1.0), **changes)


def graphemes(said: str) -> set[int]:
    """Every border between visible characters, told by walking the whole text."""
    borders = {0}
    for cluster in apsw.unicode.grapheme_iter(said):
        borders.add(max(borders) + len(cluster))
    return borders


def parsed(line: str) -> Any:
    """The JSON value that a block's line quotes."""
    return json.loads(line[line.index('"') : line.rindex('"') + 1])


# --- cost -------------------------------------------------------------------------------------------------------------

TIMES, RATIO, TRIES, ENOUGH = 8, 20.0, 3, 0.004
"""ENOUGH seconds: what takes less is measured with a longer text, up to MOST characters; what is quick even then is quick."""
MOST = 400_000


def seconds(work: Callable[[str], object], said: str, tries: int = TRIES) -> float:
    best = float("inf")
    gc.disable()
    try:
        for _ in range(tries):
            began = time.thread_time()
            work(said)
            best = min(best, time.thread_time() - began)
    finally:
        gc.enable()
    return best


def growth(work: Callable[[str], object], unit: str) -> float:
    """How many times longer TIMES the text takes; 0 when even MOST characters take next to nothing.

    Processor time, the least of a few tries, without the collector of cycles. Linear work gives 8 and quadratic work 64: a
    busy machine blurs neither into the other.
    """
    size = 20_000
    while (once := seconds(work, unit * (size // len(unit)))) < ENOUGH:
        if size >= MOST:
            return 0.0
        size *= 4
    return seconds(work, unit * (TIMES * size // len(unit))) / once
