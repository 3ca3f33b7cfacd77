"""Export and import: everything comes along and nothing twice, what was forgotten stays away, and a bad file changes
nothing."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from helpers import LATER, START, Clock, Log, fact, open_memory, query, residue, shared
from hypothesis import given
from hypothesis import strategies as st

from clawmark import arrival, portable, transfer
from clawmark.cli.portable import export as export_command
from clawmark.cli.portable import import_ as import_command
from clawmark.errors import DatabaseBusy, UsageError
from clawmark.guard import secrets
from clawmark.model import Evidence
from clawmark.store import db, evidence, facts, keyfile, sidecar, streams, tombstones
from clawmark.store import portable as rows_of

Line = dict[str, Any]
SAID = Evidence(b"k" * 16, START, "s1")


def token() -> str:
    """What looks like a secret, put together here so that none stands in this file."""
    return "gh" + "p_" + "Zq3vX8" + "n1LmT5" + "wRb7Kd" + "2Yc9Hs" + "4Jf6Pg" + "0AeU1x"


def fill(path: Path, log: Log, clock: Clock) -> None:
    """Something of everything that an export holds."""
    with open_memory(path, log, clock=clock) as memory:
        log.say("I use Helix for everything, and I like my tea green.")
        memory.sync()
        memory.set("pref.editor", "Helix")
        memory.set("user.city", "Gothenburg", scope="main")
        clock.advance(minutes=1)
        memory.set("pref.editor", "Helix 25")
        memory.set("user.allergy", "hazelnuts")
        memory.set("user.boat", "Sira")
        memory.set("ref.wiki", "the kiln wiki", writer="agent")
        memory.hide("ref.wiki")
        clock.advance(minutes=1)
        memory.forget("user.boat")
        for key, value in {
            "pref.tea": "green",
            "pref.shell": "fish",
            "lesson.kiln": "cone 6",
            "pref.os": "Linux",
        }.items():
            clock.advance(seconds=1)
            memory.propose("set", key, value, "main", origin="owner", reason="marker")
        waiting = {one.key: one.name for one in memory.proposals(deferred=True)}
        clock.advance(minutes=1)
        memory.accept(waiting["pref.shell"])
        memory.reject(waiting["lesson.kiln"])
        memory.defer(waiting["pref.os"])
    with db.opened(path) as connection, db.transaction(connection, path):
        evidence.add(connection, "shared", "pref.editor", "Helix 25", SAID)
        evidence.add(connection, "main", "pref.tea", "green", Evidence(b"t" * 16, START + timedelta(days=1), "s2"))
        tombstones.put_horizon(connection, "old-agent", START)
        streams.bury_session(connection, "main", "gone-1", "log", "log", clock())
        connection.execute("INSERT INTO scopes (scope, name, source) VALUES ('0f3a', 'kiln-ledger', 'claude-code')")


def lines(content: bytes) -> list[Line]:
    return [json.loads(line) for line in content.decode().splitlines()]


def records(content: bytes) -> list[Line]:
    return lines(content)[1:-1]


def of(content: bytes, record: str) -> list[Line]:
    return [line for line in records(content) if line["record"] == record]


def exported(path: Path, **options: Any) -> bytes:
    return portable.export(path, Clock(), **options).content


def imported(path: Path, content: bytes, **options: Any) -> portable.Imported:
    clock = options.pop("clock", None) or Clock(LATER + timedelta(days=1))
    return portable.import_text(path, content, "old.jsonl", clock, 5.0, **options)


def closed(said: list[Line]) -> bytes:
    """A file of these lines, whole: header first."""
    return portable._closed(said[0], said[1:])


def state(path: Path) -> dict[str, list[Any]]:
    tables = [name for (name,) in query(path, "SELECT name FROM sqlite_master WHERE rootpage > 0 AND type = 'table'")]
    return {table: sorted(query(path, f"SELECT * FROM {table}"), key=repr) for table in sorted(tables)}


@pytest.fixture
def filled(db_path: Path, log: Log) -> Path:
    fill(db_path, log, Clock())
    return db_path


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    return tmp_path / "new" / "memory.db"


# --- what is in it ----------------------------------------------------------------------------------------------------


def test_an_export_holds_everything_but_messages(filled: Path) -> None:
    content = exported(filled)
    assert {line["record"] for line in records(content)} == set(portable.RECORDS)
    stored = {line["key"]: line for line in of(content, "fact")}
    assert stored["pref.editor"]["value"] == "Helix 25" and not stored["pref.editor"]["hidden"]
    assert stored["ref.wiki"]["hidden"] and stored["ref.wiki"]["source"] == "agent"
    assert {(one["key"], one["state"]) for one in of(content, "proposal")} == {
        ("pref.tea", "pending"),
        ("pref.", "accepted"),
        ("lesson.", "rejected"),
        ("pref.os", "pending"),
    }, "of what was decided the prefix of its key is left"
    assert b"tea green." not in content


def test_an_export_begins_with_what_it_is_and_ends_with_its_checksum(filled: Path) -> None:
    content = exported(filled)
    header, *held, end = lines(content)
    assert (header["clawmark"], header["version"], header["secrets"], header["scope"]) == ("export", 1, "masked", None)
    assert datetime.fromisoformat(header["exported_at"]) == LATER
    body = content[: content.rindex(b"{")]
    assert end == {"lines": len(held), "sha256": hashlib.sha256(body).hexdigest()}


def test_times_have_an_offset(filled: Path) -> None:
    for line in records(exported(filled)):
        for name, value in line.items():
            if value is not None and (name.endswith("_at") or name == "before"):
                assert datetime.fromisoformat(value).utcoffset() == timedelta(0), (line["record"], name)


def test_one_scope_is_exported_alone(filled: Path) -> None:
    content = exported(filled, scope="main")
    assert {line["scope"] for line in records(content)} == {"main"}
    assert {line["key"] for line in of(content, "fact")} == {"user.city", "pref.shell"}
    assert of(content, "tombstone") == []


def test_a_scope_is_known_by_its_readable_name(filled: Path) -> None:
    assert lines(exported(filled, scope="kiln-ledger"))[0]["scope"] == "0f3a"


def test_a_scope_that_nobody_knows_is_named(filled: Path) -> None:
    with pytest.raises(UsageError, match="'nobody'"):
        exported(filled, scope="nobody")


def test_an_export_shows_one_moment(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = rows_of.of_table

    def slowly(connection: Any, table: str, scope: str | None) -> list[Line]:
        found = read(connection, table, scope)
        if table == "facts":
            with open_memory(filled, Log()) as memory:
                memory.set("pref.late", "said while it was read")
        return found

    monkeypatch.setattr(rows_of, "of_table", slowly)
    assert b"pref.late" not in exported(filled)


def test_an_export_makes_no_memory(db_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to export"):
        exported(db_path)
    assert not db_path.exists()


def test_a_secret_is_masked_wherever_it_stands(filled: Path) -> None:
    secret = token()
    with db.opened(filled) as connection, db.transaction(connection, filled):
        facts.put(connection, fact("ref.old", f"the key is {secret}"))
        connection.execute("UPDATE proposals SET value = ? WHERE key = 'pref.tea'", (f"use {secret}",))
        connection.execute(
            "UPDATE memory_events SET old_value = ?1, detail = ?1 WHERE event_type = 'update'", (secret,)
        )
    assert secret.encode() not in exported(filled)
    assert secret.encode() in exported(filled, with_secrets=True)


def test_every_kind_of_secret_is_masked(filled: Path) -> None:
    """Those that the guard knows, in the place of a value and of what an event tells."""
    corpus = secrets_of_the_corpus()
    known = [row for row in corpus if row["secret"] not in secrets.mask(row["text"])]
    assert len(known) > len(corpus) / 2
    with db.opened(filled) as connection, db.transaction(connection, filled):
        for number, row in enumerate(known):
            facts.put(connection, fact(f"ref.n{number}", row["text"]))
            connection.execute(
                "INSERT INTO memory_events (event_type, memory_key, new_value, source, created_at, scope)"
                " VALUES ('create', ?, ?, 'user', ?, 'shared')",
                (f"ref.n{number}", row["text"], LATER.isoformat()),
            )
    content = exported(filled).decode()
    assert [row["kind"] for row in known if json.dumps(row["secret"], ensure_ascii=False)[1:-1] in content] == []


def secrets_of_the_corpus() -> list[dict[str, str]]:
    place = shared("corpora", "secrets_corpus.py")
    if place is None:
        pytest.skip("the shared corpora are not at hand")
    spec = importlib.util.spec_from_file_location("secrets_corpus", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.secrets(seeds=(1,)))


# --- the file ---------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[0o000, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_the_file_is_the_owners_alone(tmp_path: Path, umask: int) -> None:
    target = tmp_path / "all.jsonl"
    portable.save(b"x" * 100_000, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600 and target.stat().st_size == 100_000


def test_an_export_overwrites_nothing(tmp_path: Path) -> None:
    target = tmp_path / "mine.jsonl"
    target.write_text("precious")
    with pytest.raises(UsageError, match=r"mine\.jsonl is there"):
        portable.save(b"new", target)
    assert target.read_text() == "precious"


@pytest.mark.parametrize("there", [True, False])
def test_an_export_follows_no_link(tmp_path: Path, there: bool) -> None:
    victim = tmp_path / "victim"
    if there:
        victim.write_text("precious")
    (tmp_path / "mine.jsonl").symlink_to(victim)
    with pytest.raises(UsageError, match=r"mine\.jsonl"):
        portable.save(b"new", tmp_path / "mine.jsonl")
    assert victim.exists() == there and (not there or victim.read_text() == "precious")


def test_a_file_that_cannot_be_written_whole_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        portable.save(b"new", tmp_path / "mine.jsonl")
    assert list(tmp_path.glob("mine*")) == []


def test_what_a_killed_export_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / "mine.jsonl.0123abcd.part"
    left.write_text("half")
    portable.save(b"new", tmp_path / "mine.jsonl")
    assert not left.exists()


@pytest.mark.parametrize("name", ["memory.db.key", "memory.db-wal", "memory.db.facts"])
def test_a_name_of_clawmarks_own_files_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="own files"):
        portable.save(b"new", tmp_path / name)


# --- round trip -------------------------------------------------------------------------------------------------------

OF_WRITING = ("number",)


def told(content: bytes) -> list[Line]:
    return [{name: value for name, value in line.items() if name not in OF_WRITING} for line in records(content)]


def test_export_import_export_gives_the_same_lines(filled: Path, empty: Path) -> None:
    before = exported(filled)
    done = imported(empty, before)
    assert list(done.skipped) == []
    assert told(exported(empty)) == told(before)


def test_proposals_keep_their_numbers_where_these_are_free(filled: Path, empty: Path) -> None:
    query(filled, "DELETE FROM proposals WHERE id = 1")
    imported(empty, exported(filled))
    numbers = "SELECT id, key FROM proposals ORDER BY id"
    assert query(empty, numbers) == query(filled, numbers)


def test_the_same_with_the_key_beside(filled: Path, empty: Path) -> None:
    """Tombstones that can be read change nothing about it."""
    empty.parent.mkdir(mode=0o700)
    shutil.copy(keyfile.key_path(filled), keyfile.key_path(empty))
    done = imported(empty, exported(filled))
    assert told(exported(empty)) == told(exported(filled))
    assert done.notes == []


def test_without_the_key_it_is_said_what_tombstones_need(filled: Path, empty: Path) -> None:
    (note,) = imported(empty, exported(filled)).notes
    assert "memory.db.key" in note


def test_an_import_twice_changes_nothing(filled: Path, empty: Path) -> None:
    content = exported(filled)
    imported(empty, content)
    before = state(empty)
    done = imported(empty, content, clock=Clock(LATER + timedelta(days=9)))
    assert state(empty) == before
    assert set(portable.total(done.counts)) <= {"known", "live"}


def test_an_import_into_the_memory_it_came_from_changes_nothing(filled: Path) -> None:
    before = state(filled)
    imported(filled, exported(filled))
    assert state(filled) == before


def test_a_masked_export_does_no_harm_to_the_memory_it_came_from(filled: Path) -> None:
    with db.opened(filled) as connection, db.transaction(connection, filled):
        facts.put(connection, fact("ref.old", f"the key is {token()}"))
    before = state(filled)
    imported(filled, exported(filled))
    assert state(filled) == before


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@given(
    values=st.dictionaries(st.sampled_from(["pref.a", "user.b", "lesson.c", "project.d", "ref.e"]), TEXTS, min_size=1)
)
def test_any_value_comes_through_as_it_is(values: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("trip")
    with open_memory(place / "a" / "memory.db", Log()) as memory:
        for key, value in values.items():
            try:
                memory.set(key, value)
            except UsageError:
                continue  # blank, or a secret
        stored = {one.key: one.value for one in memory.facts()}
    imported(place / "b" / "memory.db", exported(place / "a" / "memory.db"))
    with open_memory(place / "b" / "memory.db", Log()) as memory:
        assert {one.key: one.value for one in memory.facts()} == stored


# --- what decides -----------------------------------------------------------------------------------------------------


def test_what_was_said_later_here_stays(filled: Path, log: Log) -> None:
    content = exported(filled)
    with open_memory(filled, log, clock=Clock(LATER + timedelta(days=2))) as memory:
        memory.set("pref.editor", "Emacs")
    imported(filled, content)
    assert query(filled, "SELECT value FROM facts WHERE key = 'pref.editor'") == [("Emacs",)]


def test_what_was_said_later_there_comes_in_and_the_trail_says_so(filled: Path, empty: Path, log: Log) -> None:
    with open_memory(empty, Log(), clock=Clock(LATER - timedelta(days=9))) as memory:
        memory.set("pref.editor", "Vim")
    imported(empty, exported(filled))
    assert query(empty, "SELECT value FROM facts WHERE key = 'pref.editor'") == [("Helix 25",)]
    told_of = query(
        empty, "SELECT old_value, new_value FROM memory_events WHERE event_type = 'update' AND old_value = 'Vim'"
    )
    assert told_of == [("Vim", "Helix 25")]


def test_the_persons_word_here_outweighs_an_agents_there(filled: Path, empty: Path) -> None:
    with open_memory(filled, Log(), clock=Clock(LATER + timedelta(hours=1))) as memory:
        memory.set("pref.font", "Iosevka", writer="agent")
    with open_memory(empty, Log(), clock=Clock(START)) as memory:
        memory.set("pref.font", "Fira")
    imported(empty, exported(filled))
    assert query(empty, "SELECT value, source FROM facts WHERE key = 'pref.font'") == [("Fira", "user")]


def test_a_fact_that_an_agent_hid_since_is_not_shown_again(filled: Path) -> None:
    content = exported(filled)
    with open_memory(filled, Log()) as memory:
        memory.hide("user.allergy")
    imported(filled, content)
    assert query(filled, "SELECT is_deleted FROM facts WHERE key = 'user.allergy'") == [(1,)]


def test_a_proposal_that_was_decided_since_does_not_wait_again(filled: Path, log: Log) -> None:
    content = exported(filled)
    with open_memory(filled, log) as memory:
        memory.accept(next(one.name for one in memory.proposals() if one.key == "pref.tea"), value="green, no milk")
    imported(filled, content)
    with open_memory(filled, log) as memory:
        assert [one.key for one in memory.proposals(deferred=True)] == ["pref.os"]


def test_a_proposal_that_waits_in_both_waits_once(filled: Path, empty: Path) -> None:
    with open_memory(empty, Log(), clock=Clock(LATER - timedelta(days=1))) as memory:
        memory.propose("set", "pref.tea", "green", "main", origin="owner", reason="marker")
    imported(empty, exported(filled))
    assert query(empty, "SELECT count(*) FROM proposals WHERE key = 'pref.tea'") == [(1,)]


@pytest.mark.parametrize("taken", [False, True], ids=["the same numbers", "other numbers"])
def test_what_was_decided_elsewhere_about_one_of_a_batch_is_decided_here_and_no_other_one(
    db_path: Path, empty: Path, taken: bool
) -> None:
    """They were all made in one moment, and of what is decided the prefix of its key alone is left."""
    if taken:
        with open_memory(empty, Log(), clock=Clock(LATER - timedelta(days=3))) as memory:
            memory.propose("set", "user.pet", "a cat", "main", origin="owner", reason="marker")
    with open_memory(db_path, Log()) as memory:
        for number, (key, value) in enumerate({"pref.tea": "green", "pref.os": "Linux", "user.city": "Ghent"}.items()):
            at = START + timedelta(minutes=number)
            memory.propose("set", key, value, "main", origin="owner", reason="marker", observed_at=at)
    imported(empty, exported(db_path))
    with open_memory(db_path, Log(), clock=Clock(LATER + timedelta(hours=1))) as memory:
        waiting = {one.key: one.name for one in memory.proposals()}
        memory.accept(waiting["pref.os"])
        memory.reject(waiting["user.city"])
    imported(empty, exported(db_path))
    before = state(empty)
    assert not portable.total(imported(empty, exported(db_path)).counts).keys() - {"known", "live"}
    assert state(empty) == before
    with open_memory(empty, Log()) as memory:
        assert {one.key for one in memory.proposals()} == {"pref.tea"} | ({"user.pet"} if taken else set())


def test_what_is_a_fact_here_does_not_wait(filled: Path, empty: Path) -> None:
    with open_memory(empty, Log()) as memory:
        memory.set("pref.tea", "Green", scope="main")
    imported(empty, exported(filled))
    with open_memory(empty, Log()) as memory:
        assert [one.key for one in memory.proposals(deferred=True)] == ["pref.os"]


def test_a_rejection_elsewhere_holds_here(filled: Path, empty: Path) -> None:
    imported(empty, exported(filled))
    with open_memory(empty, Log()) as memory:
        memory.set("pref.x", "y")  # makes the key
    with open_memory(filled, Log()) as memory:
        memory.reject(next(one.name for one in memory.proposals() if one.key == "pref.tea"))
    imported(empty, exported(filled))
    with open_memory(empty, Log()) as memory:
        assert [one.key for one in memory.proposals(deferred=True)] == ["pref.os"]
        with pytest.raises(UsageError, match="rejected"):
            memory.propose("set", "pref.tea", "green", "main", origin="owner", reason="marker")


# --- what was forgotten -----------------------------------------------------------------------------------------------


def test_an_old_export_brings_nothing_forgotten_back(filled: Path, log: Log) -> None:
    content = exported(filled)
    with open_memory(filled, log) as memory:
        memory.forget("user.allergy")
        memory.forget("pref.editor")
    done = imported(filled, content)
    assert done.counts["fact"]["forgotten"] == 2
    assert not residue(filled.parent, "hazelnuts", "Helix")


def test_nor_another_value_of_a_key_that_was_forgotten(filled: Path, empty: Path) -> None:
    with open_memory(empty, Log()) as memory:
        memory.set("user.allergy", "strawberries")
        memory.forget("user.allergy")
    query(empty, "DELETE FROM memory_events")  # the tombstone alone says so
    assert imported(empty, exported(filled)).counts["fact"]["forgotten"] == 1


def test_nor_under_another_key(filled: Path, empty: Path) -> None:
    imported(empty, exported(filled))
    with open_memory(empty, Log()) as memory:
        memory.forget("user.allergy")
    said = lines(exported(filled))
    for line in said:
        if line.get("key") == "user.allergy":
            line["key"] = "user.cannot_eat"
    imported(empty, closed(said[:-1]))
    assert not residue(empty.parent, "hazelnuts")


def test_what_was_forgotten_again_elsewhere_stays_away_until_then(filled: Path, empty: Path) -> None:
    """The later of two forgettings counts, whichever file knows of it."""
    secret = keyfile.secret(keyfile.key_path(filled))
    empty.parent.mkdir(parents=True)
    shutil.copy(keyfile.key_path(filled), keyfile.key_path(empty))
    with open_memory(empty, Log()):
        pass
    for path, days in ((empty, 0), (filled, 2)):
        with db.opened(path) as connection, db.transaction(connection, path):
            tombstones.bury_messages(connection, secret, [SAID.content_key], LATER + timedelta(days=days))
    content = exported(filled)
    for path, other in ((empty, content), (filled, exported(empty))):
        imported(path, other)
        with db.opened(path, readonly=True) as connection:
            known = tombstones.Tombstones(connection, secret)
        said = [known.is_forgotten("main", "s1", SAID.content_key, LATER + timedelta(days=day)) for day in (1, 3)]
        assert said == [True, False]


def test_nor_a_proposal_of_it(filled: Path) -> None:
    content = exported(filled)
    with open_memory(filled, Log()) as memory:
        memory.set("user.drink", "green", scope="main")
        memory.forget("user.drink")
    done = imported(filled, content)
    assert done.counts["proposal"] == {"forgotten": 1, "known": 3}
    assert not query(filled, "SELECT * FROM proposals WHERE value = 'green'")


def test_nor_what_was_rejected_not_long_ago(filled: Path, empty: Path) -> None:
    with open_memory(filled, Log()) as memory:
        memory.reject(next(one.name for one in memory.proposals() if one.key == "pref.tea"))
    with open_memory(empty, Log(), clock=Clock(START)) as memory:
        memory.propose("set", "pref.tea", "green", "main", origin="owner", reason="marker")
    assert imported(filled, exported(empty)).counts["proposal"] == {"rejected": 1}


def test_nor_its_evidence(filled: Path) -> None:
    content = exported(filled)
    with db.opened(filled) as connection, db.transaction(connection, filled):
        evidence.remove(connection, "shared", "pref.editor")
    with open_memory(filled, Log()) as memory:
        memory.forget("pref.editor")
    assert imported(filled, content).counts["evidence"] == {"forgotten": 1, "known": 1}


def test_what_was_said_anew_does_not_rest_on_a_forgotten_message(filled: Path, empty: Path) -> None:
    with open_memory(empty, Log()) as memory:
        memory.set("pref.editor", "Helix 25")
    secret = keyfile.secret(keyfile.key_path(empty))
    with db.opened(empty) as connection, db.transaction(connection, empty):
        tombstones.bury_messages(connection, secret, [SAID.content_key], LATER)
    done = imported(empty, exported(filled))
    assert done.counts["evidence"] == {"forgotten": 1, "new": 1}
    assert query(empty, "SELECT value FROM facts WHERE key = 'pref.editor'") == [("Helix 25",)]


def test_nor_what_rests_on_a_forgotten_message(filled: Path, empty: Path) -> None:
    imported(empty, exported(filled))
    secret = keyfile.secret(keyfile.key_path(empty))
    with db.opened(empty) as connection, db.transaction(connection, empty):
        facts.remove(connection, "pref.editor", "shared")
        evidence.remove(connection, "shared", "pref.editor")
        tombstones.bury_messages(connection, secret, [SAID.content_key], LATER)
    done = imported(empty, exported(filled))
    assert done.counts["fact"]["forgotten"] == 1 and done.counts["evidence"]["forgotten"] == 1
    assert query(empty, "SELECT * FROM facts WHERE key = 'pref.editor'") == []


def test_what_was_said_anew_after_it_was_forgotten_comes_in(filled: Path, empty: Path) -> None:
    imported(empty, exported(filled))
    with open_memory(empty, Log(), clock=Clock(LATER + timedelta(days=2))) as memory:
        memory.forget("user.allergy")
        memory.set("user.allergy", "hazelnuts")
    done = imported(empty, exported(filled))
    assert "forgotten" not in done.counts["fact"]
    assert query(empty, "SELECT value FROM facts WHERE key = 'user.allergy'") == [("hazelnuts",)]


def test_what_lives_here_stays_so_that_it_can_be_said_again(filled: Path, empty: Path) -> None:
    """It was forgotten there, and its tombstones come along."""
    empty.parent.mkdir(mode=0o700)
    shutil.copy(keyfile.key_path(filled), keyfile.key_path(empty))
    with open_memory(empty, Log()) as memory:
        memory.set("user.boat", "Sira")
    assert imported(empty, exported(filled)).counts["tombstone"]["live"] == 3, "key, value and its one stem"
    with open_memory(empty, Log()) as memory:
        assert memory.set("user.boat", "Sira", writer="agent").source == "user"


def test_nor_do_the_words_of_what_lives_here_come_in_again_and_again(filled: Path, empty: Path) -> None:
    """Somebody forgot there what another fact here says in other words."""
    imported(empty, exported(filled))
    with open_memory(filled, Log(), clock=Clock(LATER + timedelta(hours=1))) as memory:
        memory.set("user.nuts", "allergic to roasted hazelnuts")
        memory.forget("user.nuts")
    with open_memory(empty, Log()) as memory:
        memory.set("user.food", "roasted hazelnuts, allergic")
    shutil.copy(keyfile.key_path(filled), keyfile.key_path(empty))
    first = imported(empty, exported(filled))
    before = state(empty)
    assert first.counts["tombstone"]["live"] == 3, "each of its stems"
    assert imported(empty, exported(filled)).counts["tombstone"].get("new") is None
    assert state(empty) == before


def test_a_horizon_that_comes_in_erases_what_was_said_before_it(filled: Path, empty: Path) -> None:
    log = Log()
    log.say("an old remark about the harbour crane and its rust", "s9")
    with open_memory(empty, log) as memory:
        memory.sync()
        assert memory.search("harbour crane").recalled
    with db.opened(filled) as connection, db.transaction(connection, filled):
        tombstones.put_horizon(connection, "main", START + timedelta(days=3))
    imported(empty, exported(filled))
    assert query(empty, "SELECT * FROM cursors WHERE name = 'erase:unfinished'") == []
    with open_memory(empty, log) as memory:
        memory.sync()
        assert not memory.search("harbour crane").recalled


# --- bad input --------------------------------------------------------------------------------------------------------


def torn(content: bytes) -> bytes:
    return content[:-30]


def edited(content: bytes) -> bytes:
    return content.replace(b"hazelnuts", b"walnuts", 1)


def without_a_line(content: bytes) -> bytes:
    kept = content.splitlines(keepends=True)
    return b"".join([*kept[:3], *kept[4:]])


def later(content: bytes) -> bytes:
    said = lines(content)[:-1]
    said[0]["version"] = 2
    return closed(said)


BAD: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "torn": (torn, "torn"),
    "edited": (edited, "edited"),
    "a line is missing": (without_a_line, "torn"),
    "the end is missing": (lambda content: content[: content.rindex(b"{")], "torn"),
    "another end of line": (lambda content: content.replace(b"\n", b"\r\n"), "torn"),
    "later": (later, "later clawmark"),
    "empty": (lambda content: b"", "no header"),
    "a sidecar": (lambda content: b'{"clawmark":"facts","version":1}\n', "restore"),
    "no JSON": (lambda content: b"# my notes\n", "no header"),
    "deep": (lambda content: b"[" * 100_000, "no header"),
    "binary": (lambda content: bytes(range(256)), "no header"),
    "no version": (lambda content: b'{"clawmark":"export","version":true}\n', "which version"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_changes_nothing(filled: Path, empty: Path, name: str) -> None:
    spoil, said = BAD[name]
    with pytest.raises(UsageError, match=said):
        imported(empty, spoil(exported(filled)))
    assert not empty.exists()
    before = state(filled)
    with pytest.raises(UsageError, match=said):
        imported(filled, spoil(exported(filled)))
    assert state(filled) == before


def changed(record: str, /, **fields: Any) -> Callable[[list[Line]], None]:
    def change(said: list[Line]) -> None:
        next(line for line in said if line.get("record") == record).update(fields)

    return change


def lacking(record: str, name: str) -> Callable[[list[Line]], None]:
    def change(said: list[Line]) -> None:
        del next(line for line in said if line.get("record") == record)[name]

    return change


ROWS: dict[str, tuple[str, Callable[[list[Line]], None]]] = {
    "a record of no kind": ("scope", changed("scope", record="sorcery")),
    "a value too long": ("fact", changed("fact", value="x" * 3000)),
    "a blank value": ("fact", changed("fact", value=" ")),
    "a key that is none": ("fact", changed("fact", key="../../etc")),
    "a scope of two lines": ("fact", changed("fact", scope="a\nb")),
    "confidence above 1": ("fact", changed("fact", confidence=7)),
    "confidence that is none": ("fact", changed("fact", confidence="high")),
    "confidence true": ("fact", changed("fact", confidence=True)),
    "a time without offset": ("fact", changed("fact", observed_at="2026-01-01T00:00:00")),
    "a time that is none": ("fact", changed("fact", observed_at="yesterday")),
    "a writer that is none": ("fact", changed("fact", source="admin")),
    "half a fact": ("fact", lacking("fact", "reinforced_at")),
    "evidence in no digits": ("evidence", changed("evidence", content_key="zz")),
    "evidence in the year 0": ("evidence", changed("evidence", said_at="0000-01-01T00:00:00+00:00")),
    "a proposal of no kind": ("proposal", changed("proposal", kind="rewrite")),
    "a proposal of a number": ("proposal", changed("proposal", number="; DROP TABLE facts")),
    "an endless number": ("proposal", changed("proposal", number=10**30)),
    "an event of no type": ("event", changed("event", event_type="sudo")),
    "an event about a list": ("event", changed("event", new_value=["x"])),
    "a tombstone of no hash": ("tombstone", changed("tombstone", hash=3)),
    "a horizon that is none": ("horizon", changed("horizon", before="soon")),
    "a session of nobody": ("deleted_session", lacking("deleted_session", "host")),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_bad_line_is_named_and_keeps_no_other_out(filled: Path, empty: Path, name: str) -> None:
    record, change = ROWS[name]
    said = lines(exported(filled))[:-1]
    place = next(number for number, line in enumerate(said, 1) if line.get("record") == record)
    change(said)
    done = imported(empty, closed(said))
    assert [one.line for one in done.skipped] == [place]
    assert len(records(exported(empty))) == len(said) - 2


def test_a_line_with_a_secret_is_left_out_and_its_words_are_nowhere(filled: Path, empty: Path) -> None:
    said = lines(exported(filled))[:-1]
    secret = token()
    changed("fact", value=f"the key is {secret}")(said)
    changed("event", new_value=secret, detail=secret)(said)
    done = imported(empty, closed(said))
    (one,) = done.skipped
    assert "SECRET" in one.reason and secret not in one.reason
    assert not residue(empty.parent, secret)


def test_half_a_character_is_left_out(filled: Path, empty: Path) -> None:
    header, *rest = exported(filled).splitlines(keepends=True)[:-1]
    place = next(number for number, line in enumerate(rest) if b'"event"' in line)
    told_of = json.loads(rest[place]) | {"detail": "\ud800"}
    rest[place] = json.dumps(told_of).encode() + b"\n"  # as an escape
    body = b"".join([header, *rest])
    end = {"lines": len(rest), "sha256": hashlib.sha256(body).hexdigest()}
    done = imported(empty, body + json.dumps(end).encode() + b"\n")
    assert [one.line for one in done.skipped] == [place + 2]


def test_no_complaint_holds_a_value(filled: Path, empty: Path) -> None:
    said = lines(exported(filled))[:-1]
    for line in said:
        if line.get("record") == "fact":
            line["confidence"] = 9
    done = imported(empty, closed(said))
    assert len(done.skipped) == len(of(exported(filled), "fact"))
    assert all(word not in one.reason for one in done.skipped for word in ("Helix", "hazelnuts", "Gothenburg"))


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20), nested, max_leaves=6
)


@given(record=st.sampled_from(list(portable.RECORDS)), data=st.data())
def test_no_line_breaks_an_import(record: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    table, names = portable.RECORDS[record]
    fields = {column: name for name, column in names.items()}
    line = {"record": record} | {fields.get(column, column): data.draw(JSON) for column in portable._COLUMNS[table]}
    try:
        content = closed([{"clawmark": "export", "version": 1}, line])
    except UnicodeEncodeError:
        return
    path = tmp_path_factory.mktemp("odd") / "memory.db"
    imported(path, content)
    with open_memory(path, Log()) as memory:
        memory.facts(), memory.events(), memory.proposals(), memory.status()


def test_a_dry_run_says_what_would_be_and_changes_nothing(filled: Path, empty: Path) -> None:
    with open_memory(empty, Log()):
        pass
    content, before = exported(filled), state(empty)
    rehearsed = imported(empty, content, dry_run=True)
    assert state(empty) == before and rehearsed.dry_run
    assert imported(empty, content).counts == rehearsed.counts


def test_a_dry_run_makes_no_memory(filled: Path, empty: Path) -> None:
    with pytest.raises(UsageError, match="without --dry-run"):
        imported(empty, exported(filled), dry_run=True)
    assert not empty.exists()


def test_an_import_waits_for_a_pass_of_the_jobs(filled: Path) -> None:
    content = exported(filled)
    with db.lease(filled, 1), pytest.raises(DatabaseBusy):
        portable.import_text(filled, content, "old.jsonl", Clock(), 0.1)


def test_a_failure_leaves_nothing_half_done(filled: Path, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_memory(empty, Log()):
        pass
    before = state(empty)

    def fails(*_: Any) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr(arrival, "_note_arrival", fails)
    with pytest.raises(RuntimeError):
        imported(empty, exported(filled))
    assert state(empty) == before


def test_the_sidecar_shows_what_came_in(filled: Path, empty: Path) -> None:
    imported(empty, exported(filled))
    found = sidecar.read(empty)
    assert found is not None
    assert {row["key"] for row in found.facts} == {line["key"] for line in of(exported(filled), "fact")}


def test_a_sidecar_brings_in_what_belongs_to_facts_too(filled: Path, empty: Path) -> None:
    with db.opened(filled) as connection:
        sidecar.write(connection, filled, LATER)
    transfer.restore(empty, sidecar.path_of(filled), Clock(), 5.0)
    for table in ("evidence", "proposals", "horizons", "tombstones", "deleted_sessions"):
        assert query(empty, f"SELECT * FROM {table} ORDER BY 1, 2") == query(
            filled, f"SELECT * FROM {table} ORDER BY 1, 2"
        )


def test_restore_names_the_command_that_takes_an_export(filled: Path, tmp_path: Path) -> None:
    place = tmp_path / "all.jsonl"
    place.write_bytes(exported(filled))
    with pytest.raises(UsageError, match="clawmark import"):
        transfer.restore(filled, place, Clock(), 1.0)


def test_the_import_is_in_the_trail_once(filled: Path, empty: Path) -> None:
    imported(empty, exported(filled))
    imported(empty, exported(filled))
    ((detail,),) = query(empty, "SELECT detail FROM memory_events WHERE event_type = 'import'")
    assert detail.startswith("old.jsonl; facts: 1 hidden, ")


# --- the commands -----------------------------------------------------------------------------------------------------


@pytest.fixture
def at(filled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CLAWMARK_DB_PATH", str(filled))
    monkeypatch.setenv("CLAWMARK_EMBEDDER", "none")
    return filled


def run(command: Any, *arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(command, list(arguments), **options)


def test_the_command_writes_to_a_file_or_to_standard_output(at: Path, tmp_path: Path) -> None:
    target = tmp_path / "all.jsonl"
    told_of = run(export_command, str(target), "--json")
    assert json.loads(told_of.output)["counts"]["fact"] == 5
    printed = run(export_command).stdout_bytes
    assert told(printed) == told(target.read_bytes())


def test_what_one_memory_prints_another_one_reads(at: Path, empty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = run(export_command).stdout_bytes
    monkeypatch.setenv("CLAWMARK_DB_PATH", str(empty))
    done = run(import_command, "-", "--json", input=printed)
    assert done.exit_code == 0 and json.loads(done.stdout)["counts"]["fact"] == {"hidden": 1, "new": 4}
    assert told(run(export_command).stdout_bytes) == told(printed)


def test_lines_that_were_left_out_end_in_an_error(
    at: Path, empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = lines(exported(at))[:-1]
    changed("fact", confidence=9)(said)
    place = tmp_path / "all.jsonl"
    place.write_bytes(closed(said))
    monkeypatch.setenv("CLAWMARK_DB_PATH", str(empty))
    done = run(import_command, str(place))
    assert done.exit_code == 1 and "was left out: fact" in done.output


FILES = ["--format", "claude-memory"]


@pytest.mark.parametrize(
    "arguments", [["--index"], ["--yes"], ["--project"], ["--json"], FILES, [*FILES, "x", "--project"]], ids=" ".join
)
def test_options_that_do_not_go_together_are_named(at: Path, arguments: list[str]) -> None:
    assert isinstance(run(export_command, *arguments).exception, UsageError)


@pytest.mark.parametrize("name", ["missing.jsonl", "."])
def test_a_source_that_is_none_is_named(at: Path, tmp_path: Path, name: str) -> None:
    failed = run(import_command, str(tmp_path / name)).exception
    assert isinstance(failed, UsageError) and str(tmp_path) in str(failed)


def test_times_written_elsewhere_become_utc(filled: Path, empty: Path) -> None:
    said = lines(exported(filled))[:-1]
    changed("horizon", before="2026-05-01T02:00:00+02:00")(said)
    imported(empty, closed(said))
    assert query(empty, "SELECT before FROM horizons") == [("2026-05-01T00:00:00+00:00",)]


def test_what_a_file_says_of_the_future_is_said_now(empty: Path, filled: Path) -> None:
    """A fact from 2099 would outlast the person's next word, and a horizon would keep out what is not said yet."""
    said = lines(exported(filled))[:-1]
    for line in said:
        if line.get("record") == "fact":
            line["observed_at"] = line["reinforced_at"] = line["updated_at"] = "2099-01-01T00:00:00+00:00"
        if line.get("record") == "horizon":
            line["before"] = "9999-01-01T00:00:00+00:00"
    imported(empty, closed(said))
    times = query(empty, "SELECT max(observed_at), max(reinforced_at) FROM facts")
    assert max(times[0]) <= (LATER + timedelta(days=1)).isoformat()
    assert query(empty, "SELECT count(*) FROM horizons WHERE before > '2027'") == [(0,)]


def test_two_proposals_of_one_key_made_at_once_stay_two(tmp_path: Path, log: Log, clock: Clock, empty: Path) -> None:
    path = tmp_path / "two" / "memory.db"
    with open_memory(path, log, clock=clock) as memory:
        for value in ("8 to 15 August", "1 to 8 August"):
            memory.propose("set", "project.week", value, "main", origin="owner", reason="marker", observed_at=START)
    imported(empty, exported(path))
    assert query(empty, "SELECT value FROM proposals ORDER BY id") == [("8 to 15 August",), ("1 to 8 August",)]


def test_a_folder_is_named_as_no_export(empty: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder; name a file that"):
        portable.import_(empty, tmp_path, Clock(), 5.0)
