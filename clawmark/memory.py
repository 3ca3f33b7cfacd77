"""Memory: what every host, tool and command calls.

Opens store, source and embedder when they are first needed and closes them together. The prompt path (`search`, `block`)
reads only: it writes nothing, waits for no job, and a log or an embedder that fails costs recall, never the answer.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import random
import secrets as entropy
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self
from zoneinfo import ZoneInfo

import apsw

from clawmark import block as blocks
from clawmark import clean, erase
from clawmark.errors import (
    DatabaseUnwritable,
    EmbedderDown,
    EmbedderError,
    Refused,
    SourceEmpty,
    SourceError,
    UsageError,
)
from clawmark.facts import gate, ladder
from clawmark.jobs.index import RECIPE
from clawmark.model import SHARED, Block, Event, Excerpt, Fact, Found, SyncReport, Turn
from clawmark.recall.excerpt import Reader
from clawmark.recall.search import Query, recall, shortened
from clawmark.settings import Settings, load
from clawmark.source import MessageSource, Places, first_present, select
from clawmark.store import db, events, facts, migrations, passages, vectors
from clawmark.text import content_words, cut, words

if TYPE_CHECKING:
    from clawmark.embed import Embedder
    from clawmark.jobs.runner import Progress
    from clawmark.model import Vector
    from clawmark.recall.matrix import Matrix

DEFAULT_SCOPE = "main"
MOST_EXCERPTS = 50
MOST_FACTS_FOUND = 50
QUERY_VECTORS = 512
RECENT_LINES, RECENT_LENGTH = 3, 500
WAIT_SECONDS = 30.0

log = logging.getLogger("clawmark")


class Memory:
    """One person's memory. Use as a context manager; safe to share between threads, one call at a time."""

    def __init__(
        self,
        settings: Settings,
        *,
        sources: Sequence[MessageSource] | None = None,
        embedder: Embedder | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        rng: random.Random | None = None,
    ) -> None:
        """`open` is the usual way in. sources and embedder None = what the settings name."""
        self.settings = settings
        self.path = settings.db_path
        self._rules = clean.Rules(settings.never_index_paths)
        self._given_sources = sources
        self._embedder = embedder
        self._given_embedder = self._embedder_chosen = embedder is not None
        self._clock = clock
        self._rng = rng or random.Random()
        self._lock = threading.RLock()
        self._writer: apsw.Connection | None = None
        self._reader: apsw.Connection | None = None
        self._matrix: Matrix | None = None
        self._query_vectors: OrderedDict[str, Vector] = OrderedDict()
        self._sources: list[MessageSource] | None = None

    @classmethod
    def open(cls, settings: Settings | None = None, **parts: Any) -> Self:
        """Open the memory that `settings` name (default: file and environment), making it when there is none."""
        memory = cls(load() if settings is None else settings, **parts)
        db.open_database(memory.path, migrations.migrate, migrations.LATEST)
        return memory

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()
            self._reader = self._writer = None

    # Jobs

    def sync(self, progress: Progress | None = None, wait_seconds: float = WAIT_SECONDS) -> SyncReport:
        """Run all jobs now and say what they did.

        A log that is there and empty is no error. Raises SourceAbsent when none was found, DatabaseBusy when another
        process kept the lease for `wait_seconds`.
        """
        from clawmark.jobs import runner

        if self.settings.disabled:
            return SyncReport()
        with self._lock, db.explained(self.path):
            try:
                sources = [first_present(self._all_sources())]
            except SourceEmpty:
                sources = []  # `status` says so; a host that was just installed has nothing to read yet
            return runner.run(
                self._writing(),
                self.path,
                sources,
                self._chosen_embedder(),
                self._text_reader(),
                rules=self._rules,
                clock=self._clock,
                rng=self._rng,
                wait_seconds=wait_seconds,
                progress=progress or runner.no_progress,
            )

    # Recall

    def search(self, query: str, limit: int | None = None, scope: str | None = None) -> Found:
        """Facts that share a word with `query`, and at most `limit` excerpts (default: the setting; at most 50).

        scope None = everything the person has; a scope = its own and what is shared.
        """
        limit = self.settings.recall_limit if limit is None else max(0, min(limit, MOST_EXCERPTS))
        scopes = None if scope is None else [scope, SHARED]
        with self._lock, db.explained(self.path):
            found = _facts_about(query, facts.live(self._reading(), scopes))
            recalled = self._recalled(Query(shortened(clean.query(query)), limit, self._clock(), scopes))
        return Found(found, recalled)

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
        with self._lock, db.explained(self.path):
            scope = turn.scope or self._scope_of(turn)
            shown: list[Fact] = []
            if turn.kind == "direct":  # what is said to the agent in private is not told to a group
                stored = facts.live(self._reading(), [scope, SHARED])
                threshold = self.settings.confidence_threshold
                shown = blocks.shown_facts(stored, scope=scope, threshold=threshold, now=now)
            recalled = self._recalled_for(turn, scope, now, min(profile.excerpts, self.settings.recall_limit))
        return blocks.build(shown, recalled, profile=profile, nonce=self._nonce(turn), zone=self._zone())

    def _recalled_for(self, turn: Turn, scope: str, now: datetime, limit: int) -> list[Excerpt]:
        if self.settings.recall == "off" or blocks.is_trivial(turn.prompt):
            return []
        lines = [
            *(cut(clean.query(line), RECENT_LENGTH) for line in turn.recent[-RECENT_LINES:]),
            clean.query(turn.prompt),
        ]
        visible = None
        if turn.session is not None:
            # A session made of copies alone has no window of its own, and all of it is visible.
            visible = passages.newest_window(self._reading(), turn.session) or ""
        return self._recalled(
            Query(
                shortened("\n".join(lines)),
                limit,
                now,
                [scope, SHARED],
                turn.session,
                turn.kind == "group",
                visible,
                asked=turn.prompt,
            )
        )

    def _recalled(self, query: Query) -> list[Excerpt]:
        """Live excerpts; none, with one log line, when the log cannot be read just now."""
        if query.limit <= 0 or not query.text.strip():
            return []
        vector, snapshot = None, None
        if self._chosen_embedder() is not None and vectors.active_space(self._reading()) is not None:
            vector = self._query_vector(query.text)
            if vector is not None:
                snapshot = self._resident().current(self._reading())
        try:
            return recall(self._reading(), self._text_reader(), query, vector, snapshot)
        except SourceError as failed:
            log.warning("recall_skipped reason=%s", failed)
            return []

    def _query_vector(self, text: str) -> Vector | None:
        """The query's vector in the active space; None when there is none now. A failure is never remembered."""
        from clawmark.embed import Failure

        if text in self._query_vectors:
            self._query_vectors.move_to_end(text)
            return self._query_vectors[text]
        embedder = self._chosen_embedder()
        assert embedder is not None
        try:
            (vector,) = embedder.embed([text], "query")
            active = vectors.active_space(self._reading())
            if isinstance(vector, Failure) or active is None or active[1] != embedder.space:
                return None
        except (EmbedderDown, EmbedderError) as down:
            log.warning("query_not_embedded reason=%s", down)
            return None
        self._query_vectors[text] = vector
        if len(self._query_vectors) > QUERY_VECTORS:
            self._query_vectors.popitem(last=False)
        return vector

    def _resident(self) -> Matrix:
        if self._matrix is None:
            from clawmark.recall.matrix import Matrix

            self._matrix = Matrix()
        return self._matrix

    def _scope_of(self, turn: Turn) -> str:
        """The session's scope, else the only one there is, else "main"."""
        connection = self._reading()
        if turn.session is not None:
            found = passages.scope_of_session(connection, turn.session)
            if found is not None:
                return found
        scopes = passages.scopes(connection)
        return scopes[0] if len(scopes) == 1 else DEFAULT_SCOPE

    # Facts

    def set(self, key: str, value: str, scope: str = SHARED) -> Fact:
        """Store what the person says under `key`. Raises Refused with a code; the value is then nowhere, events included."""
        now = self._clock()
        with self._lock, db.explained(self.path):
            connection = self._writing()
            try:
                key, value = gate.key(key), gate.value(value)
            except Refused as refused:
                with db.transaction(connection, self.path):
                    events.add(connection, "reject", now, source="user", scope=scope, detail=refused.code)
                raise
            statement = ladder.Statement(key, value, 1.0, "user", scope, now)
            secret = self._secret()
            with db.transaction(connection, self.path):
                old = facts.get(connection, key, scope)
                outcome, fact = ladder.apply(old, statement, now)
                facts.put(connection, fact)
                facts.lift(connection, [hashed for _, hashed in erase.tombstones(secret, scope, key, value)])
                events.add(
                    connection,
                    outcome,
                    now,
                    source="user",
                    scope=scope,
                    key=key,
                    old=None if old is None else old.value,
                    new=fact.value,
                )
            return fact

    def forget(self, key: str, scope: str | None = None) -> list[str]:
        """Erase the fact `key` for good, in `scope` or wherever it stands; returns the scopes in which it stood."""
        key = gate.key(key)
        with self._lock, db.explained(self.path):
            connection = self._writing()
            secret = self._secret()
            scopes = facts.scopes_of(connection, key) if scope is None else [scope]
            with db.transaction(connection, self.path):
                gone = [s for s in scopes if erase.erase_fact(connection, key, s, secret, self._clock())]
            if gone and not erase.finish(connection, self.path):
                log.warning("forget_unfinished reason=another process reads the database; the next sync completes it")
            return gone

    def facts(self, scope: str | None = None) -> list[Fact]:
        """All live facts by key; scope None = all scopes, a scope = its own and what is shared."""
        with self._lock, db.explained(self.path):
            return facts.live(self._reading(), None if scope is None else [scope, SHARED])

    def events(self, limit: int = 50) -> list[Event]:
        """The newest events, newest first."""
        with self._lock, db.explained(self.path):
            return events.latest(self._reading(), max(0, limit))

    # Status

    def status(self) -> dict[str, Any]:
        """What there is and what is wrong, as plain values; `problems` is empty when all is well."""
        with self._lock, db.explained(self.path):
            connection = self._reading()
            problems: list[str] = []
            source = self._source_status(problems)
            active = vectors.active_space(connection)
            pending = vectors.pending_by_reason(connection)
            last = events.last_of(connection, "embedder_unavailable", "embedder_available")
            if last is not None and last.event_type == "embedder_unavailable":
                problems.append(f"embedder: {last.detail} (since {last.created_at})")
            if self.settings.disabled:
                problems.append("clawmark is switched off (CLAWMARK_DISABLED).")
            elif self.settings.recall == "off":
                problems.append("recall is switched off (CLAWMARK_RECALL).")
            embedder = self._embedder_name(problems)
            return {
                "database": {
                    "path": str(self.path),
                    "bytes": sum(p.stat().st_size for p in _files(self.path)),
                    "schema": migrations.LATEST,
                },
                "source": source,
                "scopes": passages.scopes(connection),
                "passages": passages.count(connection),
                "facts": len(facts.live(connection)),
                "embedder": embedder,
                "space": None if active is None else {"model": active[1].model, "dimension": active[1].dimension},
                "vectors": 0 if active is None else vectors.count(connection, active[0]),
                "pending": pending,
                "recall": self.settings.recall,
                "disabled": self.settings.disabled,
                "problems": problems,
            }

    def _source_status(self, problems: list[str]) -> dict[str, Any] | None:
        try:
            source = first_present(self._all_sources())
        except (SourceError, UsageError) as failed:
            problems.append(f"source: {failed}")
            return None
        known = passages.known_streams(self._reading(), source.name)
        return {"name": source.name, "where": source.describe(), "streams": len(known)}

    def _embedder_name(self, problems: list[str]) -> str:
        embedder = self._chosen_embedder()
        if embedder is not None:
            if self.settings.embedding_url and not self._given_embedder:
                from clawmark.net import require_consent

                try:
                    require_consent(self.settings.embedding_url, self.settings.allow_remote)
                except (EmbedderDown, EmbedderError) as refused:
                    problems.append(f"embedder: {refused}")
            return embedder.name
        if self.settings.embedder == "auto":
            problems.append(
                "embedder: none; recall runs on words alone. Install clawmark[local] or set CLAWMARK_EMBEDDING_URL."
            )
        return "none (words alone)"

    # Parts, made when first needed

    def _writing(self) -> apsw.Connection:
        if self._writer is None:
            self._writer = db.connect(self.path)
        return self._writer

    def _reading(self) -> apsw.Connection:
        if self._reader is None:
            self._reader = db.connect(self.path, readonly=True)
        return self._reader

    def _all_sources(self) -> list[MessageSource]:
        if self._sources is None:
            if self._given_sources is not None:
                self._sources = list(self._given_sources)
            else:
                places = Places(self.settings.transcripts_dir, self.settings.openclaw_state_dir)
                self._sources = select(self.settings.source, places)
        return self._sources

    def _text_reader(self) -> Reader:
        return Reader({source.name: source for source in self._all_sources()}, self._rules, RECIPE)

    def _chosen_embedder(self) -> Embedder | None:
        if not self._embedder_chosen:
            from clawmark.embed import choose

            self._embedder = choose(self.settings, background=False)
            self._embedder_chosen = True
        return self._embedder

    def _zone(self) -> ZoneInfo | None:
        return ZoneInfo(self.settings.timezone) if self.settings.timezone else None

    def _nonce(self, turn: Turn) -> str:
        said = f"block\0{turn.host}\0{turn.session or ''}"
        return hmac.digest(self._secret(), said.encode(), hashlib.sha256).hex()[:8]

    def _secret(self) -> bytes:
        return _secret(self.path.with_name(self.path.name + ".key"))


def _secret(path: Path) -> bytes:
    """32 random bytes in a file of its own (0600): what nonces and tombstones are keyed with. Made when there is none."""
    try:
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | os.O_NOFOLLOW)) as file:
            secret = file.read(64)
        if len(secret) >= 32:
            return secret
        raise DatabaseUnwritable(f"{path} is cut short. Restore it from a backup, or remove it to have a new one made.")
    except FileNotFoundError:
        pass
    draft = path.with_name(f"{path.name}.{os.getpid()}.{entropy.token_hex(4)}")
    handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    try:
        os.write(handle, entropy.token_bytes(32))
        os.fsync(handle)
    finally:
        os.close(handle)
    try:
        os.link(draft, path)  # fails where another process was first: then its secret is the one
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return _secret(path)


def _files(path: Path) -> list[Path]:
    return [p for p in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")) if p.exists()]


def _facts_about(query: str, stored: Sequence[Fact]) -> list[Fact]:
    """Facts that share a content word with `query`, those that share most first."""
    wanted = {_stem(word) for word in content_words(query)}
    scored = [
        (len(wanted & {_stem(word) for word in words(f"{f.key.replace('_', ' ')} {f.value}")}), f) for f in stored
    ]
    best = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], pair[1].key, pair[1].scope))
    return [fact for _, fact in best[:MOST_FACTS_FOUND]]


def _stem(word: str) -> str:
    """The head of a long Latin word, so that "editors" finds "editor"."""
    return word[:5] if word.isascii() and len(word) > 5 else word
