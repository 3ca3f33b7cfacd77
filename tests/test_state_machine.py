"""A host that does anything in any order, and a process that may be killed at any write.

Whatever happened: everything recalled is live, nothing is recalled twice, what was forgotten or deleted is absent, and after
a whole pass every live message is recalled by a word that only it holds. A further kind of log is a subclass of `Host`.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

import apsw
import pytest
from helpers import Clock, query, residue
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from clawmark.jobs import index, vectors
from clawmark.memory import Memory
from clawmark.model import Message, Role
from clawmark.settings import Settings
from clawmark.source import MessageSource
from clawmark.testing import START, FakeEmbedder, ListSource
from clawmark.testing import everything as read_all


class Killed(BaseException):
    """The process ends here: nobody may catch it and go on."""


class Host(Protocol):
    """A host's log and what the host does with it. Sessions are named; `id_of` is the id that the log gives one now."""

    def source(self) -> MessageSource: ...
    def id_of(self, session: str) -> str: ...
    def append(self, session: str, role: Role, text: str, at: Any) -> None: ...
    def reset(self, session: str) -> None: ...
    def rotate(self, session: str) -> None: ...
    def delete(self, session: str) -> None: ...


class ListHost:
    """The fake of `clawmark.testing`. A session that is begun again after its deletion has a new id, as at every host."""

    def __init__(self) -> None:
        self.log = ListSource()
        self._windows: Counter[str] = Counter()
        self._lives: Counter[str] = Counter()

    def id_of(self, session: str) -> str:
        return f"{session}{self._lives[session]}"

    def source(self) -> MessageSource:
        return self.log

    def append(self, session: str, role: Role, text: str, at: Any) -> None:
        self.log.append(self.id_of(session), role, text, at, window=str(self._windows[session]))

    def reset(self, session: str) -> None:
        self._windows[session] += 1

    def rotate(self, session: str) -> None:
        self.log.rotate(self.id_of(session))

    def delete(self, session: str) -> None:
        self.log.delete(self.id_of(session))
        self._lives[session] += 1


@contextmanager
def killed_at(write: int) -> Iterator[None]:
    """Ends the process at the `write`-th statement that changes the file, or at a commit, whichever comes."""
    left = [write]

    def connected(connection: apsw.Connection) -> None:
        def traced(cursor: Any, statement: str, bindings: Any) -> bool:
            if statement.split(None, 1)[0].upper() in ("INSERT", "UPDATE", "DELETE", "COMMIT"):
                left[0] -= 1
                if left[0] < 0:
                    raise Killed
            return True

        connection.exec_trace = traced

    apsw.connection_hooks.append(connected)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(connected)


class HostAndMemory(RuleBasedStateMachine):
    """`said` maps each unique word to the session whose live message holds it."""

    make_host: Callable[[], Host] = ListHost
    sessions = st.sampled_from(["a", "b", "c", "d"])

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "memory.db"
        self.host = self.make_host()
        self.clock = Clock(START + timedelta(days=400))
        self.embedder = FakeEmbedder(32)
        self.at = START
        self.said: dict[str, str] = {}
        self.gone: set[str] = set()
        self.facts: dict[str, str] = {}
        self.erased_values: set[str] = set()
        self.synced: set[str] = set()
        self.count = 0
        self.memory = self.open()

    def open(self) -> Memory:
        parts: dict[str, Any] = {"sources": [self.host.source()], "embedder": self.embedder, "clock": self.clock}
        return Memory.open(Settings(db_path=self.path, embedder="none", recall_limit=50), **parts)

    def teardown(self) -> None:
        self.memory.close()
        shutil.rmtree(self.folder)

    def live(self) -> dict[str, Message]:
        return {message.ref: message for message in read_all(self.host.source())}

    # what the host does

    @rule(
        session=sessions,
        role=st.sampled_from(["user", "assistant"]),
        long=st.booleans(),
        gap=st.sampled_from([1, 3, 900]),
    )
    def append(self, session: str, role: Role, long: bool, gap: int) -> None:
        self.count += 1
        word = f"zq{self.count}w{self.count * 7919 % 1000}x"
        self.at += timedelta(minutes=gap)
        filler = " and so the story went on, day after day, without much of an end" * (40 if long else 0)
        self.host.append(session, role, f"the word {word} was said here{filler}", self.at)
        self.said[word] = session

    @rule(session=sessions)
    def repeat(self, session: str) -> None:
        self.at += timedelta(minutes=30)
        self.host.append(session, "user", f"ok {session}", self.at)

    @rule(session=sessions)
    def reset(self, session: str) -> None:
        self.host.reset(session)

    def exists(self, session: str) -> bool:
        return any(message.session == self.host.id_of(session) for message in self.live().values())

    @rule(session=sessions)
    def rotate(self, session: str) -> None:
        if self.exists(session):
            self.host.rotate(session)

    @rule(session=sessions)
    def delete(self, session: str) -> None:
        if self.exists(session):
            self.host.delete(session)
            words = {word for word, home in self.said.items() if home == session}
            self.gone |= words
            for word in words:
                del self.said[word]

    # what the person does

    @rule(number=st.integers(0, 3))
    def set_fact(self, number: int) -> None:
        self.count += 1
        value = f"zqvalue{self.count}y"
        self.memory.set(f"pref.k{number}", value)
        self.facts[f"pref.k{number}"] = value

    @rule(number=st.integers(0, 3))
    def forget_fact(self, number: int) -> None:
        key = f"pref.k{number}"
        assert bool(self.memory.forget(key)) == (key in self.facts)
        if key in self.facts:
            self.erased_values.add(self.facts.pop(key))
        assert not residue(self.folder, *self.erased_values)

    # what the process does

    @rule()
    def sync(self) -> None:
        report = self.memory.sync()
        assert report.failures == ()
        self.whole()

    @rule(write=st.integers(0, 60))
    def kill(self, write: int) -> None:
        """A pass is abandoned at a random write, and the process starts again."""
        self.memory.close()
        with killed_at(write):
            try:
                with self.open() as dying:
                    dying.sync()
            except Killed:
                pass
        self.memory = self.open()

    @rule()
    def reopen(self) -> None:
        self.memory.close()
        self.memory = self.open()

    @precondition(lambda self: not self.embedder.down)
    @rule()
    def embedder_fails(self) -> None:
        self.embedder.down = True

    @precondition(lambda self: self.embedder.down)
    @rule()
    def embedder_is_back(self) -> None:
        self.embedder.down = False

    # laws

    @invariant()
    def what_is_recalled_is_live_and_there_once(self) -> None:
        live = self.live()
        found = self.memory.search("the word was said here ok " + " ".join(self.gone), limit=50).recalled
        assert all(e.ref in live for e in found)
        for one in found:
            assert one.conversation == live[one.ref].session
            assert not any(word in one.excerpt for word in self.gone)
        assert max(Counter((e.ref, e.excerpt) for e in found).values(), default=1) == 1

    @invariant()
    def facts_are_what_the_person_said_last(self) -> None:
        assert {f.key: f.value for f in self.memory.facts()} == self.facts

    @invariant()
    def rows_agree(self) -> None:
        orphans = query(
            self.path, "SELECT count(*) FROM passages WHERE id NOT IN (SELECT passage_id FROM passage_refs)"
        )
        unindexed = query(
            self.path,
            "SELECT count(*) FROM passages WHERE id NOT IN (SELECT id FROM lexicon_docsize)"
            " AND id NOT IN (SELECT passage_id FROM stale_passages)",
        )
        left_over = query(self.path, "SELECT count(*) FROM lexicon_docsize WHERE id NOT IN (SELECT id FROM passages)")
        dangling = query(
            self.path,
            "SELECT count(*) FROM passages WHERE previous_id IS NOT NULL AND previous_id NOT IN (SELECT id FROM passages)",
        )
        assert orphans == unindexed == left_over == dangling == [(0,)]
        both = "SELECT count(*) FROM pending_vectors JOIN message_vectors USING (passage_id)"
        assert query(self.path, both) == [(0,)]

    def whole(self) -> None:
        """After a whole pass."""
        for word, session in self.said.items():
            found = self.memory.search(word, limit=3).recalled
            assert [e.conversation for e in found if word in e.excerpt] == [self.host.id_of(session)], word
        for word in self.gone:
            assert not [e for e in self.memory.search(word, limit=50).recalled if word in e.excerpt]
        texts = Counter(
            row[0]
            for row in query(self.path, "SELECT ref FROM passage_refs JOIN passages ON id = passage_id WHERE part = 0")
        )
        assert set(texts.values()) <= {1}
        assert query(self.path, "SELECT count(*) FROM stale_passages") == [(0,)]
        if not self.embedder.down:
            assert query(self.path, "SELECT count(*) FROM pending_vectors") == [(0,)]


TestHostAndMemory = pytest.mark.filterwarnings("default")(HostAndMemory.TestCase)
TestHostAndMemory.settings = settings(
    settings.get_profile("suite"), max_examples=70, stateful_step_count=40, phases=set(Phase) - {Phase.explain}
)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a pass has many writes to be killed at."""
    monkeypatch.setattr(index, "BATCH", 3)
    monkeypatch.setattr(vectors, "BATCH", 3)
