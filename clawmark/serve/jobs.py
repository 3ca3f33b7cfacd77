"""The thread that opens the memory and runs the jobs beside the requests.

A pass runs at the start, when enough was said or nothing is said any more, when a session begins or ends, and when
somebody asks. What is asked for while one runs is one more pass behind it. A pass gives way to prompts between its
batches, and ends at once when the process does: what it committed stands.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from clawmark.errors import ClawmarkError, SourceAbsent
from clawmark.model import SyncReport
from clawmark.text import forget_texts

if TYPE_CHECKING:
    from clawmark.memory import Memory

log = logging.getLogger("clawmark")

OPENING = "opening"
"""The problem of a memory that nobody has tried to open in vain yet."""

MOST_NAMED = 64
"""Characters of a session's id in the log."""

DEBOUNCE = 0.5
"""Seconds: several sessions that begin together want one pass."""

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 600.0
ASKED_PAUSE = 30.0
"""A request has a memory that could not be opened tried again after so long."""

GIVING_WAY = 0.25
"""Seconds a pass waits for prompts between two of its batches at most: a busy day must not stop it."""

BATCHES = 5
"""Batches of extraction in one pass: new messages are searchable before old ones are looked through."""

BATCHES_OF_A_MODEL = 1
"""The same where a model is asked, which may take minutes over each."""

NICE = 10
NEVER = float("inf")


class Stopped(BaseException):
    """The process ends: the pass is left where it is. No Exception, so that nobody on the way takes it for a failure."""


class Pass:
    """A pass that somebody waits for, and what became of it."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.report = SyncReport()
        self.failure: Exception | None = None


class Jobs:
    """open_memory     raises ClawmarkError where it cannot; asked again with growing pauses
    announce          says what was opened, in the log
    prompts_waiting   whether a prompt is being answered now
    batches           of extraction in one pass at most
    """

    def __init__(
        self,
        open_memory: Callable[[], Memory],
        announce: Callable[[Memory], None],
        *,
        every: int,
        idle_seconds: float,
        prompts_waiting: Callable[[], bool],
        batches: int = BATCHES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.memory: Memory | None = None
        self.problem = OPENING
        """Why there is no memory."""
        self.failing = ""
        """Why the last pass failed."""
        self.is_running = False
        self.ready = threading.Event()
        self.tried = threading.Event()
        """Set once it was tried to open the memory, well or in vain."""
        self._open_memory = open_memory
        self._announce = announce
        self._every = every
        self._batches = batches
        self._idle_seconds = idle_seconds
        self._prompts_waiting = prompts_waiting
        self._clock = clock
        self._changed = threading.Condition()
        self._stopping = False
        self._due = NEVER
        self._quiet = NEVER  # when nothing was said for long enough
        self._asked: list[Pass] = []
        self._messages = 0
        self._why = "start"
        self._unasked = 0
        self._failures = 0
        self._failed_at = NEVER
        self._thread = threading.Thread(target=self._run, name="clawmark-jobs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """End the pass that is running; whether it ended in time."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
            for asked in self._asked:
                asked.done.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    # What makes a pass due

    def nudge(self, why: str, session: str = "") -> None:
        """Something happened that a pass is good for: a session began or ended, which one is said in the log."""
        with self._changed:
            self._why = f"{why} {session[:MOST_NAMED]!a}" if session else why
            self._due = min(self._due, self._clock() + DEBOUNCE)
            self._changed.notify_all()

    def said(self, count: int) -> None:
        """So many messages were logged."""
        with self._changed:
            self._messages += count
            self._quiet = self._clock() + self._idle_seconds
            if self._messages >= self._every:
                self._due = self._clock()
                self._why = "messages"
            self._changed.notify_all()

    def reconcile(self, is_over: Callable[[], bool], *, drain: bool = True) -> SyncReport | None:
        """The report of a pass that begins from now on; with `drain` of as many as it takes until nothing waits to be
        extracted, or what waits gets no less. Raises what it raised; None where none was through when nobody waited any
        more."""
        report = self._one_pass(is_over)
        while drain and report is not None and report.unasked and not is_over():
            later = self._one_pass(is_over)
            if later is None:
                break
            gets_less = later.unasked < report.unasked
            report = report.then(later)
            drain = gets_less
        return report

    def _one_pass(self, is_over: Callable[[], bool]) -> SyncReport | None:
        asked = Pass()
        with self._changed:
            self._asked.append(asked)
            self._changed.notify_all()
        while not asked.done.wait(0.2) and not is_over():
            pass
        if asked.failure is not None:
            raise asked.failure
        return asked.report if asked.done.is_set() else None

    def wanted(self) -> None:
        """A request came while there is no memory."""
        if self.memory is None and self._clock() - self._failed_at >= ASKED_PAUSE:
            with self._changed:
                self._failed_at = NEVER
                self._due = self._clock()
                self._changed.notify_all()

    # The thread

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._step()
        except Stopped:
            pass

    def _step(self) -> None:
        """Open the memory where there is none, else run one pass; then wait for the next reason."""
        if self.memory is None:
            self._open()
        else:
            self._pass(self.memory)
        with self._changed:
            while not self._stopping and not (self._asked and self.memory is not None):
                wait = min(self._due, self._quiet) - self._clock()
                if wait <= 0:
                    return
                self._changed.wait(None if wait == NEVER else wait)

    def _open(self) -> None:
        try:
            self.memory = self._open_memory()
        except Exception as failed:  # noqa: BLE001 - the job loop: whatever it is, the next try may do better
            self._quiet = NEVER  # silence is a reason for a pass, not for a try
            self._failed(failed, opening=True)
            self.tried.set()
            return
        if self.problem != OPENING:
            log.warning("opened after all")
        self.problem, self._failures, self._due = "", 0, self._clock()
        self.ready.set()
        self.tried.set()
        self._warm(self.memory)
        with contextlib.suppress(OSError):  # from here on it is never this thread that somebody waits for
            _be_nice()

    def _warm(self, memory: Memory) -> None:
        """Load the model and the vectors, so that the first prompt has not to wait for them."""
        try:
            memory.search("what was said", limit=1)
            self._announce(memory)
        except Exception as failed:  # noqa: BLE001 - as above; the prompt will say the same
            log.warning("not_warmed reason=%s", told(failed))

    def _pass(self, memory: Memory) -> None:
        with self._changed:
            asked, self._asked = self._asked, []
            why, self._why = "asked for" if asked else self._why, "silence"
            self._due = self._quiet = NEVER
            self._messages = 0
            self.is_running = True
        outcome = Pass()
        try:
            # What was just said may go on: then a few messages wait for more.
            outcome.report = memory.sync(self._progress, most_batches=self._batches, hurry=why != "messages")
        except Exception as failed:  # noqa: BLE001 - the job loop: a pass that fails must not be the last one
            outcome.failure = failed
        finally:
            self.is_running = False
            forget_texts()  # some may be forgotten by now, in whatever process
        if outcome.failure is None:
            self._succeeded(outcome.report, why)
        else:
            self._failed(outcome.failure, opening=False)
        for one in asked:
            one.report, one.failure = outcome.report, outcome.failure
            one.done.set()

    def _progress(self, what: str, done: int, total: int | None) -> None:
        until = self._clock() + GIVING_WAY
        while True:
            if self._stopping:
                raise Stopped
            if not self._prompts_waiting() or self._clock() >= until:
                return
            time.sleep(0.002)

    def _succeeded(self, report: SyncReport, why: str) -> None:
        if self.failing:
            log.warning("jobs_work_again")
        self.failing, self._failures = "", 0
        # What is left over is one more pass, as long as there is less of it each time.
        if report.unasked > 0 and (report.unasked < self._unasked or not self._unasked):
            self.nudge("extraction")
        self._unasked = report.unasked
        if report.read or report.vectors or report.pruned or report.facts or report.proposed:
            log.info(
                "pass after=%s read=%d kept=%d vectors=%d pending=%d pruned=%d facts=%d proposed=%d unasked=%d",
                why,
                report.read,
                report.kept,
                report.vectors,
                report.pending,
                report.pruned,
                report.facts,
                report.proposed,
                report.unasked,
            )

    def _failed(self, failed: Exception, *, opening: bool) -> None:
        """One line where it is news; the next try comes by itself."""
        why = told(failed)
        if opening and why != self.problem:
            self.problem = why
            log.warning("memory_not_ready reason=%s", why)
        elif not opening and why != self.failing:
            self.failing = why
            log.log(logging.INFO if isinstance(failed, SourceAbsent) else logging.WARNING, "pass_failed reason=%s", why)
        pause = min(FIRST_PAUSE * 2.0 ** min(self._failures, 20), LONGEST_PAUSE)
        with self._changed:
            self._failures += 1
            self._failed_at = self._clock()
            self._due = min(self._due, self._failed_at + pause) if not opening else self._failed_at + pause


def _be_nice() -> None:
    """Linux alone has a priority of a thread; elsewhere the whole process would have it."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


def told(failed: Exception) -> str:
    """What may be said of an error: ours in full, another's by its kind and place, since its words may be a message's."""
    if isinstance(failed, ClawmarkError):
        return str(failed)
    trace, place = failed.__traceback__, "nowhere"
    while trace is not None:
        place = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(failed).__name__} at {place}; this is a fault of clawmark, please report it"
