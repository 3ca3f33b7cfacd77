"""Cursors: moved by compare-and-set."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
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


def test_a_count_is_of_one_day(connection: apsw.Connection) -> None:
    for expected in (0, 1, 2):
        assert cursors.today(connection, "n", LATER) == expected
        cursors.count_today(connection, "n", LATER)
    tomorrow = LATER + timedelta(days=1)
    assert cursors.today(connection, "n", tomorrow) == 0
    cursors.count_today(connection, "n", tomorrow)
    assert cursors.today(connection, "n", tomorrow) == 1


@pytest.mark.parametrize(
    "value", ["", "3 2026-12-01", "2026-12-01", "2026-12-01 many", "2026-12-01 -1", "2026-12-01 \u00b2"]
)
def test_what_is_no_count_is_none(connection: apsw.Connection, value: str) -> None:
    cursors.put(connection, "n", value, LATER)
    assert cursors.today(connection, "n", LATER) == 0
