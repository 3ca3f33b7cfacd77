"""What the sessions of hosts were shown: the state of a host's gate, and what is not shown twice.

No text: facts are remembered by a keyed hash of what was shown of them, excerpts by source and ref.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import apsw

from clawmark.model import Excerpt, Fact
from clawmark.store.db import rows
from clawmark.store.passages import from_ms, to_ms

MOST_REMEMBERED: Final = 1_000
"""Facts, and excerpts, of one session: more than a host can be given in a working life."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What one session was shown. facts: keyed hashes; excerpts: (source, ref).

    blocks     blocks that were given      block_at     when the last one was
    recalls    those that held excerpts    recalled_at  when the last one was
    """

    blocks: int = 0
    recalls: int = 0
    block_at: datetime | None = None
    recalled_at: datetime | None = None
    facts: Sequence[str] = ()
    excerpts: Sequence[tuple[str, str]] = ()


NOTHING: Final = Shown()


def get(connection: apsw.Connection, host: str, session: str) -> Shown:
    found = rows(
        connection,
        "SELECT blocks, recalls, block_at, recalled_at, facts, excerpts FROM sessions WHERE host = ? AND session = ?",
        (host, session),
    )
    if not found:
        return NOTHING
    blocks, recalls, block_at, recalled_at, facts, excerpts = found[0]
    try:
        known = (
            [str(one) for one in json.loads(facts)],
            [(str(source), str(ref)) for source, ref in json.loads(excerpts)],
        )
    except (TypeError, ValueError) as broken:
        raise apsw.CorruptError("what a session was shown is unreadable") from broken
    at = None if recalled_at is None else from_ms(recalled_at)
    return Shown(blocks, recalls, from_ms(block_at), at, *known)


def put(connection: apsw.Connection, host: str, session: str, scope: str, shown: Shown, now: datetime) -> None:
    recalled_at = None if shown.recalled_at is None else to_ms(shown.recalled_at)
    connection.execute(
        "INSERT INTO sessions (host, session, scope, blocks, recalls, block_at, recalled_at, facts, excerpts)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (host, session) DO UPDATE SET scope = excluded.scope,"
        " blocks = excluded.blocks, recalls = excluded.recalls, block_at = excluded.block_at,"
        " recalled_at = excluded.recalled_at, facts = excluded.facts, excerpts = excluded.excerpts",
        (
            host,
            session,
            scope,
            shown.blocks,
            shown.recalls,
            to_ms(shown.block_at or now),
            recalled_at,
            json.dumps(list(shown.facts[-MOST_REMEMBERED:])),
            json.dumps(list(shown.excerpts[-MOST_REMEMBERED:])),
        ),
    )


def renew(connection: apsw.Connection, host: str, session: str) -> None:
    """Its model has forgotten what it was shown. What the gate counts stays."""
    connection.execute(
        "UPDATE sessions SET facts = '[]', excerpts = '[]' WHERE host = ? AND session = ?", (host, session)
    )


def last(connection: apsw.Connection, host: str) -> datetime | None:
    """When a host was given a block last."""
    found = rows(connection, "SELECT max(block_at) FROM sessions WHERE host = ?", (host,))
    return None if found[0][0] is None else from_ms(found[0][0])


def prune(connection: apsw.Connection, before: datetime) -> None:
    """Take away sessions that were given nothing since `before`."""
    connection.execute("DELETE FROM sessions WHERE block_at < ?", (to_ms(before),))


def remove(connection: apsw.Connection, scope: str) -> None:
    """Forget what sessions of a scope were shown."""
    connection.execute("DELETE FROM sessions WHERE scope = ?", (scope,))


def marks(secret: bytes, facts: Iterable[Fact]) -> list[str]:
    """What stands for a fact as it was shown: another value, or another writer's word, is another mark."""
    return [
        hashlib.blake2b(
            json.dumps([fact.scope, fact.key, fact.value, fact.source]).encode(), key=secret, digest_size=8
        ).hexdigest()
        for fact in facts
    ]


def after(old: Shown, marks: Sequence[str], recalled: Sequence[Excerpt], now: datetime, *, keeps: bool) -> Shown:
    """`old` and a block that was given now. keeps: the host keeps blocks, so they add up."""
    refs = [(excerpt.source, excerpt.ref) for excerpt in recalled]
    return Shown(
        blocks=old.blocks + 1,
        recalls=old.recalls + bool(refs),
        block_at=now,
        recalled_at=now if refs else old.recalled_at,
        facts=list(dict.fromkeys([*(old.facts if keeps else ()), *marks])),
        excerpts=list(dict.fromkeys([*(old.excerpts if keeps else ()), *refs])),
    )
