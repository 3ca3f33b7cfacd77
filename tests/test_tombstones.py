"""Tombstones: what was forgotten is known again in other words and under other keys, and nothing else is."""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta, timezone
from pathlib import Path

import apsw
import pytest
from helpers import LATER, START, migrate, opened
from hypothesis import given
from hypothesis import strategies as st

from clawmark.store import db, tombstones
from clawmark.store.tombstones import Tombstones

SECRET = b"s" * 32
ADDRESS = "Rua das Flores 12, Porto"
TREES = "ash birch cedar fir hazel larch oak pine rowan yew".split()


@pytest.fixture
def connection(tmp_path: Path) -> apsw.Connection:
    opened(tmp_path / "memory.db")
    return db.connect(tmp_path / "memory.db")


def buried(connection: apsw.Connection, key: str = "user.address", value: str = ADDRESS) -> Tombstones:
    tombstones.bury_statement(connection, SECRET, "main", key, value, LATER)
    return Tombstones(connection, SECRET)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("user.address", ADDRESS),
        ("user.home_address", ADDRESS),
        ("user.address", "rua  das flores 12, PORTO"),
        ("user.home", "Porto, Rua das Flores 12"),
        ("user.home", "I live at Rua das Flores 12 in Porto"),
        ("user.street", "Flores 12"),
    ],
)
def test_a_forgotten_statement_is_known_again(connection: apsw.Connection, key: str, value: str) -> None:
    assert buried(connection).covers(["main"], key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [("user.address", "Kouter 7, Ghent"), ("user.city", "Porto"), ("pref.wine", "port from Porto over sherry")],
)
def test_what_shares_a_word_with_it_was_not_forgotten(connection: apsw.Connection, key: str, value: str) -> None:
    assert not buried(connection).covers(["main"], key, value)


def test_a_word_of_its_own_covers_no_longer_statement(connection: apsw.Connection) -> None:
    known = buried(connection, "pref.drink", "tea")
    assert known.covers(["main"], "user.beverage", "Tea")
    assert not known.covers(["main"], "user.allergy", "tea tree oil")


def test_another_scope_forgot_nothing(connection: apsw.Connection) -> None:
    assert not buried(connection).covers(["work", "shared"], "user.address", ADDRESS)


def test_what_rests_on_a_forgotten_message_was_forgotten(connection: apsw.Connection) -> None:
    tombstones.bury_messages(connection, SECRET, [b"k" * 16], LATER)
    known = Tombstones(connection, SECRET)
    assert known.covers(["main"], "pref.colour", "green", [b"k" * 16])
    assert not known.covers(["main"], "pref.colour", "green", [b"o" * 16])


def test_a_message_said_after_it_was_forgotten_counts(connection: apsw.Connection) -> None:
    tombstones.bury_messages(connection, SECRET, [b"k" * 16], LATER)
    known = Tombstones(connection, SECRET)
    assert known.is_forgotten("main", "s1", b"k" * 16, LATER)
    assert not known.is_forgotten("main", "s1", b"k" * 16, LATER + timedelta(seconds=1))
    assert not known.is_forgotten("main", "s1", b"o" * 16, START)


def test_a_session_and_a_horizon_forget_what_was_said_until_then(connection: apsw.Connection) -> None:
    tombstones.bury_session(connection, SECRET, "main", "s1", START)
    tombstones.put_horizon(connection, "work", START)
    known = Tombstones(connection, SECRET)
    for scope, session in (("main", "s1"), ("work", "s9")):
        assert known.is_forgotten(scope, session, b"k" * 16, START)
        assert not known.is_forgotten(scope, session, b"k" * 16, START + timedelta(seconds=1))
    assert not known.is_forgotten("main", "s2", b"k" * 16, START)


def test_a_horizon_never_comes_nearer(connection: apsw.Connection) -> None:
    tombstones.put_horizon(connection, "work", LATER)
    tombstones.put_horizon(connection, "work", START)
    assert Tombstones(connection, SECRET).is_forgotten("work", "s", b"k" * 16, LATER)


TIMES = st.integers(0, 3).map(lambda days: LATER + timedelta(days=days))
BURIALS = st.lists(st.tuples(TIMES, st.none() | TIMES), min_size=1, max_size=5)


@given(BURIALS)
def test_of_several_forgettings_the_latest_counts_and_the_longest(
    burials: list[tuple[datetime, datetime | None]],
) -> None:
    """In the database, and where rows of two files come together."""
    connection = apsw.Connection(":memory:")
    migrate(connection)
    for at, until in burials:
        before = tombstones.buried(connection)
        changed = tombstones.bury(connection, "key", b"h" * 32, at, until)
        assert changed == (tombstones.buried(connection) != before)
    ((_, _, at, until),) = tombstones.buried(connection)
    ends = [end for _, end in burials]
    assert at == max(at for at, _ in burials).isoformat()
    assert until == (None if None in ends else max(end for end in ends if end).isoformat())
    rows = [
        {"hash": b"h" * 32, "kind": "key", "created_at": at.isoformat(), "expires_at": end and end.isoformat()}
        for at, end in burials
    ]
    assert tombstones.latest(rows) == {
        b"h" * 32: {"hash": b"h" * 32, "kind": "key", "created_at": at, "expires_at": until}
    }


def test_times_of_another_offset_are_compared_as_times(connection: apsw.Connection) -> None:
    there = timezone(timedelta(hours=9))
    tombstones.bury(connection, "key", b"h" * 32, LATER)
    assert not tombstones.bury(connection, "key", b"h" * 32, (LATER - timedelta(hours=1)).astimezone(there))
    assert tombstones.buried(connection)[0][2] == LATER.isoformat()


def test_a_rejection_runs_out(connection: apsw.Connection) -> None:
    until = LATER + timedelta(days=180)
    tombstones.bury_rejected(connection, SECRET, "main", {"pref.drink"}, "drinks tea", LATER, until)
    known = Tombstones(connection, SECRET)
    assert known.is_rejected("main", {"pref.drink"}, "Drinks  TEA", until - timedelta(seconds=1))
    assert not known.is_rejected("main", {"pref.drink"}, "drinks tea", until)
    assert not known.covers(["main"], "pref.drink", "drinks tea"), "the person may still have it noted"
    tombstones.drop_expired(connection, until)
    assert not Tombstones(connection, SECRET).is_rejected("main", {"pref.drink"}, "drinks tea", LATER)


@pytest.mark.parametrize(
    ("value", "everywhere"), [("Firefox", False), ("Ana Lima", False), ("lives in a blue house in Porto", True)]
)
def test_a_rejection_holds_under_every_key_only_for_what_says_what_it_is_about(
    connection: apsw.Connection, value: str, everywhere: bool
) -> None:
    until = LATER + timedelta(days=180)
    tombstones.bury_rejected(connection, SECRET, "main", {"user.employer"}, value, LATER, until)
    known = Tombstones(connection, SECRET)
    assert known.is_rejected("main", {"user.employer"}, value, LATER)
    assert known.is_rejected("main", {"pref.browser"}, value, LATER) is everywhere
    tombstones.lift(connection, SECRET, "main", "user.employer", value, {"user.employer"})
    assert not Tombstones(connection, SECRET).is_rejected("main", {"user.employer"}, value, LATER)


@pytest.mark.parametrize("value", ["Firefox", "lives in a blue house in Porto"])
def test_a_rejection_of_what_others_said_is_of_its_key_and_keeps_out_nothing_that_the_owner_says_afterwards(
    connection: apsw.Connection, value: str
) -> None:
    until = LATER + timedelta(days=180)
    tombstones.bury_rejected(connection, SECRET, "main", {"user.home"}, value, LATER, until, is_owners=False)
    known = Tombstones(connection, SECRET)
    assert known.is_rejected("main", {"user.home"}, value, LATER)
    assert known.is_rejected("main", {"user.home"}, value, LATER, said_at=LATER)
    assert not known.is_rejected("main", {"user.home"}, value, LATER, said_at=LATER + timedelta(seconds=1))
    assert not known.is_rejected("main", {"ref.home"}, value, LATER)
    tombstones.lift(connection, SECRET, "main", "user.home", value, {"user.home"})
    assert not Tombstones(connection, SECRET).is_rejected("main", {"user.home"}, value, LATER)


@pytest.mark.parametrize("is_owners", [True, False])
def test_a_rejection_holds_under_each_of_its_names(connection: apsw.Connection, is_owners: bool) -> None:
    until = LATER + timedelta(days=180)
    names = {"user.current_city", "user.city"}
    tombstones.bury_rejected(connection, SECRET, "main", names, "Porto", LATER, until, is_owners=is_owners)
    known = Tombstones(connection, SECRET)
    assert known.is_rejected("main", {"pref.city", "user.city"}, "porto", LATER)
    assert not known.is_rejected("main", {"pref.city", "user.home_city"}, "Porto", LATER)
    tombstones.lift(connection, SECRET, "main", "pref.city", "Porto", names)
    assert tombstones.buried(connection) == []


def test_a_rejection_of_an_earlier_version_holds_under_its_key(connection: apsw.Connection) -> None:
    hashed = hmac.digest(SECRET, "\0".join(("rejected", "main", "user.current_city", "porto")).encode(), "sha256")
    tombstones.bury(connection, tombstones.REJECTED, hashed, LATER, LATER + timedelta(days=180))
    assert Tombstones(connection, SECRET).is_rejected("main", {"user.city", "user.current_city"}, "Porto", LATER)


def test_a_rejection_of_the_first_version_holds_under_every_key(connection: apsw.Connection) -> None:
    until = LATER + timedelta(days=180)
    hashed = hmac.digest(SECRET, "\0".join(("rejected", "main", "firefox")).encode(), "sha256")
    tombstones.bury(connection, tombstones.REJECTED, hashed, LATER, until)
    assert Tombstones(connection, SECRET).is_rejected("main", {"pref.browser"}, "Firefox", LATER)
    tombstones.lift(connection, SECRET, "main", "pref.browser", "Firefox", {"pref.browser"})
    assert not Tombstones(connection, SECRET).is_rejected("main", {"pref.browser"}, "Firefox", LATER)


def test_setting_it_anew_lifts_whatever_stood_against_it(connection: apsw.Connection) -> None:
    buried(connection)
    tombstones.lift(connection, SECRET, "main", "user.home", "I live at Rua das Flores 12 in Porto", {"user.home"})
    assert not Tombstones(connection, SECRET).covers(["main"], "user.home", "I live at Rua das Flores 12 in Porto")


def test_setting_it_anew_lifts_nothing_of_others(connection: apsw.Connection) -> None:
    buried(connection, "pref.drink", "green tea without sugar")
    buried(connection)
    tombstones.lift(connection, SECRET, "main", "user.address", ADDRESS, {"user.address"})
    assert Tombstones(connection, SECRET).covers(["main"], "pref.tea", "green tea, no sugar")
    assert not Tombstones(connection, SECRET).covers(["main"], "user.address", ADDRESS)


@given(said=st.lists(st.sampled_from(TREES), min_size=1, max_size=6, unique=True), data=st.data())
def test_what_is_said_anew_lifts_all_that_it_says_again_and_nothing_else(said: list[str], data: st.DataObject) -> None:
    connection = apsw.Connection(":memory:")
    migrate(connection)
    lists = st.lists(st.sampled_from(TREES), min_size=1, max_size=6, unique=True)
    for number, forgotten in enumerate(data.draw(st.lists(lists, max_size=4))):
        tombstones.bury_statement(connection, SECRET, "main", f"pref.t{number}", " ".join(forgotten), LATER)
    kinds = {kind for _, kind, *_ in tombstones.buried(connection) if kind.startswith(tombstones.STEM)}
    said_again = set(Tombstones(connection, SECRET).said_again("main", " ".join(said)))
    tombstones.lift(connection, SECRET, "main", "pref.other", " ".join(said), {"pref.other"})
    left = {kind for _, kind, *_ in tombstones.buried(connection) if kind.startswith(tombstones.STEM)}
    assert left == kinds - said_again


def test_a_tombstone_tells_nothing_without_its_key(connection: apsw.Connection, tmp_path: Path) -> None:
    buried(connection)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for word in (b"Flores", b"flores", b"Porto", b"address"):
        assert word not in (tmp_path / "memory.db").read_bytes()
    assert not Tombstones(connection, b"o" * 32).covers(["main"], "user.address", ADDRESS)


@given(words=st.lists(st.sampled_from(TREES), min_size=2, max_size=6, unique=True), data=st.data())
def test_any_order_of_the_same_words_is_the_same_statement(words: list[str], data: st.DataObject) -> None:
    connection = apsw.Connection(":memory:")
    migrate(connection)
    tombstones.bury_statement(connection, SECRET, "main", "pref.trees", " ".join(words), LATER)
    again = " ".join(data.draw(st.permutations(words)))
    assert Tombstones(connection, SECRET).covers(["main"], "pref.wood", again)
