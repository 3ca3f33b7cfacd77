"""Blocks for prompts: made within a deadline, remembered for a run that is tried again, written down once they are out."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clawmark.errors import ClawmarkError, UsageError
from clawmark.hosts.desk import Notice
from clawmark.model import Block, Said, Turn
from clawmark.serve.jobs import Jobs, told
from clawmark.serve.message import PARAMS, Failure
from clawmark.serve.pool import Pool
from clawmark.serve.request import Request
from clawmark.serve.sessions import Made, Runs, Typed

if TYPE_CHECKING:
    from clawmark.memory import Memory

log = logging.getLogger("clawmark")

PATIENCE = 1.5
"""Seconds a prompt without a deadline waits for a memory that is being opened."""

MARGIN = 0.05
"""An empty answer is sent so long before the deadline: it is better than none."""

WRITE_PATIENCE = 0.25
"""Seconds a prompt waits until what its session was shown before is written down."""

MOST_WRITES = 256


class Blocks:
    """What all prompts of the process share."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.typed = Typed()
        self.last: datetime | None = None
        """When a block with something in it went out."""
        self._runs = Runs()
        self._after = Pool("after", 1, MOST_WRITES)
        self._changed = threading.Condition()
        self._unwritten: dict[tuple[str, str | None], int] = {}
        self._failing = ""

    def made(self, turn: Turn, request: Request) -> Made:
        """Never raises for a memory that fails: then the block is empty, and one line says why where that is news."""
        memory = self._opened(request)
        if memory is None:
            return _nothing()
        self._wait_for_writes(turn)
        try:
            mark = () if turn.run is None else memory.changes()  # before the block: what changes meanwhile counts
            kept = self._runs.get(turn, mark)
            if kept is not None:
                return kept
            block = memory.block(turn)
        except UsageError as wrong:
            raise Failure(PARAMS, str(wrong)) from None
        except ClawmarkError as failed:
            if str(failed) != self._failing:
                self._failing = str(failed)
                log.warning("no_block reason=%s", failed)
            self.jobs.nudge("no_block")  # what a pass can mend it does
            return _nothing()
        self._failing = ""
        return self._runs.keep(turn, block, mark)

    def _opened(self, request: Request) -> Memory | None:
        """The memory, also one that is just being opened. What cannot be opened is not waited for, prompt after prompt."""
        if not self.jobs.ready.is_set():
            self.jobs.wanted()
            self.jobs.tried.wait(max(0.0, request.left(PATIENCE) - MARGIN))
        return self.jobs.memory

    def forget(self) -> None:
        """A fact was forgotten or hidden: no block that shows it is given again."""
        self._runs.clear()

    def tidy(self) -> None:
        self._runs.tidy()

    def said(self, turn: Turn, owner: bool) -> None:
        """Keep what the owner typed, for the tools that this turn's model may call."""
        if owner and turn.session is not None and turn.prompt.strip():
            self.typed.add(turn.host, turn.session, Said(turn.prompt, turn.now or datetime.now(UTC)))

    def went_out(self, turn: Turn, made: Made) -> None:
        """Its answer is out."""
        if made.block.text:
            self.last = datetime.now(UTC)
        memory = self.jobs.memory
        if memory is not None and made.is_first():
            self._write(turn.host, turn.session, lambda: memory.shown(turn, made.block))

    def renew(self, host: str, session: str, request: Request) -> None:
        memory = self._opened(request)
        if memory is not None:
            self._write(host, session, lambda: memory.renew(host, session))

    @contextmanager
    def answering(self, turns: Sequence[Turn]) -> Iterator[None]:
        """While their answer goes out: who reads it may ask again before it is known here that it is out."""
        for turn in turns:
            self._count(turn.host, turn.session, 1)
        try:
            yield
        finally:
            for turn in turns:
                self._count(turn.host, turn.session, -1)

    def _write(self, host: str, session: str | None, write: Callable[[], None]) -> None:
        def work() -> None:
            try:
                write()
            except Exception as failed:  # noqa: BLE001 - its answer is out: there is nobody else who could be told
                log.warning("not_written reason=%s", told(failed))
            finally:
                self._count(host, session, -1)

        self._count(host, session, 1)
        if not self._after.run(work):
            log.warning("not_written reason=too much waits to be written")
            self._count(host, session, -1)

    def _count(self, host: str, session: str | None, change: int) -> None:
        """What of a session is not written down yet."""
        with self._changed:
            count = self._unwritten.pop((host, session), 0) + change
            if count:
                self._unwritten[host, session] = count
            else:
                self._changed.notify_all()

    def _wait_for_writes(self, turn: Turn) -> None:
        """What was shown a moment ago is not shown once more, even to a host that is quicker than the disk."""
        if turn.session is None or not self._unwritten:
            return
        until = time.monotonic() + WRITE_PATIENCE
        with self._changed:
            while self._unwritten.get((turn.host, turn.session)) and time.monotonic() < until:
                self._changed.wait(until - time.monotonic())


def _nothing() -> Made:
    """What is given where there is no memory; nothing is written down of it."""
    made = Made(Block(""), 0.0, ())
    made.is_first()
    return made


class Desk:
    """What a hook's glue works with, for one request: `clawmark.hosts.desk.HookDesk`."""

    def __init__(self, blocks: Blocks, request: Request) -> None:
        self._blocks = blocks
        self._request = request
        self._shown: list[tuple[Turn, Made]] = []

    def block(self, turn: Turn, *, owner: bool) -> Block:
        self._blocks.said(turn, owner)
        made = self._blocks.made(turn, self._request)
        self._shown.append((turn, made))
        return made.block

    def renew(self, host: str, session: str) -> None:
        self._blocks.renew(host, session, self._request)

    def notify(self, event: Notice, host: str, session: str | None = None, count: int = 0) -> None:
        if event == "messages":
            self._blocks.jobs.said(count)
        else:
            self._blocks.jobs.nudge(event, session or "")

    @property
    def turns(self) -> list[Turn]:
        return [turn for turn, _ in self._shown]

    def went_out(self) -> None:
        """The hook's answer is out."""
        for turn, made in self._shown:
            self._blocks.went_out(turn, made)
