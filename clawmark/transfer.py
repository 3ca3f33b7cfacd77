"""Backup and restore: whole copies of a memory, out of use and back into it.

What always holds: only a memory is copied or replaced; a backup is checked before anything is touched, and what it
replaces is set aside, never deleted; a kill leaves the old database with its key or the new one with its own; and **what
was forgotten stays forgotten**, for a backup was made before it was, and holds it still.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import apsw

from clawmark import erase
from clawmark.arrival import Clock, bring_in, keys_beside, latest
from clawmark.errors import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseError,
    DatabaseForeign,
    DatabaseNewer,
    UsageError,
)
from clawmark.store import (
    check,
    copy,
    db,
    events,
    facts,
    files,
    keyfile,
    legacy,
    migrations,
    recovery,
    sidecar,
    spaces,
    streams,
    tombstones,
)
from clawmark.store.tombstones import Buried
from clawmark.text import likeness

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
            tombstones=[tombstones.of_row(row) for row in found.tombstones if sidecar.is_usable("tombstones", row)],
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
                for scope, key, value in self._forgotten_since(connection, present):
                    if value is None:
                        self._erased += erase.erase_fact(connection, key, scope, self._key, self._now)
                    else:  # the key may be learned anew
                        self._erased += erase.erase_value(connection, scope, key, value, self._key, self._now)
                        tombstones.remove(connection, [tombstones.key_hash(self._key, scope, key)])
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

    def _forgotten_since(self, connection: apsw.Connection, present: Present) -> list[tuple[str, str, str | None]]:
        """Scope and key of each fact of the backup that a tombstone or a `forget` of the present database is about and
        that is not live there; and its value where that alone was forgotten."""
        buried = tombstones.standing(present.tombstones, self._now)
        since = latest(present.forgets - events.forgets(connection))
        live = {(scope, key, likeness(value)) for scope, key, value in present.live}
        secrets = list({key for key in (self._own_key, self._given_key, *keys_beside(self._path)) if key})
        found = []
        for scope, key, value, updated, _ in facts.stored(connection):
            if (scope, key, likeness(value)) in live:
                continue
            is_since = (scope, key) in since and since[scope, key] >= datetime.fromisoformat(updated)
            by_key = is_since or any(tombstones.key_hash(secret, scope, key) in buried for secret in secrets)
            by_value = any(
                hashed in buried for secret in secrets for _, hashed in tombstones.hashes(secret, scope, key, value)
            )
            if by_key or by_value:
                found.append((scope, key, None if by_key else value))
        return found

    def _carry_tombstones(self, connection: apsw.Connection, present: Present) -> None:
        """All of them, whatever key they belong to: under another one they say nothing, and do again once it is back."""
        for other in present.tombstones:
            tombstones.bury_other(connection, other)
        live = {(scope, key) for scope, key, _ in present.live}
        forgotten = {(scope, key) for scope, key, _ in present.forgets} - live
        if self._key != self._own_key:
            self._note_other_keys(
                present, {tombstones.key_hash(self._key, scope, key) for scope, key, _ in present.forgets}
            )
            for scope, key in forgotten:
                tombstones.bury(connection, "key", tombstones.key_hash(self._key, scope, key), self._now)
        carried = {hashed for hashed, *_ in present.tombstones}
        for fact in facts.live(connection):
            hashes = [hashed for _, hashed in tombstones.hashes(self._key, fact.scope, fact.key, fact.value)]
            if hashes[0] in carried:  # said anew since, while another key was in use
                tombstones.remove(connection, hashes)

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

    tombstones     whatever key they belong to
    forgets        scope, key and time of every fact that was forgotten
    live           scope, key and value of every fact that is not
    sessions       scope, session, source and host of what the person deleted at a host
    horizons       scope, and until when what was said in it is forgotten
    newest_event   the highest number an event ever had
    generation     of its vectors: memories that hold some in memory tell by another one that these are gone
    """

    tombstones: Sequence[Buried] = ()
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
            for row in tombstones.buried(connection)
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


# --- a sidecar --------------------------------------------------------------------------------------------------------


def _import_facts(path: Path, source: Path, clock: Clock, wait_seconds: float) -> str:
    """What a sidecar holds into the memory as it is."""
    found = sidecar.load(source)  # first: where the database is gone, its own sidecar gets another name
    if found is None:
        raise UsageError(f"{source} is no file; name a backup, or a sidecar (memory.db.facts).")
    arrived = bring_in(path, found.tables, clock, wait_seconds, event="restore", name=source.name)
    return " ".join([*arrived.said, f"Facts of {source} were brought into {path}: {arrived.told('facts')}."])
