"""What this process asks of its peers, who may ask and answer like itself.

What always holds: who waits is woken by the answer, the deadline, the end of the peer or of this process, whichever comes
first; an answer that comes late, twice, from another side or unasked is passed over; no id is one of a peer's own, nor one
of a process that was here before.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from clawmark.serve import message
from clawmark.serve.message import Answer
from clawmark.serve.peer import MOST_BYTES, Peer

LOOK_SECONDS = 0.2
"""Between two looks at whether anybody still waits."""

METHODS = frozenset({"complete"})
"""What a peer may offer."""


def offers(hello: message.Call) -> frozenset[str]:
    """What its peer offers, of what there is to be asked."""
    given = hello.params.get("offers")
    return (
        METHODS.intersection(one for one in given if isinstance(one, str)) if isinstance(given, list) else frozenset()
    )


class Unanswered(Exception):
    """nobody     no peer offers it        late   the deadline passed
    gone       the peer went away, or this process ends
    too_long   the question takes more than one line may; nothing was sent
    """

    def __init__(self, why: Literal["nobody", "late", "gone", "too_long"]) -> None:
        super().__init__(why)
        self.why = why


def _waited(over: threading.Event, seconds: float, is_over: Callable[[], bool] | None) -> bool:
    if is_over is None:
        return over.wait(seconds)
    until = time.monotonic() + seconds
    while not is_over() and (left := until - time.monotonic()) > 0:
        if over.wait(min(left, LOOK_SECONDS)):
            return True
    return False


@dataclass(eq=False, slots=True)
class _Question:
    peer: Peer
    over: threading.Event = field(default_factory=threading.Event)
    answer: Answer | None = None


class Outgoing:
    def __init__(self, name: str) -> None:
        """name: begins each id, and is no other process's."""
        self._name = name
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._offers: dict[Peer, frozenset[str]] = {}  # who is asked next stands last
        self._asked: dict[str, _Question] = {}
        self._missed: set[str] = set()  # what was asked while nobody offered it
        self._is_closed = False

    def offered(self, peer: Peer, methods: frozenset[str]) -> bool:
        """All that this peer can be asked from now on; whether something of it was asked in vain before."""
        with self._lock:
            self._offers.pop(peer, None)
            if methods and not self._is_closed:
                self._offers[peer] = methods
            found = self._missed & methods
            self._missed -= methods
            return bool(found)

    def ask(
        self, method: str, params: Mapping[str, Any], seconds: float, is_over: Callable[[], bool] | None = None
    ) -> Any:
        """The result that a peer gives within so many seconds. Raises Unanswered, and Failure where it answers an error.

        is_over: whether nobody waits for it any more; the peer is told then.
        """
        id = f"{self._name}-{next(self._numbers)}"
        line = message.call_line(id, method, {**params, "deadline_ms": max(1, round(seconds * 1000))})
        if len(line) > MOST_BYTES:
            raise Unanswered("too_long")
        question = self._begun(id, method)
        question.peer.send(line)
        in_time = _waited(question.over, seconds, is_over)
        with self._lock:
            self._asked.pop(id, None)
            answer = question.answer
            if answer is None or answer.failure is not None:
                self._ask_others_first(question.peer)
        if answer is None:
            if in_time:
                raise Unanswered("gone")
            question.peer.send(message.notice_line("cancel", {"id": id}))
            raise Unanswered("late")
        if answer.failure is not None:
            raise answer.failure
        return answer.result

    def answered(self, peer: Peer, answer: Answer) -> None:
        with self._lock:
            question = None if answer.id is None else self._asked.get(answer.id)
            if question is None or question.peer is not peer:
                return
            del self._asked[str(answer.id)]
            question.answer = answer
        question.over.set()

    def ended(self, peer: Peer) -> None:
        """This peer answers nothing more."""
        with self._lock:
            self._offers.pop(peer, None)
            for question in self._asked.values():
                if question.peer is peer:
                    question.over.set()

    def close(self) -> None:
        """Nobody waits any longer, and nothing more is asked."""
        with self._lock:
            self._is_closed = True
            self._offers.clear()
            for question in self._asked.values():
                question.over.set()

    def _begun(self, id: str, method: str) -> _Question:
        with self._lock:
            peer = next((peer for peer, known in reversed(self._offers.items()) if method in known), None)
            if peer is None:
                self._missed.add(method)
                raise Unanswered("nobody")
            question = self._asked[id] = _Question(peer)
            return question

    def _ask_others_first(self, peer: Peer) -> None:
        if peer in self._offers:
            self._offers = {peer: self._offers.pop(peer), **self._offers}
