"""A message source to copy from: diaries, one file each, one entry a line.

    3f2a9c1e<TAB>2026-03-02T09:00:00Z<TAB>me<TAB>We take the ferry at nine.

The fields of a line: its id, when, who ("me" or "helper"), what. A line without its newline is not finished yet.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from clawmark.errors import SourceAbsent, SourceError
from clawmark.model import Batch, Fate, Fault, Gone, Message, Stream, Wanted
from clawmark.source import Folders


class DiarySource:
    name = "diary"  # as in the entry point, for ever: it stands in every row of `passage_refs`
    host = "diary"  # whose log it is
    expires = False  # nobody deletes old diaries

    def __init__(self, folders: Folders) -> None:
        self._folder = (folders.transcripts or Path.home()) / "diaries"

    @property
    def place(self) -> str:
        return str(self._folder.absolute())

    def check(self) -> None:
        if not self._folder.is_dir():
            raise SourceAbsent(f"there is no folder {self._folder}; put diaries there")

    def describe(self) -> str:
        return f"diaries in {self._folder}"

    def streams(self) -> Iterator[Stream]:
        self.check()
        for path in sorted(self._folder.glob("*.tsv")):
            try:
                stat = path.stat()
            except OSError as error:  # not "gone": what is not listed counts as deleted
                raise SourceError(f"{path} cannot be read ({error.strerror})") from error
            touched = datetime.fromtimestamp(stat.st_mtime, UTC)
            yield Stream(path.stem, f"{stat.st_size}:{stat.st_mtime_ns}", "diary", path.stem, touched=touched)

    def read(self, stream: Stream, cursor: str | None, limit: int) -> Batch:
        """The cursor is (lines passed, a hash of them): with another hash the diary was edited, and is read anew."""
        lines = self._lines(stream.name)
        passed = _passed(cursor, lines)
        start = passed
        messages: list[Message] = []
        faults: list[Fault] = []
        while passed < len(lines) and len(messages) < limit:
            try:
                messages.append(_message(stream.name, lines[passed]))
            except ValueError:
                faults.append(Fault("not_a_line", f"{stream.name}:{passed + 1}"))
            passed += 1
        return Batch(
            messages,
            json.dumps([passed, _hash(lines[:passed])]),
            before=self._before(stream.name, lines[:start]) if messages else None,
            faults=faults,
            end=passed == len(lines),
            restarted=start == 0,
        )

    def get(self, wanted: Sequence[Wanted]) -> list[Message | Gone]:
        names = {want.ref.partition("/")[0] for want in wanted}
        there = [name for name in names if name and (self._folder / f"{name}.tsv").is_file()]
        found = {m.ref: m for name in there for m in _messages(name, self._lines(name))}
        return [found.get(want.ref) or Gone(want.ref) for want in wanted]

    def withdrawn(self, stream: Stream, cursor: str | None, refs: Sequence[str]) -> set[str]:
        """A line that was struck out is no line any more; one that was cut off with the rest of its file may come back."""
        return set()

    def fate(self, stream: Stream, cursor: str | None, now: datetime) -> Fate:
        return "deleted"

    def _lines(self, name: str) -> list[str]:
        try:
            text = (self._folder / f"{name}.tsv").read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise SourceError(f"the diary {name} cannot be read ({error.strerror})") from error
        return text.split("\n")[:-1]

    def _before(self, name: str, lines: Sequence[str]) -> Message | None:
        return next(iter(reversed(_messages(name, lines))), None)


def _passed(cursor: str | None, lines: Sequence[str]) -> int:
    try:
        passed, known = json.loads(cursor or "")
    except (ValueError, TypeError):
        return 0
    fits = isinstance(passed, int) and 0 < passed <= len(lines) and _hash(lines[:passed]) == known
    return passed if fits else 0


def _hash(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _messages(name: str, lines: Sequence[str]) -> list[Message]:
    found = []
    for line in lines:
        try:
            found.append(_message(name, line))
        except ValueError:
            continue
    return found


def _message(name: str, line: str) -> Message:
    """Raises ValueError for a line that is none."""
    entry, when, who, said = line.split("\t", 3)
    at = datetime.fromisoformat(when)
    return Message(
        ref=f"{name}/{entry}",  # the entry's own id: it stays when lines are cut off or the file is moved
        stream=name,
        session=name,
        scope="diary",
        origin="assistant" if who == "helper" else "owner",
        text=said,
        at=at if at.tzinfo else at.replace(tzinfo=UTC),
    )
