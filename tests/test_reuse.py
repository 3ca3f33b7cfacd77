"""Vectors of the TypeScript clawmark: taken over where they are proved to be of this very model and text, else made anew."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import Clock, fake, fixture, query

from clawmark.jobs.vectors import BATCH
from clawmark.memory import Memory
from clawmark.model import Space
from clawmark.settings import Settings
from clawmark.testing import FakeEmbedder

LINES = 60


def text(number: int) -> str:
    return f"sentence number {number} speaks of topic{number} at some length"


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """A `sessions` directory of one session, and the offsets at which its messages stand."""
    folder = tmp_path / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    lines = [
        {"type": "session", "version": 3, "id": "s1", "timestamp": "2026-03-02T09:00:00.000Z", "cwd": "/home/mira"}
    ]
    for number in range(LINES):
        message = {"role": "user", "content": [{"type": "text", "text": text(number)}], "timestamp": 1772442000000}
        at = f"2026-03-02T09:{number:02}:00.000Z"
        lines.append({"type": "message", "id": f"m{number}", "parentId": None, "timestamp": at, "message": message})
    (folder / "s1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def offsets(sessions: Path) -> Iterator[tuple[str, str]]:
    """(name in the old clawmark, text) of each message."""
    place = 0
    for line in (sessions / "s1.jsonl").read_bytes().splitlines(keepends=True):
        entry = json.loads(line)
        if entry["type"] == "message":
            yield f"s1.jsonl:{place}", entry["message"]["content"][0]["text"]
        place += len(line)


def old_database(db_path: Path, sessions: Path, made_by: FakeEmbedder, changed: tuple[str, str] = ("", "")) -> None:
    """A TypeScript database with a vector for each message; `changed` is what stood there in its time instead."""
    old = fixture("typescript").Typescript(db_path)
    for ref, said in offsets(sessions):
        (vector,) = made_by.embed([said.replace(*changed)])
        old.vector(ref, np.asarray(vector, dtype="<f4").tobytes())
    old.close()


def asked_after_upgrade(db_path: Path, sessions: Path, clock: Clock, now: FakeEmbedder) -> list[str]:
    """The messages that were embedded, as they were sent."""
    with Memory.open(Settings(db_path=db_path, transcripts_dir=sessions), embedder=now, clock=clock) as memory:
        report = memory.sync()
        assert (report.vectors, report.pending) == (LINES, 0)
        asked = [said for said in now.asked if said.startswith("sentence")]
        assert memory.search("topic17").recalled[0].excerpt == text(17)
    return asked


def stored(db_path: Path) -> dict[str, Any]:
    found = query(
        db_path,
        "SELECT r.ref, v.embedding FROM message_vectors v JOIN passage_refs r ON r.passage_id = v.passage_id",
    )
    return {ref.rpartition("/")[2].rpartition(":")[2]: np.frombuffer(blob, "<f4") for ref, blob in found}


def test_what_the_same_model_made_is_not_made_again(db_path: Path, sessions: Path, clock: Clock) -> None:
    old_database(db_path, sessions, fake())
    assert len(asked_after_upgrade(db_path, sessions, clock, fake())) == 2 * math.ceil(LINES / BATCH)
    for ref, vector in stored(db_path).items():
        (made,) = fake().embed([text(int(ref.removeprefix("m")))])
        assert np.allclose(vector, np.asarray(made)), ref
    assert query(db_path, "SELECT count(*) FROM old_vectors") == [(0,)]


@pytest.mark.parametrize("now", [{"weights": 1}, {"dimension": 32}], ids=str)
def test_what_another_model_made_is_made_again(
    db_path: Path, sessions: Path, clock: Clock, now: dict[str, Any]
) -> None:
    old_database(db_path, sessions, fake())
    assert len(asked_after_upgrade(db_path, sessions, clock, fake(**now))) == LINES
    assert query(db_path, "SELECT count(*) FROM old_vectors") == [(0,)]


def test_a_model_that_was_changed_long_ago_is_found_out(db_path: Path, sessions: Path, clock: Clock) -> None:
    """The newest texts agree, and the oldest are of the model before."""
    old = fixture("typescript").Typescript(db_path)
    for number, (ref, said) in enumerate(offsets(sessions)):
        (vector,) = fake(weights=int(number < LINES / 3)).embed([said])
        old.vector(ref, np.asarray(vector, dtype="<f4").tobytes())
    old.close()
    asked_after_upgrade(db_path, sessions, clock, fake())
    for ref, vector in stored(db_path).items():
        (made,) = fake().embed([text(int(ref.removeprefix("m")))])
        assert np.allclose(vector, np.asarray(made)), ref


def test_a_space_with_a_prefix_takes_none_of_them(db_path: Path, sessions: Path, clock: Clock) -> None:
    """The old clawmark put nothing in front of a text."""
    old_database(db_path, sessions, fake())
    now = fake()
    now.space = Space("fake", 64, "passage: ", "query: ")
    assert len(asked_after_upgrade(db_path, sessions, clock, now)) == LINES


def test_what_stood_at_the_same_place_before_is_made_again(db_path: Path, sessions: Path, clock: Clock) -> None:
    """The old name of a message is a place in a file: a rewritten file has other messages there."""
    old_database(db_path, sessions, fake(), changed=("sentence", "paragraph"))
    assert len(asked_after_upgrade(db_path, sessions, clock, fake())) == LINES


def test_a_message_that_is_cleaned_now_is_made_again(db_path: Path, sessions: Path, clock: Clock) -> None:
    """The old clawmark embedded the raw text; a vector of a secret is not taken over."""
    path = sessions / "s1.jsonl"
    token = "ghp_" + "a1B2c3D4e5" * 4
    path.write_text(path.read_text().replace("speaks of topic3 ", f"speaks of {token} "))
    old_database(db_path, sessions, fake())
    asked = asked_after_upgrade(db_path, sessions, clock, fake())
    assert any("[REDACTED" in said for said in asked)
    assert not any(token in said for said in asked)
