"""The schema, as the steps that led to it. `docs/storage.md` explains every table; a test compares the two.

Each step and its record in `schema_version` commit in one transaction. Number 1 belongs to the TypeScript clawmark.
"""

from __future__ import annotations

from datetime import datetime

import apsw

from clawmark.store.db import APPLICATION_ID, rows

SPINE = (
    """CREATE TABLE schema_version (
        version INTEGER PRIMARY KEY,
        applied_at TEXT NOT NULL
    )""",
    """CREATE TABLE facts (
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        confidence REAL NOT NULL,
        source TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        is_deleted INTEGER NOT NULL DEFAULT 0,
        scope TEXT NOT NULL,
        observed_at TEXT NOT NULL,
        reinforced_at TEXT NOT NULL,
        PRIMARY KEY (scope, key)
    )""",
    """CREATE TABLE memory_events (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        event_type TEXT NOT NULL,
        memory_key TEXT,
        old_value TEXT,
        new_value TEXT,
        source TEXT NOT NULL,
        created_at TEXT NOT NULL,
        scope TEXT,
        detail TEXT
    )""",
    "CREATE INDEX memory_events_by_key ON memory_events (memory_key) WHERE memory_key IS NOT NULL",
    "CREATE INDEX memory_events_by_type ON memory_events (event_type, id)",
    """CREATE TABLE tombstones (
        hash BLOB PRIMARY KEY,
        kind TEXT NOT NULL,
        created_at TEXT NOT NULL,
        expires_at TEXT
    ) WITHOUT ROWID""",
    """CREATE TABLE cursors (
        name TEXT PRIMARY KEY,
        value TEXT NOT NULL,
        updated_at TEXT NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE streams (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        source TEXT NOT NULL,
        name TEXT NOT NULL,
        scope TEXT NOT NULL,
        session TEXT NOT NULL,
        kind TEXT NOT NULL,
        mark TEXT NOT NULL,
        place TEXT NOT NULL,
        UNIQUE (source, name)
    )""",
    "CREATE INDEX streams_by_session ON streams (session)",
    """CREATE TABLE conversations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        scope TEXT NOT NULL,
        session TEXT NOT NULL,
        window TEXT NOT NULL,
        kind TEXT NOT NULL,
        started_at INTEGER NOT NULL,
        UNIQUE (scope, session, window, started_at)
    )""",
    """CREATE TABLE passages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation_id INTEGER NOT NULL REFERENCES conversations (id),
        previous_id INTEGER,
        part INTEGER NOT NULL,
        scope TEXT NOT NULL,
        origin TEXT NOT NULL,
        author TEXT,
        at INTEGER NOT NULL,
        content_key BLOB NOT NULL,
        recipe INTEGER NOT NULL
    )""",
    "CREATE INDEX passages_by_content ON passages (content_key, at)",
    "CREATE INDEX passages_by_previous ON passages (previous_id) WHERE previous_id IS NOT NULL",
    "CREATE INDEX passages_by_conversation ON passages (conversation_id, at)",
    """CREATE TABLE passage_refs (
        ref TEXT NOT NULL,
        stream_id INTEGER NOT NULL REFERENCES streams (id),
        passage_id INTEGER NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
        location TEXT NOT NULL,
        text_hash BLOB NOT NULL,
        PRIMARY KEY (ref, stream_id, passage_id)
    ) WITHOUT ROWID""",
    "CREATE INDEX passage_refs_by_passage ON passage_refs (passage_id)",
    "CREATE INDEX passage_refs_by_stream ON passage_refs (stream_id)",
    """CREATE VIRTUAL TABLE lexicon USING fts5 (
        own, context, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2'
    )""",
    """CREATE TABLE spaces (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        model TEXT NOT NULL,
        dimension INTEGER NOT NULL,
        document_prefix TEXT NOT NULL,
        query_prefix TEXT NOT NULL,
        probe TEXT NOT NULL,
        is_active INTEGER NOT NULL DEFAULT 0,
        generation INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL,
        UNIQUE (model, dimension, document_prefix, query_prefix, probe)
    )""",
    """CREATE TABLE message_vectors (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        passage_id INTEGER NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
        space_id INTEGER NOT NULL REFERENCES spaces (id),
        embedding BLOB NOT NULL,
        created_at TEXT NOT NULL,
        UNIQUE (passage_id, space_id)
    )""",
    """CREATE TABLE pending_vectors (
        passage_id INTEGER PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE,
        at INTEGER NOT NULL,
        reason TEXT NOT NULL,
        tries INTEGER NOT NULL DEFAULT 0,
        next_try INTEGER NOT NULL DEFAULT 0
    )""",
    """CREATE TABLE stale_passages (
        passage_id INTEGER PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE
    )""",
    "CREATE INDEX pending_vectors_newest_first ON pending_vectors (at DESC, passage_id DESC)",
)

ENGINE = (
    "ALTER TABLE spaces ADD COLUMN endpoint TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE spaces ADD COLUMN document_probe BLOB",
    "ALTER TABLE spaces ADD COLUMN query_probe BLOB",
    "ALTER TABLE spaces ADD COLUMN is_target INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE spaces ADD COLUMN batch_limit INTEGER",
    "ALTER TABLE pending_vectors ADD COLUMN given_up INTEGER NOT NULL DEFAULT 0",
    """CREATE TABLE old_vectors (
        source_ref TEXT PRIMARY KEY,
        embedding BLOB NOT NULL
    ) WITHOUT ROWID""",
)

LOGS = (
    "ALTER TABLE streams ADD COLUMN host TEXT NOT NULL DEFAULT ''",
    "UPDATE streams SET host = 'openclaw' WHERE source = 'transcripts'",
    "ALTER TABLE streams ADD COLUMN losses TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE streams ADD COLUMN touched INTEGER",
    "ALTER TABLE streams ADD COLUMN newest INTEGER",
    "ALTER TABLE streams ADD COLUMN expired INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE passages ADD COLUMN dated INTEGER NOT NULL DEFAULT 1",
    """CREATE TABLE scopes (
        scope TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        source TEXT NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE stream_counts (
        stream_id INTEGER NOT NULL REFERENCES streams (id) ON DELETE CASCADE,
        reason TEXT NOT NULL,
        count INTEGER NOT NULL,
        PRIMARY KEY (stream_id, reason)
    ) WITHOUT ROWID""",
    """CREATE TABLE kept_texts (
        passage_id INTEGER PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE,
        text BLOB NOT NULL
    )""",
    """CREATE TABLE deleted_sessions (
        scope TEXT NOT NULL,
        session TEXT NOT NULL,
        source TEXT NOT NULL,
        host TEXT NOT NULL,
        deleted_at TEXT NOT NULL,
        PRIMARY KEY (scope, session, source)
    ) WITHOUT ROWID""",
    """UPDATE conversations SET kind = 'group' WHERE EXISTS (
        SELECT 1 FROM passages p WHERE p.conversation_id = conversations.id AND p.origin = 'participant'
    )""",
)

HOSTS = (
    """CREATE TABLE sessions (
        host TEXT NOT NULL,
        session TEXT NOT NULL,
        scope TEXT NOT NULL,
        blocks INTEGER NOT NULL,
        recalls INTEGER NOT NULL,
        block_at INTEGER NOT NULL,
        recalled_at INTEGER,
        facts TEXT NOT NULL,
        excerpts TEXT NOT NULL,
        PRIMARY KEY (host, session)
    ) WITHOUT ROWID""",
    "CREATE INDEX sessions_by_time ON sessions (block_at)",
)

BELIEF = (
    """CREATE TABLE evidence (
        scope TEXT NOT NULL,
        key TEXT NOT NULL,
        value_hash BLOB NOT NULL,
        content_key BLOB NOT NULL,
        said_at INTEGER NOT NULL,
        session TEXT NOT NULL,
        is_gone INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (scope, key, value_hash, content_key, said_at)
    ) WITHOUT ROWID""",
    "CREATE INDEX evidence_by_content ON evidence (content_key)",
    """CREATE TABLE proposals (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        scope TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        confidence REAL NOT NULL,
        origin TEXT NOT NULL,
        reason TEXT NOT NULL,
        conflict TEXT NOT NULL,
        against TEXT,
        state TEXT NOT NULL,
        observed_at TEXT NOT NULL,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        expires_at TEXT NOT NULL,
        deferred_until TEXT
    )""",
    "CREATE INDEX proposals_by_state ON proposals (state, scope)",
    """CREATE TABLE extracted (
        content_key BLOB NOT NULL,
        said_at INTEGER NOT NULL,
        by_model INTEGER NOT NULL,
        PRIMARY KEY (content_key, said_at)
    ) WITHOUT ROWID""",
    """CREATE TABLE horizons (
        scope TEXT PRIMARY KEY,
        before TEXT NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX streams_by_newest ON streams (newest)",
)

MIGRATIONS: tuple[tuple[int, tuple[str, ...]], ...] = ((2, SPINE), (3, ENGINE), (4, LOGS), (5, HOSTS), (6, BELIEF))
LATEST = MIGRATIONS[-1][0]


def migrate(connection: apsw.Connection, now: datetime) -> None:
    """Run what is missing. Belongs inside one transaction, which the caller holds."""
    known = rows(connection, "SELECT 1 FROM sqlite_master WHERE type='table' AND name='schema_version'")
    at = rows(connection, "SELECT coalesce(max(version), 0) FROM schema_version")[0][0] if known else 0
    for version, statements in MIGRATIONS:
        if version <= at:
            continue
        for statement in statements:
            connection.execute(statement)
        connection.execute("INSERT INTO schema_version (version, applied_at) VALUES (?, ?)", (version, now.isoformat()))
        rows(connection, f"PRAGMA user_version = {version:d}")
    rows(connection, f"PRAGMA application_id = {APPLICATION_ID:d}")
