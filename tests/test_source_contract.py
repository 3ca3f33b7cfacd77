"""The in-memory source keeps the contract that it is shipped with: what adapter authors test against is itself tested."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from clawmark.model import Role, Wanted
from clawmark.source import MessageSource
from clawmark.testing import START, FakeEmbedder, ListSource, Log, SourceContract, drain, everything, messages_of


class ListLog(Log):
    """A `Log` over a ListSource; sessions are called by the names they are given."""

    def __init__(self) -> None:
        self.list = ListSource()

    def source(self) -> MessageSource:
        return self.list

    def new_session(self, name: str) -> str:
        return name

    def append(self, session: str, role: Role, text: str, at: datetime) -> str:
        return self.list.append(session, role, text, at)

    def rename_reset(self, session: str) -> None:
        self.list.rotate(session)

    def delete(self, session: str) -> None:
        self.list.delete(session)

    def shrink_to_tail(self, session: str, keep: int) -> None:
        self.list.truncate(session, keep)

    def expire(self, session: str) -> datetime:
        self.list.expires = True
        self.list.expire(session)
        return START + timedelta(days=400)

    def branch(self, session: str, keep: int) -> None:
        self.list.branch(session, keep)

    def edit(self, session: str, ref: str, text: str) -> None:
        self.list.edit(session, ref, text)

    def fork(self, session: str, name: str) -> str:
        self.list.fork(session, name)
        return name


class TestListSource(SourceContract):
    @pytest.fixture
    def log(self) -> ListLog:
        return ListLog()


def test_messages_without_a_time_are_said_a_minute_apart() -> None:
    source = ListSource()
    source.append("a", "user", "one")
    source.append("b", "assistant", "two")
    first, second = everything(source)
    assert (second.at - first.at).total_seconds() == 60


def test_a_rotated_session_is_a_new_stream_with_known_refs() -> None:
    source = ListSource()
    source.append("a", "user", "one")
    (before,) = source.streams()
    source.rotate("a")
    (after,) = source.streams()
    assert before.name != after.name
    assert source.read(before, None, 9).messages == ()
    assert [m.ref for m in messages_of(drain(source, after))] == ["a/1"]


def test_origin_and_author_can_be_given() -> None:
    source = ListSource(scope="work")
    source.append("a", "user", "hello", START, origin="participant", author="Mia")
    (message,) = source.get([Wanted("", "a/1")])
    assert (message.origin, message.author, message.scope, message.at) == ("participant", "Mia", "work", START)  # type: ignore[union-attr]


def test_fake_vectors_are_near_when_words_are_shared() -> None:
    embedder = FakeEmbedder(256)
    tea, also_tea, dog = embedder.embed(["green tea with lemon", "tea with lemon", "a dog barks"])
    assert abs(float(tea @ tea) - 1) < 1e-6  # type: ignore[operator]
    assert float(tea @ also_tea) > 0.8 > 0.3 > float(tea @ dog)  # type: ignore[operator]


def test_a_poisoned_text_fails_alone() -> None:
    embedder = FakeEmbedder(poisoned=["bad"])
    good, bad = embedder.embed(["good", "so bad"])
    assert not hasattr(good, "reason") and bad.reason == "poisoned"  # type: ignore[union-attr]
