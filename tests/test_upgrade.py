"""The upgrade of a database of the TypeScript clawmark: what comes over, what does not, and what a kill leaves."""

from __future__ import annotations

import os
import random
import stat
import string
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest
from helpers import DYING, LATER, Clock, Log, fixture, open_memory, query, residue
from hypothesis import given
from hypothesis import strategies as st

from clawmark.errors import DatabaseBusy, DatabaseDamaged, DatabaseForeign, DatabaseUnwritable, Refused, UsageError
from clawmark.facts.statement import key as as_key
from clawmark.guard import secrets
from clawmark.store import copy as copies
from clawmark.store import db, events, files, keyfile, legacy, migrations, recovery, sidecar, vectors
from clawmark.store.tombstones import hashes

typescript = fixture("typescript")
day = typescript.day


@pytest.fixture
def old(db_path: Path) -> Any:
    return typescript.Typescript(db_path)


@pytest.fixture
def loose(db_path: Path) -> Any:
    return typescript.Typescript(db_path, loose=True)


@pytest.fixture
def sample(db_path: Path) -> Path:
    typescript.sample(db_path)
    return db_path


def upgrade(path: Path) -> str:
    return legacy.upgrade(path, Clock(), wait_seconds=1)


def upgraded(old: Any, path: Path) -> str:
    old.close()
    return upgrade(path)


def content(path: Path) -> dict[str, list[Any]]:
    tables = [name for (name,) in query(path, "SELECT name FROM sqlite_master WHERE rootpage > 0 AND type = 'table'")]
    return {table: sorted(query(path, f"SELECT * FROM {table}"), key=repr) for table in sorted(tables)}


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.schema-1-*"))


def secret_value() -> str:
    rng = random.Random(11)
    return "ghp_" + "".join(rng.choice(string.ascii_letters + string.digits) for _ in range(36))


def tombstones(path: Path, key: str, value: str) -> set[str]:
    """The kinds of this fact's tombstones that stand."""
    stored = {row[0] for row in query(path, "SELECT hash FROM tombstones")}
    secret = keyfile.secret(keyfile.key_path(path))
    return {kind for kind, hashed in hashes(secret, "shared", key, value) if hashed in stored}


# --- what is told apart -----------------------------------------------------------------------------------------------


def is_typescript(path: Path) -> bool:
    connection = db.connect(path)
    try:
        return legacy.is_typescript(connection)
    finally:
        connection.close()


def test_an_old_database_is_told_by_version_and_columns(sample: Path, tmp_path: Path) -> None:
    assert is_typescript(sample)
    query(sample, "ALTER TABLE facts RENAME COLUMN confidence TO trust")
    assert not is_typescript(sample)
    typescript.Typescript(tmp_path / "b.db").close()
    query(tmp_path / "b.db", "UPDATE schema_version SET version = 2")
    assert not is_typescript(tmp_path / "b.db")


def test_an_empty_schema_version_is_nobodys(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    query_new(path, "CREATE TABLE schema_version (version INTEGER)")
    assert not is_typescript(path)


def query_new(path: Path, *statements: str) -> None:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("missing", ["facts", "message_vectors", "cursors", "memory_events"])
def test_another_programs_schema_one_is_left_unchanged(sample: Path, missing: str) -> None:
    query(sample, f"ALTER TABLE {missing} RENAME TO something")
    before = sample.read_bytes(), sample.stat().st_mode
    with pytest.raises(DatabaseForeign, match=r"memory\.db"):
        upgrade(sample)
    assert (sample.read_bytes(), sample.stat().st_mode) == before
    assert backups(sample) == []


def test_a_database_that_is_up_to_date_stays_as_it_is(sample: Path) -> None:
    upgrade(sample)
    before, made = content(sample), backups(sample)
    assert "already" in upgrade(sample)
    assert (content(sample), backups(sample)) == (before, made)


def test_a_newer_database_stays_as_it_is(sample: Path) -> None:
    upgrade(sample)
    query(sample, "INSERT INTO schema_version VALUES (99, 'x')")
    before = content(sample)
    upgrade(sample)
    assert content(sample) == before


# --- facts ------------------------------------------------------------------------------------------------------------


def test_facts_come_over_as_they_are(sample: Path) -> None:
    upgrade(sample)
    with open_memory(sample, Log()) as memory:
        found = {f.key: (f.value, f.confidence, f.source, f.scope) for f in memory.facts()}
    assert found == {
        "pref.editor": ("Helix", 1.0, "user", "shared"),
        "project.boat": ("The boat is called Sjöbris", 0.95, "extracted", "shared"),
    }


def moments(path: Path, key: str) -> list[str]:
    (row,) = query(path, "SELECT created_at, observed_at, reinforced_at, updated_at FROM facts WHERE key = ?", key)
    return [moment[:10] for moment in row]


def test_a_value_is_dated_when_it_was_first_stated(sample: Path) -> None:
    upgrade(sample)
    assert moments(sample, "pref.editor") == ["2026-02-04", "2026-03-15", "2026-03-15", "2026-03-15"]
    assert moments(sample, "project.boat") == ["2026-02-05", "2026-02-05", "2026-04-04", "2026-04-04"]


def test_a_value_said_again_keeps_its_first_date(old: Any, db_path: Path) -> None:
    old.fact("pref.tea", "black  Tea", created=day(1), updated=day(9))
    old.event("create", "pref.tea", None, "black tea", at=day(1))
    old.event("update", "pref.tea", "black tea", "black  Tea", at=day(9))
    upgraded(old, db_path)
    assert moments(db_path, "pref.tea") == ["2026-02-04", "2026-02-04", "2026-02-12", "2026-02-12"]


def test_without_an_event_only_the_last_writing_dates_a_value(old: Any, db_path: Path) -> None:
    old.fact("pref.tea", "black", created=day(1), updated=day(9))
    upgraded(old, db_path)
    assert moments(db_path, "pref.tea") == ["2026-02-04", "2026-02-12", "2026-02-12", "2026-02-12"]


def test_times_are_written_as_ours_and_unreadable_ones_replaced(loose: Any, db_path: Path) -> None:
    loose.fact("pref.a", "one", created="yesterday", updated=day(9))
    loose.fact("pref.b", "two", created=day(9), updated=b"\xff\x00")
    loose.fact("pref.c", "three", created=None, updated="0001-01-01T00:00:00+23:59")
    loose.fact("pref.d", "four", created="2026-02-03T10:00:00+02:00", updated="2026-02-03 09:00:00")
    upgraded(loose, db_path)
    rows = query(db_path, "SELECT created_at, updated_at FROM facts ORDER BY key")
    assert rows == [
        ("2026-02-12T08:00:00+00:00",) * 2,
        ("2026-02-12T08:00:00+00:00",) * 2,
        (LATER.isoformat(),) * 2,
        ("2026-02-03T08:00:00+00:00", "2026-02-03T09:00:00+00:00"),
    ]


@pytest.mark.parametrize(
    ("stated", "source", "expected"),
    [
        (0.83, "extracted", 0.83),
        (7, "extracted", 1.0),
        (-1.5, "extracted", 0.0),
        (float("inf"), "user", 1.0),
        ("high", "extracted", 0.5),
        ("high", "user", 1.0),
        (None, "user", 1.0),
        (b"\x01", "extracted", 0.5),
    ],
)
def test_a_confidence_is_a_number_from_0_to_1(
    loose: Any, db_path: Path, stated: Any, source: str, expected: float
) -> None:
    loose.fact("pref.a", "one", stated, source)
    upgraded(loose, db_path)
    assert query(db_path, "SELECT confidence FROM facts") == [(expected,)]


def test_an_unknown_writer_is_the_weakest(loose: Any, db_path: Path) -> None:
    for number, source in enumerate(["user", "extracted", "agent", None, b"user", "USER"]):
        loose.fact(f"pref.k{number}", "one", 1.0, source)
    upgraded(loose, db_path)
    assert [row[0] for row in query(db_path, "SELECT source FROM facts ORDER BY key")] == ["user"] + ["extracted"] * 5


@pytest.mark.parametrize("value", ["", "   ", "\n\t", "\u200b\u200b", "\x00"])
def test_a_blank_value_is_carried_and_hidden(old: Any, db_path: Path, value: str) -> None:
    old.set("pref.a", value, 1)
    upgraded(old, db_path)
    assert query(db_path, "SELECT value, is_deleted FROM facts") == [(value, 1)]
    assert query(db_path, "SELECT count(*) FROM tombstones") == [(0,)]


@pytest.mark.parametrize("value", ["a\x00b", "\x1b[31mred", "left\u202eright", "one\n" * 300, "x" * 2000, "日本"])
def test_odd_characters_are_carried_as_they_are(old: Any, db_path: Path, value: str) -> None:
    old.set("pref.a", value, 1)
    upgraded(old, db_path)
    assert query(db_path, "SELECT value, is_deleted FROM facts") == [(value, 0)]
    assert query(db_path, "SELECT new_value FROM memory_events WHERE event_type = 'create'") == [(value,)]


def test_text_that_is_no_utf_8_is_replaced(old: Any, db_path: Path) -> None:
    old.connection.execute(
        "INSERT INTO facts VALUES ('pref.a', CAST(x'61ff62' AS TEXT), 1.0, 'user', ?, ?, 0)", (day(1), day(1))
    )
    upgraded(old, db_path)
    assert query(db_path, "SELECT value FROM facts") == [("a\ufffdb",)]


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        (None, "one", "KEY_FORMAT"),
        (b"pref.a", "one", "KEY_FORMAT"),
        ("???", "one", "KEY_FORMAT"),
        ("k" * 101, "one", "KEY_FORMAT"),
        ("pref.a", None, "VALUE_FORMAT"),
        ("pref.a", b"\x00\x01", "VALUE_FORMAT"),
        ("pref.a", "x" * 2001, "VALUE_SIZE"),
    ],
)
def test_what_cannot_be_a_fact_leaves_an_event(loose: Any, db_path: Path, key: Any, value: Any, code: str) -> None:
    loose.fact(key, value)
    loose.fact("pref.good", "stays")
    said = upgraded(loose, db_path)
    assert query(db_path, "SELECT key FROM facts") == [("pref.good",)]
    found = query(db_path, "SELECT detail, old_value, new_value FROM memory_events WHERE event_type = 'reject'")
    assert found == [(code, None, None)]
    assert "facts left out 1" in said


def test_odd_keys_get_a_key_that_can_be_used(old: Any, db_path: Path) -> None:
    for key in ("Pref.Editor", "pref.two words", "pref.a-b", "city", "work.role", "ref.x"):
        old.set(key, f"value of {key}", 1)
    upgraded(old, db_path)
    with open_memory(db_path, Log()) as memory:
        found = {f.key: f.value for f in memory.facts()}
        assert found == {
            "pref.editor": "value of Pref.Editor",
            "pref.two_words": "value of pref.two words",
            "pref.a_b": "value of pref.a-b",
            "user.city": "value of city",
            "user.work.role": "value of work.role",
            "ref.x": "value of ref.x",
        }
        for key in found:
            assert memory.forget(key) == ["shared"]
    assert query(db_path, "SELECT count(*) FROM memory_events WHERE coalesce(old_value, new_value) NOT NULL") == [(0,)]


@given(st.one_of(st.text(), st.from_regex(r"[A-Za-z .\-_]{1,12}", fullmatch=True)))
def test_every_key_carried_is_one_the_gate_takes(raw: str) -> None:
    key = legacy.our_key(raw)
    if key is not None:
        assert as_key(key) == key


@given(st.text())
def test_every_key_the_gate_takes_is_carried_as_the_gate_has_it(raw: str) -> None:
    try:
        key = as_key(raw)
    except Refused:
        return
    assert legacy.our_key(raw) == key


def test_of_two_keys_that_become_one_the_stronger_fact_stays(old: Any, db_path: Path) -> None:
    old.fact("Pref.Editor", "Emacs", 0.9, "extracted", day(1), day(9))
    old.fact("pref.editor", "Helix", 1.0, "user", day(1), day(2))
    old.fact("PREF.EDITOR", "Vim", 1.0, "user", day(1), day(30), 1)
    upgraded(old, db_path)
    assert query(db_path, "SELECT key, value, is_deleted FROM facts") == [("pref.editor", "Helix", 0)]
    lost = query(db_path, "SELECT new_value FROM memory_events WHERE event_type = 'conflict_skip' ORDER BY 1")
    assert lost == [("Emacs",), ("Vim",)]
    assert tombstones(db_path, "pref.editor", "Vim") == {"value"}


# --- what was deleted -------------------------------------------------------------------------------------------------


def test_deleted_facts_stay_hidden(sample: Path) -> None:
    upgrade(sample)
    hidden = query(sample, "SELECT key, value FROM facts WHERE is_deleted = 1 ORDER BY 1")
    assert hidden == [("project.stove", "The stove is broken"), ("user.landlord", "Mr Ebersbach")]


def test_what_somebody_deleted_gets_tombstones_and_what_decayed_none(sample: Path) -> None:
    upgrade(sample)
    assert tombstones(sample, "user.landlord", "Mr Ebersbach") == {"key", "value"}
    assert tombstones(sample, "project.stove", "The stove is broken") == set()
    assert query(sample, "SELECT DISTINCT expires_at FROM tombstones") == [(None,)]


def test_a_deletion_whose_event_was_cut_off_counts_as_somebodys(old: Any, db_path: Path) -> None:
    old.fact("user.landlord", "Mr Ebersbach", 0.9, "extracted", deleted=1)
    upgraded(old, db_path)
    assert tombstones(db_path, "user.landlord", "Mr Ebersbach") == {"key", "value"}


def test_a_value_deleted_before_another_was_set_is_not_learned_again(old: Any, db_path: Path) -> None:
    old.set("user.city", "Borås", 1)
    old.event("delete", "user.city", at=day(2))
    old.event("create", "user.city", None, "Umeå", at=day(3))
    old.connection.execute("UPDATE facts SET value = 'Umeå'")
    upgraded(old, db_path)
    assert tombstones(db_path, "user.city", "Borås") == {"value"}
    assert tombstones(db_path, "user.city", "Umeå") == set()


def test_a_value_that_was_set_again_has_no_tombstone(old: Any, db_path: Path) -> None:
    old.set("user.city", "Borås", 1)
    old.event("delete", "user.city", at=day(2))
    old.event("create", "user.city", None, "borås", at=day(3))
    upgraded(old, db_path)
    assert tombstones(db_path, "user.city", "Borås") == set()


def test_a_hidden_fact_can_be_set_and_forgotten(sample: Path) -> None:
    upgrade(sample)
    with open_memory(sample, Log()) as memory:
        memory.set("user.landlord", "Ms Ebersbach")
        assert "user.landlord" in [f.key for f in memory.facts()]
        assert memory.forget("project.stove") == ["shared"]
    assert tombstones(sample, "user.landlord", "Ms Ebersbach") == set()


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_a_secret_stands_in_the_backup_alone(old: Any, db_path: Path) -> None:
    secret = secret_value()
    old.set("project.deploy", f"the token is {secret}", 1)
    old.event("conflict_skip", "project.deploy", f"the token is {secret}", f"GITHUB_TOKEN={secret}", "extracted")
    old.event("injection_blocked", "pref.x", None, f"system prompt: {secret}", "extracted")
    old.event("source_fallback", "source.lcm", None, f"not found at {secret}", "selectSource")
    said = upgraded(old, db_path)
    assert residue(db_path.parent, secret) == {backups(db_path)[0].name: [secret]}
    assert query(db_path, "SELECT value FROM facts") == [(secrets.mask(f"the token is {secret}"),)]
    assert backups(db_path)[0].name in said and "masked" in said


def test_a_secret_in_a_key_is_in_no_row(old: Any, db_path: Path) -> None:
    secret = secret_value()
    old.set(f"token.{secret}", "one", 1)
    upgraded(old, db_path)
    assert residue(db_path.parent, secret).keys() == {backups(db_path)[0].name}
    assert query(db_path, "SELECT count(*) FROM facts") == [(0,)]


def test_what_was_deleted_before_is_in_no_free_page(old: Any, db_path: Path) -> None:
    for number in range(200):
        old.set(f"pref.k{number}", f"zqremnant {number} " * 20, 1)
    old.connection.execute("DELETE FROM facts WHERE key > 'pref.k1'")
    old.connection.execute("DELETE FROM memory_events")
    assert upgraded(old, db_path)
    assert not residue(db_path.parent, "zqremnant 150 ")


# --- events -----------------------------------------------------------------------------------------------------------


def test_events_come_over_in_order_under_their_numbers(sample: Path) -> None:
    before = query(sample, "SELECT id, event_type, source, substr(created_at, 1, 19) FROM memory_events ORDER BY id")
    upgrade(sample)
    after = query(sample, "SELECT id, event_type, source, substr(created_at, 1, 19) FROM memory_events ORDER BY id")
    assert after[: len(before)] == before
    assert [row[1] for row in after[len(before) :]] == ["upgrade"]


def test_every_event_carried_has_a_known_type(loose: Any, db_path: Path) -> None:
    for event_type in ("create", "vacuumed", None, b"create", ""):
        loose.event(event_type, "pref.a", None, "x")
    said = upgraded(loose, db_path)
    assert {row[0] for row in query(db_path, "SELECT event_type FROM memory_events")} <= set(events.TYPES)
    assert "unknown events left out 4" in said


def test_refused_texts_are_not_carried_over(sample: Path) -> None:
    upgrade(sample)
    found = query(
        sample,
        "SELECT event_type, memory_key, new_value, scope, detail FROM memory_events"
        " WHERE event_type IN ('injection_blocked', 'extract_error', 'reject', 'source_fallback') ORDER BY id",
    )
    assert found == [
        ("injection_blocked", "pref.tone", None, "shared", "INJECTION, 41 characters"),
        ("reject", "user.favourite_colour", None, "shared", "KEY_FORMAT"),
        ("reject", "pref.colour", None, "shared", "CONFIDENCE"),
        ("extract_error", None, None, None, "unreadable, 28 characters"),
        ("source_fallback", None, "LCM 'messages' table not found", None, None),
    ]
    assert residue(sample.parent, "ignore all previous").keys() == {backups(sample)[0].name}


def test_a_reject_that_holds_no_code_loses_its_text(old: Any, db_path: Path) -> None:
    old.event("reject", "pref.a", "old words", "some words of the person", "extracted")
    upgraded(old, db_path)
    found = query(db_path, "SELECT old_value, new_value, detail FROM memory_events WHERE event_type = 'reject'")
    assert found == [(None, None, None)]


def test_every_value_carried_can_be_erased(loose: Any, db_path: Path) -> None:
    for key in ("Pref.A", "pref.a", "???", None, b"pref.a"):
        loose.event("create", key, None, "zqvalue")
    loose.fact("pref.a", "zqvalue")
    upgraded(loose, db_path)
    with open_memory(db_path, Log()) as memory:
        memory.forget("pref.a")
    assert residue(db_path.parent, "zqvalue").keys() == {backups(db_path)[0].name}


def test_odd_cells_of_events_make_nothing_fail(loose: Any, db_path: Path) -> None:
    odd: list[Any] = [None, b"\xff\xfe", 7, 0.5, "", "\x00", "text"]
    for one in odd:
        for event_type in sorted(legacy._KNOWN):
            loose.event(event_type, one, one, one, one, one)
    upgraded(loose, db_path)
    with open_memory(db_path, Log()) as memory:
        assert len(memory.events(10_000)) == len(odd) * len(legacy._KNOWN) + 1


def test_odd_cells_of_facts_make_nothing_fail(loose: Any, db_path: Path) -> None:
    odd: list[Any] = [None, b"\xff\xfe", 7, 0.5, "", "\x00", "text"]
    for number, one in enumerate(odd):
        for column in range(7):
            cells: list[Any] = [f"pref.k{number}{column}", "value", 1.0, "user", day(1), day(1), 0]
            cells[column] = one if column else f"{one!r}"
            loose.fact(*cells)
    upgraded(loose, db_path)
    with open_memory(db_path, Log()) as memory:
        assert memory.facts() and memory.block("what do you know about me?").text


def test_ten_thousand_events_are_quick(old: Any, db_path: Path) -> None:
    with old.connection:
        for number in range(10_000):
            old.event("update", f"pref.k{number % 50}", f"value number {number}", f"value number {number + 1}")
    old.close()
    start = time.perf_counter()
    upgrade(db_path)
    assert time.perf_counter() - start < 2
    assert query(db_path, "SELECT count(*) FROM memory_events") == [(10_001,)]


def test_the_upgrade_event_names_the_backup_and_the_counts(sample: Path) -> None:
    upgrade(sample)
    ((detail,),) = query(sample, "SELECT detail FROM memory_events WHERE event_type = 'upgrade'")
    assert backups(sample)[0].name in detail
    assert "facts 2" in detail and "vectors 3" in detail


def test_the_number_of_an_event_is_never_used_twice(old: Any, db_path: Path) -> None:
    for _ in range(30):
        old.event("create", "pref.a", None, "x")
    old.connection.execute("DELETE FROM memory_events WHERE id > 10")
    upgraded(old, db_path)
    assert query(db_path, "SELECT max(id) FROM memory_events")[0][0] > 30


# --- cursors and vectors ----------------------------------------------------------------------------------------------


def test_cursors_come_over_under_their_names(sample: Path) -> None:
    upgrade(sample)
    assert query(sample, "SELECT name, value FROM cursors ORDER BY 1") == [
        ("extract:lcm", "41"),
        ("extract:transcripts", "s1.jsonl:200"),
        ("index:transcripts", "s1.jsonl:300"),
    ]


def test_a_cursor_that_could_be_taken_for_ours_is_left_out(loose: Any, db_path: Path) -> None:
    for name in ("index:transcripts:s1", "erase:unfinished", None, b"index:x"):
        loose.cursor(name, "5")
    loose.cursor("index:lcm", None)
    upgraded(loose, db_path)
    assert query(db_path, "SELECT name FROM cursors") == []


def read_back(path: Path, *refs: str) -> dict[str, bytes]:
    connection = db.connect(path)
    try:
        return vectors.reusable(connection, refs)
    finally:
        connection.close()


def test_vectors_can_be_reused_by_their_old_names(sample: Path) -> None:
    upgrade(sample)
    assert read_back(sample, "s1.jsonl:0", "s1.jsonl:200", "s1.jsonl:999") == {
        "s1.jsonl:0": typescript.unit(0),
        "s1.jsonl:200": typescript.unit(2),
    }


def test_only_vectors_of_the_commonest_length_that_are_sound_come_over(loose: Any, db_path: Path) -> None:
    import numpy as np

    for number in range(4):
        loose.vector(f"good:{number}", typescript.unit(number))
    wrong = {
        "short": typescript.unit(1, 4),
        "torn": typescript.unit(1)[:-1],
        "zero": bytes(32),
        "nan": np.full(8, np.nan, "<f4").tobytes(),
        "inf": np.full(8, np.inf, "<f4").tobytes(),
        "huge": np.full(8, 3e38, "<f4").tobytes(),
        "long": np.full(8, 0.9, "<f4").tobytes(),
        "text": "x" * 32,
        "none": None,
        "empty": b"",
    }
    for name, blob in wrong.items():
        loose.vector(name, blob)
    loose.vector(None, typescript.unit(9))
    upgraded(loose, db_path)
    assert [row[0] for row in query(db_path, "SELECT source_ref FROM old_vectors")] == [f"good:{n}" for n in range(4)]
    ((detail,),) = query(db_path, "SELECT detail FROM memory_events WHERE event_type = 'upgrade'")
    assert f"vectors left out {len(wrong) + 1}" in detail


def test_vectors_come_over_in_more_than_one_batch(old: Any, db_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy, "BATCH", 3)
    for number in range(10):
        old.vector(f"s:{number}", typescript.unit(number))
    upgraded(old, db_path)
    assert read_back(db_path, *(f"s:{n}" for n in range(10))) == {f"s:{n}": typescript.unit(n) for n in range(10)}


def test_old_vectors_are_forgotten_on_request(sample: Path) -> None:
    upgrade(sample)
    connection = db.connect(sample)
    with db.transaction(connection, sample):
        vectors.forget_old(connection)
    connection.close()
    assert read_back(sample, "s1.jsonl:0") == {}


# --- the file ---------------------------------------------------------------------------------------------------------


def schema(path: Path) -> list[Any]:
    return query(path, "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1, 2")


def test_an_upgraded_database_has_the_schema_of_a_new_one(sample: Path, tmp_path: Path) -> None:
    upgrade(sample)
    with open_memory(tmp_path / "new.db", Log()):
        assert schema(sample) == schema(tmp_path / "new.db")
    for pragma in ("application_id", "user_version", "journal_mode", "integrity_check", "foreign_key_check"):
        assert query(sample, f"PRAGMA {pragma}") == query(tmp_path / "new.db", f"PRAGMA {pragma}")
    assert [row[0] for row in query(sample, "SELECT version FROM schema_version ORDER BY 1")] == [
        1,
        *(version for version, _ in migrations.MIGRATIONS),
    ]


def test_what_else_stands_in_the_file_stays(sample: Path) -> None:
    query(sample, "CREATE VIEW mine AS SELECT key FROM facts WHERE is_deleted = 0")
    query(sample, "CREATE TABLE notes (text)")
    query(sample, "INSERT INTO notes VALUES ('my own')")
    query(sample, "CREATE TRIGGER watch AFTER UPDATE ON facts BEGIN INSERT INTO notes VALUES ('changed'); END")
    upgrade(sample)
    assert query(sample, "SELECT key FROM mine ORDER BY 1") == [("pref.editor",), ("project.boat",)]
    assert query(sample, "SELECT text FROM notes") == [("my own",)]


def test_the_backup_is_the_old_database(sample: Path) -> None:
    before = content(sample)
    said = upgrade(sample)
    (backup,) = backups(sample)
    assert content(backup) == before
    assert backup.name == "memory.db.schema-1-20261201T120000Z.backup"
    assert str(backup) in said


@pytest.fixture(params=[0o000, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_every_file_is_the_owners_alone(sample: Path, umask: int) -> None:
    os.chmod(sample, 0o644)
    upgrade(sample)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in sample.parent.iterdir()}
    assert len(modes) >= 3 and set(modes.values()) == {0o600}


def test_a_link_in_the_place_of_the_backup_is_not_followed(sample: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    name = "memory.db.schema-1-20261201T120000Z.backup"
    sample.with_name(name).symlink_to(victim)
    upgrade(sample)
    assert victim.read_text() == "precious"
    assert sample.with_name(name).is_symlink()
    assert sample.with_name("memory.db.schema-1-20261201T120000Z-2.backup").is_file()


def test_a_held_database_is_busy_and_unchanged(sample: Path) -> None:
    before = content(sample)
    holder = apsw.Connection(str(sample))
    holder.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    with pytest.raises(DatabaseBusy, match=r"memory\.db"):
        legacy.upgrade(sample, Clock(), wait_seconds=0.3)
    assert 0.25 < time.monotonic() - start < 5
    holder.execute("ROLLBACK")
    holder.close()
    assert content(sample) == before
    assert backups(sample) == []
    upgrade(sample)


def test_a_gateway_that_only_has_it_open_does_not_stop_the_upgrade(sample: Path) -> None:
    gateway = apsw.Connection(str(sample))
    assert list(gateway.execute("SELECT count(*) FROM facts WHERE is_deleted = 0")) == [(2,)]
    upgrade(sample)
    with pytest.raises(apsw.ConstraintError):
        gateway.execute(
            "INSERT INTO facts (key, value, confidence, source, created_at, updated_at) VALUES ('a', 'b', 1, 'c', '', '')"
        )
    gateway.close()
    assert query(sample, "SELECT count(*) FROM facts WHERE is_deleted = 0") == [(2,)]


def test_a_damaged_old_database_is_left_as_it_is(sample: Path) -> None:
    query(sample, "PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(sample.read_bytes())
    data[4096:8192] = b"\xff" * 4096
    sample.write_bytes(data)
    with pytest.raises(DatabaseDamaged):
        upgrade(sample)
    assert sample.read_bytes() == bytes(data)


def test_two_at_once_upgrade_once(sample: Path) -> None:
    said: list[str] = []
    threads = [
        threading.Thread(target=lambda: said.append(legacy.upgrade(sample, Clock(), wait_seconds=20))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted("up to date now" in line for line in said) == [False, False, True]
    assert len(backups(sample)) == 1
    assert query(sample, "SELECT count(*) FROM memory_events WHERE event_type = 'upgrade'") == [(1,)]


def test_opening_an_old_database_upgrades_it(sample: Path) -> None:
    (line,) = recovery.ensure(sample, Clock())
    assert "TypeScript" in line and str(backups(sample)[0]) in line
    assert recovery.ensure(sample, Clock()) == []


def test_a_full_disk_leaves_the_old_database(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(sample)

    def full(*_: Any) -> None:
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(legacy, "_carry_vectors", full)
    with pytest.raises(DatabaseUnwritable, match=r"memory\.db"):
        upgrade(sample)
    assert content(sample) == before
    monkeypatch.undo()
    upgrade(sample)
    assert len(backups(sample)) == 1


def test_an_upgrade_after_the_old_program_went_on_makes_another_backup(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(legacy, "convert", lambda *_: 1 / 0)
        upgrade(sample)
    query(sample, "UPDATE facts SET value = 'Emacs' WHERE key = 'pref.editor'")
    upgrade(sample)
    kept = [query(one, "SELECT value FROM facts WHERE key = 'pref.editor'") for one in backups(sample)]
    assert sorted(kept) == [[("Emacs",)], [("Helix",)]]


# --- a kill -----------------------------------------------------------------------------------------------------------

KILLED = (
    DYING
    + """
from clawmark.store import copy, db, events, files, keyfile, legacy, migrations
place = sys.argv[1]
for module, name in [
    (os, "link"), (os, "rename"), (os, "replace"), (os, "unlink"), (os, "fsync"), (files, "sync_folder"),
    (migrations, "migrate"), (events, "add"), (legacy, "clean_pages"), (legacy, "convert"), (legacy, "empty_log"),
    (legacy, "_carry_events"), (legacy, "_carry_facts"), (legacy, "_carry_cursors"), (legacy, "_carry_vectors"),
]:
    setattr(module, name, dying(getattr(module, name)))
legacy.upgrade(Path(place), lambda: datetime(2026, 12, 1, 12, tzinfo=UTC), 5)
os._exit(0 if count < step else 1)
"""
)


def killed(path: Path, step: int) -> bool:
    """Run the upgrade in a process that dies before its `step`th step; False when there are not so many."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), str(step)], capture_output=True, timeout=60)
    assert done.returncode in (0, 9), done.stderr.decode()
    return done.returncode == 9


def test_a_kill_leaves_the_old_database_or_the_new_one(tmp_path: Path) -> None:
    whole = tmp_path / "whole" / "memory.db"
    typescript.sample(whole)
    before = content(whole)
    upgrade(whole)
    after = content(whole)
    outcomes = set()
    for step in range(1, 100):
        path = tmp_path / str(step) / "memory.db"
        typescript.sample(path)
        if not killed(path, step):
            break
        found = content(path)
        assert found in (before, after) or without_hashes(found) == without_hashes(after)
        outcomes.add(found == before)
        upgrade(path)
        assert without_hashes(content(path)) == without_hashes(after)
        assert len(backups(path)) == 1 and content(backups(path)[0]) == before
        assert not list(path.parent.glob("*.part*"))
    assert step > 10 and outcomes == {True, False}


def without_hashes(found: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Tombstones are keyed with a secret of their own in each place."""
    return {table: len(rows) if table == "tombstones" else rows for table, rows in found.items()}  # type: ignore[misc]


# --- copies -----------------------------------------------------------------------------------------------------------


@contextmanager
def memory_with(path: Path, **values: str) -> Iterator[None]:
    with open_memory(path, Log()) as memory:
        for key, value in values.items():
            memory.set(f"pref.{key}", value)
        yield


def test_a_copy_of_a_database_in_use_is_whole_and_one_file(db_path: Path, tmp_path: Path) -> None:
    target = tmp_path / "copies" / "a.db"
    target.parent.mkdir()
    with memory_with(db_path, tea="black"):
        writer = apsw.Connection(str(db_path))
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM facts")
        copies.copy_database(db_path, target)
        writer.execute("ROLLBACK")
        writer.close()
        assert [p.name for p in target.parent.iterdir()] == ["a.db"]
        assert content(target) == content(db_path)
    assert query(target, "PRAGMA journal_mode") == [("delete",)]
    assert query(target, "PRAGMA application_id") == [(db.APPLICATION_ID,)]
    assert [p.name for p in target.parent.iterdir()] == ["a.db"]


def test_a_copy_shows_one_moment(db_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_pages = copies._copy_pages
    with memory_with(db_path, tea="black"):
        before = content(db_path)

        def late(*args: Any) -> None:
            query(db_path, "DELETE FROM facts")
            copy_pages(*args)

        monkeypatch.setattr(copies, "_copy_pages", late)
        copies.copy_database(db_path, tmp_path / "a.db")
    assert content(tmp_path / "a.db") == before


def test_a_copy_is_the_owners_alone(db_path: Path, tmp_path: Path, umask: int) -> None:
    with memory_with(db_path, tea="black"):
        copies.copy_database(db_path, tmp_path / "a.db")
    assert stat.S_IMODE((tmp_path / "a.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", ["file", "link", "dangling", "folder"])
def test_a_copy_overwrites_nothing(db_path: Path, tmp_path: Path, kind: str) -> None:
    target, victim = tmp_path / "a.db", tmp_path / "victim"
    victim.write_text("precious")
    make: dict[str, Callable[[], Any]] = {
        "file": lambda: target.write_text("precious"),
        "link": lambda: target.symlink_to(victim),
        "dangling": lambda: target.symlink_to(tmp_path / "nowhere"),
        "folder": target.mkdir,
    }
    make[kind]()
    with memory_with(db_path), pytest.raises(UsageError, match=r"a\.db"):
        copies.copy_database(db_path, target)
    assert victim.read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()
    assert not list(tmp_path.glob("*.part*"))


def test_a_link_in_the_place_of_the_part_is_not_followed(
    db_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    monkeypatch.setattr("secrets.token_hex", lambda _: "00")
    (tmp_path / "a.db.00.part").symlink_to(victim)
    with memory_with(db_path), pytest.raises(Exception, match=r"a\.db"):
        copies.copy_database(db_path, tmp_path / "a.db")
    assert victim.read_text() == "precious"
    assert (tmp_path / "a.db.00.part").is_symlink()


def test_a_part_that_somebody_works_on_stays_and_a_leftover_goes(db_path: Path, tmp_path: Path) -> None:
    target = tmp_path / "a.db"
    for leftover in ("a.db.11111111.part", "a.db.11111111.part-journal"):
        (tmp_path / leftover).write_text("left")
    with memory_with(db_path), copies._draft(tmp_path / "a.db") as (part, _):
        assert not list(tmp_path.glob("a.db.11111111.part*"))
        copies.remove_parts(target)
        assert part.exists()
    assert target.exists()


def test_a_damaged_database_is_not_copied(db_path: Path, tmp_path: Path) -> None:
    with memory_with(db_path, **{f"k{n}": "value " * 200 for n in range(50)}):
        pass
    data = bytearray(db_path.read_bytes())
    data[-4096 * 4 : -4096 * 2] = b"\xff" * 8192
    db_path.write_bytes(data)
    with pytest.raises(DatabaseDamaged, match=r"memory\.db"):
        copies.copy_database(db_path, tmp_path / "a.db")
    assert [p.name for p in tmp_path.glob("a.db*")] == []


def test_reading_a_database_at_rest_leaves_no_trace(db_path: Path, tmp_path: Path) -> None:
    with memory_with(db_path, tea="black"):
        pass
    before = sorted(p.name for p in db_path.parent.iterdir())
    copies.copy_database(db_path, tmp_path / "a.db", at_rest=True)
    assert sorted(p.name for p in db_path.parent.iterdir()) == before


def test_dated_names_are_never_used_twice(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    first = files.dated(path, "backup", LATER)
    assert first.name == "memory.db.backup-20261201T120000Z"
    first.symlink_to(tmp_path / "nowhere")
    assert files.dated(path, "backup", LATER).name == "memory.db.backup-20261201T120000Z-2"
    (tmp_path / "memory.db.backup-20261201T120000Z-2.key").touch()
    assert files.dated(path, "backup", LATER).name == "memory.db.backup-20261201T120000Z-3"


# --- a damaged one ----------------------------------------------------------------------------------------------------


def break_root(path: Path, table: str) -> None:
    """The first page of a table, so that nothing of it can be read."""
    ((root,),) = query(path, f"SELECT rootpage FROM sqlite_master WHERE name = '{table}'")
    data = bytearray(path.read_bytes())
    start = (root - 1) * 4096
    data[start : start + 8] = b"\xff" * 8
    path.write_bytes(data)


@pytest.mark.parametrize("table", ["message_vectors", "cursors", "schema_version", "memory_events", "facts"])
@pytest.mark.parametrize("name", ["memory.db", "mine.db"])
def test_the_facts_of_a_damaged_one_come_back_by_the_rules_of_the_upgrade(db_path: Path, table: str, name: str) -> None:
    path = db_path.with_name(name)
    old = typescript.Typescript(path)
    for number in range(30):
        old.set(f"user.fact{number}", f"value {number}", number)
    old.set("user.token", f"is {secret_value()}", 1)
    old.set("user.gone", "zqmarzipan", 1)
    old.delete("user.gone", 2)
    for number in range(200):
        old.vector(f"s1.jsonl:{number}", typescript.unit(number))
    old.close()
    break_root(path, table)
    (line,) = recovery.ensure(path, Clock())
    assert "vectors and cursors did not" in line
    assert ("cannot be read to the end" in line) == (table in ("facts", "memory_events"))
    live = dict(query(path, "SELECT key, value FROM facts WHERE NOT is_deleted"))
    assert live.pop("user.token") == "is [REDACTED:github_token]"
    assert live == {f"user.fact{n}": f"value {n}" for n in range(30)}
    if table == "facts":  # where only the trail is left of it
        assert "value" in tombstones(path, "user.gone", "zqmarzipan")
    else:
        assert tombstones(path, "user.gone", "zqmarzipan") == {"key", "value"}
    (aside,) = path.parent.glob(f"{name}.damaged-*[0-9]Z")
    assert aside.stat().st_size
    holding = [found.name for found in path.parent.iterdir() if secret_value().encode() in found.read_bytes()]
    assert all(".damaged-" in found for found in holding)
    assert query(path, "PRAGMA integrity_check") == [("ok",)]
    assert recovery.ensure(path, Clock()) == []


def test_rows_on_both_sides_of_a_page_that_cannot_be_read_come_back(db_path: Path) -> None:
    old = typescript.Typescript(db_path)
    for number in range(400):
        old.fact(f"user.fact{number:03}", "value " * 20)
    old.close()
    pages = query(db_path, "SELECT pageno FROM dbstat WHERE name = 'facts' AND pagetype = 'leaf' ORDER BY path")
    data = bytearray(db_path.read_bytes())
    start = (pages[len(pages) // 2][0] - 1) * 4096
    data[start : start + 8] = b"\xff" * 8
    db_path.write_bytes(data)
    (line,) = recovery.ensure(db_path, Clock())
    found = [key for (key,) in query(db_path, "SELECT key FROM facts ORDER BY key")]
    assert found[0] == "user.fact000" and found[-1] == "user.fact399"
    assert 300 < len(found) < 400
    assert "cannot be read to the end" in line


# --- the old file, put back beside what is known since ----------------------------------------------------------------


def put_back(path: Path) -> None:
    (backup,) = backups(path)
    for name in ("", "-wal", "-shm"):
        path.with_name(path.name + name).unlink(missing_ok=True)
    path.write_bytes(backup.read_bytes())


@pytest.fixture
def forgotten(old: Any, db_path: Path, log: Log) -> Path:
    """An upgraded database in which one fact was forgotten, one set, and whose old file was put back."""
    old.set("user.place", "zqmarzipan lane", 1)
    old.set("pref.editor", "Vim", 2)
    old.event("update", "user.other", "zqmarzipan lane", "another")
    upgraded(old, db_path)
    with open_memory(db_path, log) as memory:
        memory.forget("user.place")
        memory.set("pref.shell", "fish")
    put_back(db_path)
    return db_path


@pytest.mark.parametrize("is_damaged", [False, True])
def test_what_was_forgotten_since_does_not_come_back_with_the_old_file(
    forgotten: Path, log: Log, is_damaged: bool
) -> None:
    stamp = sidecar.stamp(forgotten)
    assert stamp is not None
    if is_damaged:
        break_root(forgotten, "message_vectors")
    (line,) = recovery.ensure(forgotten, Clock())
    assert query(forgotten, "SELECT key, value FROM facts") == [("pref.editor", "Vim")]
    assert query(forgotten, "SELECT 1 FROM memory_events WHERE coalesce(old_value, new_value) LIKE 'zqm%'") == []
    assert tombstones(forgotten, "user.place", "zqmarzipan lane") == {"key", "value"}
    assert query(forgotten, "SELECT seq FROM sqlite_sequence WHERE name = 'memory_events'")[0][0] > stamp
    assert "facts forgotten before 1" in line
    (aside,) = forgotten.parent.glob("memory.db.facts-*")
    assert f"clawmark restore {aside}" in line
    with open_memory(forgotten, log) as memory:
        memory.set("pref.x", "y")
    assert b"zqmarzipan" not in sidecar.path_of(forgotten).read_bytes()
    assert b"fish" in aside.read_bytes()


def test_without_the_key_the_line_says_what_cannot_be_told(forgotten: Path) -> None:
    keyfile.key_path(forgotten).unlink()
    (line,) = recovery.ensure(forgotten, Clock())
    assert "Without memory.db.key" in line
    of_statements = query(forgotten, "SELECT count(*) FROM tombstones WHERE kind IN ('key', 'value')")
    assert of_statements == [(2,)]


def test_another_programs_schema_1_gets_no_file_beside_it(db_path: Path) -> None:
    db_path.parent.mkdir()
    connection = apsw.Connection(str(db_path))
    for sql in (
        "CREATE TABLE schema_version (version)",
        "CREATE TABLE facts (a)",
        "INSERT INTO schema_version VALUES (1)",
    ):
        connection.execute(sql)
    connection.close()
    db_path.chmod(0o644)
    for act in (lambda p: recovery.ensure(p, Clock()), recovery.must_be_ours):
        with pytest.raises(DatabaseForeign):
            act(db_path)
    assert [p.name for p in db_path.parent.iterdir()] == ["memory.db"]
    assert db_path.stat().st_mode & 0o777 == 0o644
