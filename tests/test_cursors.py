"""Cursors: moved by compare-and-set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from helpers import LATER, opened

from clawmark.errors import DatabaseBusy
from clawmark.store import cursors, db


@pytest.fixture
def connection(db_path: Path) -> Iterator[apsw.Connection]:
    opened(db_path)
    made = db.connect(db_path)
    yield made
    made.close()


def test_cursor_moves_by_compare_and_set(connection: apsw.Connection) -> None:
    cursors.advance(connection, "index:log:a", None, "1", LATER)
    cursors.advance(connection, "index:log:a", "1", "2", LATER)
    for stale in (None, "1", "3"):
        with pytest.raises(DatabaseBusy):
            cursors.advance(connection, "index:log:a", stale, "1", LATER)
    assert cursors.get(connection, "index:log:a") == "2"


def test_a_dropped_cursor_begins_anew(connection: apsw.Connection) -> None:
    cursors.advance(connection, "index:log:a", None, "1", LATER)
    cursors.drop(connection, "index:log:a")
    assert cursors.get(connection, "index:log:a") is None
    with pytest.raises(DatabaseBusy):
        cursors.advance(connection, "index:log:a", "1", "2", LATER)
