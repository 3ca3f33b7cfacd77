"""Extract: what the owner said since the last time becomes facts, proposals and events, together with the cursor.

Messages are taken in the order in which they were indexed, one session at a time, read back from their log and judged by
the gate; what an extractor claims is never believed by itself. The model is asked outside the transaction; what came of a
batch, the utterances it covered and the cursor commit in one. An utterance is looked through once, however often its log
is read, and a kill at any moment leaves whole batches only.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, tzinfo
from itertools import groupby
from pathlib import Path
from typing import Final

import apsw

from clawmark.belief import Belief
from clawmark.errors import ClawmarkError, DatabaseBusy, EndpointDown, EndpointError, ReplyUnusable
from clawmark.facts import gate, marked, prompt, reply
from clawmark.jobs.prepare import EARLIEST
from clawmark.llm import Completer
from clawmark.model import SHARED, Candidate, Fact, Progress, Utterance
from clawmark.profile import is_trivial
from clawmark.recall.excerpt import Live, Reader
from clawmark.store import cursors, events, evidence, facts, passages
from clawmark.store.db import transaction
from clawmark.store.passages import Waiting, to_ms
from clawmark.store.tombstones import Tombstones
from clawmark.text import cut, length_in_letters

CURSOR: Final = "extract"
"""The id of the last passage that a model has looked through; `extract:markers` of those that the markers have."""
AGAIN: Final = ":again"
"""Of either: the first passage that could not be read back, or of which no answer could be used, the day, and how many
such days there were: it is tried again on another one."""
SLOW: Final = "extract:slow"
"""How often an answer took longer than it may, and the day: until its end fewer messages are shown at once."""
CALLS: Final = "extract:calls"
"""A day, and how often the host's own model was asked on it."""

BATCH, LETTERS = 50, 8_000
"""Messages, and letters of them, that a model is shown at once."""
LEAST = 8
"""Fewer wait for more, unless nothing is said any more or somebody asks."""
CONTEXT = 4
"""Passages in front of the first message of a batch that are shown with it."""
CONTEXT_LENGTH = 500
"""Characters of what is shown and cannot be cited."""
SHORTEST = 10
"""Letters: nothing durable is said in less."""
LOWERED = 0.05
"""What a proposal loses in confidence that names paths, when none of them is there any more."""
SECONDS, TOKENS, TRIES = 120.0, 1_500, 2
MOST_CALLS = 16
"""For one batch: enough to find one message of fifty that is to blame."""
MOST_CALLS_IN_DOUBT = 4
"""The same where the last pass ended because no answer could be used."""
UNUSABLE: Final = "none of its answers can be used"
BARREN = 3
"""After so many batches in a row of which no answer could be used nobody is asked any more in this pass."""
DAYS = 5
"""So often, once a day, what no answer could be used of is asked about again."""
MARKERS, OFF = "embedded markers", "off"


@dataclass(frozen=True, slots=True)
class How:
    """What the settings say of extraction.

    completer   None = the embedded markers    why_not   why the model that is named cannot be asked; then nothing is done
    threshold   confidence from which on a fact is stored       zone   of the person
    daily_calls the most a day of the host's own model
    """

    completer: Completer | None
    threshold: float
    promote: str
    zone: tzinfo | None
    daily_calls: int
    why_not: ClawmarkError | None = None

    @property
    def name(self) -> str:
        return MARKERS if self.completer is None else self.completer.name

    @property
    def by_model(self) -> bool:
        return self.completer is not None or self.why_not is not None

    @property
    def is_hosts(self) -> bool:
        """Whether the host's own model is asked, which costs the person what the host is charged."""
        return self.completer is not None and not self.completer.endpoint


@dataclass(slots=True)
class Done:
    """Counts of one pass. unasked: messages that still wait."""

    facts: int = 0
    proposed: int = 0
    unasked: int = 0


@dataclass(frozen=True, slots=True)
class _Batch:
    """Messages of one session, and all that is shown with them. unread: those that could not be read back."""

    waiting: Sequence[Waiting]
    utterances: Sequence[Utterance]
    unread: Collection[int]

    @property
    def scope(self) -> str:
        return self.waiting[0].scope

    def halves(self) -> list[_Batch]:
        """Twice half of what may be cited, each with what stands between: a request half as long, and without its
        neighbour, which may be to blame."""
        citable = [one.number for one in self.utterances if one.citable]
        middle = len(citable) // 2
        return [self._only(citable[:middle]), self._only(citable[middle:])]

    def _only(self, numbers: Sequence[int]) -> _Batch:
        shown = [one for one in self.utterances if numbers[0] <= one.number <= numbers[-1]]
        return replace(self, utterances=[replace(one, citable=one.number in numbers) for one in shown])

    @property
    def citable(self) -> list[int]:
        """Passage ids of what may be cited."""
        return [one.passage_id for one in self.utterances if one.citable]

    @property
    def is_one(self) -> bool:
        return len(self.citable) < 2


@dataclass(slots=True)
class _Answer:
    """What an extractor claims of a batch, what of its answers could not be used, by rule, and about which utterances
    (passage ids) it gave none that could be."""

    candidates: list[Candidate] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    left: set[int] = field(default_factory=set)

    def __iadd__(self, other: _Answer) -> _Answer:
        self.candidates += other.candidates
        self.refused += other.refused
        self.left |= other.left
        return self


def extract(
    connection: apsw.Connection,
    path: Path,
    reader: Reader,
    how: How,
    *,
    secret: bytes,
    clock: Callable[[], datetime],
    progress: Progress,
    most_batches: int | None,
    hurry: bool,
) -> Done:
    """Look through what waits; at most `most_batches` batches, and without `hurry` only where enough waits."""
    done = Done()
    if how.why_not is not None:
        _unavailable(connection, path, how.why_not, clock())
    else:
        job = _Job(connection, path, reader, how, secret, clock)
        job.begin()
        total, seen = waiting(connection, by_model=how.by_model), 0
        try:
            barren = 0
            for count, batch in enumerate(job.batches(hurry=hurry), 1):
                barren = 0 if job.look_through(batch, done) else barren + 1
                if barren == (1 if job.is_in_doubt else BARREN):
                    raise ReplyUnusable(f"{how.name} answers, and {UNUSABLE}.")
                seen += len(batch.waiting)
                progress("messages looked through", seen, max(total, seen))
                if count == most_batches:
                    break
        except EndpointDown as failed:
            if (clock() - job.asked_at).total_seconds() >= 0.9 * SECONDS:
                job.note_slow()
            _unavailable(connection, path, failed, clock())
        except (EndpointError, ReplyUnusable) as failed:
            _unavailable(connection, path, failed, clock())
    done.unasked = waiting(connection, by_model=how.by_model)
    return done


def waiting(connection: apsw.Connection, *, by_model: bool) -> int:
    """How many messages wait for extraction by a model, or by the embedded markers."""
    position = _position(cursors.get(connection, cursor_of(by_model=by_model)))
    return passages.count_owners_after(connection, position, by_model=by_model)


def cursor_of(*, by_model: bool) -> str:
    """Whoever has a model later has it look through what only the markers have."""
    return CURSOR if by_model else f"{CURSOR}:markers"


def calls_today(connection: apsw.Connection, now: datetime) -> int:
    """How often the host's own model was asked today (UTC)."""
    day, _, count = (cursors.get(connection, CALLS) or "").partition(" ")
    return int(count) if day == now.date().isoformat() and count.isdigit() else 0


def dry_run(
    connection: apsw.Connection, reader: Reader, how: How, *, secret: bytes, clock: Callable[[], datetime], days: int
) -> list[tuple[str, gate.Ruling]]:
    """What would come of all that was said in the last days, scope by scope: nothing is written, and what was extracted
    before is asked about again. Raises EndpointDown, EndpointError or ReplyUnusable where the extractor fails."""
    if how.why_not is not None:
        raise how.why_not
    since = to_ms(clock() - timedelta(days=days))
    job = _Job(connection, None, reader, how, secret, clock)
    found: list[tuple[str, gate.Ruling]] = []
    for run in _runs(passages.owners_since(connection, since)):
        left = list(run)
        while left:
            batch = job.read(left[:BATCH])
            del left[: len(batch.waiting)]
            found += [(batch.scope, ruling) for ruling in job.rulings(batch, job.claimed(batch))]
    return found


class _Job:
    def __init__(
        self,
        connection: apsw.Connection,
        path: Path | None,
        reader: Reader,
        how: How,
        secret: bytes,
        clock: Callable[[], datetime],
    ) -> None:
        """path None: nothing is written."""
        self._connection = connection
        self._path = path
        self._reader = reader
        self._how = how
        self._secret = secret
        self._clock = clock
        self._cursor = cursor_of(by_model=how.by_model)
        self._unwritten_calls = self._calls = self._unusable = self._days = 0
        self.is_in_doubt = _is_in_doubt(connection)
        self._most_calls = MOST_CALLS_IN_DOUBT if self.is_in_doubt else MOST_CALLS
        self.asked_at = clock()
        self._learned_under = "" if how.completer is None else f"chat:{how.completer.endpoint or how.completer.name}"

    @contextmanager
    def _writing(self) -> Iterator[None]:
        assert self._path is not None
        with transaction(self._connection, self._path):
            yield

    def begin(self) -> None:
        """Try again what could not be read back some days ago; tell the completer what its server was known to want."""
        connection, now = self._connection, self._clock()
        cursor = self._cursor
        again, day, days = [*(cursors.get(connection, cursor + AGAIN) or "").split(), "", "", ""][:3]
        self._days = int(days) if days.isdigit() else 0
        if again and day != now.date().isoformat():
            with self._writing():
                if int(again) < _position(cursors.get(connection, cursor)):
                    cursors.put(connection, cursor, again, now)
                cursors.drop(connection, cursor + AGAIN)
        if self._how.completer is not None:
            self._how.completer.learned = cursors.get(connection, self._learned_under) or ""

    def batches(self, *, hurry: bool) -> Iterator[_Batch]:
        while True:
            position = _position(cursors.get(self._connection, self._cursor))
            most = max(1, BATCH >> self._slow())
            found = passages.owners_after(self._connection, position, most, by_model=self._how.by_model)
            if not found or (
                not hurry and len(found) < LEAST and waiting(self._connection, by_model=self._how.by_model) < LEAST
            ):
                return
            yield self.read(next(_runs(found)))

    def note_slow(self) -> None:
        """A server that never gets through with what it is shown may do with less of it."""
        now = self._clock()
        with self._writing():
            cursors.put(self._connection, SLOW, f"{self._slow() + 1} {now.date().isoformat()}", now)

    def _slow(self) -> int:
        count, _, day = (cursors.get(self._connection, SLOW) or "").partition(" ")
        return min(int(count), 10) if day == self._clock().date().isoformat() and count.isdigit() else 0

    def read(self, run: Sequence[Waiting]) -> _Batch:
        """The messages of a run as they stand in their log now, with what was said around them, as far as they fit."""
        connection = self._connection
        first = run[0]
        shown = passages.around(connection, first.scope, first.session, first.id, run[-1].id, CONTEXT)
        live = {one.passage_id: one for one in self._reader.read(connection, [row[0] for row in shown], exact=True)}
        fitting: list[Waiting] = []
        letters = 0
        for one in run:
            letters += len(live[one.id].text) if one.id in live and one.whole else CONTEXT_LENGTH
            if fitting and letters > LETTERS:
                break
            fitting.append(one)
        citable = {one.id for one in fitting if one.whole}
        shown = [row for row in shown if row[0] <= fitting[-1].id and row[3] == 0 and row[0] in live]
        utterances = [
            _utterance(number, live[row_id], at, content_key, first.session, row_id in citable, self._clock())
            for number, (row_id, at, content_key, _) in enumerate(shown, 1)
        ]
        return _Batch(fitting, utterances, {one.id for one in fitting if one.id not in live})

    def look_through(self, batch: _Batch, done: Done) -> bool:
        """One batch from its text to its commit; False where something was asked and no answer could be used."""
        cursor = self._cursor
        start = cursors.get(self._connection, cursor)
        answer = self.claimed(batch)
        rulings = self.rulings(batch, answer)
        now = self._clock()
        with self._writing():
            if cursors.get(self._connection, cursor) != start:
                raise DatabaseBusy(f"another process moved the cursor {cursor}; try again.")
            belief = Belief(self._connection, self._secret, now)
            outcomes = Counter(belief.extracted(ruling, batch.scope) for ruling in rulings)
            if answer.refused:
                said = json.dumps(dict(sorted(answer.refused.items())))
                events.add(
                    self._connection, "extract_error", now, source=self._how.name, scope=batch.scope, detail=said
                )
            again = {*batch.unread, *(answer.left if self._days < DAYS else ())}
            standing = passages.standing(self._connection, [one.content_key for one in batch.waiting])
            utterances = [
                (one.content_key, one.at)
                for one in batch.waiting
                if one.id not in again and one.content_key in standing  # what was forgotten meanwhile leaves no trace
            ]
            evidence.note_extracted(self._connection, utterances, by_model=self._how.by_model)
            if again and cursors.get(self._connection, cursor + AGAIN) is None:
                note = f"{min(again) - 1} {now.date().isoformat()} {self._days + 1}"
                cursors.put(self._connection, cursor + AGAIN, note, now)
            cursors.advance(self._connection, cursor, start, str(batch.waiting[-1].id), now)
            self._note_learned(now)
            is_barren = bool(answer.left) and len(answer.left) == len(batch.citable)
            if self._how.completer is not None and not is_barren:
                _available(self._connection, self._how.name, now)
        done.facts += outcomes["fact"]
        done.proposed += outcomes["proposed"]
        return not is_barren

    def claimed(self, batch: _Batch) -> _Answer:
        """What the extractor claims; nobody is asked about greetings."""
        if not any(one.citable and _may_say_something(one.text) for one in batch.utterances):
            return _Answer()
        return self.ask(batch, self.known(batch))

    def known(self, batch: _Batch) -> list[Fact]:
        return facts.live(self._connection, [batch.scope, SHARED])

    def ask(self, batch: _Batch, known: Sequence[Fact]) -> _Answer:
        """What the extractor claims. Raises EndpointDown, EndpointError."""
        completer = self._how.completer
        if completer is None:
            return _Answer(marked.marked(batch.utterances))
        self._calls = self._unusable = 0
        answer = self._got(batch, known, completer, TRIES)
        if self._unusable >= TRIES and not answer.left and self._path is not None:
            self.note_slow()  # less of it at once is what it can do
        return answer

    def _got(self, batch: _Batch, known: Sequence[Fact], completer: Completer, tries: int) -> _Answer:
        """An answer that cannot be used is asked for once more, then by halves down to what is to blame, and so is one
        with more facts than fit. What cannot be used even so is left, and counted."""
        for _ in range(tries):
            if self._calls >= self._most_calls:
                break
            self._calls += 1
            try:
                answer = self._asked(batch, known, completer)
            except ReplyUnusable:
                self._unusable += 1
                continue
            if not answer.refused["left_out"] or batch.is_one:
                return answer
            break
        if batch.is_one or self._calls >= self._most_calls:
            return _Answer(refused=Counter({"unusable": 1}), left=set(batch.citable))
        both = _Answer()
        for half in batch.halves():
            both += self._got(half, known, completer, 1)
        return both

    def _asked(self, batch: _Batch, known: Sequence[Fact], completer: Completer) -> _Answer:
        self._count_call()
        self.asked_at = self._clock()
        first = batch.utterances[0].content_key
        nonce = hmac.digest(self._secret, b"extract\0" + first, hashlib.sha256).hex()[:8]
        asked = prompt.built(batch.utterances, known, nonce=nonce, zone=self._how.zone)
        text = completer.complete(asked.system, asked.user, asked.schema, most_tokens=TOKENS, seconds=SECONDS)
        found = reply.read(text)
        return _Answer(list(found.candidates), Counter(found.refused))

    def rulings(self, batch: _Batch, answer: _Answer) -> list[gate.Ruling]:
        known = self.known(batch)
        buried = Tombstones(self._connection, self._secret)

        def is_forgotten(key: str, value: str, content_keys: Sequence[bytes]) -> bool:
            return bool(buried) and buried.covers([batch.scope, SHARED], key, value, content_keys)

        rulings = [
            gate.ruled(
                candidate,
                batch.utterances,
                known,
                threshold=self._how.threshold,
                promote="marker" if self._how.completer is None else self._how.promote,
                is_forgotten=is_forgotten,
                zone=self._how.zone,
            )
            for candidate in answer.candidates
        ]
        return [_grounded(ruling, os.path.lexists) for ruling in rulings]

    def _count_call(self) -> None:
        """A call of the host's own model is paid for by the person: it counts before it is made."""
        if not self._how.is_hosts:
            return
        now = self._clock()
        count = calls_today(self._connection, now) + self._unwritten_calls
        if count >= self._how.daily_calls:
            raise EndpointDown(f"the host's model was asked {count} times today, as often as it may be.")
        if self._path is None:
            self._unwritten_calls += 1
        else:
            with self._writing():
                cursors.put(self._connection, CALLS, f"{now.date().isoformat()} {count + 1}", now)

    def _note_learned(self, now: datetime) -> None:
        completer = self._how.completer
        if completer is not None and completer.learned != (cursors.get(self._connection, self._learned_under) or ""):
            cursors.put(self._connection, self._learned_under, completer.learned, now)


def _position(cursor: str | None) -> int:
    return int(cursor) if cursor is not None and cursor.isdigit() else 0


def _runs(found: Sequence[Waiting]) -> Iterator[list[Waiting]]:
    """Neighbours of one session, in order."""
    for _, run in groupby(found, key=lambda one: (one.scope, one.session)):
        yield list(run)


def _utterance(
    number: int, live: Live, at: int, content_key: bytes, session: str, is_citable: bool, now: datetime
) -> Utterance:
    message = live.message
    # Where this machine's clock is behind, the log knows better when it was said; far in the future the log's clock is wrong.
    logged = live.logged_at if not message.dated else None
    is_logged = logged is not None and EARLIEST <= logged <= now + BEHIND
    is_citable = is_citable and message.origin == "owner"
    return Utterance(
        number,
        live.passage_id,
        message.origin,
        message.author,
        live.text if is_citable else cut(live.text, CONTEXT_LENGTH),
        logged if logged is not None and is_logged else passages.from_ms(at),
        message.dated or is_logged,
        session,
        message.scope,
        content_key,
        is_citable,
    )


_PATH = re.compile(r"(?<![\w/:.])(?:~|/[\w.-]+)/[\w./-]*\w")


def _grounded(ruling: gate.Ruling, exists: Callable[[str], bool]) -> gate.Ruling:
    """A proposal that names paths is believed less when none of them is there any more. That decides nothing."""
    named = _PATH.findall(ruling.value) if ruling.outcome == "propose" else []
    if not named or any(exists(os.path.expanduser(path)) for path in named):
        return ruling
    return replace(ruling, confidence=max(0.0, ruling.confidence - LOWERED))


BEHIND: Final = timedelta(days=3 * 365)
"""How far this machine's clock may be behind the log's."""


def _may_say_something(text: str) -> bool:
    return length_in_letters(text) >= SHORTEST and not is_trivial(text)


def _is_in_doubt(connection: apsw.Connection) -> bool:
    """Whether the last that is known of the server is that it answers in vain: one batch tells whether that has changed."""
    last = events.last_of(connection, "extract_unavailable", "extract_available")
    return last is not None and last.event_type == "extract_unavailable" and UNUSABLE in (last.detail or "")


_NUMBERS = re.compile(r"\b\d+(?:\.\d+)? s\b|\d+ times")


def _unavailable(connection: apsw.Connection, path: Path, why: ClawmarkError, now: datetime) -> None:
    """One event for each reason while it lasts; the numbers in it may differ."""
    last = events.last_of(connection, "extract_unavailable", "extract_available")
    is_known = last is not None and last.event_type == "extract_unavailable"
    if last is None or not is_known or _NUMBERS.sub("", last.detail or "") != _NUMBERS.sub("", str(why)):
        with transaction(connection, path):
            events.add(connection, "extract_unavailable", now, source="extract", detail=str(why))


def _available(connection: apsw.Connection, name: str, now: datetime) -> None:
    """Belongs inside a transaction."""
    last = events.last_of(connection, "extract_unavailable", "extract_available")
    if last is not None and last.event_type == "extract_unavailable":
        events.add(connection, "extract_available", now, source="extract", detail=name)
