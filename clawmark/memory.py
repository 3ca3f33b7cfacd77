"""Memory: what every host, tool and command calls.

Opens store, source and embedder when they are first needed and closes them together. The prompt path (`search`, `block`)
reads only: it writes nothing, waits for no job and no writer, and a log or an embedder that fails costs recall, never the
answer. Jobs have a connection, a source and an embedder of their own.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeVar
from zoneinfo import ZoneInfo

import apsw

from clawmark import block as blocks
from clawmark import clean, erase, keys, provenance
from clawmark.access import Access
from clawmark.errors import (
    ClawmarkError,
    DatabaseDamaged,
    DatabaseError,
    EmbedderError,
    EndpointDown,
    EndpointError,
    Refused,
    SourceError,
    UsageError,
)
from clawmark.facts import ladder, statement
from clawmark.facts.search import about
from clawmark.model import (
    SHARED,
    Block,
    Conflict,
    Decision,
    Draft,
    Event,
    Evidence,
    Excerpt,
    Fact,
    Forgetting,
    Forgotten,
    Found,
    Progress,
    Proposal,
    ProposalKind,
    Ruling,
    Said,
    Space,
    Stale,
    Status,
    SyncReport,
    Turn,
    Way,
    Why,
    Writer,
    Yes,
)
from clawmark.profile import FOUND, PROFILES, Profile, closed, is_trivial
from clawmark.recall.excerpt import Reader
from clawmark.recall.meaning import Meaning
from clawmark.recall.search import Query, recall, shortened
from clawmark.settings import Settings, load, local_zone
from clawmark.source import Alternatives, Folders, MessageSource, made, named, select
from clawmark.store import (
    cursors,
    db,
    events,
    evidence,
    facts,
    files,
    passages,
    proposals,
    recovery,
    sessions,
    sidecar,
    streams,
)
from clawmark.text import cut, forget_texts

if TYPE_CHECKING:
    from clawmark.belief import Belief
    from clawmark.embed import Embedder
    from clawmark.jobs.asking import How
    from clawmark.llm import Completer
    from clawmark.model import Vector

T = TypeVar("T")

DEFAULT_SCOPE = "main"
MOST_EXCERPTS = 50
MOST_EVENTS = 100_000
MOST_TYPED = 50
RECENT_LINES, RECENT_LENGTH = 3, 500
MOST_COUNTED, MOST_NAMED = 20, 5
"""Proposals that are counted, and keys that are named, in the line at the beginning of a session."""

WAIT_SECONDS = 30.0

log = logging.getLogger("clawmark")


def _clock() -> datetime:
    return datetime.now(UTC)


class Memory:
    """One person's memory. Use as a context manager. Safe to share between threads: reads take turns, and wait for no
    embedder but their own; a pass of the jobs runs beside them."""

    def __init__(
        self,
        settings: Settings,
        *,
        sources: Sequence[MessageSource] | None = None,
        embedder: Embedder | None = None,
        completer: Completer | None = None,
        clock: Callable[[], datetime] = _clock,
        rng: random.Random | None = None,
    ) -> None:
        """`open` is the usual way in. sources and embedder None = what the settings name. completer: the host's own model,
        which CLAWMARK_EXTRACT_URL=host names."""
        self.settings = settings
        self.path = files.resolved(settings.db_path)  # what stands beside the file stands beside its real place
        self._rules = clean.Rules(settings.never_index_paths)
        self._given_sources = sources
        self._given_embedder = embedder
        self._host_model = completer
        self._clock = clock
        self._rng = rng or random.Random()
        self._jobs = threading.RLock()
        self._extracting = threading.RLock()
        self._not_noted = ""
        self._meaning = Meaning(settings, embedder)
        self._access = Access(self.path, clock, replaced=self._meaning.forget_vectors)
        self._reading, self._writing = self._access.reading, self._access.writing
        self._own_sources: dict[str, MessageSource] = {}
        self._jobs_groups: list[Alternatives] | None = None

    @classmethod
    def open(
        cls,
        settings: Settings | None = None,
        *,
        sources: Sequence[MessageSource] | None = None,
        embedder: Embedder | None = None,
        completer: Completer | None = None,
        clock: Callable[[], datetime] = _clock,
        rng: random.Random | None = None,
    ) -> Self:
        """Open the memory that `settings` name (default: file and environment).

        It is made when there is none, brought up to date when an earlier version wrote it, and rebuilt with its facts when
        it is damaged. Raises DatabaseNewer, DatabaseForeign, DatabaseBusy or DatabaseUnwritable where that cannot be.
        """
        settings = load() if settings is None else settings
        memory = cls(settings, sources=sources, embedder=embedder, completer=completer, clock=clock, rng=rng)
        for line in recovery.ensure(memory.path, clock):
            log.warning("%s", line)
        return memory

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Waits for a pass of the jobs that is running."""
        with self._jobs, self._extracting:
            self._access.close()

    def changes(self) -> tuple[int, ...]:
        """A mark that is another one whenever anybody may have changed what the database holds."""
        return self._access.changes()

    # Jobs

    def sync(
        self,
        progress: Progress | None = None,
        wait_seconds: float = WAIT_SECONDS,
        *,
        most_batches: int | None = None,
        hurry: bool = True,
    ) -> SyncReport:
        """Run all jobs now and say what they did.

        most_batches: how many batches are extracted at most, None = all that wait; without `hurry` a last one of a few
        messages waits for more.

        A log that is there and empty is no error. Raises SourceAbsent when no log was found,
        DatabaseBusy when another pass kept its turn for `wait_seconds`.
        """
        if self.settings.disabled:
            return SyncReport()
        return self._recovering(lambda: self._pass(progress, wait_seconds, most_batches, hurry))

    def _pass(
        self, progress: Progress | None, wait_seconds: float, most_batches: int | None, hurry: bool
    ) -> SyncReport:
        from clawmark.jobs import runner
        from clawmark.jobs.plan import plan

        progress = progress or runner.no_progress
        with self._jobs, self._writing() as connection:
            groups = self._groups_of_jobs()
            planned = plan(groups)
            report = runner.run(
                connection,
                self.path,
                groups,
                planned,
                lambda: self._jobs_embedder(connection),
                self._reader(groups),
                secret=self._access.secret,
                rules=self._rules,
                keep_text=self.settings.keep_text != "off",
                clock=self._clock,
                rng=self._rng,
                wait_seconds=wait_seconds,
                progress=progress,
            )
        report = self._extracted(report, progress, most_batches, hurry)
        planned.require()
        return report

    def _extracted(self, report: SyncReport, progress: Progress, most_batches: int | None, hurry: bool) -> SyncReport:
        """A pass with what was extracted behind it. A model may take its time: what needs the jobs' turn goes on meanwhile,
        so connection and sources are its own."""
        from clawmark.jobs import runner
        from clawmark.jobs.extract import waiting

        how = self.extraction()
        if how.who.kind == "off":
            return report
        if not self._extracting.acquire(blocking=False):  # another thread is at it, and that is left to it
            with self._access.apart() as connection:
                return replace(report, unasked=waiting(connection, by_model=how.who.is_model))
        try:
            with self._writing() as connection:
                return runner.extracted(
                    connection,
                    self.path,
                    self._reader_of_all(connection),
                    how,
                    report,
                    secret=self._access.secret,
                    clock=self._clock,
                    progress=progress,
                    most_batches=most_batches,
                    hurry=hurry,
                )
        finally:
            self._extracting.release()

    def reembed(self, progress: Progress | None = None, wait_seconds: float = WAIT_SECONDS) -> SyncReport:
        """Make the vectors that are missing, trying again what failed or was given up.

        Raises EmbedderError where there is no embedder, SourceError where the log cannot be read, DatabaseBusy when
        another pass kept its turn for `wait_seconds`.
        """
        if self.settings.disabled:
            return SyncReport()
        return self._recovering(lambda: self._reembed(progress, wait_seconds))

    def _reembed(self, progress: Progress | None, wait_seconds: float) -> SyncReport:
        from clawmark.jobs import embedder as policy
        from clawmark.jobs import runner
        from clawmark.jobs.plan import plan

        with self._jobs, self._writing() as connection:
            groups = self._groups_of_jobs()
            planned = plan(groups)
            planned.require()
            if not planned.choices or all(choice.failure for choice in planned.choices):
                raise planned.absence()

            def chosen() -> Embedder:
                embedder = self._jobs_embedder(connection)
                if embedder is None:
                    raise EmbedderError(policy.standing_warning(connection) or policy.NO_EMBEDDER)
                return embedder

            return runner.reembed(
                connection,
                self.path,
                chosen,
                self._reader(groups),
                clock=self._clock,
                rng=self._rng,
                wait_seconds=wait_seconds,
                progress=progress or runner.no_progress,
            )

    def _recovering(self, work: Callable[[], SyncReport]) -> SyncReport:
        """`work`, and once more when it met a damaged page: the file is set aside and rebuilt in between."""
        for line in recovery.ensure_checked(self.path, self._clock):
            log.warning("%s", line)
        try:
            return work()
        except DatabaseDamaged as damage:
            log.warning("%s", recovery.recover(self.path, self._clock, str(damage)))
            return work()

    # Recall

    def search(
        self,
        query: str,
        limit: int | None = None,
        scope: str | None = None,
        *,
        session: str | None = None,
        kind: Literal["direct", "group"] | None = None,
    ) -> Found:
        """Facts that share a word with `query`, and at most `limit` excerpts (default: the setting; at most 50).

        scope None = everything the person has; a scope (by its readable name too) = its own and facts that are shared.
        session: the one that asks. What its model still sees is left out; where others read along (`kind`, as in a
        Turn) only what was said in it is found.
        """
        limit = self.settings.recall_limit if limit is None else max(0, min(limit, MOST_EXCERPTS))
        text = shortened(clean.query(query, self._rules)) if limit else ""
        meant = self._meant(text)
        now = self._clock()
        with self._reading() as connection:
            if session is not None:
                scope, kind = self._addressed(connection, Turn(query, scope=scope, session=session, kind=kind))
            scope = None if scope is None else streams.scope_called(connection, scope)
            found: list[Fact] = []
            if kind in (None, "direct"):
                found = about(query, facts.live(connection, None if scope is None else [scope, SHARED]))
            asked = Query(
                text,
                limit,
                now,
                None if scope is None else [scope],
                session=session,
                only_session=kind not in (None, "direct"),
                visible=self._visible(connection, scope, session),
            )
            return Found(found, self._recalled(connection, asked, meant))

    def block(self, turn: Turn | str) -> Block:
        """The memory block for a prompt; its text is empty when there is nothing to say. Writes nothing: whoever has
        given the block to a host says so with `shown`."""
        turn = Turn(turn) if isinstance(turn, str) else turn
        profile = _profile(turn.host)
        if self.settings.disabled:
            return Block("", skipped="off")
        now = turn.now or self._clock()
        limit = min(profile.excerpts, self.settings.recall_limit)
        skipped, prompt, text = self._question(turn, limit)
        before = self._before(turn) if turn.session is not None else sessions.NOTHING
        if not skipped and profile.gate is not None:
            skipped = closed(profile.gate, prompt, before.recalls, before.recalled_at, now)
        meant = None if skipped else self._meant(text)
        with self._reading() as connection:
            scope, kind = self._addressed(connection, turn)
            told: list[Fact] = []
            if kind == "direct":  # what is said to the agent in private is not told to a group
                stored = facts.live(connection, [scope, SHARED])
                threshold = self.settings.confidence_threshold
                told = blocks.shown_facts(stored, scope=scope, threshold=threshold, now=self._age(connection, now))
            if profile.keeps_block and before.facts:
                known = set(before.facts)
                told = [
                    fact
                    for fact, mark in zip(told, sessions.marks(self._access.key(), told), strict=True)
                    if mark not in known
                ]
            asked = Query(
                "" if skipped else text,
                limit,
                now,
                scopes=[scope],
                session=turn.session,
                only_session=kind != "direct",  # a kind we do not know has others in it
                visible=self._visible(connection, scope, turn.session),
                asked=prompt,
                shown=frozenset(before.excerpts if profile.keeps_block else ()),
            )
            recalled = self._recalled(connection, asked, meant)
            notice, told_to = "", 0
            if kind == "direct" and turn.session is not None and not before.blocks:
                notice, told_to = self._notice(connection, scope, now), events.newest(connection)
        if not told and not recalled and not notice:
            return Block("", skipped=skipped)
        nonce, zone = self._nonce(turn), self._zone()
        made = blocks.build(told, recalled, profile=profile, nonce=nonce, zone=zone, notice=notice)
        return replace(made, skipped=skipped, told=told_to)

    def _notice(self, connection: apsw.Connection, scope: str, now: datetime) -> str:
        """What the first block of a session says of proposals that wait and of facts that were noted since the last one."""
        waiting = proposals.count(connection, [scope, SHARED], now, MOST_COUNTED + 1)
        seen = int(cursors.get(connection, f"told:{scope}") or 0)
        return blocks.notice(waiting, MOST_COUNTED, events.noted_since(connection, seen, [scope, SHARED]), MOST_NAMED)

    def guarded(self, found: Found, *, host: str, session: str | None = None) -> str:
        """What was found as text for a model, guarded like a block; "" where nothing was."""
        nonce = self._nonce(Turn("", host=host, session=session))
        return blocks.build(found.facts, found.recalled, profile=FOUND, nonce=nonce, zone=self._zone()).text

    def shown(self, turn: Turn, block: Block) -> None:
        """A host was given `block` for `turn`: note what its session was shown, and the event of its recall.

        Comes after the answer, so it never fails: what cannot be written now is one line in the log.
        """
        if self.settings.disabled:
            return
        now = turn.now or self._clock()
        try:
            with (
                self._access.watched(),
                db.opened(self.path, busy_seconds=db.QUICK_BUSY_SECONDS) as connection,
                db.transaction(connection, self.path),
            ):
                scope, _ = self._addressed(connection, turn)
                if turn.session is not None and block.text:
                    old = sessions.get(connection, turn.host, turn.session)
                    keeps = _profile(turn.host).keeps_block
                    new = sessions.after(
                        old, sessions.marks(self._access.key(), block.facts), block.recalled, now, keeps=keeps
                    )
                    sessions.put(connection, turn.host, turn.session, scope, new, now)
                    if block.notice:
                        cursors.put(connection, f"told:{scope}", str(block.told), now)
                self._note_recall(connection, turn, block, scope, now)
        except DatabaseError as failed:
            if str(failed) != self._not_noted:  # once a reason, not once a prompt
                log.warning("shown_not_noted reason=%s", failed)
            self._not_noted = str(failed)
        else:
            self._not_noted = ""

    def _note_recall(self, connection: apsw.Connection, turn: Turn, block: Block, scope: str, now: datetime) -> None:
        """One event a prompt: reason, scores and refs, never text."""
        if not turn.prompt or block.skipped == "off":
            return
        said: dict[str, object] = {"session": turn.session}
        event = "recall_empty"
        if block.recalled:
            event = "recall_surfaced"
            said["excerpts"] = [[excerpt.source, excerpt.ref, round(excerpt.score, 4)] for excerpt in block.recalled]
        elif block.skipped:
            event = "recall_skip"
            said["reason"] = block.skipped
        events.add(connection, event, now, source=turn.host, scope=scope, detail=json.dumps(said))

    def renew(self, host: str, session: str) -> None:
        """The model of this session has forgotten what it was shown: all of it may be shown again."""
        with self._writing() as connection, db.transaction(connection, self.path):
            sessions.renew(connection, host, session)

    def typed(self, session: str, scope: str | None = None) -> list[Said]:
        """What the owner typed in this session as far as the log was read: the newest 50, oldest first. Parts of a
        message that is longer than a passage are no utterance of their own, and are left out."""
        with self._reading() as connection:
            ids = passages.typed_in(connection, session, scope, MOST_TYPED)
            try:
                with self._access.watched():
                    live = Reader(self._sources_of_recall(connection), self._rules).read(connection, ids)
            except (SourceError, UsageError) as failed:
                log.warning("typed_unread reason=%s", failed)
                return []
            return [Said(found.text, found.message.at) for found in live]

    def _visible(self, connection: apsw.Connection, scope: str | None, session: str | None) -> str | None:
        """The window that the model of a session still sees; None = nothing is."""
        if session is None or scope is None:
            return None
        # A session made of copies alone has no window of its own, and all of it is visible.
        return passages.newest_window(connection, scope, session) or ""

    def _before(self, turn: Turn) -> sessions.Shown:
        with self._reading() as connection:
            return sessions.get(connection, turn.host, turn.session or "")

    def _addressed(self, connection: apsw.Connection, turn: Turn) -> tuple[str, Literal["direct", "group"]]:
        """Whose memory is asked, and whether others read along: what the turn says, else what the log says of its
        session, else the only scope there is, else "main"; direct."""
        known = None if turn.session is None else streams.session(connection, turn.session)
        scope = streams.scope_called(connection, turn.scope) if turn.scope else (known[0] if known else None)
        if scope is None:
            scopes = streams.scopes(connection)
            scope = scopes[0] if len(scopes) == 1 else DEFAULT_SCOPE
        kind = turn.kind if turn.kind is not None else ("group" if known and known[1] == "group" else "direct")
        return scope, kind

    def _question(self, turn: Turn, limit: int) -> tuple[str, str, str]:
        """Why nothing is asked, or ""; the prompt as it is compared with what was said; and with it the lines before."""
        if self.settings.recall == "off" or not limit:
            return "off", "", ""
        prompt = "" if is_trivial(turn.prompt) else clean.query(turn.prompt, self._rules)
        if not prompt:
            return "trivial", "", ""
        lines = [cut(clean.query(line, self._rules), RECENT_LENGTH) for line in turn.recent[-RECENT_LINES:]]
        return "", prompt, shortened("\n".join([*lines, prompt]))

    def _meant(self, text: str) -> tuple[Space, Vector] | None:
        """What `text` means; None where recall runs on words. Nobody else waits while an embedder is asked."""
        if not text.strip():
            return None
        try:
            with self._reading() as connection:
                used = self._meaning.spaces(connection)
        except DatabaseDamaged:
            return None
        return self._meaning.vector(used, text)

    def _recalled(self, connection: apsw.Connection, query: Query, meant: tuple[Space, Vector] | None) -> list[Excerpt]:
        """Live excerpts; none, with one log line, when log or index cannot be read just now."""
        if query.limit <= 0 or not query.text.strip():
            return []
        try:
            with self._access.watched():
                space, vector = meant or (None, None)
                snapshot = None if space is None else self._meaning.snapshot(connection, space)
                found = Reader(self._sources_of_recall(connection), self._rules)
                return recall(connection, found, query, None if snapshot is None else vector, snapshot)
        except (SourceError, UsageError, DatabaseDamaged) as failed:  # facts stand on other pages than passages
            log.warning("recall_skipped reason=%s", failed)
            return []

    # Facts

    def set(
        self,
        key: str,
        value: str,
        scope: str = SHARED,
        *,
        writer: Writer = "user",
        observed_at: datetime | None = None,
        typed: Said | None = None,
        session: str | None = None,
    ) -> Fact:
        """Store what is said under `key`. Raises Refused with a code; the value is then nowhere, events included.

        writer: whose word it is. What the person said and did not take back outweighs an agent's (CONFLICT_SKIP), and
        what a person had forgotten only what they say afterwards brings back (FORGOTTEN).
        observed_at: when it was said (aware UTC); None = now.
        typed, session: what the person typed that says it, instead of both: it is stored under the key that its subject
        has already, and rests on that message.
        """
        from clawmark.belief import Belief

        fault = keys.scope_fault(scope)
        if fault is not None:
            raise UsageError(f"{fault}.")

        def state(connection: apsw.Connection, now: datetime) -> Fact:
            where = streams.scope_called(connection, scope)
            belief = Belief(connection, self._access.secret(), now)
            if typed is None:
                return belief.state(key, value, where, writer, observed_at)
            return belief.typed(key, value, where, typed, self._message(connection, typed, where, session))

        try:
            key, value = statement.statement(key, value)
            return self._changed(state)[0]
        except Refused as refused:
            told, by = refused, writer if typed is None else "user"
            self._decided(
                lambda belief, connection: belief.note_refusal(
                    told, key, value, streams.scope_called(connection, scope), by
                )
            )
            raise

    def _message(self, connection: apsw.Connection, typed: Said, scope: str, session: str | None) -> Evidence | None:
        """What the owner typed in a session, as evidence names it, whether its log was read or not; None where nobody says
        in which session or scope."""
        known = None if session is None else streams.session(connection, session)
        where = known[0] if known is not None else scope
        text = clean.again(typed.text, self._rules)
        if session is None or where == SHARED or not text:
            return None
        key, at = passages.content_key(where, "user", text), passages.to_ms(typed.at)
        logged = (when for when, _ in passages.said(connection, [key]).get(key, []))
        when = next((when for when in logged if abs(when - at) <= passages.SAME_UTTERANCE_MS), at)
        return Evidence(key, passages.from_ms(when), session)

    def hide(self, key: str, scope: str | None = None, *, writer: Writer = "agent") -> list[str]:
        """Show the fact `key` nowhere any more, in `scope` or wherever it stands, until a person decides; nothing of it
        is lost. Returns the scopes in which it stood."""
        key = statement.named(key)

        def hide(connection: apsw.Connection, now: datetime) -> list[str]:
            named = None if scope is None else streams.scope_called(connection, scope)
            hidden = facts.hide(connection, key, named, is_hidden=True, now=now)
            for where in hidden:
                events.add(connection, "hide", now, source=writer, scope=where, key=key)
            return hidden

        return self._changed(hide)[0]

    def unhide(self, key: str, scope: str | None = None) -> list[str]:
        """Take a hidden fact back, and what would have had it erased with it; returns the scopes in which it was hidden."""
        key = statement.named(key)

        def show(belief: Belief, connection: apsw.Connection) -> list[str]:
            return belief.unhide(key, None if scope is None else streams.scope_called(connection, scope))

        return self._decided(show)

    def forget(self, key: str, scope: str | None = None) -> list[str]:
        """Erase the fact `key` for good, in `scope` or wherever it stands, with what was said of it; returns the scopes in
        which it stood."""
        gone = self.erase(Forgetting(key=statement.named(key), scope=scope))
        return [where for where, _ in gone.facts]

    def forgetting(self, what: Forgetting) -> Forgotten:
        """What `erase` would take away. Raises UsageError where nothing is named, or more than one thing."""
        from clawmark import forgetting

        with self._apart() as (connection, reader):
            return forgetting.shown(connection, reader, forgetting.planned(connection, reader, what))

    def erase(self, what: Forgetting) -> Forgotten:
        """Erase for good what is named: facts, evidence, proposals, messages, vectors, words and values of events. None of
        it is learned again from the same logs; what the person says afterwards counts. Raises UsageError as above."""
        from clawmark import forgetting

        with self._apart() as (connection, reader):
            plan = forgetting.planned(connection, reader, what)

        def carry_out(connection: apsw.Connection, now: datetime) -> Forgotten:
            return forgetting.carried_out(connection, plan, self._access.secret(), now)

        gone, finished = self._changed(carry_out, erases=True)
        return replace(gone, finished=finished)

    def _changed(self, work: Callable[[apsw.Connection, datetime], T], *, erases: bool = False) -> tuple[T, bool]:
        """What `work` makes of the database in one transaction, the sidecar brought up to date, and whether all that it
        erased is out of every file: where another process reads, that is left to the next pass."""
        with self._writing() as connection:
            now = self._clock()
            with db.transaction(connection, self.path):
                done = work(connection, now)
                if erases:
                    erase.mark_unfinished(connection, now, "fact")
                    erase.forget_in_sidecar(connection, self.path, now)
            sidecar.save(connection, self.path, now)
            finished = not erases or erase.finish(connection, self.path)
        if erases:
            forget_texts()  # a process may live for days
        if not finished:
            log.warning("forget_unfinished reason=another process reads the database; the next sync completes it")
        return done, finished

    # What waits for the person

    def propose(
        self,
        kind: ProposalKind,
        key: str,
        value: str,
        scope: str = SHARED,
        *,
        origin: str,
        reason: str,
        conflict: Conflict = "none",
        against: str | None = None,
        observed_at: datetime | None = None,
    ) -> Proposal:
        """Have a statement (kind "set"), or the erasure of a fact ("forget"), wait for the person; the one that waits
        already where there is one. Raises Refused as `set` does, and REVIEW where the person rejected it not long ago."""
        if kind == "set":
            key, value = statement.statement(key, value)
        else:
            key = statement.named(key)
        draft = Draft(
            kind,
            key,
            value,
            scope,
            origin=origin,
            reason=reason,
            conflict=conflict,
            against=against,
            observed_at=observed_at,
        )
        return self._decided(
            lambda belief, connection: belief.propose(replace(draft, scope=streams.scope_called(connection, scope)))
        )

    def proposals(self, scope: str | None = None, *, deferred: bool = False) -> list[Proposal]:
        """Those that wait, oldest first: in all scopes, or in one and what is shared. deferred: those that were put off too."""
        from clawmark.belief import as_they_stand

        with self._access.apart() as connection:  # each is compared with all facts, and no prompt waits for it
            scopes = None if scope is None else [streams.scope_called(connection, scope), SHARED]
            return as_they_stand(
                connection, proposals.pending(connection, scopes, now=None if deferred else self._clock())
            )

    def proposal(self, name: str) -> Proposal:
        """The one that waits under this name, "12" or "12-3fa9c1". Raises UsageError as `accept`."""
        from clawmark.belief import as_they_stand

        with self._access.apart() as connection:
            return as_they_stand(connection, [proposals.named(connection, name)])[0]

    def evidence(self, proposal: Proposal) -> list[Excerpt]:
        """What a proposal rests on, read back from the logs, oldest first."""
        with self._apart() as (connection, reader):
            rests_on = evidence.of(connection, proposal.scope, proposal.key, proposal.value)
            return provenance.read(connection, reader, rests_on)[0]

    def faded(self, found: Sequence[Fact]) -> frozenset[tuple[str, str]]:
        """(scope, key) of those that are believed too little by now to be shown."""
        with self._reading() as connection:
            at = self._age(connection, self._clock())
        threshold = self.settings.confidence_threshold
        return frozenset((fact.scope, fact.key) for fact in found if ladder.effective_confidence(fact, at) < threshold)

    def accept(
        self,
        name: str,
        *,
        value: str | None = None,
        key: str | None = None,
        into: str | None = None,
        way: Way = "replace",
    ) -> Fact | None:
        """The person takes a proposal on; the fact it became, None for one to forget.

        name       "12", or "12-3fa9c1", which is refused when the proposal says something else by now
        value, key as the person edited them          into   a known key that it is merged into
        way        replace: what stands under its key. supersede: also the fact it is against. keep_both: neither
        Raises UsageError for a proposal that is unknown, decided or another one; Refused as `set` does.
        """
        from clawmark import forgetting

        with self._apart() as (connection, reader):
            plan = forgetting.of_proposal(connection, reader, name)

        def decide(belief: Belief, connection: apsw.Connection) -> Fact | None:
            fact = belief.accept(name, Yes(value=value, key=key, into=into, way=way))
            if plan is not None:  # what is forgotten goes with the messages that state it
                forgetting.carried_out(connection, plan, self._access.secret(), self._clock())
            return fact

        return self._decided(decide, erases=True)

    def reject(self, name: str, reason: str = "") -> Proposal:
        """The person does not want it: its words are not proposed again for 180 days. Raises UsageError as `accept`."""
        return self._decided(lambda belief, _: belief.reject(name, reason), erases=True)

    def defer(self, name: str, days: int = 7) -> Proposal:
        """The person wants to decide in `days`. Raises UsageError as `accept`."""
        return self._decided(lambda belief, _: belief.defer(name, days))

    def _decided(self, work: Callable[[Belief, apsw.Connection], T], *, erases: bool = False) -> T:
        from clawmark.belief import Belief

        def decide(connection: apsw.Connection, now: datetime) -> T:
            return work(Belief(connection, self._access.secret(), now), connection)

        return self._changed(decide, erases=erases)[0]

    def why(self, key: str, scope: str | None = None) -> list[Why]:
        """What is known of a key and where it is from, scope by scope; empty when nothing ever was."""
        key = statement.named(key)
        with self._apart() as (connection, reader):
            named = None if scope is None else streams.scope_called(connection, scope)
            return provenance.why(connection, reader, key, named)

    def stale(self, days: int = 90, scope: str | None = None) -> list[Stale]:
        """Facts of others than the person that nobody stated for `days`, longest first."""
        with self._reading() as connection:
            named = None if scope is None else [streams.scope_called(connection, scope), SHARED]
            return ladder.stale(facts.live(connection, named), self._age(connection, self._clock()), days)

    def believed(self, scope: str | None = None) -> list[Fact]:
        """`facts` that a block would show now, as far as their age tells."""
        found = self.facts(scope)
        faded = self.faded(found)
        return [fact for fact in found if (fact.scope, fact.key) not in faded]

    def decisions(self) -> list[Decision]:
        """What the person decided about statements that waited, in the order in which these were proposed."""
        with self._reading() as connection:
            return proposals.decided(connection)

    def is_group(self, session: str, scope: str | None = None) -> bool:
        """Whether others read along in a session, as far as the log says."""
        with self._reading() as connection:
            return self._addressed(connection, Turn("", scope=scope, session=session))[1] == "group"

    def extraction(self) -> How:
        """Who extracts facts, and how."""
        from clawmark import llm
        from clawmark.jobs.asking import How

        settings = self.settings
        completer: Completer | None = None
        why_not: ClawmarkError | None = None
        try:
            completer = llm.choose(settings, self._host_model)
        except (EndpointDown, EndpointError) as refused:
            why_not = refused
        return How(
            llm.named(settings),
            completer,
            settings.confidence_threshold,
            settings.promote,
            self._zone() or local_zone(),
            settings.extract_daily_calls,
            settings.markers,
            why_not,
        )

    def dry_run(self, days: int = 30) -> list[tuple[str, Ruling]]:
        """(scope, ruling) of all that was said in the last days, as extraction would take it now. Writes nothing but how
        often the host's model was asked. Raises EndpointDown, EndpointError or ReplyUnusable where the extractor fails."""
        from clawmark.jobs.asking import count_call
        from clawmark.jobs.extract import dry_run

        def spend() -> None:
            with self._writing() as connection:
                count_call(connection, self.path, self._clock())

        with self._apart() as (connection, reader):
            how, secret = self.extraction(), self._access.secret
            return dry_run(connection, reader, how, secret=secret, clock=self._clock, spend=spend, days=days)

    def copies(self) -> list[Path]:
        """Backups and files that were set aside, beside the database: what is forgotten now may still stand in them."""
        return [copied for copied in recovery.set_aside_files(self.path) if copied.suffix != ".key"]

    def facts(self, scope: str | None = None, *, hidden: bool = False) -> list[Fact]:
        """All live facts by key, or those that are hidden; scope None = all scopes, a scope = its own and what is
        shared."""
        with self._reading() as connection:
            named = None if scope is None else streams.scope_called(connection, scope)
            return facts.live(connection, None if named is None else [named, SHARED], hidden=hidden)

    def scopes(self) -> dict[str, str]:
        """Every scope that something was read or set under → what a person calls it ("" where that is the same)."""
        with self._reading() as connection:
            names = streams.scope_names(connection)
            known = {*streams.scopes(connection), *(fact.scope for fact in facts.live(connection))} - {SHARED}
            return {scope: names.get(scope, "") for scope in sorted(known)}

    def events(self, limit: int = 50) -> list[Event]:
        """The newest events, newest first."""
        with self._reading() as connection:
            return events.latest(connection, max(0, min(limit, MOST_EVENTS)))

    # Status

    def status(self) -> Status:
        """What there is and what is wrong."""
        from clawmark import status

        embedder = status.embedder_of(
            self.settings, self._given_embedder
        )  # a look-up may take its time: not under the lock
        with self._access.apart() as connection:  # listing a long log takes its time, and no prompt waits for it
            return status.gather(
                connection, self.path, self.settings, groups=self._new_groups, embedder=embedder, now=self._clock()
            )

    # Parts, made when first needed

    def _new_groups(self) -> list[Alternatives]:
        if self._given_sources is not None:
            return [[source] for source in self._given_sources]
        return select(self.settings.source, self._folders())

    def _folders(self) -> Folders:
        settings = self.settings
        return Folders(
            settings.transcripts_dir,
            settings.openclaw_state_dir,
            settings.lcm_db_path,
            settings.claude_config_dir,
            settings.subagents,
        )

    def _sources_of_recall(self, connection: apsw.Connection) -> dict[str, MessageSource]:
        """Those of which something was read, by name, as far as the settings name them; only their adapters are loaded."""
        if self._given_sources is not None:
            return {source.name: source for source in self._given_sources}
        held = streams.sources(connection)
        new = held - self._own_sources.keys()
        if new:
            wanted = {name for group in named(self.settings.source) for name in group}
            for name in sorted(new & wanted):
                self._own_sources[name] = made(name, self._folders())
        return {name: source for name, source in self._own_sources.items() if name in held}

    def _groups_of_jobs(self) -> list[Alternatives]:
        """Those of the jobs, kept between passes: a source may keep what it knows of files that do not change."""
        if self._jobs_groups is None:
            self._jobs_groups = self._new_groups()
        return self._jobs_groups

    def _reader(self, groups: Sequence[Alternatives]) -> Reader:
        return Reader({source.name: source for group in groups for source in group}, self._rules)

    def _jobs_embedder(self, connection: apsw.Connection) -> Embedder | None:
        if self._given_embedder is not None:
            return self._given_embedder
        from clawmark.jobs.embedder import for_background

        return for_background(connection, self.path, self.settings, self._clock)

    @contextmanager
    def _apart(self) -> Iterator[tuple[apsw.Connection, Reader]]:
        """A reading connection and a reader of its own, for what takes its time: no prompt waits for it."""
        with self._access.apart() as connection:
            yield connection, self._reader_of_all(connection)

    def _reader_of_all(self, connection: apsw.Connection) -> Reader:
        """Reads from sources of its own, as far as there are any."""
        try:
            return self._reader(self._new_groups())
        except (SourceError, UsageError) as failed:
            log.warning("logs_unread reason=%s", failed)
            return Reader({}, self._rules)

    def _age(self, connection: apsw.Connection, now: datetime) -> datetime:
        """By which the age of a fact is measured: a clock that runs ahead of all that was said makes nothing old."""
        return passages.as_of(connection, now)

    def _zone(self) -> ZoneInfo | None:
        return ZoneInfo(self.settings.timezone) if self.settings.timezone else None

    def _nonce(self, turn: Turn) -> str:
        said = f"block\0{turn.host}\0{turn.session or ''}"
        return hmac.digest(self._access.key(), said.encode(), hashlib.sha256).hex()[:8]


def _profile(host: str) -> Profile:
    profile = PROFILES.get(host)
    if profile is None:
        raise UsageError(f"no host is called {host!r}; known hosts are {', '.join(sorted(PROFILES))}.")
    return profile
