"""Migrations: all or nothing, in order, recorded where two readers look."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from helpers import LATER, migrate, opened, query

from clawmark.store import db, migrations


def schema(path: Path) -> list[tuple[object, ...]]:
    return query(path, "SELECT type, name, sql FROM sqlite_master ORDER BY name")


def test_opening_twice_changes_nothing(db_path: Path) -> None:
    opened(db_path)
    before = schema(db_path), query(db_path, "SELECT * FROM schema_version")
    opened(db_path)
    assert (schema(db_path), query(db_path, "SELECT * FROM schema_version")) == before


def test_numbers_rise_and_one_belongs_to_the_typescript_version() -> None:
    numbers = [number for number, _ in migrations.MIGRATIONS]
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 2
    assert numbers[-1] == migrations.LATEST


def test_user_version_is_the_copy_of_schema_version(db_path: Path) -> None:
    opened(db_path)
    assert query(db_path, "PRAGMA user_version") == query(db_path, "SELECT max(version) FROM schema_version")


def test_a_step_is_recorded_with_the_time_that_was_given(db_path: Path) -> None:
    opened(db_path)
    assert query(db_path, "SELECT DISTINCT applied_at FROM schema_version") == [(LATER.isoformat(),)]


def test_the_tables_people_audit_keep_their_columns(db_path: Path) -> None:
    opened(db_path)
    expected = {
        "facts": "key value confidence source created_at updated_at is_deleted",
        "message_vectors": "embedding",
        "cursors": "name value updated_at",
        "memory_events": "id event_type memory_key old_value new_value source created_at",
    }
    for table, names in expected.items():
        columns = {row[1] for row in query(db_path, f"PRAGMA table_info({table})")}
        assert set(names.split()) <= columns, table


def test_a_later_step_that_fails_leaves_the_old_schema(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(db_path)
    before = schema(db_path)
    steps = (*migrations.MIGRATIONS, (migrations.LATEST + 1, ("CREATE TABLE extra (x)", "CREATE TABLE facts (x)")))
    monkeypatch.setattr(migrations, "MIGRATIONS", steps)
    with pytest.raises(Exception, match="facts"):
        db.open_database(db_path, migrate, migrations.LATEST + 1)
    assert schema(db_path) == before
    assert query(db_path, "PRAGMA user_version") == [(migrations.LATEST,)]


def test_a_later_step_runs_once_and_is_recorded(db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(db_path)
    latest = migrations.LATEST + 1
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, (latest, ("CREATE TABLE extra (x)",))))
    for _ in range(2):
        db.open_database(db_path, migrate, latest)
    assert query(db_path, "SELECT version FROM schema_version ORDER BY 1 DESC LIMIT 2") == [(latest,), (latest - 1,)]
    assert query(db_path, "PRAGMA user_version") == [(latest,)]


def test_the_lexicon_keeps_no_text(db_path: Path) -> None:
    opened(db_path)
    connection = apsw.Connection(str(db_path))
    connection.execute("INSERT INTO lexicon (rowid, own, context) VALUES (1, 'marzipan', 'nougat')")
    assert list(connection.execute("SELECT own, context FROM lexicon")) == [(None, None)]
    connection.close()
