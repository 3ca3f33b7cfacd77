"""Extract: what the owner said since the last time becomes facts, proposals and events, together with the cursor.

Messages are taken in the order in which they were indexed, one session at a time, read back from their log and judged by
the gate; what an extractor claims is never believed by itself. What came of a batch, the utterances it covered and the
cursor commit in one transaction. An utterance is looked through once, however often its log is read, and a kill at any
moment leaves whole batches only.

A model may take minutes, and nobody waits for it: it is asked outside any transaction and without the lease, so an
import, a restore and another pass go on meanwhile. One process at a time extracts. What was claimed counts only if, in the
transaction that keeps it, the very messages wait that it was asked about: not where one was forgotten, nor where a backup
was put in place.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Final

import apsw

from clawmark.belief import Belief
from clawmark.errors import DatabaseBusy, EndpointDown, EndpointError, ReplyUnusable
from clawmark.facts import gate
from clawmark.jobs.asking import Answer, Asking, Batch, How, count_call, none_usable, note_unavailable
from clawmark.jobs.prepare import EARLIEST
from clawmark.model import SHARED, Fact, Progress, Ruling, Utterance
from clawmark.recall.excerpt import Live, Reader
from clawmark.store import cursors, events, evidence, facts, passages
from clawmark.store.db import lease, transaction
from clawmark.store.passages import Waiting, to_ms
from clawmark.store.tombstones import Tombstones
from clawmark.text import cut

CURSOR: Final = "extract"
"""The id of the last passage that a model has looked through; `extract:markers` of those that the markers have."""
AGAIN: Final = ":again"
"""Of either: the first passage that could not be read back, or of which no answer could be used, the day, and how many
such days there were: it is tried again on another one."""
TURN: Final = ".extract"
"""What the name of the database is followed by in that of the lease of this job."""

BATCH, LETTERS = 50, 8_000
"""Messages, and letters of them, that a model is shown at once."""
LEAST = 8
"""Fewer wait for more, unless nothing is said any more or somebody asks."""
CONTEXT = 4
"""Passages in front of the first message of a batch that are shown with it."""
CONTEXT_LENGTH = 500
"""Characters of what is shown and cannot be cited."""
LOWERED = 0.05
"""What a proposal loses in confidence that names paths, when none of them is there any more."""
BARREN = 3
"""After so many batches in a row of which no answer could be used nobody is asked any more in this pass."""
DAYS = 5
"""So often, once a day, what no answer could be used of is asked about again."""


@dataclass(slots=True)
class Done:
    """Counts of one pass. unasked: messages that still wait."""

    facts: int = 0
    proposed: int = 0
    unasked: int = 0


def extract(
    connection: apsw.Connection,
    path: Path,
    reader: Reader,
    how: How,
    *,
    secret: Callable[[], bytes],
    clock: Callable[[], datetime],
    progress: Progress,
    most_batches: int | None,
    hurry: bool,
) -> Done:
    """Look through what waits; at most `most_batches` batches, and without `hurry` only where enough waits. Where another
    process is at it, that is left to it. Takes no lease but its own; belongs outside a transaction."""
    done = Done()

    def spend() -> None:
        count_call(connection, path, clock())

    with _turn(path) as is_ours:
        if is_ours and how.why_not is not None:
            note_unavailable(connection, path, how.why_not, clock())
        elif is_ours:
            try:
                walk = _Walk(connection, path, reader, how, secret, clock, spend)
                _look_through(walk, done, progress, most_batches, hurry)
            except (EndpointDown, EndpointError, ReplyUnusable) as failed:
                note_unavailable(connection, path, failed, clock())
    done.unasked = waiting(connection, by_model=how.who.is_model)
    return done


@contextmanager
def _turn(path: Path) -> Iterator[bool]:
    """The right to extract, held by one process at a time; whether it is this one."""
    with ExitStack() as held:
        is_ours = True
        try:
            held.enter_context(lease(path.with_name(path.name + TURN), 0))
        except DatabaseBusy:
            is_ours = False
        yield is_ours


def _look_through(walk: _Walk, done: Done, progress: Progress, most_batches: int | None, hurry: bool) -> None:
    """Raises EndpointDown and EndpointError where nobody can be asked, ReplyUnusable where it is in vain."""
    walk.begin()
    total, seen, barren = walk.waiting(), 0, 0
    for count, batch in enumerate(walk.batches(hurry=hurry), 1):
        barren = 0 if walk.look_through(batch, done) else barren + 1
        if barren == (1 if walk.asking.is_in_doubt else BARREN):
            raise none_usable(walk.how.name)
        seen += len(batch.waiting)
        progress("messages looked through", seen, max(total, seen))
        if count == most_batches:
            return


def waiting(connection: apsw.Connection, *, by_model: bool) -> int:
    """How many messages wait for extraction by a model, or by the embedded markers."""
    position = _position(cursors.get(connection, cursor_of(by_model=by_model)))
    return passages.count_owners_after(connection, position, by_model=by_model)


def cursor_of(*, by_model: bool) -> str:
    """Whoever has a model later has it look through what only the markers have."""
    return CURSOR if by_model else f"{CURSOR}:markers"


def dry_run(
    connection: apsw.Connection,
    reader: Reader,
    how: How,
    *,
    secret: Callable[[], bytes],
    clock: Callable[[], datetime],
    spend: Callable[[], None],
    days: int,
) -> list[tuple[str, Ruling]]:
    """What would come of all that was said in the last days, scope by scope: nothing is written, and what was extracted
    before is asked about again. Raises EndpointDown, EndpointError or ReplyUnusable where the extractor fails.

    spend: counts a call of the host's own model, which is paid for all the same.
    """
    if how.why_not is not None:
        raise how.why_not
    since = to_ms(clock() - timedelta(days=days))
    walk = _Walk(connection, None, reader, how, secret, clock, spend)
    found: list[tuple[str, Ruling]] = []
    for run in _runs(passages.owners_since(connection, since)):
        left = list(run)
        while left:
            batch = walk.read(left[:BATCH])
            del left[: len(batch.waiting)]
            found += [(batch.scope, ruling) for ruling in walk.rulings(batch, walk.claimed(batch))]
    return found


class _Walk:
    """From the cursor on, batch by batch."""

    def __init__(
        self,
        connection: apsw.Connection,
        path: Path | None,
        reader: Reader,
        how: How,
        secret: Callable[[], bytes],
        clock: Callable[[], datetime],
        spend: Callable[[], None],
    ) -> None:
        """path None: nothing is written. spend: as for `Asking`."""
        self.how = how
        self.asking = Asking(connection, path, how, secret, clock, spend)
        self._connection = connection
        self._path = path
        self._reader = reader
        self._secret = secret
        self._clock = clock
        self._cursor = cursor_of(by_model=how.who.is_model)
        self._days = 0

    @contextmanager
    def _writing(self) -> Iterator[None]:
        assert self._path is not None
        with transaction(self._connection, self._path):
            yield

    def begin(self) -> None:
        """Try again what could not be read back some days ago."""
        connection, now = self._connection, self._clock()
        cursor = self._cursor
        again, day, days = [*(cursors.get(connection, cursor + AGAIN) or "").split(), "", "", ""][:3]
        self._days = int(days) if days.isdigit() else 0
        if again and day != now.date().isoformat():
            with self._writing():
                if int(again) < _position(cursors.get(connection, cursor)):
                    cursors.put(connection, cursor, again, now)
                cursors.drop(connection, cursor + AGAIN)

    def waiting(self) -> int:
        return waiting(self._connection, by_model=self.how.who.is_model)

    def _next(self, most: int) -> list[Waiting]:
        position = _position(cursors.get(self._connection, self._cursor))
        return passages.owners_after(self._connection, position, most, by_model=self.how.who.is_model)

    def batches(self, *, hurry: bool) -> Iterator[Batch]:
        while True:
            found = self._next(max(1, BATCH >> self.asking.halvings()))
            if not found or (not hurry and len(found) < LEAST and self.waiting() < LEAST):
                return
            yield self.read(next(_runs(found)))

    def read(self, run: Sequence[Waiting]) -> Batch:
        """The messages of a run as they stand in their log now, with what was said around them, as far as they fit."""
        connection = self._connection
        first = run[0]
        shown = passages.around(connection, first.scope, first.session, first.id, run[-1].id, CONTEXT)
        live = {one.passage_id: one for one in self._reader.read(connection, [one.id for one in shown], exact=True)}
        fitting: list[Waiting] = []
        letters = 0
        for one in run:
            letters += len(live[one.id].text) if one.id in live and one.whole else CONTEXT_LENGTH
            if fitting and letters > LETTERS:
                break
            fitting.append(one)
        citable = {one.id for one in fitting if one.whole}
        shown = [one for one in shown if one.id <= fitting[-1].id and one.part == 0 and one.id in live]
        utterances = [
            _utterance(number, live[one.id], one, first.session, one.id in citable, self._clock())
            for number, one in enumerate(shown, 1)
        ]
        return Batch(fitting, utterances, {one.id for one in fitting if one.id not in live})

    def look_through(self, batch: Batch, done: Done) -> bool:
        """One batch from its text to its commit; False where something was asked and no answer could be used."""
        connection, cursor, by_model = self._connection, self._cursor, self.how.who.is_model
        answer = self.claimed(batch)
        rulings = self.rulings(batch, answer)
        now = self._clock()
        with self._writing():
            if self._next(len(batch.waiting)) != batch.waiting:
                return True  # what waits now is asked about next
            belief = Belief(connection, self._secret(), now)
            outcomes = Counter(belief.extracted(ruling, batch.scope) for ruling in rulings)
            if answer.refused:
                said = json.dumps(dict(sorted(answer.refused.items())))
                events.add(connection, "extract_error", now, source=self.how.name, scope=batch.scope, detail=said)
            again = {*batch.unread, *(answer.left if self._days < DAYS else ())}
            utterances = [(one.content_key, one.at) for one in batch.waiting if one.id not in again]
            evidence.note_extracted(connection, utterances, by_model=by_model)
            if again and cursors.get(connection, cursor + AGAIN) is None:
                note = f"{min(again) - 1} {now.date().isoformat()} {self._days + 1}"
                cursors.put(connection, cursor + AGAIN, note, now)
            cursors.put(connection, cursor, str(batch.waiting[-1].id), now)
            is_barren = bool(answer.left) and len(answer.left) == len(batch.citable)
            self.asking.note_answered(now, is_barren=is_barren)
        done.facts += outcomes["fact"]
        done.proposed += outcomes["proposed"]
        return not is_barren

    def claimed(self, batch: Batch) -> Answer:
        return self.asking.ask(batch, self._known(batch))

    def _known(self, batch: Batch) -> list[Fact]:
        return facts.live(self._connection, [batch.scope, SHARED])

    def rulings(self, batch: Batch, answer: Answer) -> list[Ruling]:
        known = self._known(batch)
        buried = Tombstones(self._connection, self._secret())

        def is_forgotten(key: str, value: str, content_keys: Sequence[bytes]) -> bool:
            return bool(buried) and buried.covers([batch.scope, SHARED], key, value, content_keys)

        rulings = [
            gate.ruled(
                candidate,
                batch.utterances,
                known,
                threshold=self.how.threshold,
                promote=self.how.promote if self.how.who.is_model else "marker",
                is_forgotten=is_forgotten,
                zone=self.how.zone,
            )
            for candidate in answer.candidates
        ]
        return [_grounded(ruling, os.path.lexists) for ruling in rulings]


def _position(cursor: str | None) -> int:
    return int(cursor) if cursor is not None and cursor.isdigit() else 0


def _runs(found: Sequence[Waiting]) -> Iterator[list[Waiting]]:
    """Neighbours of one session, in order."""
    for _, run in groupby(found, key=lambda one: (one.scope, one.session)):
        yield list(run)


def _utterance(
    number: int, live: Live, found: passages.Nearby, session: str, is_citable: bool, now: datetime
) -> Utterance:
    message = live.message
    # Where this machine's clock is behind, the log knows better when it was said; far in the future the log's clock is wrong.
    logged = live.logged_at if not message.dated else None
    is_logged = logged is not None and EARLIEST <= logged <= now + BEHIND
    at = logged if logged is not None and is_logged else passages.from_ms(found.at)
    is_citable = is_citable and message.origin == "owner"
    return Utterance(
        number,
        live.passage_id,
        message.origin,
        message.author,
        live.text if is_citable else cut(live.text, CONTEXT_LENGTH),
        at if live.logged_at is None else at.astimezone(live.logged_at.tzinfo),  # in the offset that its log gives
        message.dated or is_logged,
        session,
        message.scope,
        found.content_key,
        is_citable,
    )


_PATH = re.compile(r"(?<![\w/:.])(?:~|/[\w.-]+)/[\w./-]*\w")


def _grounded(ruling: Ruling, exists: Callable[[str], bool]) -> Ruling:
    """A proposal that names paths is believed less when none of them is there any more. That decides nothing."""
    named = _PATH.findall(ruling.value) if ruling.outcome == "propose" else []
    if not named or any(exists(os.path.expanduser(path)) for path in named):
        return ruling
    return replace(ruling, confidence=max(0.0, ruling.confidence - LOWERED))


BEHIND: Final = timedelta(days=3 * 365)
"""How far this machine's clock may be behind the log's."""
