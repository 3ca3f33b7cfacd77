"""One pass of the jobs: index, prune and vectors under the lease, then extract, which may wait for a model for minutes.

What each commits stands, whatever ends the pass.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import apsw

from clawmark import clean
from clawmark.belief import Belief
from clawmark.embed import Embedder
from clawmark.erase import finish, forget_in_sidecar, settle
from clawmark.errors import DatabaseBusy, DatabaseForeign, DatabaseUnwritable, SourceAbsent, SourceBusy
from clawmark.jobs.asking import How
from clawmark.jobs.extract import extract
from clawmark.jobs.index import Tally, index, note_failure
from clawmark.jobs.plan import Plan, note
from clawmark.jobs.prune import forget_kept, prune, refresh_kept, refresh_stale
from clawmark.jobs.vectors import embed_pending
from clawmark.model import Progress, SyncReport
from clawmark.recall.excerpt import Reader
from clawmark.source import Alternatives
from clawmark.store import check, events, sessions, sidecar, streams, tombstones, vectors
from clawmark.store.copy import remove_leftovers
from clawmark.store.db import checkpoint, lease, transaction

SESSIONS_KEPT = timedelta(days=365)
"""How long it is remembered what a session was shown, after the last time."""


def no_progress(what: str, done: int, total: int | None) -> None:
    pass


def run(
    connection: apsw.Connection,
    path: Path,
    groups: Sequence[Alternatives],
    planned: Plan,
    embedder: Callable[[], Embedder | None],
    reader: Reader,
    *,
    secret: Callable[[], bytes],
    rules: clean.Rules,
    keep_text: bool,
    clock: Callable[[], datetime],
    rng: random.Random,
    wait_seconds: float,
    progress: Progress = no_progress,
) -> SyncReport:
    """All but extraction. Waits its turn up to `wait_seconds`, then DatabaseBusy.

    embedder: chosen when its turn has come, since the pass before may have opened the first space.
    planned: what each of `groups` chose; without anything to read, nothing is embedded. A stream that cannot be read is a
    line of the report's failures, and nothing of its source is pruned in this pass. A busy source ends the pass with
    SourceBusy.
    """
    tally = Tally()
    pruned = 0
    with lease(path, wait_seconds):
        remove_leftovers(path)
        finish(connection, path)  # what an earlier pass erased and could not clean up
        if not keep_text:
            pruned += forget_kept(connection, path, clock())
        note(connection, path, groups, planned, clock())
        for choice in planned.choices:
            if choice.failure is not None and not isinstance(choice.failure, SourceAbsent):
                tally.failures.append(choice.failure)
                if not isinstance(choice.failure, SourceBusy):
                    failing = choice.failing or "source"
                    note_failure(connection, path, failing, choice.failure, None, clock())
        busy: SourceBusy | None = None
        for source, is_read in planned.all:
            # another host's log that was read before goes on being read: nothing takes its place
            goes_on = planned.is_other_host(source) and bool(streams.known(connection, source.name))
            try:
                listed = index(
                    connection,
                    path,
                    source,
                    rules=rules,
                    keep_text=keep_text,
                    clock=clock,
                    tally=tally,
                    progress=progress,
                    secret=secret,
                    known_alone=not (is_read or goes_on),
                )
            except SourceBusy as held:  # the other logs are none of it
                busy = busy or held
                continue
            if listed is not None:
                pruned += prune(connection, path, source, listed, keep_text=keep_text, clock=clock)
        refresh_kept(connection, path, rules, clock())
        refresh_stale(connection, path, reader)
        whole = not tally.failures and busy is None
        _tend(connection, path, secret, clock(), log_is_whole=whole and bool(planned.reading))
        finish(connection, path)
        with transaction(connection, path):
            events.thin(connection)
            sessions.prune(connection, clock() - SESSIONS_KEPT)
        written = 0
        chosen = embedder() if planned.reading else None
        if chosen is not None:
            written = embed_pending(
                connection, path, chosen, reader, clock=clock, rng=rng, progress=progress, log_is_whole=whole
            )
        sidecar.save(connection, path, clock())
        checkpoint(connection)
        pending = vectors.pending_by_reason(connection)
    if busy is not None:
        raise busy
    return SyncReport(
        read=tally.read,
        kept=tally.kept,
        dropped=dict(sorted(tally.dropped.items())),
        vectors=written,
        pending=sum(pending.values()),
        pruned=pruned + tally.withdrawn,
        failures=tuple(str(failure) for failure in tally.failures),
    )


def extracted(
    connection: apsw.Connection,
    path: Path,
    reader: Reader,
    how: How,
    report: SyncReport,
    *,
    secret: Callable[[], bytes],
    clock: Callable[[], datetime],
    progress: Progress = no_progress,
    most_batches: int | None = None,
    hurry: bool = True,
) -> SyncReport:
    """`report` with what extraction did behind that pass; most_batches, hurry: how much of what waits (`extract.extract`).
    What the pass did stands, so a file that nothing can be written to now, or was replaced, is a line of its failures."""
    try:
        done = extract(
            connection,
            path,
            reader,
            how,
            secret=secret,
            clock=clock,
            progress=progress,
            most_batches=most_batches,
            hurry=hurry,
        )
    except (DatabaseBusy, DatabaseForeign, DatabaseUnwritable) as failed:
        return replace(report, failures=(*report.failures, str(failed)))
    sidecar.save(connection, path, clock())
    checkpoint(connection)
    return replace(report, facts=done.facts, proposed=done.proposed, unasked=done.unasked)


def _tend(
    connection: apsw.Connection, path: Path, secret: Callable[[], bytes], now: datetime, *, log_is_whole: bool
) -> None:
    """What becomes of statements with time, and of those whose messages were deleted."""
    with transaction(connection, path):
        belief = Belief(connection, secret(), now)
        belief.run_out()
        belief.fade()
        tombstones.drop_expired(connection, belief.as_of)
        if log_is_whole and settle(connection, now):
            forget_in_sidecar(connection, path, now)


def reembed(
    connection: apsw.Connection,
    path: Path,
    embedder: Callable[[], Embedder],
    reader: Reader,
    *,
    clock: Callable[[], datetime],
    rng: random.Random,
    wait_seconds: float,
    progress: Progress = no_progress,
) -> SyncReport:
    """The vectors job alone, with what is damaged, failed or was given up made again. Waits its turn as `run` does.

    The log must be there and sound: what cannot be read back gets no vector.
    """
    with lease(path, wait_seconds):
        chosen = embedder()
        broken = check.broken_vectors(connection)
        with transaction(connection, path):
            vectors.remake(connection, broken)
            vectors.try_again(connection)
        written = embed_pending(
            connection, path, chosen, reader, clock=clock, rng=rng, progress=progress, log_is_whole=True
        )
        checkpoint(connection)
        pending = vectors.pending_by_reason(connection)
    return SyncReport(vectors=written, pending=sum(pending.values()))
