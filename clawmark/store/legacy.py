"""The upgrade of a database that the TypeScript clawmark (0.1 to 0.3, schema 1) wrote.

What always holds: a copy of the file as it was stands beside it before anything changes; the change is one transaction,
so that a kill leaves the old database or the new one; nothing in a cell makes it fail, since SQLite lets any type stand
anywhere. What the new file promises is kept while old rows come in: no secret is stored, a value stands only under a
key by which it can be forgotten, and what was forgotten is not learned again. What such a promise keeps out is counted, and
stays in the copy alone.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import apsw

from clawmark import keys
from clawmark.errors import DatabaseDamaged, DatabaseForeign
from clawmark.guard import markers, secrets
from clawmark.keys import PREFIXES, VALUE_LENGTH
from clawmark.model import SHARED, Fact
from clawmark.store import events, facts, files, keyfile, migrations, sidecar, vectors
from clawmark.store.copy import copy_database, empty_log, remove_leftovers, write_new
from clawmark.store.db import (
    UNREADABLE,
    explained,
    lease,
    opened,
    rows,
    schema_version,
    system_explained,
    transaction,
    use_log,
)
from clawmark.store.tombstones import bury, bury_other, bury_stems, hashes, of_row
from clawmark.text import cut, likeness

WAIT_SECONDS: Final = 30.0
VACUUM_BYTES: Final = 256 << 20
"""SQLite rebuilds a file in memory here; a larger one keeps its free pages, and what was once deleted in them."""

UNSURE: Final = 0.5
"""The confidence of an extracted fact whose own is no number: the old column's default, too low to be shown."""

# What an old database must hold, and the column that is each table's key.
_TABLES: Final = {
    "facts": ("key", {"key", "value", "confidence", "source", "created_at", "updated_at", "is_deleted"}),
    "message_vectors": ("source_ref", {"source_ref", "conversation_id", "ts", "embedding"}),
    "cursors": ("name", {"name", "value", "updated_at"}),
    "memory_events": (
        "id",
        {"id", "event_type", "memory_key", "old_value", "new_value", "source", "created_at"},
    ),
}
_CODE: Final = re.compile(r"[A-Z_]{1,40}")
_CURSOR: Final = re.compile(r"(?:index|extract):[^:]+")
_WITHOUT_TEXT: Final = {"injection_blocked", "extract_error", "reject"}
"""Their values are what was refused."""

_OF_FACTS: Final = {"create", "update", "reinforce", "delete", "conflict_skip", "injection_blocked", "reject"}
_KNOWN: Final = _OF_FACTS | {"extract_error", "source_fallback"}


def is_typescript(connection: apsw.Connection) -> bool:
    """Whether this is such a database: by its version and by its tables."""
    if not rows(connection, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'"):
        return False
    return rows(connection, "SELECT max(version) FROM schema_version") == [(1,)] and has_its_tables(connection)


def has_its_tables(connection: apsw.Connection) -> bool:
    """Whether the schema is the old one, whatever can be read of its rows."""
    return all(_has(connection, table, key, columns) for table, (key, columns) in _TABLES.items())


def _has(connection: apsw.Connection, table: str, key: str, columns: set[str]) -> bool:
    found: dict[str, int] = dict(rows(connection, "SELECT name, pk FROM pragma_table_info(?)", (table,)))
    return columns <= found.keys() and [name for name, place in found.items() if place] == [key]


def upgrade(path: Path, clock: Callable[[], datetime], wait_seconds: float = WAIT_SECONDS) -> str:
    """Bring the database up to date where it stands, after a backup beside it; returns a line for the person.

    Raises DatabaseForeign for another program's file, DatabaseBusy when the old clawmark or a pass of the jobs holds
    it for `wait_seconds`; the file is unchanged then.
    """
    with (
        lease(path, wait_seconds),
        explained(path),
        system_explained(path),
        opened(path, busy_seconds=wait_seconds) as connection,
    ):
        version = schema_version(connection, path)
        if version >= 2:  # another process was first
            return f"{path} has schema {version} already."
        refuse_foreign(connection, path)
        files.secure(path)
        remove_leftovers(path)
        use_log(connection)
        clean_pages(connection)
        with transaction(connection, path):
            backup = _backup(path, clock())
            carried = convert(connection, clock(), lambda: keyfile.secret(keyfile.key_path(path)), backup.name)
            said = _take_over(connection, path, clock(), carried)
        empty_log(connection)
    return _told(path, carried, backup) + said


def refuse_foreign(connection: apsw.Connection, path: Path) -> None:
    """Raise DatabaseForeign for a database that says schema 1 and has another program's tables."""
    if not is_typescript(connection):
        raise DatabaseForeign(
            f"{path} says schema 1, but its tables are not clawmark's. It was left unchanged; "
            "move it away or name another file in CLAWMARK_DB_PATH."
        )


def clean_pages(connection: apsw.Connection) -> None:
    """The old clawmark left what it deleted in free space, from where every copy would carry it on."""
    size = connection.pragma("page_count") * connection.pragma("page_size")
    if size <= VACUUM_BYTES:
        rows(connection, "VACUUM")


def _backup(path: Path, now: datetime) -> Path:
    """A copy beside the database. An upgrade that was cut short left one already: the same copy is not kept twice."""
    earlier = sorted(p for p in path.parent.glob("*.backup") if p.name.startswith(f"{path.name}.schema-1-"))
    made = files.dated(path, "schema-1", now, ".backup")
    copy_database(path, made)
    for old in earlier:
        if not old.is_symlink() and old.is_file() and _same_pages(old, made):
            made.unlink()
            return old
    return made


def _same_pages(a: Path, b: Path) -> bool:
    """Whether two databases are equal but for their headers, which count how often a file was written."""
    if a.stat().st_size != b.stat().st_size:
        return False
    with open(a, "rb") as left, open(b, "rb") as right:
        left.seek(100)
        right.seek(100)
        while data := left.read(1 << 20):
            if data != right.read(1 << 20):
                return False
    return True


def convert(connection: apsw.Connection, now: datetime, secret: Callable[[], bytes], backup: str) -> Counter[str]:
    """Turn the old schema and its rows into ours. Belongs inside one transaction; returns what was counted."""
    rows(connection, "PRAGMA legacy_alter_table = ON")  # somebody's own view goes on naming the table it named
    for table in ("schema_version", *_TABLES):
        connection.execute(f"ALTER TABLE {table} RENAME TO typescript_{table}")
    rows(connection, "PRAGMA legacy_alter_table = OFF")
    migrations.migrate(connection, now)
    connection.execute(
        "INSERT INTO schema_version (version, applied_at) VALUES (1, ?)",
        (_applied(connection, now).isoformat(),),
    )
    counts: Counter[str] = Counter()
    history = _carry_events(connection, now, counts)
    _carry_facts(connection, history, now, secret, counts)
    _carry_cursors(connection, now, counts)
    _carry_vectors(connection, counts)
    for table in ("schema_version", *_TABLES):
        connection.execute(f"DROP TABLE typescript_{table}")
    said = ", ".join(f"{name} {number}" for name, number in sorted(counts.items()))
    events.add(connection, "upgrade", now, source="clawmark", detail=f"backup {backup}; {said or 'nothing in it'}")
    return counts


def _applied(connection: apsw.Connection, now: datetime) -> datetime:
    ((raw,),) = rows(connection, f"SELECT {_as_text('applied_at')} FROM typescript_schema_version LIMIT 1")  # noqa: S608
    return _time(_text(raw)) or now


# --- cells ------------------------------------------------------------------------------------------------------------


def _as_text(column: str) -> str:
    """A column's text as bytes: text that is no UTF-8 could not be fetched at all. A BLOB is no text."""
    return f"CASE typeof({column}) WHEN 'blob' THEN NULL ELSE CAST({column} AS BLOB) END"


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode("utf-8", "replace")


def _time(text: str | None) -> datetime | None:
    """An ISO time as aware UTC; None for what is none."""
    try:
        at = datetime.fromisoformat(text or "")
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def our_key(raw: str | None) -> str | None:
    """The key under which a fact can be read, replaced and forgotten here; None when there is none.

    The old clawmark took keys without one of our prefixes: those come under `user.`.
    """
    if raw is None:
        return None
    key = keys.spelled(raw)
    key = key if key.startswith(PREFIXES) else f"user.{key}"
    return None if keys.fault(key) or secrets.find(key) else key


def _masked(value: str | None, counts: Counter[str]) -> str | None:
    if value is None or not secrets.find(value):
        return value
    counts["values masked"] += 1
    return secrets.mask(value)


# --- events -----------------------------------------------------------------------------------------------------------


@dataclass
class _Past:
    """What the trail says of one key: its value and when that was first stated, who deleted it last, and the values
    that were deleted by somebody, by their canonical form."""

    value: str | None = None
    stated_at: datetime | None = None
    deleted_by: str | None = None
    forgotten: dict[str, str] = field(default_factory=dict)

    def state(self, value: str, at: datetime) -> None:
        if self.value is None or likeness(self.value) != likeness(value):
            self.value, self.stated_at = value, at
        self.forgotten.pop(likeness(value), None)

    def delete(self, source: str) -> None:
        if self.value is not None and source != "decay":
            self.forgotten[likeness(self.value)] = self.value
        self.value, self.deleted_by = None, source


def _carry_events(connection: apsw.Connection, now: datetime, counts: Counter[str]) -> dict[str, _Past]:
    columns = ("event_type", "memory_key", "old_value", "new_value", "source", "created_at")
    found = rows(
        connection,
        f"SELECT id, {', '.join(_as_text(c) for c in columns)} FROM typescript_memory_events ORDER BY id",  # noqa: S608
    )
    history: dict[str, _Past] = {}
    carried: list[tuple[Any, ...]] = []
    for number, *cells in found:
        event_type, raw_key, old, new, source, created = map(_text, cells)
        if event_type not in _KNOWN:
            counts["unknown events left out"] += 1
            continue
        key = our_key(raw_key) if event_type in _OF_FACTS else None
        source, at = source or "unknown", _time(created) or now
        if key is not None:
            past = history.setdefault(key, _Past())
            if event_type in ("create", "update") and new is not None:
                past.state(new, at)
            elif event_type == "delete":
                past.delete(source)
        detail = _detail(event_type, new)
        if event_type in _WITHOUT_TEXT or (event_type in _OF_FACTS and key is None):
            old = new = None  # under no key it could never be forgotten
        scope = SHARED if event_type in _OF_FACTS else None
        values = (_masked(old, counts), _masked(new, counts))
        carried.append((number, event_type, key, *values, source, at.isoformat(), scope, detail))
    connection.executemany(
        "INSERT INTO memory_events (id, event_type, memory_key, old_value, new_value, source, created_at, scope, detail)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        carried,
    )
    counts["events"] = len(carried)
    used = rows(connection, "SELECT seq FROM sqlite_sequence WHERE name = 'typescript_memory_events'")
    events.number_behind(connection, used[0][0] if used else 0)
    return history


def _detail(event_type: str, new: str | None) -> str | None:
    if new is None or event_type not in _WITHOUT_TEXT:
        return None
    if event_type == "reject":
        return new if _CODE.fullmatch(new) else None
    return f"{'INJECTION' if event_type == 'injection_blocked' else 'unreadable'}, {len(new)} characters"


# --- facts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """A fact that can be a row of ours."""

    fact: Fact
    hidden: bool
    raw: str
    """The value before masking: what a tombstone must match."""


def _carry_facts(
    connection: apsw.Connection,
    history: dict[str, _Past],
    now: datetime,
    secret: Callable[[], bytes],
    counts: Counter[str],
) -> None:
    kept: dict[str, _Row] = {}
    found = [row for row in _fact_rows(connection, history, now, counts) if row is not None]
    for row in sorted(found, key=_rank, reverse=True):
        winner = kept.setdefault(row.fact.key, row)
        if winner is not row:
            _lose(connection, row, winner, history, now, counts)
            continue
        facts.put(connection, row.fact)
        if row.hidden:
            connection.execute(
                "UPDATE facts SET is_deleted = 1 WHERE scope = ? AND key = ?", (row.fact.scope, row.fact.key)
            )
        counts["hidden facts" if row.hidden else "facts"] += 1
    _bury(connection, kept, history, now, secret, counts)


def _rank(row: _Row) -> tuple[bool, bool, datetime]:
    """Which of two facts under one key of ours stays: what is live, what the person said, what is newer."""
    return not row.hidden, row.fact.source == "user", row.fact.updated_at


def _fact_rows(
    connection: apsw.Connection, history: dict[str, _Past], now: datetime, counts: Counter[str]
) -> Iterable[_Row | None]:
    columns = ("key", "value", "source", "created_at", "updated_at")
    found = rows(
        connection,
        f"SELECT {', '.join(_as_text(c) for c in columns)},"  # noqa: S608
        " CASE WHEN typeof(confidence) IN ('integer', 'real') THEN confidence END,"
        " typeof(is_deleted) = 'integer' AND is_deleted = 0"
        " FROM typescript_facts ORDER BY key",
    )
    for *cells, confidence, is_live in found:
        raw_key, value, writer, created, updated = map(_text, cells)
        key = our_key(raw_key)
        code = "KEY_FORMAT" if key is None else "VALUE_FORMAT" if value is None else None
        if value is not None and len(value) > VALUE_LENGTH:
            code = code or "VALUE_SIZE"
        if key is None or value is None or code is not None:
            events.add(connection, "reject", now, source="typescript", scope=SHARED, key=key, detail=code)
            counts["facts left out"] += 1
            continue
        if key != raw_key:
            counts["keys renamed"] += 1
        source = "user" if writer == "user" else "extracted"
        created_at = _time(created) or _time(updated) or now
        updated_at = _time(updated) or created_at
        past = history.get(key)
        # Without an event only the last writing is known to have stated this very value.
        stated = past.stated_at if past and past.stated_at and past.value is not None else updated_at
        masked = cut(_masked(value, counts) or "", VALUE_LENGTH)
        yield _Row(
            Fact(
                key,
                masked,
                _confidence(confidence, source),
                source,
                updated_at,
                SHARED,
                created_at,
                min(stated, updated_at),
                updated_at,
            ),
            hidden=not is_live or not markers.defuse(value.strip()),
            raw=value,
        )


def _confidence(number: float | None, source: str) -> float:
    if number is None or not math.isfinite(number):
        return 1.0 if source == "user" else UNSURE
    return float(min(1.0, max(0.0, number)))


def _lose(
    connection: apsw.Connection,
    row: _Row,
    winner: _Row,
    history: dict[str, _Past],
    now: datetime,
    counts: Counter[str],
) -> None:
    """Two old keys became one: what is not kept leaves an event."""
    old, new = winner.fact, row.fact
    events.add(
        connection,
        "conflict_skip",
        now,
        source=new.source,
        scope=SHARED,
        key=new.key,
        old=old.value,
        new=new.value,
        detail="KEY_FORMAT",
    )
    counts["facts left out"] += 1
    if row.hidden:
        history.setdefault(new.key, _Past()).forgotten.setdefault(likeness(row.raw), row.raw)


def _bury(
    connection: apsw.Connection,
    kept: dict[str, _Row],
    history: dict[str, _Past],
    now: datetime,
    secret: Callable[[], bytes],
    counts: Counter[str],
) -> None:
    """Permanent tombstones for what somebody deleted: values deleted earlier, and a hidden fact's own key and value.

    A hidden fact counts as deleted by somebody unless the trail says that it decayed: the trail was cut at 10,000.
    """
    for key in history.keys() | kept.keys():
        past, row = history.get(key) or _Past(), kept.get(key)
        forgotten = dict(past.forgotten)
        by_somebody = row is not None and row.hidden and bool(markers.defuse(row.raw.strip()))
        by_somebody = by_somebody and past.deleted_by != "decay"
        if row is not None:
            forgotten.pop(likeness(row.raw), None)
        if row is not None and by_somebody:
            forgotten[likeness(row.raw)] = row.raw
            counts["forgotten facts"] += 1
        for value in forgotten.values():
            for kind, hashed in hashes(secret(), SHARED, key, value):
                if kind == "value" or by_somebody:
                    bury(connection, kind, hashed, now)
            bury_stems(connection, secret(), SHARED, value, now)


# --- cursors and vectors ----------------------------------------------------------------------------------------------


def _carry_cursors(connection: apsw.Connection, now: datetime, counts: Counter[str]) -> None:
    """Under their own names: ours are `index:<source>:<stream>`, so the two never meet."""
    columns = ("name", "value", "updated_at")
    found = rows(connection, f"SELECT {', '.join(_as_text(c) for c in columns)} FROM typescript_cursors")  # noqa: S608
    for cells in found:
        name, value, updated = map(_text, cells)
        if name is None or value is None or not _CURSOR.fullmatch(name):
            counts["cursors left out"] += 1
            continue
        connection.execute(
            "INSERT OR IGNORE INTO cursors (name, value, updated_at) VALUES (?, ?, ?)",
            (name, value, (_time(updated) or now).isoformat()),
        )
        counts["cursors"] += 1


BATCH: Final = 500


def _carry_vectors(connection: apsw.Connection, counts: Counter[str]) -> None:
    """Those of the commonest size that are finite and of length 1: they may serve again, see `vectors.reusable`."""
    lengths = rows(
        connection,
        "SELECT length(embedding) FROM typescript_message_vectors"
        " WHERE typeof(embedding) = 'blob' AND length(embedding) > 0 AND length(embedding) % 4 = 0"
        " GROUP BY 1 ORDER BY count(*) DESC, 1 DESC LIMIT 1",
    )
    ((total,),) = rows(connection, "SELECT count(*) FROM typescript_message_vectors")
    if lengths:
        cursor = connection.execute(
            f"SELECT {_as_text('source_ref')}, embedding FROM typescript_message_vectors"  # noqa: S608
            " WHERE typeof(embedding) = 'blob' AND length(embedding) = ?",
            lengths[0],
        )
        while batch := list(itertools.islice(cursor, BATCH)):
            fit = vectors.of_length_one([blob for _, blob in batch])
            good = [(_text(ref), blob) for (ref, blob), is_fit in zip(batch, fit, strict=True) if is_fit and ref]
            connection.executemany("INSERT OR IGNORE INTO old_vectors (source_ref, embedding) VALUES (?, ?)", good)
    ((kept,),) = rows(connection, "SELECT count(*) FROM old_vectors")
    counts["vectors"] += kept
    counts["vectors left out"] += total - kept


# --- what was known here already --------------------------------------------------------------------------------------


def _take_over(connection: apsw.Connection, path: Path, now: datetime, counts: Counter[str]) -> str:
    """A newer database may have stood here, whose sidecar knows what was forgotten in it: the old file, put back, holds
    that still. Returns what to say. Belongs into the transaction of the conversion."""
    name = sidecar.path_of(path).name
    try:
        kept = sidecar.read(path)
    except DatabaseDamaged:
        return f" {name} cannot be read: what was forgotten in the newer database may have come back."
    if kept is None:
        return ""
    tombstones = [row for row in kept.tombstones if sidecar.is_usable("tombstones", row)]
    for row in tombstones:
        bury_other(connection, of_row(row))
    events.number_behind(connection, kept.stamp + 1)  # a recovery takes its rows from whichever is later
    secret = keyfile.known(keyfile.key_path(path))
    said = ""
    if secret is not None:
        _forget(connection, secret, {row["hash"] for row in tombstones}, counts)
    elif tombstones:
        said = f" Without {keyfile.key_path(path).name} nobody can tell what was forgotten: it may have come back."
    return said + _kept_aside(connection, path, kept, now)


def _forget(connection: apsw.Connection, secret: bytes, buried: set[bytes], counts: Counter[str]) -> None:
    """Take away what tombstones name, from facts and from the trail."""

    def is_forgotten(scope: str, key: str, value: str) -> bool:
        return any(hashed in buried for _, hashed in hashes(secret, scope, key, value))

    for scope, key, value, _, is_hidden in facts.stored(connection):
        if is_forgotten(scope, key, value):
            counts["hidden facts" if is_hidden else "facts"] -= 1
            facts.remove(connection, key, scope)
            events.blank_values(connection, key, scope)
            counts["facts forgotten before"] += 1
    for scope, key, value in events.stated(connection):
        if is_forgotten(scope, key, value):
            events.blank_values(connection, key, scope)


def _kept_aside(connection: apsw.Connection, path: Path, kept: sidecar.Sidecar, now: datetime) -> str:
    """A copy of the sidecar, where it has facts that are not in the old file: the next one that is written has not."""
    stored = {(scope, key, value) for scope, key, value, _, _ in facts.stored(connection)}
    newer = [row for row in kept.facts if sidecar.is_usable("facts", row) and not row["is_deleted"]]
    count = sum((row["scope"], row["key"], row["value"]) not in stored for row in newer)
    content = files.read(sidecar.path_of(path)) if count else None
    if content is None:
        return ""
    aside = files.dated(path, "facts", now)
    write_new(aside, content)
    return f" Facts of the newer database that stood here: {count}; `clawmark restore {aside}` brings them back."


# --- a damaged one ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Salvage:
    """What could be read of a damaged file: rows of facts and of memory_events, texts as bytes; the newest number."""

    facts: list[tuple[Any, ...]]
    events: list[tuple[Any, ...]]
    newest: int
    is_whole: bool


_FACT_TEXTS: Final = ("key", "value", "source", "created_at", "updated_at")
_EVENT_TEXTS: Final = ("event_type", "memory_key", "old_value", "new_value", "source", "created_at")


def salvage(connection: apsw.Connection) -> Salvage | None:
    """What can be read of a damaged database; None for one that does not show that it is the old clawmark's."""
    try:
        if not has_its_tables(connection):
            return None
    except UNREADABLE:
        return None
    numbers = [f"CASE WHEN typeof({c}) IN ('integer', 'real') THEN {c} END" for c in ("confidence", "is_deleted")]
    found, all_facts = _reachable(connection, "facts", [*map(_as_text, _FACT_TEXTS), *numbers])
    trail, all_events = _reachable(connection, "memory_events", list(map(_as_text, _EVENT_TEXTS)))
    try:
        newest = events.newest(connection)
    except UNREADABLE:
        newest = 0
    stored = [row[1:] for row in found]
    if not all_facts:
        stored += _of_the_trail(trail, {row[0] for row in stored})
    return Salvage(stored, trail, newest, all_facts and all_events)


def _of_the_trail(trail: list[tuple[Any, ...]], known: set[bytes]) -> list[tuple[Any, ...]]:
    """Facts whose rows are lost, as the trail stated them last; none that was deleted."""
    stated: dict[bytes, tuple[Any, ...]] = {}
    for _, event_type, key, _, new, source, at in trail:
        if event_type in (b"create", b"update") and key is not None and new is not None:
            created = stated[key][3] if key in stated else at
            stated[key] = (key, new, source, created, at, None, 0)
        elif event_type == b"delete":
            stated.pop(key, None)
    return [row for key, row in stated.items() if key not in known]


def _reachable(connection: apsw.Connection, table: str, columns: list[str]) -> tuple[list[tuple[Any, ...]], bool]:
    """Rows with their number in front, from both ends up to a page that cannot be read; and whether they are all."""
    found: dict[int, tuple[Any, ...]] = {}
    for order in ("ASC", "DESC"):
        try:
            sql = f"SELECT rowid, {', '.join(columns)} FROM {table} ORDER BY rowid {order}"  # noqa: S608
            for row in connection.execute(sql):
                found[row[0]] = row
            if order == "ASC":
                return list(found.values()), True
        except UNREADABLE:
            continue
    return [found[number] for number in sorted(found)], False


def rebuild(connection: apsw.Connection, path: Path, found: Salvage, now: datetime, backup: str) -> str:
    """Fill a new database with what was salvaged, by the rules of the upgrade; returns what to say.

    path: where the damaged one stands. Belongs inside one transaction.
    """
    connection.execute("CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TEXT)")
    connection.execute("INSERT INTO schema_version (version, applied_at) VALUES (1, ?)", (now.isoformat(),))
    for table, (key, columns) in _TABLES.items():
        others = ", ".join(sorted(columns - {key}))
        kind = "INTEGER PRIMARY KEY AUTOINCREMENT" if table == "memory_events" else "PRIMARY KEY"
        connection.execute(f"CREATE TABLE {table} ({key} {kind}, {others})")
    texts = ", ".join(["CAST(? AS TEXT)"] * len(_FACT_TEXTS))
    connection.executemany(
        f"INSERT OR IGNORE INTO facts ({', '.join(_FACT_TEXTS)}, confidence, is_deleted) VALUES ({texts}, ?, ?)",  # noqa: S608
        found.facts,
    )
    texts = ", ".join(["CAST(? AS TEXT)"] * len(_EVENT_TEXTS))
    connection.executemany(
        f"INSERT OR IGNORE INTO memory_events (id, {', '.join(_EVENT_TEXTS)}) VALUES (?, {texts})",  # noqa: S608
        found.events,
    )
    counts = convert(connection, now, lambda: keyfile.secret(keyfile.key_path(path)), backup)
    events.number_behind(connection, found.newest)
    said = _take_over(connection, path, now, counts)
    missing = "" if found.is_whole else " It cannot be read to the end, so some may be missing."
    return (
        f"By the rules of an upgrade there came back: {_counted(counts, 'facts', 'hidden facts', 'events')}. "
        f"Its vectors and cursors did not.{missing}{said}"
    )


# --- what the person is told ------------------------------------------------------------------------------------------


_NOTED: Final = (
    "values masked", "facts forgotten before", "facts left out", "keys renamed", "unknown events left out",
    "cursors left out",
)  # fmt: skip


def _counted(counts: Counter[str], *carried: str) -> str:
    kept = ", ".join(f"{name} {counts[name]}" for name in carried)
    aside = ", ".join(f"{name} {counts[name]}" for name in _NOTED if counts[name])
    return "; ".join(part for part in (kept, aside) if part)


def _told(path: Path, counts: Counter[str], backup: Path) -> str:
    counted = _counted(counts, "facts", "hidden facts", "events", "cursors", "vectors")
    return (
        f"{path} was written by the TypeScript clawmark and is up to date now ({counted}). The file as it was is {backup}; "
        "it still holds what was masked, forgotten or left out, so delete it when you no longer need it."
    )
