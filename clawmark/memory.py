"""Memory: what every host, tool and command calls.

Opens store, source and embedder when they are first needed and closes them together. The prompt path (`search`, `block`)
reads only: it writes nothing, waits for no job and no writer, and a log or an embedder that fails costs recall, never the
answer. Jobs have a connection, a source and an embedder of their own.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self
from zoneinfo import ZoneInfo

import apsw

from clawmark import block as blocks
from clawmark import clean, erase, keys
from clawmark.errors import (
    DatabaseDamaged,
    DatabaseUnwritable,
    EmbedderError,
    Refused,
    SourceError,
    UsageError,
)
from clawmark.facts import gate, ladder
from clawmark.facts.search import about
from clawmark.model import SHARED, Block, Event, Excerpt, Fact, Found, Progress, Space, Status, SyncReport, Turn
from clawmark.recall.excerpt import Reader
from clawmark.recall.meaning import Meaning
from clawmark.recall.search import Query, recall, shortened
from clawmark.settings import Settings, load
from clawmark.source import Alternatives, Folders, MessageSource, made, named, select
from clawmark.store import copy, db, events, facts, files, keyfile, passages, recovery, sidecar, streams
from clawmark.text import cut

if TYPE_CHECKING:
    from clawmark.embed import Embedder
    from clawmark.model import Vector

DEFAULT_SCOPE = "main"
MOST_EXCERPTS = 50
MOST_EVENTS = 100_000
RECENT_LINES, RECENT_LENGTH = 3, 500
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
        clock: Callable[[], datetime] = _clock,
        rng: random.Random | None = None,
    ) -> None:
        """`open` is the usual way in. sources and embedder None = what the settings name."""
        self.settings = settings
        self.path = files.resolved(settings.db_path)  # what stands beside the file stands beside its real place
        self._rules = clean.Rules(settings.never_index_paths)
        self._given_sources = sources
        self._given_embedder = embedder
        self._clock = clock
        self._rng = rng or random.Random()
        self._lock = threading.RLock()
        self._jobs = threading.RLock()
        self._fallback_secret = os.urandom(32)
        self._connection: apsw.Connection | None = None
        self._file: tuple[int, ...] | None = None
        self._meaning = Meaning(settings, embedder)
        self._own_sources: dict[str, MessageSource] = {}
        self._jobs_groups: list[Alternatives] | None = None

    @classmethod
    def open(
        cls,
        settings: Settings | None = None,
        *,
        sources: Sequence[MessageSource] | None = None,
        embedder: Embedder | None = None,
        clock: Callable[[], datetime] = _clock,
        rng: random.Random | None = None,
    ) -> Self:
        """Open the memory that `settings` name (default: file and environment).

        It is made when there is none, brought up to date when an earlier version wrote it, and rebuilt with its facts when
        it is damaged. Raises DatabaseNewer, DatabaseForeign, DatabaseBusy or DatabaseUnwritable where that cannot be.
        """
        memory = cls(load() if settings is None else settings, sources=sources, embedder=embedder, clock=clock, rng=rng)
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
        with self._jobs, self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    # Jobs

    def sync(self, progress: Progress | None = None, wait_seconds: float = WAIT_SECONDS) -> SyncReport:
        """Run all jobs now and say what they did.

        A log that is there and empty is no error. Raises SourceAbsent when no log was found,
        DatabaseBusy when another pass kept its turn for `wait_seconds`.
        """
        if self.settings.disabled:
            return SyncReport()
        return self._recovering(lambda: self._pass(progress, wait_seconds))

    def _pass(self, progress: Progress | None, wait_seconds: float) -> SyncReport:
        from clawmark.jobs import runner
        from clawmark.jobs.plan import plan

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
                rules=self._rules,
                keep_text=self.settings.keep_text != "off",
                clock=self._clock,
                rng=self._rng,
                wait_seconds=wait_seconds,
                progress=progress or runner.no_progress,
            )
        planned.require()
        return report

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

    def search(self, query: str, limit: int | None = None, scope: str | None = None) -> Found:
        """Facts that share a word with `query`, and at most `limit` excerpts (default: the setting; at most 50).

        scope None = everything the person has; a scope (by its readable name too) = its own and facts that are shared.
        """
        limit = self.settings.recall_limit if limit is None else max(0, min(limit, MOST_EXCERPTS))
        text = shortened(clean.query(query, self._rules)) if limit else ""
        meant = self._meant(text)
        with self._reading() as connection:
            scope = None if scope is None else streams.scope_called(connection, scope)
            found = about(query, facts.live(connection, None if scope is None else [scope, SHARED]))
            asked = Query(text, limit, self._clock(), None if scope is None else [scope])
            return Found(found, self._recalled(connection, asked, meant))

    def block(self, turn: Turn | str) -> Block:
        """The memory block for a prompt; its text is empty when there is nothing to say."""
        turn = Turn(turn) if isinstance(turn, str) else turn
        if self.settings.disabled:
            return Block("")
        profile = blocks.PROFILES.get(turn.host)
        if profile is None:
            known = ", ".join(sorted(blocks.PROFILES))
            raise UsageError(f"no host is called {turn.host!r}; known hosts are {known}.")
        now = turn.now or self._clock()
        limit = min(profile.excerpts, self.settings.recall_limit)
        prompt, text = self._question(turn) if limit else ("", "")
        meant = self._meant(text)
        with self._reading() as connection:
            scope, kind = self._addressed(connection, turn)
            shown: list[Fact] = []
            if kind == "direct":  # what is said to the agent in private is not told to a group
                stored = facts.live(connection, [scope, SHARED])
                threshold = self.settings.confidence_threshold
                shown = blocks.shown_facts(stored, scope=scope, threshold=threshold, now=now)
            visible = None
            if turn.session is not None:
                # A session made of copies alone has no window of its own, and all of it is visible.
                visible = passages.newest_window(connection, scope, turn.session) or ""
            asked = Query(
                text,
                limit,
                now,
                scopes=[scope],
                session=turn.session,
                only_session=kind != "direct",  # a kind we do not know has others in it
                visible=visible,
                asked=prompt,
            )
            recalled = self._recalled(connection, asked, meant)
        if not shown and not recalled:
            return Block("")
        return blocks.build(shown, recalled, profile=profile, nonce=self._nonce(turn), zone=self._zone())

    def _addressed(self, connection: apsw.Connection, turn: Turn) -> tuple[str, str]:
        """Whose memory is asked, and whether others read along: what the turn says, else what the log says of its
        session, else the only scope there is, else "main"; direct."""
        known = None if turn.session is None else streams.session(connection, turn.session)
        scope = streams.scope_called(connection, turn.scope) if turn.scope else (known[0] if known else None)
        if scope is None:
            scopes = streams.scopes(connection)
            scope = scopes[0] if len(scopes) == 1 else DEFAULT_SCOPE
        kind = turn.kind if turn.kind is not None else ("group" if known and known[1] == "group" else "direct")
        return scope, kind

    def _question(self, turn: Turn) -> tuple[str, str]:
        """The prompt as it is compared with what was said, and with it the lines before; empty where nothing is asked."""
        if self.settings.recall == "off" or blocks.is_trivial(turn.prompt):
            return "", ""
        prompt = clean.query(turn.prompt, self._rules)
        lines = [cut(clean.query(line, self._rules), RECENT_LENGTH) for line in turn.recent[-RECENT_LINES:]]
        return prompt, shortened("\n".join([*lines, prompt])) if prompt else ""

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
            with self._watched():
                space, vector = meant or (None, None)
                snapshot = None if space is None else self._meaning.snapshot(connection, space)
                found = Reader(self._sources_of_recall(connection), self._rules)
                return recall(connection, found, query, None if snapshot is None else vector, snapshot)
        except (SourceError, UsageError, DatabaseDamaged) as failed:  # facts stand on other pages than passages
            log.warning("recall_skipped reason=%s", failed)
            return []

    # Facts

    def set(self, key: str, value: str, scope: str = SHARED) -> Fact:
        """Store what the person says under `key`. Raises Refused with a code; the value is then nowhere, events included."""
        now = self._clock()
        fault = keys.scope_fault(scope)
        if fault is not None:
            raise UsageError(f"{fault}.")
        with self._writing() as connection:
            try:
                key, value = gate.key(key), gate.value(value)
            except Refused as refused:
                with db.transaction(connection, self.path):
                    events.add(connection, "reject", now, source="user", scope=scope, detail=refused.code)
                raise
            scope = streams.scope_called(connection, scope)
            with db.transaction(connection, self.path):
                secret = self._secret()  # not before: a restore that was waited for may have changed it
                old = facts.get(connection, key, scope)
                # What the person says now is the newest, whatever the clock once said.
                observed = now if old is None else max(now, old.reinforced_at)
                statement = ladder.Statement(key, value, 1.0, "user", scope, observed)
                outcome, fact = ladder.apply(old, statement, now)
                facts.put(connection, fact)
                facts.lift(connection, [hashed for _, hashed in facts.tombstones(secret, scope, key, value)])
                said = None if old is None else old.value
                events.add(connection, outcome, now, source="user", scope=scope, key=key, old=said, new=fact.value)
            sidecar.save(connection, self.path, now)
            return fact

    def forget(self, key: str, scope: str | None = None) -> list[str]:
        """Erase the fact `key` for good, in `scope` or wherever it stands; returns the scopes in which it stood."""
        key = gate.key(key)
        with self._writing() as connection:
            now = self._clock()
            with db.transaction(connection, self.path):
                secret = self._secret()  # as above
                named = None if scope is None else streams.scope_called(connection, scope)
                scopes = facts.scopes_of(connection, key) if named is None else [named]
                gone = [s for s in scopes if erase.erase_fact(connection, key, s, secret, now)]
                if gone:
                    erase.forget_in_sidecar(connection, self.path, now)
            sidecar.save(connection, self.path, now)
            if gone and not erase.finish(connection, self.path):
                log.warning("forget_unfinished reason=another process reads the database; the next sync completes it")
            return gone

    def copies(self) -> list[Path]:
        """Backups and files that were set aside, beside the database: what is forgotten now may still stand in them."""
        return [copied for copied in recovery.set_aside_files(self.path) if copied.suffix != ".key"]

    def facts(self, scope: str | None = None) -> list[Fact]:
        """All live facts by key; scope None = all scopes, a scope = its own and what is shared."""
        with self._reading() as connection:
            named = None if scope is None else streams.scope_called(connection, scope)
            return facts.live(connection, None if named is None else [named, SHARED])

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
        with (  # a connection and sources of its own: listing a long log takes its time, and no prompt waits for it
            self._watched(),
            db.opened(self.path, readonly=True, busy_seconds=db.QUICK_BUSY_SECONDS) as connection,
        ):
            return status.gather(connection, self.path, self.settings, groups=self._new_groups, embedder=embedder)

    # Parts, made when first needed

    @contextmanager
    def _reading(self) -> Iterator[apsw.Connection]:
        """The prompt path's connection, read-only, for one caller at a time."""
        with self._lock, self._watched():
            if self._connection is None:
                self._connection = db.connect(self.path, readonly=True, busy_seconds=db.QUICK_BUSY_SECONDS)
                self._file = _identity(self.path)
            elif _identity(self.path) != self._file:  # somebody put another file there
                self._connection.close()
                self._connection = None
                self._meaning.forget_vectors()
                with self._reading() as connection:
                    yield connection
                return
            yield self._connection

    @contextmanager
    def _writing(self) -> Iterator[apsw.Connection]:
        """A connection for one writer, closed behind it."""
        with self._watched():
            if not db.is_there(self.path):  # somebody took it away under a process that goes on
                for line in recovery.ensure(self.path, self._clock):
                    log.warning("%s", line)
            with db.opened(self.path) as connection:
                yield connection

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Damage that somebody meets is noted, so that the next pass looks at the whole file."""
        try:
            with db.explained(self.path):
                yield
        except DatabaseDamaged:
            recovery.suspect(self.path)
            raise

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

    def _zone(self) -> ZoneInfo | None:
        return ZoneInfo(self.settings.timezone) if self.settings.timezone else None

    def _nonce(self, turn: Turn) -> str:
        said = f"block\0{turn.host}\0{turn.session or ''}"
        try:
            secret = self._secret()
        except DatabaseUnwritable as failed:  # a block is no reason to fail: any number that nobody knows will do
            log.warning("nonce_of_this_process reason=%s", failed)
            secret = self._fallback_secret
        return hmac.digest(secret, said.encode(), hashlib.sha256).hex()[:8]

    def _secret(self) -> bytes:
        copy.finish_key_change(self.path)  # of a restore that was killed: its key is not this database's
        return keyfile.secret(keyfile.key_path(self.path))


def _identity(path: Path) -> tuple[int, ...] | None:
    """What changes when an open connection no longer shows the file: another file, or, where it is read without locks
    because no file can be made beside it, any change at all."""
    try:
        status = path.stat()
    except OSError:
        return None
    if os.access(path.parent, os.W_OK):
        return status.st_dev, status.st_ino
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, path.with_name(path.name + "-wal").exists()
