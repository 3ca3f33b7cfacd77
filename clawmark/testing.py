"""Fakes and the source contract, for those who test an adapter or anything built on clawmark. Public.

    class TestMySource(SourceContract):
        @pytest.fixture
        def log(self, tmp_path): return MyLog(tmp_path)      # writes the host's log as the host does: see `Log`

Every law of `clawmark.source.MessageSource` is one test method; a log that cannot do an operation raises
NotImplementedError, and the laws about it are skipped. Nothing here needs pytest, a network, a model or a clock.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args
from unittest import SkipTest

from clawmark.embed import Failure, Kind
from clawmark.embed.probe import PROBE
from clawmark.errors import (
    ClawmarkError,
    EmbedderDown,
    EndpointDown,
    SourceAbsent,
    SourceBusy,
    SourceCorrupt,
    SourceDrift,
    SourceError,
)
from clawmark.model import Batch, Fate, Gone, Message, Origin, Role, Space, Stream, Wanted
from clawmark.source import MessageSource

if TYPE_CHECKING:
    from clawmark.model import Vector

START: Final = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
"""When the first message of a fake log is said."""


class FakeEmbedder:
    """Texts that share words get near vectors: each word counts in one of `dimension` places, chosen by its hash.

    down       while True, every call raises EmbedderDown
    poisoned   a text that holds one of these gets a Failure, whatever else is asked with it
    weights    another number is another model behind the same name: all vectors change
    asked      every text that was embedded, in order; the probe, which goes along with each call, left out
    """

    name = "fake"
    fixed = False
    endpoint = ""

    def __init__(
        self, dimension: int = 64, *, model: str = "fake", poisoned: Sequence[str] = (), weights: int = 0
    ) -> None:
        self.space = Space(model, dimension)
        self.batch_limit: int | None = None
        self.down = False
        self.poisoned = tuple(poisoned)
        self.weights = weights
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> list[Vector | Failure]:
        if self.down:
            raise EmbedderDown("the fake embedder is down; set .down = False")
        self.asked += [text for text in texts if text != PROBE]
        return [self._one(text) for text in texts]

    def _one(self, text: str) -> Vector | Failure:
        import numpy as np

        if any(poison in text for poison in self.poisoned):
            return Failure("poisoned")
        counts = np.zeros(self.space.dimension, dtype=np.float32)
        for word in re.findall(r"\w+", text.casefold()):
            place = hashlib.blake2b(word.encode(), digest_size=8, salt=self.weights.to_bytes(8)).digest()
            counts[int.from_bytes(place) % len(counts)] += 1
        norm = np.linalg.norm(counts)
        return np.asarray(counts / norm, dtype=np.float32) if norm else Failure("zero")


@dataclass
class _Session:
    """One session of a ListSource: `file` changes when it is rotated, `edition` when it is rewritten; `taken` holds the
    refs of what was taken back."""

    entries: list[Message] = field(default_factory=list)
    file: int = 0
    edition: int = 0
    count: int = 0
    taken: set[str] = field(default_factory=set)


class ListSource:
    """A message log in memory, for tests: a MessageSource, and the operations by which a host changes its log."""

    def __init__(self, name: str = "list", scope: str = "main", *, expires: bool = False) -> None:
        self.name = self.host = name
        self.scope = scope
        self.expires = expires
        self._sessions: dict[str, _Session] = {}
        self._fates: dict[str, Fate] = {}
        self._now = START

    @property
    def place(self) -> str:
        return self.name

    # --- what the host does ------------------------------------------------------------------------------------------

    def append(
        self,
        session: str,
        role: Role,
        text: str,
        at: datetime | None = None,
        *,
        origin: Origin | None = None,
        author: str | None = None,
        window: str = "",
    ) -> str:
        """Adds a message and gives its ref. Without `at` each is said a minute after the one before."""
        log = self._sessions.setdefault(session, _Session())
        self._now = at or self._now + timedelta(minutes=1)
        log.count += 1
        message = Message(
            ref=f"{session}/{log.count}",
            stream=self._stream(session),
            session=session,
            scope=self.scope,
            origin=origin or ("assistant" if role == "assistant" else "owner"),
            text=text,
            at=self._now,
            window=window,
            author=author,
            location=str(len(log.entries)),
        )
        log.entries.append(message)
        return message.ref

    def rotate(self, session: str) -> None:
        """The log goes on under another stream name; its messages keep their refs."""
        log = self._sessions[session]
        log.file += 1
        log.entries = [replace(m, stream=self._stream(session)) for m in log.entries]

    def delete(self, session: str) -> None:
        del self._sessions[session]

    def expire(self, session: str) -> None:
        """The host removes the log because it is old."""
        del self._sessions[session]
        self._fates[session] = "expired"

    def lose(self, session: str) -> None:
        """The log is not there, and nobody can say why."""
        del self._sessions[session]
        self._fates[session] = "lost"

    def branch(self, session: str, keep: int) -> None:
        """The person goes back and says something else: only the first `keep` messages still count."""
        log = self._sessions[session]
        log.edition += 1
        log.taken |= {message.ref for message in log.entries[keep:]}
        del log.entries[keep:]

    def fork(self, session: str, name: str) -> None:
        """A new session begins with the messages of another, under refs of its own."""
        for message in list(self._sessions[session].entries):
            self.append(name, message.role, message.text, message.at, origin=message.origin, author=message.author)

    def edit(self, session: str, ref: str, text: str) -> None:
        """The text of a message is changed where it stands."""
        log = self._sessions[session]
        log.edition += 1
        log.entries = [replace(m, text=text) if m.ref == ref else m for m in log.entries]

    def truncate(self, session: str, keep: int) -> None:
        """Only the last `keep` messages stay, as after a rewrite in place."""
        log = self._sessions[session]
        log.edition += 1
        kept = log.entries[-keep:] if keep else []
        log.entries = [replace(m, location=str(place)) for place, m in enumerate(kept)]

    # --- MessageSource -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        return None

    def describe(self) -> str:
        return f"a list of {len(self._sessions)} sessions in memory"

    def streams(self) -> Iterator[Stream]:
        for session, log in list(self._sessions.items()):
            mark = f"{log.edition}:{len(log.entries)}"
            touched = log.entries[-1].at if log.entries else None
            yield Stream(self._stream(session), mark, self.scope, session, losses=str(len(log.taken)), touched=touched)

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        log = self._sessions.get(stream.session)
        if log is None or self._stream(stream.session) != stream.name:
            return Batch(messages=(), cursor=cursor or "[0,0]")
        start = _place(cursor, log.edition)
        messages = log.entries[start : start + limit]
        end = start + len(messages)
        before = log.entries[start - 1] if start and messages else None
        return Batch(messages, json.dumps([log.edition, end]), before, end=end >= len(log.entries), restarted=not start)

    def get(self, wanted: Sequence[Wanted]) -> list[Message | Gone]:
        known = {m.ref: m for log in self._sessions.values() for m in log.entries}
        return [known.get(want.ref) or Gone(want.ref) for want in wanted]

    def withdrawn(self, stream: Stream, cursor: str | None, refs: Sequence[str]) -> set[str]:
        log = self._sessions.get(stream.session)
        return set() if log is None else log.taken.intersection(refs)

    def fate(self, stream: Stream, cursor: str | None, now: datetime) -> Fate:
        return self._fates.get(stream.session, "deleted")

    def _stream(self, session: str) -> str:
        return f"{self.scope}/{session}.{self._sessions[session].file}"


def _place(cursor: str | None, edition: int) -> int:
    """Where reading goes on; 0 when the cursor is none of this edition of the log."""
    try:
        value = json.loads(cursor or "")
    except ValueError:
        return 0
    return int(value[1]) if isinstance(value, list) and len(value) == 2 and value[0] == edition else 0


# --- the contract ----------------------------------------------------------------------------------------------------


class Log:
    """A host's log under test: each operation changes it as the host would. Subclass it.

    The first three every log can do; what a log cannot do otherwise is left as it is here, and the laws about it are
    skipped.
    """

    def source(self) -> MessageSource:
        """What reads it, anew each time."""
        raise NotImplementedError

    def new_session(self, name: str) -> str:
        """The id of a new session; ids sort as the given names do."""
        raise NotImplementedError

    def append(self, session: str, role: Role, text: str, at: datetime) -> str:
        """The ref of the new entry."""
        raise NotImplementedError

    def rename_reset(self, session: str) -> None:
        """What a reset does to the session's log: it stays, as history."""
        raise NotImplementedError

    def delete(self, session: str) -> None:
        """What the host does when the person deletes the session."""
        raise NotImplementedError

    def expire(self, session: str) -> datetime:
        """What the host does when the session has become too old; when it does so."""
        raise NotImplementedError

    def branch(self, session: str, keep: int) -> None:
        """The person goes back behind the first `keep` messages; what is appended next follows those."""
        raise NotImplementedError

    def fork(self, session: str, name: str) -> str:
        """The id of a new session that begins with copies of what stands in another."""
        raise NotImplementedError

    def edit(self, session: str, ref: str, text: str) -> None:
        """The text of an entry is changed where it stands."""
        raise NotImplementedError

    def absent(self) -> None:
        """The whole log is not there."""
        raise NotImplementedError

    def drift(self) -> None:
        """The log takes a form that nobody knows yet."""
        raise NotImplementedError

    def corrupt(self) -> None:
        """The log is damaged as a whole."""
        raise NotImplementedError

    def hold(self) -> None:
        """Somebody keeps the log locked."""
        raise NotImplementedError

    def tear_last_line(self, session: str, role: Role, text: str, at: datetime) -> str:
        """Half of an entry is written; its ref."""
        raise NotImplementedError

    def complete(self, session: str) -> None:
        """The other half follows."""
        raise NotImplementedError

    def shrink_to_tail(self, session: str, keep: int) -> None:
        """The log is rewritten in place and holds its last `keep` messages."""
        raise NotImplementedError


def drain(source: MessageSource, stream: Stream, cursor: str | None = None, limit: int = 1_000) -> list[Batch]:
    """Every batch behind `cursor`. Fails when reading does not come to an end."""
    batches: list[Batch] = []
    while len(batches) < 10_000:
        batch = source.read(stream, cursor, limit)
        assert len(batch.messages) <= limit, f"{len(batch.messages)} messages were given where {limit} were asked for"
        batches.append(batch)
        cursor = batch.cursor
        if batch.end:
            return batches
    raise AssertionError(f"{stream.name} was read 10,000 times and never said that it ends")


def messages_of(batches: Sequence[Batch]) -> list[Message]:
    return [message for batch in batches for message in batch.messages]


def everything(source: MessageSource) -> list[Message]:
    return [message for stream in source.streams() for message in messages_of(drain(source, stream))]


def wanted(messages: Sequence[Message], location: str | None = None) -> list[Wanted]:
    return [Wanted(m.stream, m.ref, m.location if location is None else location) for m in messages]


class SourceContract:
    """The laws of a message source. Subclass it, and give it a fixture `log`."""

    def test_each_message_is_delivered_once(self, log: Log) -> None:
        said = _talk(log, log.new_session("a"), 7) | _talk(log, log.new_session("b"), 4)
        read = everything(log.source())
        assert sorted(m.ref for m in read) == sorted(said)
        assert {m.ref: m.text for m in read} == {ref: text for ref, (text, _, _) in said.items()}

    def test_order_role_and_time_are_kept(self, log: Log) -> None:
        said = _talk(log, log.new_session("a"), 6)
        read = everything(log.source())
        assert [(m.ref, m.text, m.role, m.at) for m in read] == [(ref, *said[ref]) for ref in said]

    def test_a_message_says_whose_it_is(self, log: Log) -> None:
        _talk(log, log.new_session("a"), 3)
        for stream in log.source().streams():
            for message in messages_of(drain(log.source(), stream)):
                assert (message.stream, message.scope) == (stream.name, stream.scope), message.ref
                assert message.session and message.ref, "a message has a session and a ref"
                assert message.origin in get_args(Origin), f"{message.origin!r} is no origin"
                assert message.window == "", "a window begins at a reset or a compaction"

    def test_the_first_batch_of_a_stream_says_that_reading_began_anew(self, log: Log) -> None:
        session = log.new_session("a")
        _talk(log, session, 4)
        (stream,) = log.source().streams()
        first, *rest = drain(log.source(), stream, limit=2)
        assert first.restarted and not any(batch.restarted for batch in rest)

    def test_a_text_that_was_changed_where_it_stands_is_delivered_again(self, log: Log) -> None:
        session = log.new_session("a")
        said = list(_talk(log, session, 4))
        stream = _stream_of(log, session)
        cursor = drain(log.source(), stream)[-1].cursor
        _can(log.edit, session, said[1], "Something else was said")
        now = _stream_of(log, session)
        assert now.mark != stream.mark
        again = {m.ref: m.text for m in messages_of(drain(log.source(), now, cursor))}
        assert again.get(said[1]) == "Something else was said"

    def test_times_are_aware(self, log: Log) -> None:
        _talk(log, log.new_session("a"), 2)
        assert all(m.at.utcoffset() is not None for m in everything(log.source()))

    def test_reading_resumes_at_every_point(self, log: Log) -> None:
        _talk(log, log.new_session("a"), 7)
        (stream,) = log.source().streams()
        whole = messages_of(drain(log.source(), stream))
        for limit in (1, 2, 3, 6, 7, 8):
            batches = drain(log.source(), stream, limit=limit)
            assert messages_of(batches) == whole
            for batch in batches:  # a new object each time: a cursor needs nothing but the log
                rest = messages_of(drain(log.source(), stream, batch.cursor, limit))
                assert rest == whole[len(whole) - len(rest) :]

    def test_context_does_not_depend_on_where_batches_fall(self, log: Log) -> None:
        _talk(log, log.new_session("a"), 7)
        (stream,) = log.source().streams()
        whole = messages_of(drain(log.source(), stream))
        previous = dict(zip([m.ref for m in whole], [None, *whole[:-1]], strict=True))
        for limit in (1, 2, 3, 7):
            for batch in drain(log.source(), stream, limit=limit):
                if batch.messages:
                    assert batch.before == previous[batch.messages[0].ref]

    def test_a_cursor_excludes_what_it_covers(self, log: Log) -> None:
        session = log.new_session("a")
        _talk(log, session, 3)
        source = log.source()
        (stream,) = source.streams()
        cursor = drain(source, stream)[-1].cursor
        assert messages_of(drain(source, stream, cursor)) == []
        added = _talk(log, session, 2, start=3)
        assert [m.ref for m in messages_of(drain(source, stream, cursor))] == list(added)

    def test_a_mark_changes_with_its_log_and_only_then(self, log: Log) -> None:
        a, b = log.new_session("a"), log.new_session("b")
        _talk(log, a, 2)
        _talk(log, b, 2)
        marks = _marks(log.source())
        assert _marks(log.source()) == marks
        _talk(log, a, 1, start=2)
        changed = {name for name, mark in _marks(log.source()).items() if marks.get(name) != mark}
        assert {_session_of(log, name) for name in changed} == {a}

    def test_growth_of_an_old_session_is_seen(self, log: Log) -> None:
        a, b = log.new_session("a"), log.new_session("b")
        _talk(log, a, 3)
        _talk(log, b, 3)
        source = log.source()
        cursors = {s.name: drain(source, s)[-1].cursor for s in source.streams()}
        added = _talk(log, a, 2, start=3)
        read = [m.ref for s in source.streams() for m in messages_of(drain(source, s, cursors.get(s.name)))]
        assert read == list(added)

    def test_a_new_session_that_sorts_first_is_seen(self, log: Log) -> None:
        _talk(log, log.new_session("b"), 3)
        source = log.source()
        cursors = {s.name: drain(source, s)[-1].cursor for s in source.streams()}
        added = _talk(log, log.new_session("a"), 2)
        read = [m.ref for s in source.streams() for m in messages_of(drain(source, s, cursors.get(s.name)))]
        assert read == list(added)

    def test_refs_survive_growth(self, log: Log) -> None:
        session = log.new_session("a")
        said = _talk(log, session, 3)
        _talk(log, session, 3, start=3)
        assert [m.ref for m in everything(log.source())][:3] == list(said)

    def test_refs_survive_a_reset(self, log: Log) -> None:
        session = log.new_session("a")
        said = _talk(log, session, 4)
        read = everything(log.source())
        _can(log.rename_reset, session)
        source = log.source()
        assert [m.ref for m in everything(source)] == list(said)
        assert _texts(source.get(wanted(read))) == [m.text for m in read]

    def test_read_back_gives_what_was_read(self, log: Log) -> None:
        _talk(log, log.new_session("a"), 4)
        _talk(log, log.new_session("b"), 3)
        source = log.source()
        read = everything(source)[::-1]
        for hint in (None, "", "0", "1:2", "no place", "99999999999999999999"):
            back = source.get(wanted(read, hint))
            assert [(m.ref, m.text) for m in back if isinstance(m, Message)] == [(m.ref, m.text) for m in read]

    def test_read_back_follows_a_log_that_grew(self, log: Log) -> None:
        session = log.new_session("a")
        _talk(log, session, 3)
        read = everything(log.source())
        _talk(log, session, 5, start=3)
        assert _texts(log.source().get(wanted(read))) == [m.text for m in read]

    def test_what_was_never_there_is_gone(self, log: Log) -> None:
        session = log.new_session("a")
        _talk(log, session, 2)
        source = log.source()
        (message, *_) = everything(source)
        strange = [
            replace(message, ref=ref)
            for ref in (f"{session}/nothing", "nothing/nothing", "../../etc/passwd", "", f"{session}/", "/")
        ]
        lost = [replace(message, stream=name, ref="x/y") for name in ("", "nothing", "../..", f"{message.stream}x")]
        for asked in (strange, lost):
            assert source.get(wanted(asked)) == [Gone(m.ref) for m in asked]

    def test_a_deleted_session_is_gone_and_the_others_stay(self, log: Log) -> None:
        a, b = log.new_session("a"), log.new_session("b")
        _talk(log, a, 3)
        kept = _talk(log, b, 3)
        read = everything(log.source())
        _can(log.delete, a)
        source = log.source()
        assert [m.ref for m in everything(source)] == list(kept)
        assert {s.session for s in source.streams()} == {b}
        back = dict(zip([m.ref for m in read], source.get(wanted(read)), strict=True))
        assert {ref for ref, m in back.items() if isinstance(m, Gone)} == {m.ref for m in read} - kept.keys()

    def test_reading_a_stream_that_was_deleted_gives_nothing(self, log: Log) -> None:
        session = log.new_session("a")
        _talk(log, session, 3)
        source = log.source()
        (stream,) = source.streams()
        cursor = source.read(stream, None, 1).cursor
        _can(log.delete, session)
        for batch in (source.read(stream, cursor, 5), log.source().read(stream, None, 5)):
            assert batch.messages in ([], ()) and batch.end

    def test_an_unfinished_entry_waits(self, log: Log) -> None:
        session = log.new_session("a")
        said = list(_talk(log, session, 2))
        entry = _can(log.tear_last_line, session, "user", "half now, half later", START + timedelta(hours=1))
        source = log.source()
        (stream,) = source.streams()
        batches = drain(source, stream)
        assert [m.ref for m in messages_of(batches)] == said
        assert not any(batch.faults for batch in batches)
        log.complete(session)
        (late,) = messages_of(drain(log.source(), stream, batches[-1].cursor))
        assert (late.ref, late.text) == (entry, "half now, half later")

    def test_a_log_cut_to_its_tail_loses_nothing_new(self, log: Log) -> None:
        session = log.new_session("a")
        said = list(_talk(log, session, 8))
        source = log.source()
        (stream,) = source.streams()
        read = messages_of(drain(source, stream))
        cursor = drain(source, stream)[-1].cursor
        _can(log.shrink_to_tail, session, 3)
        added = list(_talk(log, session, 2, start=8))
        (stream,) = log.source().streams()
        again = [m.ref for m in messages_of(drain(log.source(), stream, cursor))]
        assert set(again) <= {*said[-3:], *added}, "what was cut off came back"
        assert [ref for ref in again if ref in added] == added
        back = log.source().get(wanted(read))
        assert [isinstance(m, Gone) for m in back] == [True] * 5 + [False] * 3
        assert _texts(back[-3:]) == [m.text for m in read[-3:]]

    def test_what_was_edited_away_is_withdrawn_and_nothing_else(self, log: Log) -> None:
        for limit in (1, 2, 1_000):
            session = log.new_session(f"edited{limit}")
            said = list(_talk(log, session, 7))
            stream = _stream_of(log, session)
            batches = drain(log.source(), stream, limit=limit)
            assert log.source().withdrawn(stream, batches[-1].cursor, said) == set()
            _can(log.branch, session, 3)
            added = list(_talk(log, session, 2, start=7))
            now = _stream_of(log, session)
            later = drain(log.source(), now, batches[-1].cursor, limit)
            read = {m.ref for m in messages_of(later)}
            cursor = later[-1].cursor
            back = log.source().withdrawn(now, cursor, [*said, *added])
            assert any(batch.took_back or batch.restarted for batch in later) or now.losses != stream.losses
            assert set(added) <= read
            assert ({*said} | read) - back == {*said[:3], *added}
            fresh = {m.ref for m in messages_of(drain(log.source(), now, None, limit))}
            assert fresh - back == {*said[:3], *added}

    def test_nothing_is_withdrawn_by_growth_reset_or_rotation(self, log: Log) -> None:
        session = log.new_session("a")
        said = list(_talk(log, session, 6))
        (stream,) = log.source().streams()
        cursor = drain(log.source(), stream)[-1].cursor
        said += _talk(log, session, 2, start=6)
        assert log.source().withdrawn(stream, cursor, said) == set()
        _can(log.shrink_to_tail, session, 3)
        (stream,) = log.source().streams()
        cursor = drain(log.source(), stream, cursor)[-1].cursor
        assert log.source().withdrawn(stream, cursor, said) == set()

    def test_a_fork_says_the_same_at_the_same_time(self, log: Log) -> None:
        session = log.new_session("a")
        _talk(log, session, 4)
        copy = _can(log.fork, session, "b")
        _talk(log, copy, 2, start=4)
        read = everything(log.source())
        ours = [m for m in read if m.session == session]
        theirs = [m for m in read if m.session == copy]
        assert [(m.text, m.role, m.at) for m in theirs[: len(ours)]] == [(m.text, m.role, m.at) for m in ours]
        assert len(theirs) == len(ours) + 2

    def test_a_deleted_session_was_deleted(self, log: Log) -> None:
        a, b = log.new_session("a"), log.new_session("b")
        _talk(log, a, 3)
        _talk(log, b, 1)
        stream = _stream_of(log, a)
        cursor = drain(log.source(), stream)[-1].cursor
        _can(log.delete, a)
        assert log.source().fate(stream, cursor, START + timedelta(hours=1)) == "deleted"

    def test_an_expired_session_was_not_deleted(self, log: Log) -> None:
        a, b = log.new_session("a"), log.new_session("b")
        _talk(log, a, 3)
        _talk(log, b, 1)
        stream = _stream_of(log, a)
        cursor = drain(log.source(), stream)[-1].cursor
        now = _can(log.expire, a)
        source = log.source()
        assert source.expires
        assert source.fate(stream, cursor, now) == "expired"
        assert {s.session for s in source.streams()} == {b}

    def test_an_absent_log_is_absent(self, log: Log) -> None:
        _fails(log, log.absent, SourceAbsent)

    def test_a_log_in_another_form_is_drift(self, log: Log) -> None:
        _fails(log, log.drift, SourceDrift)

    def test_a_damaged_log_is_corrupt(self, log: Log) -> None:
        _fails(log, log.corrupt, SourceCorrupt)

    def test_a_log_that_is_held_is_busy(self, log: Log) -> None:
        _fails(log, log.hold, SourceBusy)

    def test_a_cursor_of_another_time_reads_from_the_beginning(self, log: Log) -> None:
        session = log.new_session("a")
        said = list(_talk(log, session, 3))
        (stream,) = log.source().streams()
        for cursor in ("", "nonsense", "{}", "[]", "null", '{"o":1e99}'):
            try:
                read = messages_of(drain(log.source(), stream, cursor))
            except (ValueError, TypeError, KeyError) as error:
                raise AssertionError(f"cursor {cursor!r} broke the reading: {error!r}") from error
            assert [m.ref for m in read] == said

    def test_limits_are_respected(self, log: Log) -> None:
        _talk(log, log.new_session("a"), 5)
        source = log.source()
        (stream,) = source.streams()
        assert [len(source.read(stream, None, limit).messages) for limit in (1, 4, 5, 6)] == [1, 4, 5, 5]

    def test_a_source_names_itself_and_its_place(self, log: Log) -> None:
        _talk(log, log.new_session("a"), 1)
        source = log.source()
        source.check()
        assert isinstance(source, MessageSource)
        assert source.name and source.describe()
        assert source.host and source.place and isinstance(source.expires, bool)
        assert source.place == log.source().place
        assert len({s.name for s in source.streams()}) == len(list(source.streams()))


_T = TypeVar("_T")
_Said = dict[str, tuple[str, Role, datetime]]


def _talk(log: Log, session: str, count: int, start: int = 0) -> _Said:
    """`count` utterances, the person and the agent in turn: what was said, by ref."""
    said: _Said = {}
    for number in range(start, start + count):
        role: Role = "user" if number % 2 == 0 else "assistant"
        text = f"Utterance {number} of {session}: größer, İzmir, 東京, \U0001f44d"
        at = START + timedelta(minutes=number, milliseconds=number)
        said[log.append(session, role, text, at)] = (text, role, at)
    return said


def _fails(log: Log, operation: Callable[[], None], kind: type[SourceError]) -> None:
    """After `operation`, `check` and the listing raise `kind` and no other of the four."""
    _talk(log, log.new_session("a"), 2)
    _can(operation)
    source = log.source()
    for look in (source.check, lambda: list(source.streams())):
        try:
            look()
        except SourceError as failure:
            assert isinstance(failure, kind), f"{type(failure).__name__}: {failure}"
            assert str(failure)
        else:
            raise AssertionError(f"no {kind.__name__} was raised")


def _marks(source: MessageSource) -> dict[str, str]:
    return {stream.name: stream.mark for stream in source.streams()}


def _stream_of(log: Log, session: str) -> Stream:
    return next(stream for stream in log.source().streams() if stream.session == session)


def _session_of(log: Log, name: str) -> str:
    return next(stream.session for stream in log.source().streams() if stream.name == name)


def _texts(answers: Sequence[Message | Gone]) -> list[str | None]:
    return [answer.text if isinstance(answer, Message) else None for answer in answers]


def _can(operation: Callable[..., _T], *values: object) -> _T:
    """What `operation` gives; the law is skipped where the log cannot do it."""
    try:
        return operation(*values)
    except NotImplementedError:
        raise SkipTest(f"this log has no {getattr(operation, '__name__', 'such operation')}") from None


# --- a completer -----------------------------------------------------------------------------------------------------


class FakeCompleter:
    """Answers by the words of a prompt, without a model: a `clawmark.llm.Completer`.

    replies   words in the user's message → what is answered, or the error that is raised; the first that occurs counts,
              and where none does there are no facts
    down      while True, every call raises EndpointDown
    asked     every user's message that was answered, in order
    """

    name = "fake"

    def __init__(self, replies: Mapping[str, str | ClawmarkError] | None = None, *, endpoint: str = "") -> None:
        self.replies = dict(replies or {})
        self.endpoint = endpoint
        self.learned = ""
        self.down = False
        self.asked: list[str] = []

    def complete(self, system: str, user: str, schema: Mapping[str, Any], *, most_tokens: int, seconds: float) -> str:
        if self.down:
            raise EndpointDown("the fake completer is down; set .down = False")
        self.asked.append(user)
        reply = next((reply for words, reply in self.replies.items() if words in user), '{"facts": []}')
        if isinstance(reply, ClawmarkError):
            raise reply
        return reply
