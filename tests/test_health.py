"""Doctor names what is wrong and what to do, sends nothing but the probe, and changes nothing."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw
import pytest
from helpers import Clock, Log, fake, open_memory, query
from server import Reply, Request, serving

from clawmark import health
from clawmark.embed.probe import PROBE
from clawmark.health import Check, doctor
from clawmark.model import Status
from clawmark.settings import Settings
from clawmark.store import copy, migrations

SAMPLE = Path(__file__).parent / "fixtures" / "openclaw" / "sqlite"


def settings(db_path: Path, machine: Path, **more: Any) -> Settings:
    chosen = {"embedder": "none", "transcripts_dir": SAMPLE, "openclaw_state_dir": machine / ".openclaw"} | more
    return Settings(db_path=db_path, **chosen)


def found(name: str, chosen: Settings) -> Check:
    (check,) = [check for check in doctor(chosen) if check.name == name]
    return check


@pytest.fixture
def made(db_path: Path, log: Log, clock: Clock) -> Path:
    for number in range(5):
        log.say(f"sentence number {number} speaks of topic{number} at some length")
    with open_memory(db_path, log, embedder=fake(), clock=clock) as memory:
        memory.sync()
        memory.set("pref.editor", "Helix")
    return db_path


def content(folder: Path) -> dict[str, bytes]:
    """Everything in the folder, but for what SQLite leaves beside a file that was read: an empty log and its index."""
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.stat().st_size and not p.name.endswith("-shm")}


def answer(request: Request) -> Reply:
    texts = request.body["input"]
    rows = [{"index": n, "embedding": [1.0, float(len(text))]} for n, text in enumerate(texts)]
    return Reply(body={"data": rows})


# --- the file ---------------------------------------------------------------------------------------------------------


def test_nothing_is_made_where_nothing_was(db_path: Path, machine: Path, log: Log, clock: Clock) -> None:
    """The key is made by whoever needs it first, which doctor does not."""
    open_memory(db_path, log, clock=clock).close()
    before = content(db_path.parent)
    assert "memory.db.key" not in before
    doctor(settings(db_path, machine))
    assert content(db_path.parent) == before


def test_all_is_well_and_nothing_is_changed(made: Path, machine: Path) -> None:
    before = content(made.parent)
    checks = doctor(settings(made, machine))
    assert {check.name: check.said for check in checks if check.state != "ok"} == {}
    assert content(made.parent) == before


def test_without_a_database_the_first_step_is_named(db_path: Path, machine: Path) -> None:
    check = found("database", settings(db_path, machine))
    assert (check.state, "clawmark sync" in check.advice) == ("warn", True)
    assert not db_path.exists()


def test_a_damaged_page_is_found_and_left(made: Path, machine: Path) -> None:
    connection = apsw.Connection(str(made))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    with made.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * 4096 * 12)
    damaged = made.read_bytes()
    check = found("database", settings(made, machine))
    assert (check.state, "sets it aside" in check.advice) == ("fail", True)
    assert made.read_bytes() == damaged
    with open_memory(made, Log(), embedder=fake(), clock=Clock()) as memory:
        assert [fact.value for fact in memory.facts()] == ["Helix"], "rebuilt at the next opening"


def test_a_broken_vector_is_found_and_made_anew(made: Path, machine: Path, log: Log) -> None:
    """SQLite has no checksums: these bytes are sound to it."""
    connection = apsw.Connection(str(made))
    connection.execute("UPDATE message_vectors SET embedding = zeroblob(256) WHERE id = 2").fetchall()
    connection.close()
    checks = doctor(settings(made, machine))
    assert any("1 are damaged" in check.said and "reembed" in check.advice for check in checks)
    with open_memory(made, log, embedder=fake(), clock=Clock()) as memory:
        assert memory.reembed().vectors == 1
    assert not any("damaged" in check.said for check in doctor(settings(made, machine)))


def test_another_schema_is_named(made: Path, machine: Path) -> None:
    connection = apsw.Connection(str(made))
    connection.execute(f"INSERT INTO schema_version VALUES ({migrations.LATEST + 1}, '')").fetchall()
    connection.close()
    check = found("database", settings(made, machine))
    assert (check.state, check.advice) == ("fail", "Upgrade clawmark.")


def test_a_file_open_to_others_is_named(made: Path, machine: Path) -> None:
    os.chmod(made, 0o644)
    check = found("permissions", settings(made, machine))
    assert check.state == "warn" and str(made) in check.said


def test_a_full_disk_is_named(made: Path, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "LITTLE_ROOM", 2**62)
    assert found("disk", settings(made, machine)).state == "warn"


def test_a_torn_sidecar_and_a_cut_key_are_named(made: Path, machine: Path) -> None:
    with made.with_name("memory.db.facts").open("r+b") as file:
        file.truncate(40)
    made.with_name("memory.db.key").write_bytes(b"short")
    assert found("sidecar", settings(made, machine)).state == "warn"
    assert found("key", settings(made, machine)).state == "fail"


def test_what_was_set_aside_is_listed(made: Path, machine: Path) -> None:
    aside = made.with_name("memory.db.damaged-20260101T000000Z")
    aside.write_bytes(b"x")
    aside.chmod(0o600)
    assert str(aside) in found("set aside", settings(made, machine)).said


# --- the embedder -----------------------------------------------------------------------------------------------------


def test_the_endpoint_gets_the_probe_and_nothing_else(made: Path, machine: Path) -> None:
    with serving(answer) as server:
        chosen = settings(made, machine, embedder="auto", embedding_url=server.url, embedding_model="m")
        check = found("embedder", chosen)
        sent = [text for request in server.requests for text in request.body["input"]]
    assert "2 dimensions" in check.said
    assert set(sent) == {PROBE}


def test_a_model_unlike_that_of_the_vectors_is_named(made: Path, machine: Path) -> None:
    with serving(answer) as server:
        chosen = settings(made, machine, embedder="auto", embedding_url=server.url, embedding_model="m")
        check = found("embedder", chosen)
    assert (check.state, check.advice) == ("warn", "`clawmark reembed` makes them anew.")
    assert "fake, 64 dimensions" in check.said


def test_an_endpoint_that_is_down_is_named_with_its_setting(made: Path, machine: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    chosen = settings(made, machine, embedder="auto", embedding_url=url, embedding_model="m")
    check = found("embedder", chosen)
    assert (check.state, "CLAWMARK_EMBEDDING_URL" in check.advice) == ("fail", True)


def test_one_key_alone_is_named_and_nothing_is_sent(made: Path, machine: Path) -> None:
    """H8. The network of the tests refuses whatever is no loopback."""
    chosen = settings(made, machine, embedder="auto", embedding_url="http://192.0.2.7/v1", embedding_model="m")
    check = found("embedder", chosen)
    assert check.state == "fail" and "CLAWMARK_ALLOW_REMOTE" in check.said


def test_what_failed_is_named_with_its_reason(db_path: Path, machine: Path, log: Log, clock: Clock) -> None:
    ref = log.say("the lapisgecko sits on the warm wall again")
    with open_memory(db_path, log, embedder=fake(poisoned=["lapisgecko"]), clock=clock) as memory:
        memory.sync()
    check = found("vectors", settings(db_path, machine))
    assert check.state == "warn" and "poisoned" in check.said and "clawmark reembed" in check.advice
    assert (str(ref) if isinstance(ref, str) else log.messages()[0].ref) in check.said


def test_doctor_leaves_an_old_database_as_it_is(made: Path, machine: Path) -> None:
    connection = apsw.Connection(str(made))
    connection.execute(f"DELETE FROM schema_version WHERE version = {migrations.LATEST}").fetchall()
    connection.close()
    before = query(made, "SELECT * FROM schema_version")
    assert "up to date" in found("database", settings(made, machine)).advice
    assert query(made, "SELECT * FROM schema_version") == before


def test_a_key_that_is_gone_or_anothers_is_named(made: Path, machine: Path) -> None:
    """Tombstones say nothing without it."""
    with open_memory(made, Log(), embedder=fake(), clock=Clock()) as memory:
        memory.forget("pref.editor")
    key = made.with_name("memory.db.key")
    kept = key.read_bytes()
    key.unlink()
    assert found("key", settings(made, machine)).state == "fail"
    key.write_bytes(bytes(reversed(kept)))
    key.chmod(0o600)
    connection = apsw.Connection(str(made))
    note = (copy.KEY_NOTE, copy.fingerprint(kept))
    connection.execute("INSERT INTO cursors VALUES (?, ?, '2026-01-01T00:00:00+00:00')", note).fetchall()
    connection.close()
    assert found("key", settings(made, machine)).state == "fail"


def test_anothers_file_is_left_and_said(db_path: Path, machine: Path) -> None:
    db_path.parent.mkdir(parents=True, exist_ok=True)
    notes = db_path.with_name("a**b[1 notes.txt")
    notes.write_text("shopping: milk, planks\n" * 500)
    before = content(db_path.parent)
    check = found("database", settings(notes, machine))
    assert check.state == "fail" and "left as it is" in check.said
    assert content(db_path.parent) == before


def test_a_folder_in_its_place_or_as_a_file_is_said(db_path: Path, machine: Path) -> None:
    db_path.mkdir(parents=True)
    assert found("database", settings(db_path, machine)).state == "fail"
    blocked = db_path.parent / "file"
    blocked.write_text("x")
    assert found("database", settings(blocked / "memory.db", machine)).state == "fail"


def test_a_database_with_a_second_name_is_named(made: Path, machine: Path, tmp_path: Path) -> None:
    os.link(made, tmp_path / "second.db")
    check = found("permissions", settings(made, machine))
    assert check.state == "warn" and "second name" in check.said


# --- who extracts facts -----------------------------------------------------------------------------------------------


def chats(content: Any = '{"facts": []}', status: int = 200) -> Callable[[Request], Reply]:
    """A chat server that always says the same."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return lambda request: Reply(status, {"choices": [choice]} if status == 200 else {"error": {"message": "no"}})


def extractor(made: Path, machine: Path, **more: Any) -> Check:
    """What doctor says of it first."""
    return next(check for check in doctor(settings(made, machine, **more)) if check.name == "extractor")


def state(db_path: Path, log: Log, clock: Clock, **changes: Any) -> Status:
    with open_memory(db_path, log, clock=clock, **changes) as memory:
        return memory.status()


def test_without_a_setting_no_model_is_asked(made: Path, machine: Path, log: Log, clock: Clock) -> None:
    check = extractor(made, machine)
    assert check.state == "ok" and "no model" in check.said
    assert (state(made, log, clock).extractor, state(made, log, clock).calls) == ("embedded markers", None)


def test_extraction_that_is_off_waits_for_nothing(made: Path, machine: Path, log: Log, clock: Clock) -> None:
    assert extractor(made, machine, extract_url="off").said.startswith("off")
    status = state(made, log, clock, extract_url="off")
    assert (status.extractor, status.unasked, status.problems) == ("off", 0, state(made, log, clock).problems)


def test_a_chat_endpoint_is_asked_for_one_fixed_answer_alone(made: Path, machine: Path) -> None:
    with serving(chats()) as server:
        check = extractor(made, machine, extract_url=server.url, extract_model="tiny")
    assert check.state == "ok" and "tiny" in check.said and server.url.removeprefix("http://") in check.said
    (request,) = server.requests
    words = json.dumps(request.body)
    assert health.CHAT_SYSTEM in words and "Helix" not in words and "topic" not in words
    assert request.body["max_tokens"] == health.CHAT_TOKENS


@pytest.mark.parametrize("content", ["I am a helpful assistant.", "", None, [1, 2]])
def test_a_model_that_cannot_answer_in_json_is_named(made: Path, machine: Path, content: Any) -> None:
    with serving(chats(content)) as server:
        check = extractor(made, machine, extract_url=server.url)
    assert check.state == "warn" and "CLAWMARK_EXTRACT_MODEL" in check.advice and "helpful" not in check.said


@pytest.mark.parametrize(("status", "named"), [(401, "CLAWMARK_EXTRACT_API_KEY"), (404, "CLAWMARK_EXTRACT_")])
def test_a_chat_endpoint_that_is_set_up_wrongly_names_the_setting(
    made: Path, machine: Path, status: int, named: str
) -> None:
    with serving(chats(status=status)) as server:
        check = extractor(made, machine, extract_url=server.url)
    assert check.state == "fail" and named in check.said


def test_a_chat_endpoint_that_is_down_is_said(made: Path, machine: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    check = extractor(made, machine, extract_url=url)
    assert check.state == "fail" and "CLAWMARK_EXTRACT_URL" in check.advice


def test_a_public_chat_endpoint_without_the_second_key_is_not_asked(
    made: Path, machine: Path, log: Log, clock: Clock
) -> None:
    """H8. The network of the tests refuses whatever is no loopback."""
    check = extractor(made, machine, extract_url="http://192.0.2.7/v1")
    assert check.state == "fail" and "CLAWMARK_ALLOW_REMOTE" in check.said
    problems = state(made, log, clock, extract_url="http://192.0.2.7/v1").problems
    assert any(line.startswith("extractor: ") and "CLAWMARK_ALLOW_REMOTE" in line for line in problems)


def test_the_hosts_model_needs_its_key_and_has_a_budget(made: Path, machine: Path, log: Log, clock: Clock) -> None:
    check = extractor(made, machine, extract_url="host")
    assert check.state == "fail" and "`host`" in check.said
    allowed = {"extract_url": "host", "allow_remote": "host"}
    check = extractor(made, machine, **allowed)
    assert check.state == "ok" and "100 times a day" in check.said
    assert extractor(made, machine, **allowed, extract_daily_calls=0).state == "warn"
    status = state(made, log, clock, **allowed, extract_daily_calls=7)
    assert (status.extractor, status.calls) == ("host", (0, 7))
    assert not [line for line in status.problems if line.startswith("extractor")]


def test_why_extraction_stands_still_is_a_problem_until_it_works_again(
    made: Path, machine: Path, log: Log, clock: Clock
) -> None:
    log.say("From now on I always take the early train to Lund.")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    with open_memory(made, log, clock=clock, extract_url=url) as memory:
        memory.sync()
        status = memory.status()
    assert any(line.startswith("extractor: ") and "since 20" in line for line in status.problems)
    assert status.unasked > 0
    with serving(chats()) as server, open_memory(made, log, clock=clock, extract_url=server.url) as memory:
        memory.sync()
        status = memory.status()
        checks = [one for one in doctor(settings(made, machine, extract_url=server.url)) if one.name == "extractor"]
    assert not [line for line in status.problems if line.startswith("extractor")] and status.unasked == 0
    assert [one.state for one in checks] == ["ok"]


def wrong(made: Path, machine: Path, log: Log, url: str) -> tuple[list[str], list[Check]]:
    """What status and doctor say is wrong with the extractor."""
    with open_memory(made, log, clock=Clock(datetime.now(UTC)), extract_url=url) as memory:
        problems = [line for line in memory.status().problems if line.startswith("extractor")]
    checks = [one for one in doctor(settings(made, machine, extract_url=url)) if one.name == "extractor"]
    return problems, [one for one in checks if one.state != "ok"]


def test_an_answer_that_cannot_be_used_is_told_until_one_can(made: Path, machine: Path, log: Log) -> None:
    """What it was asked about is left: nobody is told that it is asked about again."""
    said = "From now on I always take the early train to Lund."
    answers = [chats("I am a helpful assistant.")]
    with serving(lambda request: answers[-1](request)) as server:

        def sync() -> None:
            with open_memory(made, log, clock=Clock(datetime.now(UTC)), extract_url=server.url) as memory:
                memory.sync()

        log.say(said)
        sync()
        answers.append(chats())
        problems, checks = wrong(made, machine, log, server.url)
        assert len(problems) == len(checks) == 1
        for line in (problems[0], checks[0].said + checks[0].advice):
            assert "could not be used" in line and "on other days" in line
            assert "larger model" in line and "clawmark sync" not in line
        claim = {
            "messages": [1],
            "quote": "I like rye bread",
            "key": "pref.bread",
            "value": "rye bread",
            "confidence": 0.9,
        }
        answers.append(chats(json.dumps({"facts": [claim]})))
        log.say("I like rye bread, and nothing else in the morning.")
        sync()
        answers.append(chats())
        assert wrong(made, machine, log, server.url) == ([], [])


def test_a_server_that_was_down_is_asked_again_and_doctor_says_so(made: Path, machine: Path, log: Log) -> None:
    log.say("From now on I always take the early train to Lund.")
    now = Clock(datetime.now(UTC))
    with serving(chats(status=503)) as server, open_memory(made, log, clock=now, extract_url=server.url) as memory:
        memory.sync()
        (problem,) = [line for line in memory.status().problems if line.startswith("extractor")]
    with serving(chats()) as server:
        _, (check,) = wrong(made, machine, log, server.url)
    assert "`clawmark sync` asks it again" in problem and "`clawmark sync` asks it again" in check.advice


def test_a_host_that_cannot_be_looked_up_gets_advice(
    made: Path, machine: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    check = extractor(made, machine, extract_url="http://chat.invalid/v1")
    assert check.state == "fail" and "CLAWMARK_EXTRACT_URL" in check.advice and "CLAWMARK_ALLOW_REMOTE" in check.advice
    problems = state(made, log, clock, extract_url="http://chat.invalid/v1").problems
    assert any(line.startswith("extractor: ") and "Check the name in CLAWMARK_EXTRACT_URL" in line for line in problems)
    embedder = found(
        "embedder", settings(made, machine, embedder="endpoint", embedding_url="http://vectors.invalid/v1")
    )
    assert embedder.state == "fail" and "CLAWMARK_EMBEDDING_URL" in embedder.advice


def test_what_waits_is_counted(made: Path, machine: Path, log: Log, clock: Clock) -> None:
    with open_memory(made, log, clock=clock) as memory:
        memory.propose("set", "pref.tea", "green tea", origin="owner", reason="marker")
        one = memory.propose("set", "pref.desk", "a standing desk", origin="owner", reason="marker")
        memory.defer(one.name)
        assert memory.status().proposals == 1
    check = found("facts", settings(made, machine))
    assert "1; 1 proposed" in check.said and "clawmark review" in check.advice
