"""The contract, run on diaries. `DiaryLog` writes them as their owner does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from diary_source import DiarySource

from clawmark.model import Role
from clawmark.source import Folders, MessageSource
from clawmark.testing import Log, SourceContract, drain, everything


class DiaryLog(Log):
    """What a diary cannot do (be reset, expire, be edited) is left out, and the laws about it are skipped."""

    def __init__(self, folder: Path) -> None:
        self.home = folder
        self.folder = folder / "diaries"
        self.folder.mkdir()
        self.count = 0
        self.torn = ""

    def source(self) -> MessageSource:
        return DiarySource(Folders(self.home, self.home))

    def new_session(self, name: str) -> str:
        return name

    def append(self, session: str, role: Role, text: str, at: datetime) -> str:
        self.count += 1
        line = f"{self.count:08x}\t{at.isoformat()}\t{'helper' if role == 'assistant' else 'me'}\t{text}\n"
        with open(self.folder / f"{session}.tsv", "a", encoding="utf-8") as file:
            file.write(line)
        return f"{session}/{self.count:08x}"

    def tear_last_line(self, session: str, role: Role, text: str, at: datetime) -> str:
        ref = self.append(session, role, text, at)
        path = self.folder / f"{session}.tsv"
        whole = path.read_bytes()
        path.write_bytes(whole[:-9])
        self.torn = whole[-9:].decode()
        return ref

    def complete(self, session: str) -> None:
        with open(self.folder / f"{session}.tsv", "a", encoding="utf-8") as file:
            file.write(self.torn)

    def shrink_to_tail(self, session: str, keep: int) -> None:
        path = self.folder / f"{session}.tsv"
        path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[-keep:]), encoding="utf-8")

    def edit(self, session: str, ref: str, text: str) -> None:
        path = self.folder / f"{session}.tsv"
        lines = [line.split("\t", 3) for line in path.read_text(encoding="utf-8").splitlines()]
        edited = [[*line[:3], text] if line[0] == ref.partition("/")[2] else line for line in lines]
        path.write_text("".join("\t".join(line) + "\n" for line in edited), encoding="utf-8")

    def delete(self, session: str) -> None:
        (self.folder / f"{session}.tsv").unlink()

    def absent(self) -> None:
        self.folder.rename(self.home / "elsewhere")


class TestDiarySource(SourceContract):
    @pytest.fixture
    def log(self, tmp_path: Path) -> DiaryLog:
        return DiaryLog(tmp_path)


def test_a_line_that_is_none_costs_itself_alone(tmp_path: Path) -> None:
    log = DiaryLog(tmp_path)
    start = datetime(2026, 3, 2, tzinfo=UTC)
    log.append("march", "user", "we take the ferry", start)
    with open(log.folder / "march.tsv", "a", encoding="utf-8") as file:
        file.write("nothing that could be read\n")
    log.append("march", "assistant", "at nine", start + timedelta(minutes=1))
    (stream,) = log.source().streams()
    assert [m.text for m in everything(log.source())] == ["we take the ferry", "at nine"]
    assert [(f.reason, f.where) for batch in drain(log.source(), stream) for f in batch.faults] == [
        ("not_a_line", "march:2")
    ]
