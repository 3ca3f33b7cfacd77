"""Kept texts: the masked text of passages whose host deletes its old logs by itself.

Only what cleaning let through stands here, one passage's part each, compressed. It is read when the log is gone by age,
and it goes with its passage.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

import apsw

from clawmark.store.db import rows

LONGEST = 64 << 20
"""Bytes that a text may have; a blob that unpacks to more is none of ours."""


def put(connection: apsw.Connection, passage_id: int, text: str) -> None:
    """Keep a passage's text, unless it is kept already."""
    connection.execute(
        "INSERT INTO kept_texts (passage_id, text) VALUES (?, ?) ON CONFLICT DO NOTHING", (passage_id, _packed(text))
    )


def replace(connection: apsw.Connection, passage_id: int, text: str) -> None:
    connection.execute("UPDATE kept_texts SET text = ? WHERE passage_id = ?", (_packed(text), passage_id))


def texts(connection: apsw.Connection, ids: Sequence[int]) -> dict[int, str]:
    """Passage id → its kept text, for those that have one that can be read."""
    found = rows(
        connection,
        "SELECT k.passage_id, k.text FROM json_each(?) j CROSS JOIN kept_texts k ON k.passage_id = j.value",
        (json.dumps(list(ids)),),
    )
    read = ((passage_id, unpacked(blob)) for passage_id, blob in found)
    return {passage_id: text for passage_id, text in read if text is not None}


def count(connection: apsw.Connection) -> int:
    return int(rows(connection, "SELECT count(*) FROM kept_texts")[0][0])


def drop_one(connection: apsw.Connection, passage_id: int) -> None:
    connection.execute("DELETE FROM kept_texts WHERE passage_id = ?", (passage_id,))


def drop(connection: apsw.Connection) -> int:
    """Take all texts away; returns how many there were."""
    connection.execute("DELETE FROM kept_texts")
    return connection.changes()


def of_other_rules(connection: apsw.Connection, recipe: int, after: int, limit: int, *, everything: bool) -> list[int]:
    """The next `limit` passages behind id `after` whose kept text was cleaned under another recipe, or all of them."""
    found = rows(
        connection,
        "SELECT k.passage_id FROM kept_texts k JOIN passages p ON p.id = k.passage_id"
        " WHERE (?4 OR p.recipe <> ?1) AND k.passage_id > ?2 ORDER BY k.passage_id LIMIT ?3",
        (recipe, after, limit, everything),
    )
    return [row[0] for row in found]


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode(), 6)


def unpacked(blob: object) -> str | None:
    """A kept text as it stands in the file; None when it is none."""
    if not isinstance(blob, bytes):
        return None
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(blob, LONGEST)
        return data.decode() if unpacking.eof else None
    except (zlib.error, UnicodeDecodeError):
        return None
