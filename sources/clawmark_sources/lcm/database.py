"""Lossless Claw's SQLite file: opened read-only for one call at a time, its form checked each time, every line of SQL.

What always holds: nothing is written, and no file is left beside the database where it is at rest; a read transaction
ends with the call it was opened for. Text columns are asked for as bytes, because one cell of invalid UTF-8 would
otherwise cost its whole batch. Columns are named, never counted: their order differs between fresh and upgraded files.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import apsw

from clawmark.errors import SourceAbsent, SourceDrift, SourceError
from clawmark.hosts.openclaw.sessionkey import host_run
from clawmark_sources.foreign import ForeignDatabase
from clawmark_sources.jsonline import LINE_LIMIT

IDS_A_QUERY: Final = 500

WIPED: Final = ("manual-reset", "session-deleted")
"""Why a conversation was archived when the person meant it to be forgotten."""

_UNKNOWN_FORM: Final = (
    "Another version of Lossless Claw, or another program, wrote it. Update clawmark; until then "
    "CLAWMARK_SOURCE=transcripts reads OpenClaw's own log."
)

_REQUIRED: Final = {
    "messages": {
        "message_id": "INTEGER",
        "conversation_id": "INTEGER",
        "seq": "INTEGER",
        "role": "TEXT",
        "content": "TEXT",
        "created_at": "TEXT",
    },
    "conversations": {"conversation_id": "INTEGER", "session_id": "TEXT"},
}
_OPTIONAL: Final = {"messages": ("m.openclaw_sender_metadata",), "conversations": ("c.session_key", "c.archive_cause")}
"""Columns that older files lack, by the names our SQL has for them; there they are read as NULL."""

_TABLES = "SELECT name, type, sql FROM sqlite_schema WHERE name IN ('messages', 'conversations')"
_COLUMNS = "SELECT name, upper(type), pk FROM pragma_table_info(?)"
_LISTED = """
SELECT c.conversation_id, CAST(c.session_id AS BLOB), CAST(c.session_key AS BLOB), (
  SELECT CAST(message_id || ':' || seq || ':' || coalesce(created_at, '') AS BLOB) FROM messages
  WHERE conversation_id = c.conversation_id ORDER BY seq DESC LIMIT 1
)
FROM conversations c
WHERE coalesce(c.archive_cause, '') NOT IN ('manual-reset', 'session-deleted')
  AND (c.session_key IS NULL OR (
    instr(c.session_key, ':cron:') = 0 AND instr(c.session_key, ':subagent:') = 0
    AND instr(c.session_key, ':hook:') = 0 AND instr(c.session_key, ':acp:') = 0
    AND instr(c.session_key, ':internal-session-effects:') = 0
  ))
"""
"""One index seek and one row a conversation. The host's own runs, of which there can be thousands, cost none."""
_CONVERSATION = """
SELECT CAST(c.session_id AS BLOB), CAST(c.session_key AS BLOB), CAST(c.archive_cause AS BLOB)
FROM conversations c WHERE c.conversation_id = ?
"""
_NEWEST = "SELECT message_id FROM messages ORDER BY message_id DESC LIMIT 1"
_ANY = "SELECT 1 FROM messages WHERE conversation_id = ? LIMIT 1"
_SEQUENCE = "SELECT seq FROM sqlite_sequence WHERE name = 'messages'"
# The plus keeps SQLite on the index of the conversation: walking by id would read every other conversation's rows too.
_BEHIND = """
SELECT message_id FROM messages WHERE conversation_id = ? AND +message_id > ? ORDER BY +message_id LIMIT ?
"""
_COUNT = "SELECT count(*) FROM messages WHERE conversation_id = ? AND +message_id <= ?"
_ROW = """
SELECT m.message_id, m.conversation_id, CAST(m.role AS BLOB),
  CASE WHEN octet_length(m.content) <= ? THEN CAST(m.content AS BLOB) END, CAST(m.created_at AS BLOB),
  CAST(m.openclaw_sender_metadata AS BLOB)
FROM messages m WHERE m.message_id = ?
"""
_KEPT = """
SELECT m.message_id FROM json_each(?) j CROSS JOIN messages m ON m.message_id = j.value
LEFT JOIN conversations c ON c.conversation_id = m.conversation_id
WHERE coalesce(c.archive_cause, '') NOT IN ('manual-reset', 'session-deleted')
"""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What says whose a conversation is. `key` None = Lossless Claw knew none."""

    session: str
    key: str | None
    cause: str = ""

    @property
    def is_wiped(self) -> bool:
        return self.cause in WIPED

    @property
    def is_listed(self) -> bool:
        return not self.is_wiped and not host_run(self.key or "")


@dataclass(frozen=True, slots=True)
class Listed:
    """A conversation that is read.

    newest   id, seq and time of its newest row: "422:20:2025-11-01 09:07:40"
    """

    id: int
    session: str
    key: str | None
    newest: str


RawListed = tuple[int, bytes, bytes | None, bytes]
"""The same as the file says it: what a poll compares, since of a thousand conversations hardly one has changed."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of messages. `content` None = longer than LINE_LIMIT, and not loaded."""

    id: int
    conversation: int
    role: str
    content: bytes | None
    created_at: str
    sender: str


class Database:
    """The file at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = ForeignDatabase(path, "Lossless Claw", _UNKNOWN_FORM, is_shared=True)

    @contextmanager
    def opened(self) -> Iterator[Snapshot]:
        """One read transaction. Raises what a caller can act on, whichever step failed."""
        self._look()
        with self._file.opened() as connection:
            yield Snapshot(connection, self.path)

    def _look(self) -> None:
        try:
            found = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            raise SourceAbsent(f"no database of Lossless Claw was found: {self.path} does not exist") from None
        except OSError as error:
            raise SourceError(
                f"{self.path} cannot be looked at ({error.strerror}); check its permissions, then try again"
            ) from error
        if not stat.S_ISREG(found.st_mode):
            raise SourceAbsent(f"no database of Lossless Claw was found: {self.path} is not a file")
        if not found.st_size:
            raise SourceAbsent(f"no database of Lossless Claw was found: {self.path} is empty")


class Snapshot:
    """The database inside one read transaction, its form checked."""

    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        columns = self._checked(path)
        self._lacking = [
            name for table, names in _OPTIONAL.items() for name in names if name.partition(".")[2] not in columns[table]
        ]

    def _checked(self, path: Path) -> dict[str, set[str]]:
        """The columns of both tables. Raises SourceDrift, which names what is not as it was."""

        def drift(what: str) -> SourceDrift:
            return SourceDrift(f"{path}: {what}. {_UNKNOWN_FORM}")

        ((encoding,),) = self._rows("PRAGMA encoding")
        if encoding != "UTF-8":
            raise drift(f"its texts are {encoding}, not UTF-8")
        tables = {name: (kind, str(sql)) for name, kind, sql in self._rows(_TABLES)}
        columns: dict[str, set[str]] = {}
        for table, required in _REQUIRED.items():
            kind, sql = tables.get(table, ("", ""))
            if kind != "table":
                raise drift(f"{table} is a {kind}, no table" if kind else f"it has no table {table}")
            found = {name: (declared, pk) for name, declared, pk in self._rows(_COLUMNS, table)}
            for name, declared in required.items():
                if name not in found:
                    raise drift(f"{table} has no column {name}")
                if found[name][0] != declared:
                    raise drift(f"{table}.{name} is {found[name][0] or 'of no type'}, not {declared}")
            identity = next(iter(required))
            if [name for name, (_, pk) in found.items() if pk] != [identity]:
                raise drift(f"{identity} is not the primary key of {table}")
            if table == "messages" and "AUTOINCREMENT" not in sql.upper():
                raise drift("messages.message_id is not AUTOINCREMENT, so an id could name two messages")
            columns[table] = set(found)
        return columns

    def _rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return list(self._connection.execute(sql, values))

    def _read(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """`_rows`, with NULL in the place of columns that this file lacks."""
        for column in self._lacking:
            sql = sql.replace(column, "NULL")
        return self._rows(sql, *values)

    def probe(self) -> None:
        """Touch the tables that everything else reads: one that is damaged shows it here."""
        self._rows(_NEWEST)
        self._rows(_SEQUENCE)

    def listed(self) -> list[RawListed]:
        """The conversations that hold a message, but for those the person wiped and the host's own runs."""
        return [row for row in self._read(_LISTED) if row[3] is not None]

    def conversation(self, row_id: int) -> Conversation | None:
        for session, key, cause in self._read(_CONVERSATION, row_id):
            return Conversation(_text(session), _key(key), _text(cause))
        return None

    def has_messages(self, conversation: int) -> bool:
        return bool(self._rows(_ANY, conversation))

    def sequence(self) -> int:
        """The highest message id that was ever given in this file."""
        return max((seq for (seq,) in self._rows(_SEQUENCE) if isinstance(seq, int)), default=0)

    def behind(self, conversation: int, message: int, limit: int) -> list[int]:
        return [row_id for (row_id,) in self._rows(_BEHIND, conversation, message, limit)]

    def count(self, conversation: int, message: int) -> int:
        """Rows of a conversation up to a message's id."""
        ((count,),) = self._rows(_COUNT, conversation, message)
        return int(count)

    def row(self, message: int) -> Row | None:
        for row_id, conversation, role, content, created, sender in self._read(_ROW, LINE_LIMIT, message):
            return Row(row_id, conversation, _text(role), content, _text(created), _text(sender))
        return None

    def kept(self, messages: Sequence[int]) -> set[int]:
        """Those that are still there, outside of what the person wiped."""
        found: set[int] = set()
        for start in range(0, len(messages), IDS_A_QUERY):
            asked = json.dumps(messages[start : start + IDS_A_QUERY])
            found.update(row_id for (row_id,) in self._read(_KEPT, asked))
        return found


def read_listed(raw: RawListed) -> Listed:
    row_id, session, key, newest = raw
    return Listed(row_id, _text(session), _key(key), _text(newest))


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode("utf-8", "replace")


def _key(value: bytes | None) -> str | None:
    return _text(value) or None
