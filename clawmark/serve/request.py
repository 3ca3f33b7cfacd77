"""One request: it is answered once, by whoever comes first: what was found out, its deadline, its cancellation or its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from clawmark.serve import message
from clawmark.serve.message import Failure
from clawmark.serve.peer import MOST_BYTES, Peer, Then


class Request:
    def __init__(self, peer: Peer, call: message.Call, id: message.Id, over: Callable[[Request], None]) -> None:
        """over: called once, when it is answered."""
        self.peer = peer
        self.method = call.method
        self.params = call.params
        self.id = id
        self.until = None if call.seconds is None else time.monotonic() + call.seconds
        self._over = over
        self._answering = threading.Lock()

    @property
    def is_over(self) -> bool:
        return self._answering.locked()

    def left(self, most: float) -> float:
        """Seconds until its deadline, at most `most`."""
        return most if self.until is None else max(0.0, min(most, self.until - time.monotonic()))

    def answer(self, result: Any, then: Then | None = None) -> None:
        """`then` is called when the answer is out; never where it came too late or could not be written."""
        line = message.result_line(self.id, result)
        if len(line) > MOST_BYTES:
            return self.fail(Failure(message.FAULT, "the answer is too long"))
        if self._take():
            self.peer.send(line, then)

    def fail(self, failure: Failure) -> None:
        if self._take():
            self.peer.send(message.error_line(self.id, failure))

    def drop(self) -> None:
        """Nobody is there to be answered."""
        self._take()

    def _take(self) -> bool:
        if not self._answering.acquire(blocking=False):
            return False
        self._over(self)
        return True
