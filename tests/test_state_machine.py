"""A host that does anything in any order, and a process that may be killed at any write.

Whatever happened: everything recalled is live, nothing is recalled twice, what was forgotten or deleted is absent, and after
a whole pass every live message is recalled by a word that only it holds. A further kind of log is a subclass of `Host`.
"""

from __future__ import annotations

import copy
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from helpers import Clock, fixture, query, residue
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from test_source_claude_code import ClaudeLog
from test_source_contract import ListLog
from test_source_lcm import LcmLog
from test_source_transcripts import FilesLog, SqliteLog

from clawmark.jobs import index, vectors
from clawmark.memory import Memory
from clawmark.model import Role
from clawmark.settings import Settings
from clawmark.source import Alternatives, Folders, MessageSource
from clawmark.store.passages import content_key
from clawmark.testing import START, FakeEmbedder, Log
from clawmark_sources.lcm import LcmSource
from clawmark_sources.openclaw import TranscriptSource

lcm = fixture("lcm")


class Killed(BaseException):
    """The process ends here: nobody may catch it and go on."""


class Host:
    """A host over one contract log: sessions go by names, and a name gets a new id where the host would give one.

    What its log cannot do raises NotImplementedError.
    """

    is_off = False
    """Whether the preferred log cannot be read now."""

    def __init__(self, log: Log, *, reset_makes_a_session: bool = False) -> None:
        self.log = log
        self.ids: dict[str, str] = {}
        self.lives = 0
        self.reset_makes_a_session = reset_makes_a_session

    def groups(self) -> list[list[MessageSource]]:
        return [[self.log.source()]]

    def id_of(self, name: str) -> str:
        if name not in self.ids:
            self.lives += 1
            self.ids[name] = self.log.new_session(f"{name}{self.lives}")
        return self.ids[name]

    def append(self, name: str, role: Role, text: str, at: datetime) -> str:
        session = self.id_of(name)
        self.log.append(session, role, text, at)
        return session

    def reset(self, name: str) -> None:
        self.log.rename_reset(self.ids[name])
        if self.reset_makes_a_session:
            del self.ids[name]

    def cut(self, name: str, keep: int) -> None:
        self.log.shrink_to_tail(self.ids[name], keep)

    def branch(self, name: str, keep: int) -> None:
        self.log.branch(self.ids[name], keep)

    def fork(self, name: str, new: str) -> None:
        self.lives += 1
        self.ids[new] = self.log.fork(self.ids[name], f"{new}{self.lives}")

    def delete(self, name: str) -> None:
        self.log.delete(self.ids.pop(name))

    def expire(self, name: str) -> datetime:
        now = self.log.expire(self.ids[name])
        del self.ids[name]
        return now

    def switch(self) -> None:
        """The preferred log turns into a form that nobody knows, or back."""
        raise NotImplementedError

    def save(self) -> Any:
        """A backup of the host's files."""
        raise NotImplementedError

    def restore(self, saved: Any) -> None:
        raise NotImplementedError


class FolderHost(Host):
    """One whose log is files alone, so that a backup is a copy."""

    def __init__(self, log: FilesLog | ClaudeLog, **options: bool) -> None:
        super().__init__(log, **options)
        self.root = log.root

    def save(self) -> Any:
        folder = self.root.with_name(f"saved{len(list(self.root.parent.glob('saved*')))}")
        shutil.copytree(self.root, folder)
        kept = {name: value for name, value in vars(self.log).items() if name not in ("root", "folder", "count")}
        return folder, copy.deepcopy(kept), dict(self.ids)

    def restore(self, saved: Any) -> None:
        folder, kept, ids = saved
        shutil.rmtree(self.root)
        shutil.copytree(folder, self.root)
        vars(self.log).update(copy.deepcopy(kept))
        self.ids = dict(ids)


class TwoLogs(Host):
    """OpenClaw with Lossless Claw: each session stands in both logs, and Lossless Claw stamps it 20 s later."""

    def __init__(self, root: Path) -> None:
        self.files = FilesLog(root)
        super().__init__(self.files)
        self.lcm = lcm.LcmFile(root / "lcm.db")
        self.conversations: dict[str, int] = {}
        self.root = root
        self.files.new_session("z")  # a place without a session is no log that could be read instead

    def groups(self) -> list[list[MessageSource]]:
        folders = Folders(None, self.root)
        return [[LcmSource(folders), TranscriptSource(folders)]]

    def append(self, name: str, role: Role, text: str, at: datetime) -> str:
        session = super().append(name, role, text, at)
        with self._known_form():
            if session not in self.conversations:
                key = f"agent:main:telegram:direct:{len(self.conversations)}"
                self.conversations[session] = self.lcm.conversation(session, key)
            self.lcm.say(self.conversations[session], role, text, at + timedelta(seconds=20))
        return session

    def delete(self, name: str) -> None:
        conversation = self.conversations.pop(self.ids[name])
        super().delete(name)
        self.lcm.archive(conversation, "session-deleted")

    def reset(self, *asked: object) -> None:
        raise NotImplementedError

    branch = cut = fork = reset

    def switch(self) -> None:
        self.is_off = not self.is_off
        self._rename("content", "body") if self.is_off else self._rename("body", "content")

    @contextmanager
    def _known_form(self) -> Iterator[None]:
        if self.is_off:
            self._rename("body", "content")
        yield
        if self.is_off:
            self._rename("content", "body")

    def _rename(self, old: str, new: str) -> None:
        self.lcm.db.execute(f"ALTER TABLE messages RENAME COLUMN {old} TO {new}")


class HostMemory(Memory):
    """A memory over whatever logs its host has."""

    host: Host

    def _new_groups(self) -> list[Alternatives]:
        return list(self.host.groups())

    def _sources_of_recall(self, connection: apsw.Connection) -> dict[str, MessageSource]:
        return {source.name: source for group in self.host.groups() for source in group}


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


WORD = re.compile(r"zq\d+w\d+x")
MONTH = timedelta(days=30)


class HostAndMemory(RuleBasedStateMachine):
    """Every utterance holds a word of its own.

    said       word → the sessions (by id) that hold it now, those that expired included
    turns      session id → its utterances' words in order, "" for one without
    leaving    edited away, and erased by the next whole pass
    gone       words that nobody may ever meet again
    adrift     cut off or rolled back by the host: they may be met or not
    cut_in     word → the sessions in which the host cut it off: it was said there all the same
    left       word → the sessions in which it was edited away since the last whole pass, which nobody knows before that
    expired    sessions that the host removed by age: a backup of its files takes nothing of them back
    """

    names = st.sampled_from(["a", "b", "c", "d"])

    def make_host(self, folder: Path) -> Host:
        return Host(ListLog())

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "memory" / "memory.db"
        (self.folder / "host").mkdir()
        self.host = self.make_host(self.folder / "host")
        self.expires = any(source.expires for group in self.host.groups() for source in group)
        self.clock = Clock(START + timedelta(hours=1))
        self.embedder = FakeEmbedder(32)
        self.at = START
        self.said: dict[str, set[str]] = {}
        self.turns: dict[str, list[str]] = {}
        self.texts: dict[str, tuple[Role, str]] = {}
        self.touched: dict[str, datetime] = {}
        self.leaving: set[str] = set()
        self.gone: set[str] = set()
        self.adrift: set[str] = set()
        self.cut_in: dict[str, set[str]] = {}
        self.left: dict[str, set[str]] = {}
        self.expired: set[str] = set()
        self.saved: Any = None
        self.facts: dict[str, str] = {}
        self.erased_values: set[str] = set()
        self.count = 0
        self.memory = self.open()

    def open(self) -> Memory:
        settings = Settings(db_path=self.path, embedder="none", recall_limit=50)
        memory = HostMemory.open(settings, embedder=self.embedder, clock=self.clock)
        memory.host = self.host
        return memory

    def teardown(self) -> None:
        self.memory.close()
        shutil.rmtree(self.folder)

    # what the host does

    @rule(
        name=names,
        role=st.sampled_from(["user", "assistant"]),
        long=st.booleans(),
        gap=st.sampled_from([1, 3, 900]),
    )
    def append(self, name: str, role: Role, long: bool, gap: int) -> None:
        self.count += 1
        word = f"zq{self.count}w{self.count * 7919 % 1000}x"
        filler = " and so the story went on, day after day, without much of an end" * (40 if long else 0)
        self.texts[word] = role, f"the word {word} was said here{filler}"
        self.say(name, role, self.texts[word][1], gap, word)

    @rule(name=names)
    def repeat(self, name: str) -> None:
        self.say(name, "user", f"ok {name}", 30, "")

    def say(self, name: str, role: Role, text: str, gap: int, word: str) -> None:
        self.at += timedelta(minutes=gap)
        self.clock.now = max(self.clock.now, self.at + timedelta(minutes=1))
        session = self.host.append(name, role, text, self.at)
        self.turns.setdefault(session, []).append(word)
        self.touched[session] = self.at
        if word:
            self.said.setdefault(word, set()).add(session)

    @rule(name=names)
    def reset(self, name: str) -> None:
        if name in self.host.ids:
            self.can(self.host.reset, name)

    @rule(name=names, keep=st.integers(0, 4))
    def cut(self, name: str, keep: int) -> None:
        """The host rewrites the log and holds its last utterances alone."""
        if name in self.host.ids and self.can(self.host.cut, name, keep):
            session = self.host.ids[name]
            left = self.turns[session][-keep:] if keep else []
            cut = [word for word in self.turns[session] if word not in left]
            for word in filter(None, cut):
                self.cut_in.setdefault(word, set()).add(session)
            self.adrift |= self.leave(session, cut)
            self.turns[session] = left

    @rule(name=names, keep=st.integers(1, 6))
    def edit(self, name: str, keep: int) -> None:
        """The person goes back behind the first utterances, and says something else."""
        session = self.host.ids.get(name)
        if session is None or len(self.turns.get(session, ())) <= keep or not self.can(self.host.branch, name, keep):
            return
        for word in filter(None, self.turns[session][keep:]):
            self.left.setdefault(word, set()).add(session)
        lost = self.leave(session, self.turns[session][keep:])
        self.leaving |= lost - self.cut_in.keys()
        self.adrift |= lost & self.cut_in.keys()
        del self.turns[session][keep:]
        self.append(name, "user", False, 1)

    @rule(name=names, new=names)
    def fork(self, name: str, new: str) -> None:
        session = self.host.ids.get(name)
        if session is None or not self.turns.get(session) or new in self.host.ids:
            return
        if self.can(self.host.fork, name, new):
            copied = self.host.ids[new]
            self.turns[copied] = list(self.turns[session])
            self.touched[copied] = self.at
            for word in filter(None, self.turns[copied]):
                self.said[word].add(copied)

    @rule(name=names)
    def delete(self, name: str) -> None:
        session = self.host.ids.get(name)
        if session is None or not self.turns.get(session):
            return
        self.host.delete(name)
        if self.expires and self.clock.now - self.touched[session] >= MONTH:
            return  # nobody can tell that from an old log that the host removed
        lost = self.leave(session, self.turns.pop(session))
        self.gone |= lost - self.cut_in.keys()
        self.adrift |= lost & self.cut_in.keys()

    @rule(name=names)
    def expire(self, name: str) -> None:
        session = self.host.ids.get(name)
        if session is None or not self.turns.get(session) or not self.expires:
            return
        self.sync()  # what nobody read in a month is lost
        self.expired.add(session)
        self.clock.now = max(self.clock.now, self.host.expire(name))
        self.at = self.clock.now

    @rule()
    def switch(self) -> None:
        self.can(self.host.switch)

    @rule()
    def save(self) -> None:
        try:
            kept = self.host.save()
        except NotImplementedError:
            return
        self.saved = kept, copy.deepcopy((self.said, self.turns, self.touched))

    @precondition(lambda self: self.saved is not None)
    @rule()
    def restore(self) -> None:
        """The host's files are what they were when they were saved."""
        kept, model = self.saved
        self.host.restore(kept)
        later = set(self.said) | self.leaving
        kept_on = {word: homes & self.expired for word, homes in self.said.items() if homes & self.expired}
        self.said, self.turns, self.touched = copy.deepcopy(model)
        for word, homes in kept_on.items():
            self.said.setdefault(word, set()).update(homes)
        self.gone -= self.said.keys()
        self.leaving -= self.said.keys()
        self.adrift = (self.adrift | later | self.leaving) - self.said.keys() - self.gone
        self.leaving.clear()

    def leave(self, session: str, words: list[str]) -> set[str]:
        """These utterances no longer stand in a session; returns the words that no session holds now."""
        for word in filter(None, words):
            self.said[word].discard(session)
        lost = {word for word in filter(None, words) if not self.said[word]}
        for word in lost:
            del self.said[word]
        return lost

    def homes(self, word: str) -> set[str]:
        """The sessions under which a word may be recalled."""
        return self.said[word] | self.cut_in.get(word, set()) | self.left.get(word, set())

    def can(self, operation: Callable[..., None], *values: object) -> bool:
        try:
            operation(*values)
        except NotImplementedError:
            return False
        return True

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
    def what_is_recalled_stands_somewhere_and_is_there_once(self) -> None:
        found = self.memory.search("the word was said here ok " + " ".join(self.gone), limit=50).recalled
        for one in found:
            for word in WORD.findall(one.excerpt):
                assert word not in self.gone
                if word in self.said:
                    assert one.conversation in self.homes(word), word
                else:
                    assert word in self.leaving | self.adrift, word
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
        self.gone |= self.leaving
        self.leaving.clear()
        self.left.clear()
        for word in self.said:
            found = [e for e in self.memory.search(word, limit=3).recalled if word in e.excerpt]
            assert len(found) == 1 and found[0].conversation in self.homes(word), (word, found)
        for word in self.gone:
            assert not [e for e in self.memory.search(word, limit=50).recalled if word in e.excerpt], word
        for word, (role, text) in self.texts.items():
            keys = [
                content_key(scope, role, text) for (scope,) in query(self.path, "SELECT DISTINCT scope FROM streams")
            ]
            held = "SELECT count(*) FROM passages WHERE part = 0 AND content_key = ?"
            copies = sum(query(self.path, held, key)[0][0] for key in keys)
            # what stands in a log that cannot be read now goes when it can
            erased = {0, 1} if self.host.is_off else {0}
            assert copies in (erased if word in self.gone else {1} if word in self.said else {0, 1}), word
        if not self.adrift:
            assert query(self.path, "SELECT count(*) FROM stale_passages") == [(0,)]
            if not self.embedder.down:
                assert query(self.path, "SELECT count(*) FROM pending_vectors") == [(0,)]


class WithSessionFiles(HostAndMemory):
    def make_host(self, folder: Path) -> Host:
        return FolderHost(FilesLog(folder), reset_makes_a_session=True)


class WithAgentDatabase(HostAndMemory):
    def make_host(self, folder: Path) -> Host:
        return Host(SqliteLog(folder))


class WithLosslessClaw(HostAndMemory):
    def make_host(self, folder: Path) -> Host:
        return Host(LcmLog(folder), reset_makes_a_session=True)


class WithClaudeCode(HostAndMemory):
    def make_host(self, folder: Path) -> Host:
        (folder / "projects").mkdir()
        return FolderHost(ClaudeLog(folder))


class WithLosslessClawOnAndOff(HostAndMemory):
    def make_host(self, folder: Path) -> Host:
        return TwoLogs(folder)


def made(machine: type[HostAndMemory], examples: int) -> Any:
    case = pytest.mark.filterwarnings("default")(machine.TestCase)
    case.settings = settings(
        settings.get_profile("suite"),
        max_examples=examples,
        stateful_step_count=40,
        phases=set(Phase) - {Phase.explain},
    )
    return case


TestInMemory = made(HostAndMemory, 60)
TestSessionFiles = made(WithSessionFiles, 30)
TestAgentDatabase = made(WithAgentDatabase, 25)
TestLosslessClaw = made(WithLosslessClaw, 25)
TestClaudeCode = made(WithClaudeCode, 30)
TestLosslessClawOnAndOff = made(WithLosslessClawOnAndOff, 30)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a pass has many writes to be killed at."""
    monkeypatch.setattr(index, "BATCH", 3)
    monkeypatch.setattr(vectors, "BATCH", 3)
