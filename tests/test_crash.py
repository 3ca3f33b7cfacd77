"""Killing a process at any moment loses nothing, repeats nothing and takes no word back."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from chat_server import Script, chatting
from crash_check import broken_promises, compare, compare_belief, connected, unsound

from clawmark.store import keyfile

SAMPLE = Path(__file__).parent / "fixtures" / "openclaw" / "sqlite"
RUN = Path(__file__).parent / "crash_run.py"


def started(*command: str, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def command_line(database: Path) -> subprocess.Popen[bytes]:
    return started(
        "-m",
        "clawmark",
        "sync",
        CLAWMARK_DB_PATH=str(database),
        CLAWMARK_TRANSCRIPTS_DIR=str(SAMPLE),
        CLAWMARK_EMBEDDER="none",
    )


def sync(database: Path, *options: str) -> subprocess.Popen[bytes]:
    """Small transactions, and vectors by an embedder that needs no model."""
    return started(str(RUN), "sync", str(database), str(SAMPLE), *options)


def seconds_of(run: Callable[[], subprocess.Popen[bytes]]) -> float:
    start = time.monotonic()
    assert run().wait() == 0
    return time.monotonic() - start


def kill(run: Callable[[], subprocess.Popen[bytes]], after: float) -> None:
    process = run()
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.parametrize("run", [command_line, sync], ids=["words", "vectors"])
def test_killed_anywhere_ends_like_an_unkilled_run(
    tmp_path: Path, run: Callable[[Path], subprocess.Popen[bytes]]
) -> None:
    reference = tmp_path / "reference" / "memory.db"
    whole = seconds_of(lambda: run(reference))
    rng = random.Random(7)
    for round_ in range(3):
        database = tmp_path / f"killed-{round_}" / "memory.db"
        for _ in range(4):
            kill(lambda database=database: run(database), rng.uniform(0.3, 1.0) * whole)  # type: ignore[misc]
            assert compare(database, reference, complete=False) == []
        assert run(database).wait() == 0
        assert compare(database, reference, complete=True) == []


def test_a_change_of_the_model_killed_anywhere_ends_complete(tmp_path: Path) -> None:
    """Old vectors, new ones, the switch between them and the old ones' end: at no moment two models in one space."""
    old, new = tmp_path / "old" / "memory.db", tmp_path / "new" / "memory.db"
    assert sync(old).wait() == 0
    shutil.copytree(old.parent, new.parent)
    whole = seconds_of(lambda: sync(new, "--weights", "1"))
    rng = random.Random(11)
    for round_ in range(2):
        database = tmp_path / f"killed-{round_}" / "memory.db"
        shutil.copytree(old.parent, database.parent)
        for _ in range(4):
            kill(lambda database=database: sync(database, "--weights", "1"), rng.uniform(0.4, 1.0) * whole)  # type: ignore[misc]
            assert unsound(database) == []
            assert [] in (compare(database, old, complete=False), compare(database, new, complete=False))
        assert sync(database, "--weights", "1").wait() == 0
        assert compare(database, new, complete=True) == []


SAID = {
    "My editor is Helix.": ("pref.editor", "Helix"),
    "I live in Ghent.": ("user.city", "Ghent"),
    "I'm allergic to peanuts.": ("user.allergy", "peanuts"),
    "I live in Porto now.": ("user.city", "Porto"),
    "My sister is called Ngozi.": ("user.sister", "Ngozi"),
    "Please always forward my invoices to the office.": ("pref.invoices", "always forward my invoices to the office"),
}


def told(folder: Path) -> Path:
    """A small log of OpenClaw's first era: two sessions in which things are said that are worth believing."""
    sessions = folder / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    sentences = [*SAID, "the weather was fine all week long", "My editor is Helix."]
    for session in ("0a", "0b"):
        name = f"{session}000000-0000-4000-8000-000000000000"
        begun = f"2026-0{3 if session == '0a' else 7}-01T09:00:00.000Z"
        lines: list[dict[str, object]] = [
            {"type": "session", "version": 3, "id": name, "timestamp": begun, "cwd": "/home/mira"}
        ]
        parent = None
        for number, text in enumerate(sentences):
            at = f"{begun[:11]}{9 + number:02}:00:00.000Z"
            message = {"role": "user", "content": [{"type": "text", "text": text}]}
            entry = {
                "type": "message",
                "id": f"{session}{number:06}",
                "parentId": parent,
                "timestamp": at,
                "message": message,
            }
            lines.append(entry)
            parent = entry["id"]
        (sessions / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


ROUNDS = int(os.environ.get("CRASH_ROUNDS", "2"))
"""Databases that are extracted into; five kills in each."""


def test_extraction_killed_anywhere_ends_like_an_unkilled_run(tmp_path: Path) -> None:
    """The same facts, evidence, proposals and events, from a server that answers the same to the same."""
    log = told(tmp_path / "log")
    facts = {words: {"key": key, "value": value} for words, (key, value) in SAID.items()}
    with chatting(Script(facts=facts)) as server:

        def run(database: Path) -> subprocess.Popen[bytes]:
            if not keyfile.key_path(database).exists():  # events hold keyed hashes
                database.parent.mkdir(mode=0o700)
                shutil.copyfile(tmp_path / "key", keyfile.key_path(database))
            return started(str(RUN), "extract", str(database), str(log), server.url)

        (tmp_path / "key").write_bytes(b"k" * 32)
        reference = tmp_path / "reference" / "memory.db"
        whole = seconds_of(lambda: run(reference))
        with connected(reference) as connection:
            stored = connection.execute("SELECT key, value FROM facts ORDER BY key").fetchall()
            waits = connection.execute("SELECT key, state FROM proposals").fetchall()
        assert stored == [
            ("pref.editor", "Helix"), ("user.allergy", "peanuts"), ("user.city", "Porto"), ("user.sister", "Ngozi"),
        ]  # fmt: skip
        assert waits == [("pref.invoices", "pending")]
        rng = random.Random(17)
        for round_ in range(ROUNDS):
            database = tmp_path / f"killed-{round_}" / "memory.db"
            for _ in range(5):
                kill(lambda database=database: run(database), rng.uniform(0.5, 1.0) * whole)  # type: ignore[misc]
                assert compare_belief(database, reference, complete=False) == []
            assert run(database).wait() == 0
            assert compare_belief(database, reference, complete=True) == []


def test_what_was_acknowledged_outlives_a_kill(tmp_path: Path) -> None:
    """Facts set and forgotten, in the database and in the sidecar from which a damaged one is recovered."""
    database, noted = tmp_path / "data" / "memory.db", tmp_path / "noted"

    def run(count: int) -> subprocess.Popen[bytes]:
        return started(str(RUN), "acks", str(database), str(noted), str(count))

    whole = seconds_of(lambda: run(30))
    rng = random.Random(13)
    for _ in range(6):
        kill(lambda: run(500), rng.uniform(0.7, 1.5) * whole)
        assert broken_promises(database, noted) == []
    assert len(noted.read_text().splitlines()) > 30


def test_the_check_catches_a_cursor_that_is_committed_before_its_rows(tmp_path: Path) -> None:
    """The control: a check that lets this pass proves nothing above."""
    reference, database = tmp_path / "reference" / "memory.db", tmp_path / "planted" / "memory.db"
    assert sync(reference).wait() == 0
    assert sync(database, "--planted").wait() == 0
    assert compare(database, reference, complete=True) == [], "unkilled, the fault shows nowhere"
    database = tmp_path / "killed" / "memory.db"
    assert sync(database, "--planted", "--dies").wait() == 9
    assert sync(database, "--planted").wait() == 0
    assert any("missing" in fault for fault in compare(database, reference, complete=True))
