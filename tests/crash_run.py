"""What is killed and faulted: `crash_run.py sync DATABASE LOG [--weights N] [--planted]`, `… extract DATABASE LOG URL`,
`… acks DATABASE FILE COUNT`.

sync: one pass of the jobs over a log, in small transactions and with an embedder that needs no model, so that there are
many points to be killed at. --weights N is another model behind the same name; --planted commits each cursor before its
rows, which a harness must catch, and with --dies ends in between at the third.

extract: one pass with small batches of extraction, by the chat server
at URL.

acks: facts are set and forgotten, and each acknowledgement is noted in FILE, outside the database, before the next one.
`crash_check.py acks DATABASE FILE` says whether each of them held.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import apsw

from clawmark.errors import ClawmarkError
from clawmark.jobs import extract, index, vectors
from clawmark.memory import Memory
from clawmark.settings import Settings
from clawmark.source import MessageSource
from clawmark.store import cursors, streams
from clawmark.store.db import transaction
from clawmark.testing import FakeEmbedder

NOW = datetime(2026, 12, 1, tzinfo=UTC)
PLANTED: list[None] = []
"""One entry for each cursor that was committed before its rows."""


def sync(database: Path, log: Path, *, weights: int, planted: bool) -> None:
    index.GROUP = 25
    vectors.DROPPED_AT_ONCE = 25
    if planted:
        index._commit = cursor_first
    settings = Settings(db_path=database, transcripts_dir=log)
    embedder = FakeEmbedder(16, weights=weights)
    with Memory.open(settings, embedder=embedder, clock=lambda: NOW, rng=random.Random(1)) as memory:
        memory.sync()


def extracted(database: Path, log: Path, url: str) -> None:
    extract.BATCH = 2
    settings = Settings(db_path=database, transcripts_dir=log, embedder="none", extract_url=url)
    with Memory.open(settings, clock=lambda: NOW, rng=random.Random(1)) as memory:
        memory.sync()


def cursor_first(
    connection: apsw.Connection,
    path: Path,
    source: MessageSource,
    group: Sequence[index.Read],
    clock: Callable[[], datetime],
    tally: index.Tally,
    buried_at: tuple[object, ...],
) -> None:
    """`index._commit` with the fault that everybody makes once: what was read counts as done before it is stored."""
    with transaction(connection, path):
        for read in group:
            row_id = streams.put(connection, source.name, source.host, source.place, read.stream)
            name = index.cursor_name(source.name, read.stream.name)
            cursors.put(connection, name, index._encode(read.batch.cursor, index.Thread()), clock())
            if read.batch.end:
                streams.set_mark(connection, row_id, read.stream.mark)
    PLANTED.append(time.sleep(0.01))
    if "--dies" in sys.argv and len(PLANTED) == 3:
        os._exit(9)
    with transaction(connection, path):
        seen = index.Seen.of(connection, source, [item for read in group for item in read.prepared])
        for read in group:
            row_id = streams.put(connection, source.name, source.host, source.place, read.stream)
            total = index.Written()
            thread = index._write(connection, row_id, read, index.Thread(), seen, total, clock())
            name = index.cursor_name(source.name, read.stream.name)
            cursors.put(connection, name, index._encode(read.batch.cursor, thread), clock())


def acks(database: Path, noted: Path, count: int) -> None:
    """Goes on where the notes end. Every third fact is forgotten again, and every fifth gets another value."""
    done = len(noted.read_text(encoding="utf-8").splitlines()) if noted.exists() else 0
    settings = Settings(db_path=database, embedder="none")
    with Memory.open(settings, sources=[], clock=lambda: NOW) as memory, noted.open("a", encoding="utf-8") as file:
        for number in range(done, done + count):
            key = f"user.number_{number // 3}"
            if number % 3 == 2 and number % 2:
                memory.forget(key)
                said = f"forget {key} -"
            else:
                value = f"zqvalue{number:06}"
                memory.set(key, value)
                said = f"set {key} {value}"
            file.write(said + "\n")
            file.flush()
            os.fsync(file.fileno())


def main() -> None:
    what, database, *rest = sys.argv[1:]
    try:
        if what == "acks":
            acks(Path(database), Path(rest[0]), int(rest[1]))
        elif what == "extract":
            extracted(Path(database), Path(rest[0]), rest[1])
        else:
            weights = int(rest[rest.index("--weights") + 1]) if "--weights" in rest else 0
            sync(Path(database), Path(rest[0]), weights=weights, planted="--planted" in rest)
    except ClawmarkError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
