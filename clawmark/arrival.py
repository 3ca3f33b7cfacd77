"""Facts of another file on their way into a memory, with what belongs to them: of a sidecar, or of an export.

What always holds: all of it comes in or nothing does; where both know a key the ladder decides; what was forgotten here
stays away, what was forgotten there goes away here too, unless the person said it anew; what is known changes nothing, so
that a second time is none; a row that nobody can use is named and keeps no other one out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import apsw

from clawmark import erase, keys
from clawmark.belief import REJECTED_FOR
from clawmark.errors import DatabaseError, Refused
from clawmark.facts import ladder, statement
from clawmark.facts.subject import names_of
from clawmark.guard import secrets
from clawmark.model import SHARED, Fact
from clawmark.store import (
    copy,
    db,
    events,
    evidence,
    facts,
    keyfile,
    passages,
    portable,
    proposals,
    recovery,
    sidecar,
    streams,
    tombstones,
)
from clawmark.store.portable import TRAIL
from clawmark.store.tombstones import Tombstones
from clawmark.text import likeness

Clock = Callable[[], datetime]
Row = sidecar.Row


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

    def told(self, table: str) -> str:
        """`3 known, 1 new`; "none" where nothing came."""
        return ", ".join(f"{number} {word}" for word, number in self.counts(table).items()) or "none"


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
        detail = f"{name}; facts: {arrived.told('facts')}"
        events.add(connection, event, now, source="user", detail=detail)


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
        self._as_of = passages.as_of(connection, now)
        self._forgotten = _Forgotten(connection, keys_beside(path), self._as_of)
        self._rests_on = self._content_keys()
        self._trail = {
            (row["scope"], row["memory_key"], row["new_value"]) for row in tables.get(TRAIL, ()) if _is_event(row)
        }
        self._masked = lru_cache(10_000)(secrets.mask)
        self._kept_out: set[tuple[str, str, bytes]] = set()

    def run(self) -> dict[str, list[Outcome]]:
        """What became of each row. Events first, so that those of this arrival stand behind them."""
        found = {table: [work(row) for row in self._tables.get(table, ())] for table, work in self._steps().items()}
        found["tombstones"] = self._without_live(found["tombstones"])
        if any(outcome.changes for table in ("tombstones", "horizons") for outcome in found[table]):
            erase.enforce(self._connection, self._secret or b"", self._now)
        return found

    def _steps(self) -> dict[str, Callable[[Row], Outcome]]:
        return {
            TRAIL: self._event,
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
            new = _not_ahead(_fact(row), self._now)
        except Refused as refused:
            return Outcome("refused", str(refused))
        stated = self._statement(new.scope, new.key, new.value)
        old = facts.get(self._connection, new.key, new.scope)
        held = old or facts.get(self._connection, new.key, new.scope, with_hidden=True)
        if self._forgotten.covers(old, new, self._rests_on.get(stated, ())):
            self._kept_out.add(stated)
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
        stated = ladder.Statement(new.key, new.value, new.confidence, new.source, new.scope, new.reinforced_at)
        outcome, result = ladder.apply(old, stated, self._now)
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
        columns = sidecar.TABLES["evidence"]
        return _new(evidence.add_row(self._connection, *(row[column] for column in columns)))

    def _proposal(self, row: Row) -> Outcome:
        usable = sidecar.is_usable("proposals", row)
        if usable and row["state"] != "pending":  # as after every decision
            row = row | {"key": row["key"][: row["key"].find(".") + 1], "value": "", "against": None}
            usable = row["key"] in keys.PREFIXES and keys.scope_fault(row["scope"]) is None
        elif usable:
            usable = _has_place(row["scope"], row["key"])
        if not usable:
            return Outcome("refused", "it lacks something that a proposal has")
        if row["state"] == "pending" and (row["kind"] == "set" or row["value"]):
            try:
                row = row | {"value": statement.value(row["value"])}
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
        until = min(at, self._as_of) + REJECTED_FOR
        if row["state"] == "rejected" and here is not None and self._secret is not None:
            is_owners, names = here.origin == "owner", names_of(here.key)
            tombstones.bury_rejected(
                self._connection, self._secret, here.scope, names, here.value, at, until, is_owners=is_owners
            )
        proposals.decide(self._connection, number, row["state"], at)
        return Outcome("replaced")

    def _waiting(self, row: Row) -> Outcome:
        scope, key, value = row["scope"], row["key"], row["value"]
        fact = facts.get(self._connection, key, scope, with_hidden=True)
        is_said = fact is not None and likeness(fact.value) == likeness(value)
        if row["kind"] == "forget":
            return Outcome("known") if fact is None else self._added(row)
        if is_said:
            return Outcome("known")
        stated = self._statement(scope, key, value)
        if self._forgotten.covers_value(scope, key, value, self._rests_on.get(stated, ())):
            self._kept_out.add(stated)
            return Outcome("forgotten")
        if self._forgotten.is_rejected(scope, key, value, _owner_said_at(row)):
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
                        hashed for _, hashed in tombstones.hashes(self._secret, fact.scope, fact.key, fact.value)
                    )
                live.add(b"")  # looked for once
            if row["hash"] in live:
                return Outcome("live")
            return _new(tombstones.bury_other(self._connection, tombstones.of_row(row)))

        return work

    def _without_live(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """The same of tombstones that are made of words: those that came go where a live fact says them again."""
        rows = self._tables.get("tombstones", ())
        came = {row["kind"] for row, outcome in zip(rows, outcomes, strict=True) if outcome.changes}
        if self._secret is None or not any(kind.startswith(tombstones.STEM) for kind in came):
            return list(outcomes)
        known = Tombstones(self._connection, self._secret)
        said = {kind for fact in facts.live(self._connection) for kind in known.said_again(fact.scope, fact.value)}
        for kind in sorted(said & came):
            tombstones.remove_kind(self._connection, kind)
        return [
            Outcome("live") if outcome.changes and row["kind"] in said else outcome
            for row, outcome in zip(rows, outcomes, strict=True)
        ]

    def _horizon(self, row: Row) -> Outcome:
        if not sidecar.is_usable("horizons", row):
            return Outcome("refused", "it lacks something that a horizon has")
        before = min(
            db.time_of(row["before"]), self._now + passages.AHEAD
        )  # a later one would keep out what is not said yet
        return _new(tombstones.put_horizon(self._connection, row["scope"], before))

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


def keys_beside(path: Path) -> list[bytes]:
    """Every key that stands beside the memory under its name, once: tombstones may belong to one that was replaced, and a
    backup has the key of its memory."""
    places = (p for p in path.parent.iterdir() if p.name.startswith(path.name) and p.suffix == ".key")
    found: dict[bytes, None] = {}
    for place in sorted(places):
        with suppress(DatabaseError):
            key = keyfile.known(place)
            if key is not None:
                found[key] = None
    return list(found)


class _Forgotten:
    """What was forgotten in a memory, as it stands before anything arrives: by its tombstones, as far as there is the key
    to read them, and by its trail. as_of: by which rejections expire."""

    def __init__(self, connection: apsw.Connection, secret_keys: Sequence[bytes], as_of: datetime) -> None:
        self._secrets = secret_keys
        self._as_of = as_of
        self._known = [known for known in (Tombstones(connection, secret) for secret in secret_keys) if known]
        self._buried = tombstones.standing(tombstones.buried(connection), as_of)
        self._since = latest(events.forgets(connection))
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
        return any(tombstones.key_hash(secret, scope, key) in self._buried for secret in self._secrets)

    def holds_message(self, content_key: bytes) -> bool:
        return any(known.covers([], "", "", [content_key]) for known in self._known)

    def holds_event(self, scope: str, key: str, values: Sequence[str | None], created_at: str) -> bool:
        """Whether an event tells what was forgotten since, or is about a statement that was."""
        at = self._since.get((scope, key))
        if (at is not None and at >= datetime.fromisoformat(created_at)) or self._holds_key(scope, key):
            return True
        return any(value is not None and self.covers_value(scope, key, value) for value in values)

    def is_rejected(self, scope: str, key: str, value: str, said_at: datetime | None) -> bool:
        names = names_of(key)
        return any(known.is_rejected(scope, names, value, self._as_of, said_at=said_at) for known in self._known)


def _owner_said_at(row: Row) -> datetime | None:
    """When the owner said what a proposal says; None where others did."""
    return datetime.fromisoformat(row["observed_at"]) if row["origin"] == "owner" else None


def _adds_nothing(old: Fact, new: Fact) -> bool:
    weaker = ladder.STRENGTH[new.source] <= ladder.STRENGTH[old.source]
    return weaker and new.reinforced_at <= old.reinforced_at and new.confidence <= old.confidence


def _fact(row: Row) -> Fact:
    time, scope = datetime.fromisoformat, row["scope"] or SHARED
    fault = keys.scope_fault(scope)
    if fault is not None:
        raise Refused("KEY_FORMAT", fault)
    return Fact(
        *statement.statement(row["key"], row["value"]),
        float(row["confidence"]),
        row["source"] if row["source"] in ladder.STRENGTH else "extracted",
        time(row["updated_at"]),
        scope,
        time(row["created_at"]),
        time(row["observed_at"]),
        time(row["reinforced_at"]),
    )


def _not_ahead(fact: Fact, now: datetime) -> Fact:
    """What says that it was stated in the future would outlast whatever the person says until then. Clocks of two
    machines may differ."""
    if max(fact.updated_at, fact.created_at, fact.observed_at, fact.reinforced_at) <= now + passages.AHEAD:
        return fact
    return replace(
        fact,
        updated_at=min(fact.updated_at, now),
        created_at=min(fact.created_at, now),
        observed_at=min(fact.observed_at, now),
        reinforced_at=min(fact.reinforced_at, now),
    )


def latest(forgets: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str], datetime]:
    """Scope and key → when it was forgotten last. A time that cannot be read forgets whatever was said before or since."""
    found: dict[tuple[str, str], datetime] = {}
    for scope, key, text in forgets:
        try:
            at = db.time_of(text)
        except apsw.CorruptError:
            at = datetime.max.replace(tzinfo=UTC)
        found[scope, key] = max(at, found.get((scope, key), at))
    return found
