"""Whether a file is sound, looking at all of it: what SQLite finds, and what it does not look for.

SQLite keeps no checksums. To it a text is any bytes, a time any text, a vector any blob, and tables that must agree are
two tables.
Nothing here changes anything. What SQLite raises where it cannot even look is left to `db.explained`.
"""

from __future__ import annotations

import itertools
from datetime import UTC, datetime

import apsw

from clawmark.store import events, migrations, sidecar
from clawmark.store.db import APPLICATION_ID, each, rows
from clawmark.store.vectors import of_length_one

MOST_LINES = 5
CHUNK = 1000

_ROWS = {
    "passages outside the lexicon": "SELECT count(*) FROM passages WHERE id NOT IN (SELECT id FROM lexicon_docsize)"
    " AND id NOT IN (SELECT passage_id FROM stale_passages)",
    "passages without a message": "SELECT count(*) FROM passages WHERE id NOT IN (SELECT passage_id FROM passage_refs)",
}


def faults(connection: apsw.Connection) -> list[str]:
    """What is wrong with a database of ours, each in a few words; empty when it is sound.

    One that the TypeScript clawmark wrote has none of our rows, and any bytes in its texts: of it only the pages count.
    """
    found = pages(connection)
    if found or not is_ours(connection):
        return found
    found = [f"the table {name} is missing" for name in _missing(connection)]
    if found:
        return found[:MOST_LINES]
    for name, sql in _ROWS.items():
        ((count,),) = rows(connection, sql)
        if count:
            found.append(f"{count:,} {name}")
    texts = _texts(connection)
    return found + (texts or _unusable(connection))  # what is no UTF-8 cannot be fetched to be looked at


def _missing(connection: apsw.Connection) -> list[str]:
    """Tables of the newest schema that are not there; none where an older one is to be brought up to date."""
    new = apsw.Connection(":memory:")
    try:
        migrations.migrate(new, datetime(2026, 1, 1, tzinfo=UTC))
        tables = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        wanted, there = ({name for (name,) in rows(c, tables)} for c in (new, connection))
    finally:
        new.close()
    if "schema_version" in there and rows(connection, "SELECT max(version) FROM schema_version") != [
        (migrations.LATEST,)
    ]:
        return []
    return sorted(wanted - there)


def is_ours(connection: apsw.Connection) -> bool:
    """Whether a clawmark of this kind made it. The TypeScript one gave its files no mark."""
    return bool(connection.pragma("application_id") == APPLICATION_ID)


def pages(connection: apsw.Connection) -> list[str]:
    """What SQLite finds wrong with pages and indexes, in at most five lines."""
    found = rows(connection, f"PRAGMA integrity_check({MOST_LINES:d})")
    return [" ".join(str(row[0]).split()) for row in found if row != ("ok",)]


def _texts(connection: apsw.Connection) -> list[str]:
    """Tables with a text that is no UTF-8."""
    columns: dict[str, list[str]] = {}
    for table, column in rows(
        connection,
        "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c"
        " WHERE m.type = 'table' AND m.rootpage > 0 AND c.type = 'TEXT' ORDER BY 1, 2",
    ):
        columns.setdefault(table, []).append(column)
    found = []
    for table, names in columns.items():
        cursor = connection.execute(f"SELECT {', '.join(names)} FROM {table}")  # noqa: S608
        try:
            for _ in cursor:
                pass
        except UnicodeDecodeError:
            cursor.close(force=True)
            found.append(f"a text in {table} is no UTF-8")
    return found


def _unusable(connection: apsw.Connection) -> list[str]:
    """Tables with rows that the program cannot read as what they are."""
    found = []
    for table, columns in sidecar.TABLES.items():
        stored = each(connection, f"SELECT {', '.join(columns)} FROM {table}")  # noqa: S608
        if not all(sidecar.is_usable(table, dict(zip(columns, row, strict=True))) for row in stored):
            found.append(f"rows of {table} that cannot be used")
    if not events.are_usable(connection):
        found.append("rows of memory_events that cannot be used")
    return found


def broken_vectors(connection: apsw.Connection) -> list[int]:
    """The ids of the rows of message_vectors that are no vector of their space: wrong size, not finite, not of length 1."""
    broken: list[int] = []
    vectors = each(
        connection,
        "SELECT v.id, coalesce(s.dimension, 0), v.embedding FROM message_vectors v"
        " LEFT JOIN spaces s ON s.id = v.space_id ORDER BY v.id",
    )
    while chunk := list(itertools.islice(vectors, CHUNK)):
        of_dimension: dict[int, list[tuple[int, bytes]]] = {}
        for number, dimension, blob in chunk:
            if isinstance(blob, bytes) and blob and len(blob) == 4 * dimension:
                of_dimension.setdefault(dimension, []).append((number, blob))
            else:
                broken.append(number)
        for found in of_dimension.values():
            fit = of_length_one([blob for _, blob in found])
            broken += [number for (number, _), is_fit in zip(found, fit, strict=True) if not is_fit]
    return sorted(broken)
