"""Export and import as JSON lines: a whole memory but its messages, in a file that any program can read.

What always holds: the file says how many lines it has and what their checksum is, so that a torn or edited one is told
from a whole one and brings in nothing; secrets are masked unless the person wants them; it appears whole or not at all,
for its owner alone, over nothing and through no link. Brought in, what was forgotten here stays away, a line that nobody
can use is named and keeps no other one out, and a second time changes nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets as entropy
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import apsw

from clawmark.arrival import Arrived, Clock, Row, bring_in
from clawmark.errors import UsageError
from clawmark.guard import secrets
from clawmark.store import copy, db, files, keyfile, migrations, portable, recovery, sidecar, streams
from clawmark.store.passages import from_ms, to_ms
from clawmark.store.portable import TRAIL

Mask = Callable[[str], str]

VERSION: Final = 1
REMEMBERED: Final = 10_000
"""Texts whose masked form is held while one export is made: a value stands in its fact and in many events."""

MOST_BYTES: Final = 1 << 30
"""No export is larger: it holds statements, not messages."""

RECORDS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "scope": ("scopes", {}),
    "fact": ("facts", {"hidden": "is_deleted"}),
    "evidence": ("evidence", {"gone": "is_gone"}),
    "proposal": ("proposals", {"number": "id"}),
    "event": (TRAIL, {"key": "memory_key"}),
    "tombstone": ("tombstones", {}),
    "horizon": ("horizons", {}),
    "deleted_session": ("deleted_sessions", {}),
}
"""What a line is → its table, and the fields that have another name there."""

_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    **sidecar.TABLES,
    TRAIL: portable.EVENT,
    "scopes": portable.SCOPE_NAME,
}
_FLAGS: Final = ("is_deleted", "is_gone")
_BYTES: Final = ("hash", "value_hash", "content_key")
_TIMES: Final = ("before", "deferred_until")
"""Beside those that end in `_at`."""

_EXACT: Final = ("kind", "state", "conflict", "event_type")
"""Words of ours, in which no secret stands."""


# --- out --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Exported:
    """An export as bytes, and what it holds: record → number of lines."""

    content: bytes
    counts: Mapping[str, int]


def export(memory_path: Path, clock: Clock, *, scope: str | None = None, with_secrets: bool = False) -> Exported:
    """All that is known but messages, as one state of the memory, which may be in use.

    scope: that one alone, by its readable name too; tombstones, which do not say whose they are, stay out then.
    Raises UsageError where there is no memory, or nothing of that scope.
    """
    path = files.resolved(memory_path)
    if not db.is_there(path):
        raise UsageError(f"there is no memory at {path} yet, so nothing to export.")
    recovery.ensure(path, clock)
    with db.explained(path), db.opened(path, readonly=True) as connection:
        db.rows(connection, "BEGIN")  # what is read is of one moment
        named = None if scope is None else streams.scope_called(connection, scope)
        tables = {table: _rows_of(connection, table, named) for table, _ in RECORDS.values()}
        is_known = named is None or named in streams.scopes(connection)
    if not is_known and not any(tables.values()):
        raise UsageError(f"nothing was read or set under the scope {scope!r}; `clawmark status` lists the scopes.")
    shown: Mask = _as_it_is if with_secrets else lru_cache(REMEMBERED)(secrets.mask)
    lines = [_line(record, row, shown) for record, (table, _) in RECORDS.items() for row in tables[table]]
    key = keyfile.known(keyfile.key_path(path))
    header = {
        "clawmark": "export",
        "version": VERSION,
        "schema": migrations.LATEST,
        "exported_at": clock().isoformat(),
        "scope": named,
        "secrets": "kept" if with_secrets else "masked",
        "key": None if key is None else copy.fingerprint(key),
    }
    return Exported(_closed(header, lines), {record: len(tables[table]) for record, (table, _) in RECORDS.items()})


def _rows_of(connection: apsw.Connection, table: str, scope: str | None) -> list[Row]:
    if table == TRAIL:
        return portable.events_of_facts(connection, scope)
    if table == "scopes":
        return portable.scope_names(connection, scope)
    return portable.of_table(connection, table, scope)


def _as_it_is(text: str) -> str:
    return text


def _line(record: str, row: Row, shown: Mask) -> dict[str, Any]:
    names = {column: name for name, column in RECORDS[record][1].items()}
    return {"record": record} | {
        names.get(column, column): _shown(column, value, shown) for column, value in row.items()
    }


def _shown(column: str, value: Any, shown: Mask) -> Any:
    if column in _FLAGS:
        return bool(value)
    if column == "said_at":
        return from_ms(value).isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if not isinstance(value, str) or column in _EXACT or _is_time(column):
        return value
    return shown(value)


def _is_time(column: str) -> bool:
    return column.endswith("_at") or column in _TIMES


def _closed(header: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> bytes:
    """The header, the lines, and a last one with their number and the checksum of all before it."""
    written = [_written(header), *map(_written, lines)]
    body = b"".join(written)
    return body + _written({"lines": len(written) - 1, "sha256": hashlib.sha256(body).hexdigest()})


def _written(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def save(content: bytes, target: Path) -> None:
    """A file that was not there before, whole or not at all, for its owner alone. Raises UsageError where it cannot be."""
    if copy.is_reserved(target.name):
        raise UsageError(f"{target.name} is a name that clawmark or SQLite gives its own files; name another file.")
    if os.path.lexists(target):
        raise UsageError(f"{target} is there already and was left as it is; name another file.")
    if not target.parent.is_dir():
        raise UsageError(f"there is no folder {target.parent}; make it, or name another one.")
    try:
        copy.remove_parts(target)
        part = target.with_name(f"{target.name}.{entropy.token_hex(4)}{copy.PART}")
        with open(files.create(part), "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # somebody works on it
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                files.give_name(part, target)
            finally:
                part.unlink(missing_ok=True)
        files.sync_folder(target.parent)
    except FileExistsError:
        raise UsageError(f"{target} is there already and was left as it is; name another file.") from None
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written ({error.strerror}); nothing was. Check the folder and the disk, or name another file."
        ) from error


# --- in ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line that was left out: its number, what it claims to be, and why. Never its content."""

    line: int
    record: str
    reason: str

    def as_json(self) -> dict[str, Any]:
        return {"line": self.line, "record": self.record, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of a file: record → what became of its lines → how many; lines that were left out; what a person must know.

    dry_run: nothing was changed, and this is what would have been
    """

    counts: Mapping[str, Mapping[str, int]]
    skipped: Sequence[Skipped]
    notes: Sequence[str]
    dry_run: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "counts": {record: dict(found) for record, found in self.counts.items()},
            "skipped": [one.as_json() for one in self.skipped],
            "notes": list(self.notes),
            "dry_run": self.dry_run,
        }


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A file that is whole: the lines that can be read, by table and with their numbers, and those that cannot."""

    key: str | None
    tables: Mapping[str, Sequence[Row]]
    numbers: Mapping[str, Sequence[int]]
    skipped: Sequence[Skipped]


def import_(memory_path: Path, source: Path, clock: Clock, wait_seconds: float, *, dry_run: bool = False) -> Imported:
    """Bring an export into the memory, which is made when there is none.

    Raises UsageError for a file that is none, is torn, edited, or of a later clawmark: nothing is changed then.
    """
    return import_text(memory_path, _read(source), source.name, clock, wait_seconds, dry_run=dry_run)


def import_text(
    memory_path: Path, content: bytes, name: str, clock: Clock, wait_seconds: float, *, dry_run: bool = False
) -> Imported:
    """The same of what was read already; `name` is what the file is called in complaints and in the trail."""
    parsed = _parsed(content, name)
    path = files.resolved(memory_path)
    if dry_run and not db.is_there(path):
        raise UsageError(f"there is no memory at {path} yet; without --dry-run the import makes one.")
    arrived = bring_in(path, parsed.tables, clock, wait_seconds, event="import", name=_spelled(name), dry_run=dry_run)
    skipped = sorted([*parsed.skipped, *_refused(parsed, arrived)], key=lambda one: one.line)
    counts = {record: arrived.counts(table) for record, (table, _) in RECORDS.items() if arrived.counts(table)}
    notes = [*arrived.said, *_notes(path, parsed, counts)]
    return Imported(counts, skipped, notes, dry_run)


def _spelled(name: str) -> str:
    """A file's name as the trail may hold it."""
    return secrets.mask("".join(char if char.isprintable() else "?" for char in name))[:200]


def _refused(parsed: _Parsed, arrived: Arrived) -> Iterator[Skipped]:
    for record, (table, _) in RECORDS.items():
        outcomes = arrived.outcomes.get(table, ())
        for number, outcome in zip(parsed.numbers.get(table, ()), outcomes, strict=True):
            if outcome.word == "refused":
                yield Skipped(number, record, outcome.reason)


def _notes(path: Path, parsed: _Parsed, counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    own = keyfile.known(keyfile.key_path(path))
    is_same = own is not None and parsed.key == copy.fingerprint(own)
    if "tombstone" in counts and not is_same:
        yield (
            "tombstones say nothing without the key they were made with: put the file memory.db.key of the memory that was "
            f"exported beside {path} before facts are extracted here, or what was forgotten there may be learned again."
        )


def _read(source: Path) -> bytes:
    try:
        with open(source, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{source} is no file; name an export.")
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"{source} is not there; name an export.") from None
    except IsADirectoryError:
        raise UsageError(
            f"{source} is a folder; name a file that `clawmark export` wrote. Memory files are not read back."
        ) from None
    except OSError as error:
        raise UsageError(f"{source} cannot be read ({error.strerror}); check its permissions.") from error
    return content


def _parsed(content: bytes, name: str) -> _Parsed:
    if len(content) > MOST_BYTES:
        raise UsageError(f"{name} is too large for an export; nothing was changed.")
    header = _header(content, name)
    body, _, last = content.removesuffix(b"\n").rpartition(b"\n")
    body += b"\n"
    lines = body.split(b"\n")[1:-1]
    expected = {"lines": len(lines), "sha256": hashlib.sha256(body).hexdigest()}
    if not content.endswith(b"\n") or _value(last) != expected:
        raise UsageError(
            f"{name} is torn or was edited: its last line does not fit what stands before it. Nothing was changed; export "
            "again, or import a copy that is whole."
        )
    tables: dict[str, list[Row]] = {table: [] for table, _ in RECORDS.values()}
    numbers: dict[str, list[int]] = {table: [] for table, _ in RECORDS.values()}
    skipped: list[Skipped] = []
    for number, line in enumerate(lines, 2):  # as an editor counts them
        value = _value(line)
        record = value.get("record") if isinstance(value, dict) else None
        if not isinstance(value, dict) or not isinstance(record, str) or record not in RECORDS:
            skipped.append(Skipped(number, "", "it is no record of an export"))
            continue
        row = _row(record, value)
        if isinstance(row, str):
            skipped.append(Skipped(number, record, row))
            continue
        table = RECORDS[record][0]
        tables[table].append(row)
        numbers[table].append(number)
    return _Parsed(header.get("key"), tables, numbers, skipped)


def _header(content: bytes, name: str) -> dict[str, Any]:
    header = _value(content.partition(b"\n")[0])
    if not isinstance(header, dict) or header.get("clawmark") != "export":
        other = isinstance(header, dict) and header.get("clawmark") == "facts"
        hint = "it is a sidecar: `clawmark restore` takes it" if other else "its first line is no header"
        raise UsageError(f"{name} is no export of clawmark ({hint}); nothing was changed.")
    version = header.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise UsageError(f"{name} does not say which version of the format it has; nothing was changed.")
    if version > VERSION:
        raise UsageError(
            f"{name} was written by a later clawmark (format {version}, this one knows {VERSION}); upgrade clawmark. Nothing "
            "was changed."
        )
    return header


def _value(line: bytes) -> Any:
    """The JSON value of a line; None for what is none, or holds what no database takes."""
    try:
        value = json.loads(line, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()  # half a character, an endless number
    except (ValueError, RecursionError):
        return None
    return value


def _no_constant(_name: str) -> Any:
    raise ValueError("a number that JSON does not have")


def _row(record: str, value: Mapping[str, Any]) -> Row | str:
    """A line as a row of its table, else what is wrong with it. Whether the row can be lived with is asked later."""
    table, names = RECORDS[record]
    fields = {column: name for name, column in names.items()}
    row: Row = {}
    for column in _COLUMNS[table]:
        field = fields.get(column, column)
        if field not in value:
            return f"it lacks {field}"
        try:
            row[column] = _stored(column, value[field])
        except (ValueError, TypeError, OverflowError):
            return f"its {field} is none"
    return row


def _stored(column: str, value: Any) -> Any:
    """A field as its column holds it. Raises ValueError or TypeError for what it cannot hold."""
    if column in _FLAGS:
        return int(_of(bool, value))
    if column in _BYTES:
        return bytes.fromhex(_of(str, value))
    if column == "said_at":
        return to_ms(_time(value))
    if _is_time(column) and value is not None:
        return _time(value).isoformat()
    if column == "id":
        number = _of(int, value)
        if isinstance(number, bool) or not 0 < number < 1 << 53:
            raise ValueError
        return number
    if column == "confidence":
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError
        return value
    return None if value is None else _of(str, value)


def _of(kind: Callable[..., Any], value: Any) -> Any:
    if not isinstance(value, kind):  # type: ignore[arg-type]
        raise TypeError
    return value


def _time(value: Any) -> datetime:
    """Aware, in UTC, so that times compare as texts."""
    at = datetime.fromisoformat(_of(str, value))
    if at.tzinfo is None:
        raise ValueError
    return at.astimezone(UTC)


def counted(counts: Mapping[str, int]) -> str:
    """`3 facts, 1 event`; "nothing" where all are 0."""
    plurals = {"evidence": "evidence"}
    said = [
        f"{number} {record.replace('_', ' ') if number == 1 else plurals.get(record, record.replace('_', ' ') + 's')}"
        for record, number in counts.items()
        if number
    ]
    return ", ".join(said) or "nothing"


def total(counts: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Outcome → how many lines, over all records."""
    found: Counter[str] = Counter()
    for each in counts.values():
        found.update(each)
    return dict(sorted(found.items()))
