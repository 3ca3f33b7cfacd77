"""Backup and restore: whole copies of a memory, out of use and back into it.

What always holds: only a memory is copied or replaced; a backup is checked before anything is touched, and what it
replaces is set aside, never deleted; a kill leaves the old database with its key or the new one with its own; and **what
was forgotten stays forgotten**, for a backup was made before it was, and holds it still.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final

import apsw

from clawmark import erase, keys
from clawmark.belief import REJECTED_FOR
from clawmark.errors import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseError,
    DatabaseForeign,
    DatabaseNewer,
    Refused,
    UsageError,
)
from clawmark.facts import gate, ladder
from clawmark.guard import secrets
from clawmark.model import SHARED, Fact
from clawmark.store import (
    check,
    copy,
    db,
    events,
    evidence,
    facts,
    files,
    keyfile,
    legacy,
    migrations,
    passages,
    portable,
    proposals,
    recovery,
    sidecar,
    spaces,
    streams,
    tombstones,
)
from clawmark.store.tombstones import Tombstones
from clawmark.text import likeness

Clock = Callable[[], datetime]

log = logging.getLogger("clawmark")

MAGIC, SIDECAR, EXPORT = b"SQLite format 3\0", b'{"clawmark"', b'{"clawmark":"export"'
MOST_FAULTS = 3
"""As many are named; the first is mostly enough to know what the file is."""


# --- backup -----------------------------------------------------------------------------------------------------------


def backup(memory_path: Path, target: Path | None, clock: Clock) -> Path:
    """A copy of the memory, which may be in use, with its key beside it; returns where it stands.

    target: a file that is not there yet, or a folder; None = beside the memory, under a dated name.
    Raises UsageError when the target is there, or has a name that clawmark uses itself, or the memory is not there,
    DatabaseForeign when it is another program's, DatabaseDamaged when it is damaged.
    """
    path = files.resolved(memory_path)
    if not db.is_there(path):
        raise UsageError(f"there is no memory at {path} yet, so nothing to back up.")
    if target is None:
        made = files.dated(path, "backup", clock())
    else:
        made = files.dated(target / path.name, "backup", clock()) if os.path.isdir(target) else _named(target)
    if not made.parent.is_dir():
        raise UsageError(f"there is no folder {made.parent}; make it, or name another one.")
    if os.path.lexists(made):
        raise UsageError(f"{made} is there already and was left as it is; name another file.")
    recovery.must_be_ours(path)
    with db.system_explained(made):
        copy.finish_key_change(path)
        copy.remove_parts(path)
        with _key_beside(path, made):  # first: a backup that is there has what its tombstones are keyed with
            copy.copy_database(path, made)
    _require_its_key(path, made)
    _warn_of(made, clock())
    return made


def _require_its_key(path: Path, made: Path) -> None:
    """Take the backup back when a restore changed database and key between the copies of the two."""
    key = keyfile.known(keyfile.key_path(made))
    with db.explained(made), db.opened(made, readonly=True, leave_no_trace=True) as connection:
        noted = copy.noted_key(connection) if check.is_ours(connection) else None
    if noted is not None and (key is None or noted != copy.fingerprint(key)):
        copy.discard(made)
        keyfile.key_path(made).unlink(missing_ok=True)
        raise DatabaseBusy(f"{path} was restored while it was copied; nothing was written. Try again.")


def _warn_of(made: Path, now: datetime) -> None:
    """A copy of something that `restore` would refuse is better than none, and no reason to be silent."""
    try:
        with db.explained(made), db.opened(made, readonly=True, leave_no_trace=True) as connection:
            newest = db.schema_version(connection, made) == migrations.LATEST
            wrong = copy.unfit(connection, now)[:MOST_FAULTS] if newest else []
    except DatabaseError:
        wrong = ["it does not say which schema it has"]
    if wrong:
        log.warning("%s was written, but `clawmark restore` would refuse it: %s", made, "; ".join(wrong))


def _named(target: Path) -> Path:
    """A name that a person chose for a backup."""
    if copy.is_reserved(target.name):
        raise UsageError(f"{target.name} is a name that clawmark or SQLite gives its own files; name another file.")
    return target


@contextmanager
def _key_beside(path: Path, made: Path) -> Iterator[None]:
    """The key of the memory, copied; taken away again when there is no backup to go with it."""
    key, place = keyfile.known(keyfile.key_path(path)), keyfile.key_path(made)
    is_new = key is not None and not (os.path.lexists(place) and keyfile.known(place) == key)
    if key is not None and is_new:
        copy.write_new(place, key)
    try:
        yield
    except BaseException:
        if is_new:
            place.unlink(missing_ok=True)
        raise


# --- restore ----------------------------------------------------------------------------------------------------------


def restore(memory_path: Path, source: Path, clock: Clock, wait_seconds: float) -> str:
    """Put the backup `source` in the place of the memory, or the facts of a sidecar into it; returns a line for the person.

    Raises DatabaseDamaged, DatabaseForeign or DatabaseNewer for what is no sound backup of ours, DatabaseBusy when
    a pass of the jobs or a writer kept the memory for `wait_seconds`: nothing was changed then.
    """
    if not os.path.isfile(source):
        raise UsageError(f"{source} is no file; name a backup, or a sidecar (memory.db.facts).")
    path = files.resolved(memory_path)
    if os.path.exists(path) and os.path.samefile(path, source):
        raise UsageError(f"{source} is the memory itself; name a backup.")
    with db.system_explained(source), open(source, "rb") as file:
        start = file.read(max(map(len, (MAGIC, SIDECAR, EXPORT))))
    if start.startswith(EXPORT):
        raise UsageError(f"{source} is an export, which `clawmark import` takes; nothing was changed.")
    is_database = start.startswith(MAGIC)
    if not is_database and not start.startswith(SIDECAR):
        raise DatabaseDamaged(
            f"{source} is damaged, or neither a backup nor a sidecar of clawmark; nothing was changed."
        )
    if not is_database:
        return _import_facts(path, source, clock, wait_seconds)
    if db.is_there(path):
        recovery.must_be_ours(path)  # before a lock is written beside it, or its mode changed
    with db.system_explained(path):
        files.make_folder(path.parent)
        with db.lease(path, wait_seconds):
            files.secure(path)
            copy.settle_key(path)  # of a restore that was killed
            copy.remove_leftovers(path)
            said = _Restore(path, source, clock(), wait_seconds).run()
            recovery.remove_rebuilt(path)
            return said


class _Restore:
    """One restore of a database, under the lease."""

    def __init__(self, path: Path, source: Path, now: datetime, wait_seconds: float) -> None:
        self._path = path
        self._source = source
        self._now = now
        self._wait_seconds = wait_seconds
        self._draft = copy.restoring(path)
        self._aside = files.dated(path, "replaced", now)
        self._own_key = keyfile.known(keyfile.key_path(path))
        self._given_key = keyfile.known(keyfile.key_path(source))
        self._notes: list[str] = []
        self._erased = 0

    @property
    def _key(self) -> bytes:
        """What the tombstones of the restored memory are keyed with; made only when there is none at all."""
        return self._given_key or self._own_key or keyfile.secret(keyfile.key_path(self._path))

    def run(self) -> str:
        try:
            self._fetch()
            if db.is_there(self._path) and copy.is_sound(self._path) and _is_readable(self._path):
                self._replace_in_use()
            else:
                self._replace_unusable()
        finally:
            copy.discard(self._draft)
            copy.settle_key(self._path)
        with db.opened(self._path) as connection:
            sidecar.write(connection, self._path, self._now)
            held = len(facts.live(connection))
        return self._told(held)

    # the backup, beside the memory and up to date

    def _fetch(self) -> None:
        try:
            copy.copy_database(self._source, self._draft, at_rest=True)
            with copy.copying(self._source, self._draft), db.opened(self._draft) as connection:
                self._bring_up_to_date(connection)
                faults = copy.unfit(connection, self._now)
            if faults:
                raise DatabaseDamaged(f"{'; '.join(faults[:MOST_FAULTS])}.")
        except DatabaseError as failed:
            if type(failed) not in (DatabaseError, DatabaseDamaged):
                raise  # busy, no room, newer, foreign: said as it is
            why = str(failed).removesuffix(db.REMEDY)  # which is about a database of ours
            why = why.replace(str(self._draft), self._source.name)  # whose copy it is
            raise DatabaseDamaged(f"nothing was changed, since {self._source} cannot be restored: {why}") from failed

    def _bring_up_to_date(self, connection: apsw.Connection) -> None:
        try:
            version = db.schema_version(connection, self._source)
        except DatabaseForeign:  # which says what to do about a memory
            version = 0
        if version > migrations.LATEST:
            raise DatabaseNewer(
                f"{self._source} has schema {version}; this clawmark knows up to {migrations.LATEST}. Upgrade "
                "clawmark; nothing was changed."
            )
        if version >= 2:
            with db.transaction(connection, self._draft):
                migrations.migrate(connection, self._now)
            return
        if not legacy.is_typescript(connection):
            raise DatabaseForeign(f"{self._source} is not a clawmark database; nothing was changed.")
        legacy.clean_pages(connection)
        with db.transaction(connection, self._draft):
            legacy.convert(connection, self._now, lambda: self._key, self._source.name)

    # into its place

    def _replace_in_use(self) -> None:
        """Nobody writes from the reading of what was forgotten until the backup stands in its place."""
        copy.match_page_size(self._draft, self._path)
        with copy.overwriting(self._path, self._draft, self._wait_seconds):
            present = _present(self._path)
            if (sidecar.stamp(self._path) or 0) > present.newest_event:  # what the database lost, the sidecar kept
                kept = self._kept_aside()
                present = _both(present, kept) if kept else present
            self._prepare(present)
            copy.copy_database(self._path, self._aside)
            self._keep_own_key()
            copy.change_key(self._path, self._key)

    def _replace_unusable(self) -> None:
        was_there = db.is_there(self._path)
        present = self._kept_aside()
        if present is None and was_there:
            self._notes.append("what was forgotten after the backup was made could not be read")
        self._prepare(present or Present())
        self._keep_own_key()
        copy.change_key(self._path, self._key)
        copy.exchange(self._path, self._draft, self._aside)

    def _kept_aside(self) -> Present | None:
        """What the sidecar knows of a database that is damaged or gone."""
        try:
            found = sidecar.read(self._path)
        except DatabaseDamaged:
            return None
        if found is None:
            return None
        return Present(
            tombstones=[
                (row["hash"], row["kind"], row["created_at"], row["expires_at"])
                for row in found.tombstones
                if sidecar.is_usable("tombstones", row)
            ],
            live=frozenset(
                (row["scope"], row["key"], row["value"])
                for row in found.facts
                if sidecar.is_usable("facts", row) and not row["is_deleted"]
            ),
            sessions=_sessions(found),
            horizons=_horizons(found),
            newest_event=found.stamp,
        )

    def _prepare(self, present: Present) -> None:
        """Erase from the backup what was forgotten since, and make it go on where the replaced database ends."""
        with db.opened(self._draft) as connection:
            with db.transaction(connection, self._draft):
                events.number_behind(connection, present.newest_event)
                spaces.renew_generations(connection, present.generation)
                for scope, key, by_value in self._forgotten_since(connection, present):
                    self._erased += erase.erase_fact(connection, key, scope, self._key, self._now)
                    if by_value:  # forgotten under another key: this one may be learned anew
                        facts.lift(connection, [_key_hash(self._key, scope, key)])
                self._carry_tombstones(connection, present)
                for scope, session, source, host in present.sessions:
                    orphans = streams.bury_session(connection, scope, session, source, host, self._now)
                    erase.erase_passages(connection, orphans, self._now)
                for scope, before in present.horizons:
                    tombstones.put_horizon(connection, scope, datetime.fromisoformat(before))
                erase.enforce(connection, self._key, self._now)
                copy.note_key(connection, self._key, self._now)
                detail = f"{self._source.name}; forgotten since and erased: {_facts(self._erased)}"
                events.add(connection, "restore", self._now, source="user", detail=detail)
            erase.finish(connection, self._draft)

    def _forgotten_since(self, connection: apsw.Connection, present: Present) -> list[tuple[str, str, bool]]:
        """Scope and key of each fact of the backup that a tombstone or a `forget` of the present database is about and
        that is not live there; and whether only its value was forgotten."""
        buried = _hashes(present.tombstones, self._now)
        since = _latest(present.forgets - events.forgets(connection))
        live = {(scope, key, likeness(value)) for scope, key, value in present.live}
        secrets = list({key for key in (self._own_key, self._given_key, *_keys_beside(self._path)) if key})
        found = []
        for scope, key, value, updated, _ in facts.stored(connection):
            if (scope, key, likeness(value)) in live:
                continue
            is_since = (scope, key) in since and since[scope, key] >= datetime.fromisoformat(updated)
            by_key = is_since or any(_key_hash(secret, scope, key) in buried for secret in secrets)
            by_value = any(
                hashed in buried for secret in secrets for _, hashed in facts.tombstones(secret, scope, key, value)
            )
            if by_key or by_value:
                found.append((scope, key, not by_key))
        return found

    def _carry_tombstones(self, connection: apsw.Connection, present: Present) -> None:
        """All of them, whatever key they belong to: under another one they say nothing, and do again once it is back."""
        facts.bury_all(connection, present.tombstones)
        live = {(scope, key) for scope, key, _ in present.live}
        forgotten = {(scope, key) for scope, key, _ in present.forgets} - live
        if self._key != self._own_key:
            self._note_other_keys(present, {_key_hash(self._key, scope, key) for scope, key, _ in present.forgets})
            for scope, key in forgotten:
                facts.bury(connection, "key", _key_hash(self._key, scope, key), self._now)
        carried = {hashed for hashed, *_ in present.tombstones}
        for fact in facts.live(connection):
            hashes = [hashed for _, hashed in facts.tombstones(self._key, fact.scope, fact.key, fact.value)]
            if hashes[0] in carried:  # said anew since, while another key was in use
                facts.lift(connection, hashes)

    def _note_other_keys(self, present: Present, matching: set[bytes]) -> None:
        """Say that tombstones may be of no use now; not where the trail shows that they go with the key."""
        of_keys = {hashed for hashed, kind, *_ in present.tombstones if kind == "key"}
        if not present.tombstones or (of_keys and of_keys <= matching):
            return
        if self._own_key is None:
            self._notes.append(
                "the key of this memory was missing, so tombstones of what was forgotten here may say nothing"
            )
        else:
            self._notes.append(
                "the backup has another key; tombstones of what was forgotten here under the one before were kept, and "
                f"say nothing until that key ({keyfile.key_path(self._aside).name}) is back with a backup of it"
            )

    # its key

    def _keep_own_key(self) -> None:
        if self._own_key is not None:
            copy.write_new(keyfile.key_path(self._aside), self._own_key)

    def _told(self, held: int) -> str:
        aside = f" The database as it was is {self._aside}." if self._aside.exists() else ""
        since = f" What was forgotten since is not in it: {_facts(self._erased)}." if self._erased else ""
        notes = "".join(f" Note: {note}." for note in self._notes)
        return f"{self._path} holds what {self._source} held: {_facts(held)}.{since}{aside}{notes}"


@dataclass(frozen=True, slots=True)
class Present:
    """What the database that is replaced knows and no older copy does: it must outlive the replacement.

    tombstones     rows: hash, kind, created_at, expires_at
    forgets        scope, key and time of every fact that was forgotten
    live           scope, key and value of every fact that is not
    sessions       scope, session, source and host of what the person deleted at a host
    horizons       scope, and until when what was said in it is forgotten
    newest_event   the highest number an event ever had
    generation     of its vectors: memories that hold some in memory tell by another one that these are gone
    """

    tombstones: Sequence[tuple[bytes, str, str, str | None]] = ()
    forgets: frozenset[tuple[str, str, str]] = frozenset()
    live: frozenset[tuple[str, str, str]] = frozenset()
    sessions: frozenset[tuple[str, str, str, str]] = frozenset()
    horizons: frozenset[tuple[str, str]] = frozenset()
    newest_event: int = 0
    generation: int = 0


def _is_readable(path: Path) -> bool:
    try:
        with db.explained(path):
            _present(path)
    except DatabaseDamaged:
        return False
    return True


def _present(path: Path) -> Present:
    with db.opened(path, readonly=True) as connection:
        return Present() if db.schema_version(connection, path) < 2 else _known(connection)


def _known(connection: apsw.Connection) -> Present:
    columns = sidecar.TABLES["tombstones"]
    return Present(
        [
            row
            for row in facts.buried(connection)
            if sidecar.is_usable("tombstones", dict(zip(columns, row, strict=True)))
        ],
        events.forgets(connection),
        frozenset((scope, key, value) for scope, key, value, _, hidden in facts.stored(connection) if not hidden),
        frozenset(streams.all_deleted(connection)),
        frozenset(tombstones.horizons(connection)),
        events.newest(connection),
        spaces.newest_generation(connection),
    )


def _both(one: Present, other: Present) -> Present:
    return Present(
        [*one.tombstones, *other.tombstones],
        one.forgets | other.forgets,
        one.live | other.live,
        one.sessions | other.sessions,
        one.horizons | other.horizons,
        max(one.newest_event, other.newest_event),
        max(one.generation, other.generation),
    )


def _facts(number: int) -> str:
    return f"{number} fact{'' if number == 1 else 's'}"


def _latest(forgets: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str], datetime]:
    """Scope and key → when it was forgotten last. A time that cannot be read forgets whatever was said before or since."""
    found: dict[tuple[str, str], datetime] = {}
    for scope, key, text in forgets:
        try:
            at = db.time_of(text)
        except apsw.CorruptError:
            at = datetime.max.replace(tzinfo=UTC)
        found[scope, key] = max(at, found.get((scope, key), at))
    return found


def _hashes(tombstones: Sequence[tuple[bytes, str, str, str | None]], now: datetime) -> set[bytes]:
    """Of those that have not expired."""
    return {hashed for hashed, _, _, end in tombstones if end is None or datetime.fromisoformat(end) > now}


def _key_hash(secret: bytes, scope: str, key: str) -> bytes:
    return dict(facts.tombstones(secret, scope, key, ""))["key"]


# --- facts of another file ---------------------------------------------------------------------------------------------

Row = sidecar.Row
OF_FACTS: Final = "memory_events"
"""The table of the events that an exported file holds beside those of a sidecar."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a row: new, replaced, confirmed, hidden, known, live, forgotten, rejected or refused, and for the last
    one why, without a value."""

    word: str
    reason: str = ""

    @property
    def changes(self) -> bool:
        return self.word in ("new", "replaced", "confirmed", "hidden")


@dataclass(frozen=True, slots=True)
class Arrived:
    """What became of the rows of another file, by table and in their order. said: what was done to the database before."""

    outcomes: Mapping[str, Sequence[Outcome]]
    said: Sequence[str] = ()

    def counts(self, table: str) -> dict[str, int]:
        return dict(sorted(Counter(outcome.word for outcome in self.outcomes.get(table, ())).items()))


def bring_in(
    path: Path,
    tables: Mapping[str, Sequence[Row]],
    clock: Clock,
    wait_seconds: float,
    *,
    event: str,
    name: str,
    dry_run: bool = False,
) -> Arrived:
    """Facts of another file, and what belongs to them, into the memory as it is: the ladder decides where both know a
    key, what was forgotten here stays away, and what is known changes nothing. In one transaction, under the lease.

    tables: rows as a sidecar holds them, and events of facts. event: what is noted, with `name` and the counts.
    """
    said, now = recovery.ensure(path, clock), clock()
    outcomes: dict[str, list[Outcome]] = {}
    with db.lease(path, wait_seconds), db.explained(path):
        copy.settle_key(path)
        with db.opened(path) as connection:
            try:
                with db.transaction(connection, path):
                    outcomes = _Arrival(connection, path, tables, now).run()
                    _note_arrival(connection, event, name, Arrived(outcomes), now)
                    if dry_run:
                        raise _Rehearsed
            except _Rehearsed:
                return Arrived(outcomes, said)
            sidecar.write(connection, path, now)
            erase.finish(connection, path)
    return Arrived(outcomes, said)


class _Rehearsed(Exception):
    """Takes back what was done only to see what would be."""


def _note_arrival(connection: apsw.Connection, event: str, name: str, arrived: Arrived, now: datetime) -> None:
    """A file that brought nothing leaves no trace in the trail, so that it can be brought in twice."""
    if event == "restore" or any(outcome.changes for each in arrived.outcomes.values() for outcome in each):
        detail = f"{name}; facts: {_counted(arrived.counts('facts'))}"
        events.add(connection, event, now, source="user", detail=detail)


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.items()) or "none"


def _import_facts(path: Path, source: Path, clock: Clock, wait_seconds: float) -> str:
    """What a sidecar holds into the memory as it is."""
    found = sidecar.load(source)  # first: where the database is gone, its own sidecar gets another name
    if found is None:
        raise UsageError(f"{source} is no file; name a backup, or a sidecar (memory.db.facts).")
    arrived = bring_in(path, found.tables, clock, wait_seconds, event="restore", name=source.name)
    outcome = _counted(arrived.counts("facts"))
    return " ".join([*arrived.said, f"Facts of {source} were brought into {path}: {outcome}."])


class _Arrival:
    """Rows of another file on their way into a memory. Belongs inside one transaction."""

    def __init__(
        self, connection: apsw.Connection, path: Path, tables: Mapping[str, Sequence[Row]], now: datetime
    ) -> None:
        self._connection = connection
        self._tables = tables
        self._now = now
        with db.system_explained(path):
            self._secret = keyfile.known(keyfile.key_path(path))  # a new one would only look like one that is lost
        self._clock = ladder.bounded(now, passages.newest_at(connection))
        self._forgotten = _Forgotten(connection, _keys_beside(path), self._clock)
        self._rests_on = self._content_keys()
        self._trail = {
            (row["scope"], row["memory_key"], row["new_value"]) for row in tables.get(OF_FACTS, ()) if _is_event(row)
        }
        self._masked = lru_cache(10_000)(secrets.mask)
        self._kept_out: set[tuple[str, str, bytes]] = set()

    def run(self) -> dict[str, list[Outcome]]:
        """What became of each row. Events first, so that those of this arrival stand behind them."""
        found = {table: [work(row) for row in self._tables.get(table, ())] for table, work in self._steps().items()}
        came = self._came(found)
        if any(outcome.changes for table in ("tombstones", "horizons") for outcome in found[table]):
            self._lift_of_live(came)
            erase.enforce(self._connection, self._secret or b"", self._now)
        return found

    def _steps(self) -> dict[str, Callable[[Row], Outcome]]:
        return {
            OF_FACTS: self._event,
            "facts": self._fact,
            "evidence": self._evidence,
            "proposals": self._proposal,
            "tombstones": self._tombstone(),
            "horizons": self._horizon,
            "deleted_sessions": self._deleted_session,
            "scopes": self._scope_name,
        }

    def _content_keys(self) -> dict[tuple[str, str, bytes], list[bytes]]:
        """Statement → the utterances that it rests on in the other file."""
        found: dict[tuple[str, str, bytes], list[bytes]] = {}
        for row in self._tables.get("evidence", ()):
            if sidecar.is_usable("evidence", row):
                found.setdefault((row["scope"], row["key"], row["value_hash"]), []).append(row["content_key"])
        return found

    def _statement(self, scope: str, key: str, value: str) -> tuple[str, str, bytes]:
        return scope, key, evidence.value_hash(value)

    def _fact(self, row: Row) -> Outcome:
        if not sidecar.is_usable("facts", row):
            return Outcome("refused", "it lacks something that a fact has")
        try:
            new = _fact(row)
        except Refused as refused:
            return Outcome("refused", str(refused))
        statement = self._statement(new.scope, new.key, new.value)
        old = facts.get(self._connection, new.key, new.scope)
        held = old or facts.get(self._connection, new.key, new.scope, deleted=True)
        if self._forgotten.covers(old, new, self._rests_on.get(statement, ())):
            self._kept_out.add(statement)
            return Outcome("forgotten")
        if held is not None and likeness(secrets.mask(held.value)) == likeness(new.value):
            new = replace(new, value=held.value)  # which only an export masked
            if old is None:
                return Outcome("known")  # hidden here, until a person decides
        if row["is_deleted"]:
            return self._hidden(held, new)
        return self._stated(old, new)

    def _hidden(self, held: Fact | None, new: Fact) -> Outcome:
        if held is not None:
            return Outcome("known")
        facts.put(self._connection, new)
        facts.hide(self._connection, new.key, new.scope, is_hidden=True, now=new.updated_at)
        return Outcome("hidden")

    def _stated(self, old: Fact | None, new: Fact) -> Outcome:
        # The ladder asks when a value was said last, and a fact that was kept knows more than its first time.
        statement = ladder.Statement(new.key, new.value, new.confidence, new.source, new.scope, new.reinforced_at)
        outcome, result = ladder.apply(old, statement, self._now)
        if old is not None and (outcome == "conflict_skip" or (outcome == "reinforce" and _adds_nothing(old, new))):
            return Outcome("known")
        result = result if old is not None else new
        facts.put(self._connection, result)
        if outcome != "create" or (new.scope, new.key, new.value) not in self._trail:
            said = None if old is None else old.value
            events.add(
                self._connection, outcome, self._now, source=new.source, scope=new.scope, key=new.key, old=said,
                new=result.value,
            )  # fmt: skip
        return Outcome({"create": "new", "update": "replaced"}.get(outcome, "confirmed"))

    def _evidence(self, row: Row) -> Outcome:
        if not sidecar.is_usable("evidence", row) or not _has_place(row["scope"], row["key"]):
            return Outcome("refused", "it lacks something that evidence has")
        if (row["scope"], row["key"], row["value_hash"]) in self._kept_out:
            return Outcome("forgotten")
        if self._forgotten.holds_message(row["content_key"]):
            return Outcome("forgotten")
        return _new(portable.add_evidence(self._connection, row))

    def _proposal(self, row: Row) -> Outcome:
        if not sidecar.is_usable("proposals", row) or not _has_place(row["scope"], row["key"]):
            return Outcome("refused", "it lacks something that a proposal has")
        if row["state"] != "pending":
            row = row | {"value": ""}  # as after every decision
        elif row["kind"] == "set" or row["value"]:
            try:
                row = row | {"value": gate.value(row["value"])}
            except Refused as refused:
                return Outcome("refused", str(refused))
        like = portable.proposal_like(self._connection, row)
        if like is not None:
            return self._decided(like[0], row) if like[1] == "pending" else Outcome("known")
        return self._waiting(row) if row["state"] == "pending" else self._added(row)

    def _decided(self, number: int, row: Row) -> Outcome:
        """One that waits here, and may have been decided elsewhere. What a person said no to is kept out here too; what they
        had erased there is theirs to say here."""
        if row["state"] not in ("accepted", "rejected") or row["kind"] != "set":
            return Outcome("known")
        here, at = proposals.get(self._connection, number), datetime.fromisoformat(row["updated_at"])
        until = min(at, self._clock) + REJECTED_FOR
        if row["state"] == "rejected" and here is not None and self._secret is not None:
            tombstones.bury_rejected(self._connection, self._secret, here.scope, here.value, at, until)
        proposals.decide(self._connection, number, row["state"], at)
        return Outcome("replaced")

    def _waiting(self, row: Row) -> Outcome:
        scope, key, value = row["scope"], row["key"], row["value"]
        fact = facts.get(self._connection, key, scope, deleted=True)
        is_said = fact is not None and likeness(fact.value) == likeness(value)
        if row["kind"] == "forget":
            return Outcome("known") if fact is None else self._added(row)
        if is_said:
            return Outcome("known")
        statement = self._statement(scope, key, value)
        if self._forgotten.covers_value(scope, key, value, self._rests_on.get(statement, ())):
            self._kept_out.add(statement)
            return Outcome("forgotten")
        if self._forgotten.is_rejected(scope, value):
            return Outcome("rejected")
        return self._added(row)

    def _added(self, row: Row) -> Outcome:
        portable.add_proposal(self._connection, row)
        return Outcome("new")

    def _tombstone(self) -> Callable[[Row], Outcome]:
        """All but those that say something of a fact that is live, as far as the key tells: the person said it anew."""
        live: set[bytes] = set()

        def work(row: Row) -> Outcome:
            if not sidecar.is_usable("tombstones", row):
                return Outcome("refused", "it lacks something that a tombstone has")
            if self._secret is not None and not live:
                for fact in facts.live(self._connection):
                    live.update(
                        hashed for _, hashed in facts.tombstones(self._secret, fact.scope, fact.key, fact.value)
                    )
                live.add(b"")  # looked for once
            return Outcome("live") if row["hash"] in live else _new(portable.add_tombstone(self._connection, row))

        return work

    def _came(self, found: Mapping[str, Sequence[Outcome]]) -> set[str]:
        """Kinds of the tombstones that are new here."""
        rows = zip(self._tables.get("tombstones", ()), found["tombstones"], strict=True)
        return {row["kind"] for row, outcome in rows if outcome.changes}

    def _lift_of_live(self, came: set[str]) -> None:
        """The same of tombstones that are made of words: those that came go where a live fact says them again."""
        if self._secret is None or not any(kind.startswith(tombstones.STEM) for kind in came):
            return
        known = Tombstones(self._connection, self._secret)
        said = {kind for fact in facts.live(self._connection) for kind in known.said_again(fact.scope, fact.value)}
        for kind in sorted(said & came):
            portable.remove_tombstones(self._connection, kind)

    def _horizon(self, row: Row) -> Outcome:
        if not sidecar.is_usable("horizons", row):
            return Outcome("refused", "it lacks something that a horizon has")
        return _new(portable.add_horizon(self._connection, row))

    def _deleted_session(self, row: Row) -> Outcome:
        if not sidecar.is_usable("deleted_sessions", row):
            return Outcome("refused", "it lacks something that a deleted session has")
        is_new = portable.add_deleted_session(self._connection, row)
        place = row["scope"], row["session"], row["source"], row["host"]
        orphans = streams.bury_session(self._connection, *place, self._now)
        erase.erase_passages(self._connection, orphans, self._now)
        return _new(is_new)

    def _scope_name(self, row: Row) -> Outcome:
        texts = all(isinstance(row.get(column), str) for column in portable.SCOPE_NAME)
        if not texts or any(keys.scope_fault(row[column]) for column in ("scope", "name")):
            return Outcome("refused", "it lacks something that a scope has")
        return _new(portable.add_scope_name(self._connection, row))

    def _event(self, row: Row) -> Outcome:
        """What was said of a fact that was forgotten here comes without its values."""
        if not _is_event(row):
            return Outcome("refused", "it lacks something that an event of a fact has")
        values = [row["old_value"], row["new_value"]]
        if self._forgotten.holds_event(row["scope"], row["memory_key"], values, row["created_at"]):
            values = [None, None]
        old, new, detail = (None if text is None else self._masked(text) for text in (*values, row["detail"]))
        changed = row | {"old_value": old, "new_value": new, "detail": detail}
        return _new(portable.add_event(self._connection, changed))


def _new(is_new: bool) -> Outcome:
    return Outcome("new" if is_new else "known")


def _has_place(scope: str, key: str) -> bool:
    return keys.scope_fault(scope) is None and keys.fault(key) is None


def _is_event(row: Row) -> bool:
    """Whether the trail can live with this row: a known type, a place on one line, a time."""
    if row.get("event_type") not in events.TYPES:
        return False
    texts = [row.get(column) for column in ("source", "scope", "memory_key")]
    if not all(isinstance(text, str) and text.isprintable() and 0 < len(text) <= keys.SCOPE_LENGTH for text in texts):
        return False
    if any(row.get(column, 0) is not None and not isinstance(row[column], str) for column in portable.EVENT[-3:]):
        return False
    try:
        db.time_of(row.get("created_at"))
    except apsw.CorruptError:
        return False
    return True


def _keys_beside(path: Path) -> list[bytes]:
    """Every key that stands beside the memory under its name: tombstones may belong to one that was replaced."""
    places = (p for p in path.parent.iterdir() if p.name.startswith(path.name) and p.suffix == ".key")
    found = []
    for place in sorted(places):
        with suppress(DatabaseError):
            found.append(keyfile.known(place))
    return [key for key in found if key is not None]


class _Forgotten:
    """What was forgotten in a memory, as it stands before anything arrives: by its tombstones, as far as there is the key
    to read them, and by its trail. clock: by which rejections expire."""

    def __init__(self, connection: apsw.Connection, secret_keys: Sequence[bytes], clock: datetime) -> None:
        self._secrets = secret_keys
        self._clock = clock
        self._known = [known for known in (Tombstones(connection, secret) for secret in secret_keys) if known]
        self._buried = _hashes(facts.buried(connection), clock)
        self._since = _latest(events.forgets(connection))
        self._answers: dict[tuple[str, str], bool] = {}

    def covers(self, old: Fact | None, new: Fact, content_keys: Sequence[bytes]) -> bool:
        """Whether `new` is not to be learned again, `old` being what stands under its key now."""
        if old is not None and likeness(old.value) == likeness(new.value):
            return False  # said anew
        if self.covers_value(new.scope, new.key, new.value, content_keys) or self._holds_key(new.scope, new.key):
            return True
        at = self._since.get((new.scope, new.key))
        return at is not None and at >= max(new.updated_at, new.reinforced_at)

    def covers_value(self, scope: str, key: str, value: str, content_keys: Sequence[bytes] = ()) -> bool:
        """Whether the value was forgotten, under this key or another one, or what it rests on."""
        if any(self.holds_message(content_key) for content_key in content_keys):
            return True
        if (scope, value) not in self._answers:
            self._answers[scope, value] = any(known.covers([scope, SHARED], key, value) for known in self._known)
        return self._answers[scope, value]

    def _holds_key(self, scope: str, key: str) -> bool:
        return any(_key_hash(secret, scope, key) in self._buried for secret in self._secrets)

    def holds_message(self, content_key: bytes) -> bool:
        return any(known.covers([], "", "", [content_key]) for known in self._known)

    def holds_event(self, scope: str, key: str, values: Sequence[str | None], created_at: str) -> bool:
        """Whether an event tells what was forgotten since, or is about a statement that was."""
        at = self._since.get((scope, key))
        if (at is not None and at >= datetime.fromisoformat(created_at)) or self._holds_key(scope, key):
            return True
        return any(value is not None and self.covers_value(scope, key, value) for value in values)

    def is_rejected(self, scope: str, value: str) -> bool:
        return any(known.is_rejected(scope, value, self._clock) for known in self._known)


def _adds_nothing(old: Fact, new: Fact) -> bool:
    weaker = ladder.STRENGTH[new.source] <= ladder.STRENGTH[old.source]
    return weaker and new.reinforced_at <= old.reinforced_at and new.confidence <= old.confidence


def _fact(row: Row) -> Fact:
    time, scope = datetime.fromisoformat, row["scope"] or SHARED
    fault = keys.scope_fault(scope)
    if fault is not None:
        raise Refused("KEY_FORMAT", fault)
    return Fact(
        gate.key(row["key"]),
        gate.value(row["value"]),
        float(row["confidence"]),
        row["source"] if row["source"] in ladder.STRENGTH else "extracted",
        time(row["updated_at"]),
        scope,
        time(row["created_at"]),
        time(row["observed_at"]),
        time(row["reinforced_at"]),
    )


def _horizons(found: sidecar.Sidecar) -> frozenset[tuple[str, str]]:
    """Scope, and until when what was said in it is forgotten."""
    return frozenset(
        (row["scope"], row["before"]) for row in found.tables.get("horizons", []) if sidecar.is_usable("horizons", row)
    )


def _sessions(found: sidecar.Sidecar) -> frozenset[tuple[str, str, str, str]]:
    """Scope, session, source and host of every session that the person deleted."""
    return frozenset(
        (row["scope"], row["session"], row["source"], row["host"])
        for row in found.tables.get("deleted_sessions", [])
        if sidecar.is_usable("deleted_sessions", row)
    )
