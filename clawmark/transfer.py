"""Backup and restore: whole copies of a memory, out of use and back into it.

What always holds: a backup is checked before anything is touched, and what it replaces is set aside, never deleted; a
kill leaves the old database or the new one; and **what was forgotten stays forgotten**, for a backup was made before it
was, and holds it still.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import apsw

from clawmark import erase
from clawmark.errors import DatabaseDamaged, DatabaseForeign, DatabaseNewer, Refused, UsageError
from clawmark.facts import gate, ladder
from clawmark.model import SHARED, Fact
from clawmark.store import copy, db, events, facts, files, keyfile, legacy, migrations, sidecar
from clawmark.store.copy import Present
from clawmark.text import canonical, normal

Clock = Callable[[], datetime]

MAGIC = b"SQLite format 3\0"


# --- backup -----------------------------------------------------------------------------------------------------------


def backup(memory_path: Path, target: Path | None, clock: Clock) -> Path:
    """A copy of the memory, which may be in use, with its key beside it; returns where it stands.

    target: a file that is not there yet, or a folder; None = beside the memory, under a dated name.
    Raises UsageError when the target is there or the memory is not, DatabaseDamaged when it is damaged.
    """
    path = files.resolved(memory_path)
    if not db.is_there(path):
        raise UsageError(f"there is no memory at {path} yet, so nothing to back up.")
    if target is None:
        made = copy.dated(path, "backup", clock())
    else:
        made = copy.dated(target / path.name, "backup", clock()) if os.path.isdir(target) else target
    if os.path.lexists(made):
        raise UsageError(f"{made} is there already and was left as it is; name another file.")
    with db.system_explained(made):
        copy.remove_leftovers(path)
        with _key_beside(path, made):  # first: a backup that is there has what its tombstones are keyed with
            copy.copy_database(path, made)
    return made


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
        is_database = file.read(len(MAGIC)) == MAGIC
    with db.system_explained(path):
        files.make_folder(path.parent)
        with db.lease(path, wait_seconds):
            files.secure(path)
            copy.remove_leftovers(path)
            if is_database:
                return _Restore(path, source, clock(), wait_seconds).run()
            return _import_facts(path, source, clock)


class _Restore:
    """One restore of a database, under the lease."""

    def __init__(self, path: Path, source: Path, now: datetime, wait_seconds: float) -> None:
        self._path = path
        self._source = source
        self._now = now
        self._wait_seconds = wait_seconds
        self._draft = path.with_name(path.name + ".restoring")
        self._aside = copy.dated(path, "replaced", now)
        self._own_key = keyfile.known(keyfile.key_path(path))
        self._given_key = keyfile.known(keyfile.key_path(source))
        self._notes: list[str] = []
        self._erased = 0

    @property
    def _key(self) -> bytes:
        """What the tombstones of the restored memory are keyed with; made only when there is none at all."""
        return self._given_key or self._own_key or keyfile.secret(keyfile.key_path(self._path))

    def run(self) -> str:
        copy.discard(self._draft)  # of a restore that was killed
        try:
            self._fetch()
            if db.is_there(self._path) and copy.is_sound(self._path):
                self._replace_in_use()
            else:
                self._replace_unusable()
        finally:
            copy.discard(self._draft)
        self._change_key()
        with _connected(self._path) as connection:
            sidecar.write(connection, self._path, self._now)
            held = len(facts.live(connection))
        return self._told(held)

    # the backup, beside the memory and up to date

    def _fetch(self) -> None:
        try:
            copy.copy_database(self._source, self._draft, at_rest=True)
            with db.explained(self._source), _connected(self._draft) as connection:
                self._bring_up_to_date(connection)
        except DatabaseDamaged as damaged:
            why = str(damaged).removesuffix(db.REMEDY)  # which is about a database of ours
            raise DatabaseDamaged(f"nothing was changed, since {self._source} cannot be restored: {why}") from damaged

    def _bring_up_to_date(self, connection: apsw.Connection) -> None:
        version = db.schema_version(connection, self._source)
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
            with _connected(self._path, readonly=True) as connection:
                old = db.schema_version(connection, self._path) < 2
                present = Present() if old else copy.present(connection)
            if (sidecar.stamp(self._path) or 0) > present.newest_event:  # what the database lost, the sidecar kept
                kept = self._kept_aside()
                present = copy.both(present, kept) if kept else present
            self._prepare(present)
            copy.copy_database(self._path, self._aside)
            self._keep_own_key()

    def _replace_unusable(self) -> None:
        was_there = db.is_there(self._path)
        present = self._kept_aside()
        if present is None and was_there:
            self._notes.append("what was forgotten after the backup was made could not be read")
        self._prepare(present or Present())
        self._keep_own_key()
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
            tombstones=[(row["hash"], row["kind"], row["created_at"], row["expires_at"]) for row in found.tombstones],
            live=frozenset((r["scope"], r["key"], r["value"]) for r in found.facts if not r["is_deleted"]),
            newest_event=found.stamp,
        )

    def _prepare(self, present: Present) -> None:
        """Erase from the backup what was forgotten since, and make it go on where the replaced database ends."""
        with _connected(self._draft) as connection:
            with db.transaction(connection, self._draft):
                copy.number_events_behind(connection, present.newest_event)
                copy.renew_generations(connection, present.generation)
                for scope, key, by_value in self._forgotten_since(connection, present):
                    self._erased += erase.erase_fact(connection, key, scope, self._key, self._now)
                    if by_value:  # forgotten under another key: this one may be learned anew
                        facts.lift(connection, [_key_hash(self._key, scope, key)])
                self._carry_tombstones(connection, present)
                detail = f"{self._source.name}; forgotten since and erased: {_facts(self._erased)}"
                events.add(connection, "restore", self._now, source="user", detail=detail)
            erase.finish(connection, self._draft)

    def _forgotten_since(self, connection: apsw.Connection, present: Present) -> list[tuple[str, str, bool]]:
        """Scope and key of each fact of the backup that a tombstone or a `forget` of the present database is about and
        that is not live there; and whether only its value was forgotten."""
        buried = _hashes(present, self._now)
        since = {(scope, key): at for scope, key, at in sorted(present.forgets - copy.forgets(connection))}
        live = {(scope, key, _same(value)) for scope, key, value in present.live}
        keys = [key for key in {self._own_key, self._given_key} if key]
        found = []
        for scope, key, value, updated in copy.stored_facts(connection):
            if (scope, key, _same(value)) in live:
                continue
            forgotten = since.get((scope, key))
            is_since = forgotten is not None and datetime.fromisoformat(forgotten) >= datetime.fromisoformat(updated)
            by_key = is_since or any(_key_hash(secret, scope, key) in buried for secret in keys)
            by_value = any(
                hashed in buried for secret in keys for _, hashed in facts.tombstones(secret, scope, key, value)
            )
            if by_key or by_value:
                found.append((scope, key, not by_key))
        return found

    def _carry_tombstones(self, connection: apsw.Connection, present: Present) -> None:
        if self._key == self._own_key:
            copy.add_tombstones(connection, present.tombstones)
            return
        if not present.tombstones:
            return
        live = {(scope, key) for scope, key, _ in present.live}
        for scope, key in {(scope, key) for scope, key, _ in present.forgets} - live:
            facts.bury(connection, "key", _key_hash(self._key, scope, key), self._now)
        self._notes.append(
            "the backup has another key, so tombstones of values that were forgotten here before could not be carried "
            "over, those of keys were where the trail names them"
        )

    # its key

    def _keep_own_key(self) -> None:
        if self._own_key is not None:
            copy.write_new(keyfile.key_path(self._aside), self._own_key)

    def _change_key(self) -> None:
        """Last: until then a second try knows both keys."""
        if self._given_key is not None and self._given_key != self._own_key:
            place = keyfile.key_path(self._path)
            files.replace(place, self._given_key, place.with_name(place.name + ".new"))

    def _told(self, held: int) -> str:
        aside = f" The database as it was is {self._aside}." if self._aside.exists() else ""
        since = f" What was forgotten since is not in it: {_facts(self._erased)}." if self._erased else ""
        notes = "".join(f" Note: {note}." for note in self._notes)
        return f"{self._path} holds what {self._source} held: {_facts(held)}.{since}{aside}{notes}"


def _facts(number: int) -> str:
    return f"{number} fact{'' if number == 1 else 's'}"


@contextmanager
def _connected(path: Path, *, readonly: bool = False) -> Iterator[apsw.Connection]:
    connection = db.connect(path, readonly=readonly)
    try:
        yield connection
    finally:
        connection.close()


def _hashes(present: Present, now: datetime) -> set[bytes]:
    """Of the tombstones that have not expired."""
    return {hashed for hashed, _, _, end in present.tombstones if end is None or datetime.fromisoformat(end) > now}


def _key_hash(secret: bytes, scope: str, key: str) -> bytes:
    return dict(facts.tombstones(secret, scope, key, ""))["key"]


def _same(value: str) -> str:
    return canonical(normal(value))


# --- a sidecar --------------------------------------------------------------------------------------------------------


def _import_facts(path: Path, source: Path, clock: Clock) -> str:
    """Facts of a sidecar into the memory as it is: the ladder decides where both know a key."""
    found = sidecar.load(source)
    assert found is not None

    def migrate(connection: apsw.Connection) -> None:
        migrations.migrate(connection, clock())

    if not db.is_there(path):
        db.make(path, migrate)
    db.open_database(path, migrate, migrations.LATEST)
    secret, now = keyfile.secret(keyfile.key_path(path)), clock()
    counts: Counter[str] = Counter()
    with db.explained(path), _connected(path) as connection:
        with db.transaction(connection, path):
            buried = _hashes(copy.present(connection), now)
            for row in found.facts:
                counts[_import_fact(connection, row, secret, buried, now)] += 1
            _import_tombstones(connection, found, secret)
            said = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()))
            events.add(connection, "restore", now, source="user", detail=f"{source.name}; facts: {said or 'none'}")
        sidecar.write(connection, path, now)
    return f"facts of {source} were brought into {path}: {said or 'none'}."


def _import_fact(
    connection: apsw.Connection, row: sidecar.Row, secret: bytes, buried: set[bytes], now: datetime
) -> str:
    """What became of one fact, in a word."""
    if row["is_deleted"]:
        return "hidden"
    try:
        new = _fact(row)
    except Refused:
        return "refused"
    if buried & {hashed for _, hashed in facts.tombstones(secret, new.scope, new.key, new.value)}:
        return "forgotten"
    old = facts.get(connection, new.key, new.scope)
    # The ladder asks when a value was said last, and a fact that was kept knows more than its first time.
    statement = ladder.Statement(new.key, new.value, new.confidence, new.source, new.scope, new.reinforced_at)
    outcome, result = ladder.apply(old, statement, now)
    if old is not None and (outcome == "conflict_skip" or (outcome == "reinforce" and _adds_nothing(old, new))):
        return "known"
    result = result if old is not None else new
    facts.put(connection, result)
    said = None if old is None else old.value
    events.add(connection, outcome, now, source=new.source, scope=new.scope, key=new.key, old=said, new=result.value)
    return {"create": "new", "update": "replaced"}.get(outcome, "confirmed")


def _adds_nothing(old: Fact, new: Fact) -> bool:
    weaker = ladder.STRENGTH[new.source] <= ladder.STRENGTH[old.source]
    return weaker and new.reinforced_at <= old.reinforced_at and new.confidence <= old.confidence


def _fact(row: sidecar.Row) -> Fact:
    time = datetime.fromisoformat
    return Fact(
        gate.key(row["key"]),
        gate.value(row["value"]),
        float(row["confidence"]),
        row["source"] if row["source"] in ladder.STRENGTH else "extracted",
        time(row["updated_at"]),
        row["scope"] or SHARED,
        time(row["created_at"]),
        time(row["observed_at"]),
        time(row["reinforced_at"]),
    )


def _import_tombstones(connection: apsw.Connection, found: sidecar.Sidecar, secret: bytes) -> None:
    """Those that say nothing of a fact that is live: the person said it anew since."""
    live = {
        hashed
        for fact in facts.live(connection)
        for _, hashed in facts.tombstones(secret, fact.scope, fact.key, fact.value)
    }
    copy.add_tombstones(
        connection,
        (
            (row["hash"], row["kind"], row["created_at"], row["expires_at"])
            for row in found.tombstones
            if row["hash"] not in live
        ),
    )
