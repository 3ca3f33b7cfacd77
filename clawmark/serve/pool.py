"""Threads for requests: a few of each kind, so that slow ones never take the place of a prompt's; and one for deadlines."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable

Work = Callable[[], None]


class Pool:
    """At most `slots` threads, made when they are needed, and at most `most` pieces of work that wait for one.

    The work catches its own errors.
    """

    def __init__(self, name: str, slots: int, most: int) -> None:
        self._name = name
        self._slots = slots
        self._most = most
        self._waiting: deque[Work] = deque()
        self._changed = threading.Condition()
        self._idle = 0
        self._threads = 0

    def run(self, work: Work) -> bool:
        """False when too much is waiting already."""
        with self._changed:
            if len(self._waiting) >= self._most:
                return False
            self._waiting.append(work)
            if self._idle >= len(self._waiting):
                self._changed.notify()
            elif self._threads < self._slots:
                try:
                    threading.Thread(target=self._loop, name=f"clawmark-{self._name}", daemon=True).start()
                except RuntimeError:  # the system gives no more threads
                    if not self._threads:
                        self._waiting.pop()
                        return False
                else:
                    self._threads += 1
            return True

    def _loop(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._waiting:
                    self._changed.wait()
                self._idle -= 1
                work = self._waiting.popleft()
            work()
            del work  # it may hold a prompt


class Watchdog:
    """Calls what it was given when its time has come. One thread; what it calls is quick."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Work]] = []
        self._count = itertools.count()
        self._changed = threading.Condition()
        threading.Thread(target=self._loop, name="clawmark-watchdog", daemon=True).start()

    def after(self, seconds: float, due: Work) -> None:
        with self._changed:
            entry = (self._clock() + seconds, next(self._count), due)
            heapq.heappush(self._heap, entry)
            if self._heap[0] is entry:
                self._changed.notify()

    def _loop(self) -> None:
        while True:
            with self._changed:
                while not self._heap or self._heap[0][0] > self._clock():
                    self._changed.wait(self._heap[0][0] - self._clock() if self._heap else None)
                due = heapq.heappop(self._heap)[2]
            due()
            del due
