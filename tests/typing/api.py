"""The public API as its users write it. Type-checked, never run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_type

from clawmark import (
    Block,
    ClawmarkError,
    Event,
    Excerpt,
    Fact,
    Found,
    Memory,
    Message,
    Refused,
    Settings,
    SyncReport,
    Turn,
    UsageError,
    __version__,
)
from clawmark.embed import Embedder
from clawmark.model import Batch, Fate, Gone, Stream, Wanted
from clawmark.source import Folders, MessageSource
from clawmark.testing import FakeEmbedder, ListSource


def everyday() -> str:
    with Memory.open() as memory:
        assert_type(memory, Memory)
        assert_type(memory.sync(), SyncReport)
        found = memory.search("sailing trip", limit=3, scope="main")
        assert_type(found, Found)
        assert_type(found.facts, Sequence[Fact])
        assert_type(found.recalled, Sequence[Excerpt])
        assert_type([e.at for e in found.recalled], list[datetime | None])
        assert_type(memory.facts(), list[Fact])
        assert_type(memory.events(limit=10), list[Event])
        built = memory.block(Turn("what did I decide?", host="openclaw", session="s1", recent=("the boat",)))
        assert_type(built, Block)
        return built.text


def keeping() -> None:
    settings = Settings(db_path=Path("memory.db"), recall_limit=3, allow_remote=("api.example.com",))
    memory = Memory.open(settings, sources=[ListSource()], embedder=FakeEmbedder(), clock=lambda: datetime.now(UTC))
    try:
        assert_type(memory.set("pref.editor", "Helix"), Fact)
        assert_type(memory.forget("pref.editor"), list[str])
    except Refused as refused:
        assert_type(refused.code, str)
    except UsageError as wrong:
        assert_type(wrong.exit_code, int)
    except ClawmarkError:
        pass
    finally:
        memory.close()
    assert_type(__version__, str)


class MySource:
    """A source of a third party."""

    name = "mine"
    host = "mine"
    expires = False

    def __init__(self, places: Folders) -> None:
        self._root = places.openclaw

    @property
    def place(self) -> str:
        return str(self._root)

    def check(self) -> None: ...

    def describe(self) -> str:
        return str(self._root)

    def streams(self) -> Iterator[Stream]:
        yield Stream("a", "1", "main", "a")

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        said = Message("a/1", stream.name, stream.session, stream.scope, "owner", "text", datetime.now(UTC))
        return Batch([said], "1")

    def get(self, wanted: Sequence[Wanted]) -> list[Message | Gone]:
        return [Gone(want.ref) for want in wanted]

    def withdrawn(self, stream: Stream, cursor: str | None, refs: Sequence[str]) -> set[str]:
        return set()

    def fate(self, stream: Stream, cursor: str | None, now: datetime) -> Fate:
        return "deleted"


source: MessageSource = MySource(Folders(None, Path("~/.openclaw")))
embedder: Embedder = FakeEmbedder()
