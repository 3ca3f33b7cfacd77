"""Beside a resident process that is there already: its lines are passed on, both ways, and nothing else is done.

What is asked and not answered when the resident process goes away is answered here, so that nobody waits for it. Nor does
anybody where it cannot be reached: what is asked meanwhile waits for a while, and is then answered with nothing to say.
What the host offers is told to each resident process, and what one of them asked of the host ends with it.
"""

from __future__ import annotations

import json
import logging
import select
import socket
import time
from typing import Literal

from clawmark.serve import message
from clawmark.serve.outgoing import offers
from clawmark.serve.peer import Lines, Outlet, Stdio, read_some

log = logging.getLogger("clawmark")

GONE = "the resident process went away"
End = Literal["stopped", "resident gone"]

PATIENCE = 5.0
"""Seconds that what has no deadline waits for a resident process."""

MARGIN = 0.05
"""An answer is sent so long before the deadline."""

MOST_HELD = 256
NOTHING = {"block": {"text": ""}, "hook": {"stdout": ""}, "notify": {}}
"""What is answered where there is no memory; to what is not in here, that there is none."""


class Proxy:
    """Between the pipes of a host and one resident process after another; what was read of the host is kept between."""

    def __init__(self, host: Stdio, wake: int) -> None:
        """wake: readable when the process is to end."""
        self._host = host
        self._wake = wake
        self._offers: frozenset[str] = frozenset()
        self._under_way: set[message.Id] = set()
        self._asked_of_host: set[str] = set()
        self._to_resident: Outlet | None = None
        self._held: list[tuple[float, message.Call, bytes]] = []
        """What came while there was nobody to pass it on to, and when it is answered here."""

    def wait(self, seconds: float, why: str) -> bool:
        """Watch the host for so long while nobody can be reached; False = the host or this process ends."""
        poller = select.poll()
        for descriptor in (self._host.inlet, self._wake):
            poller.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poller.poll(seconds * 1000)}
        if self._wake in ready:
            return False
        if self._host.inlet in ready:
            chunk = read_some(self._host.inlet)
            if not chunk:
                return False
            for line in self._host.lines.feed(chunk):
                self._hold(line)
        now = time.monotonic()
        for due, call, _ in self._held:
            if due <= now:
                self._answer_for_nobody(call, why)
        self._held = [held for held in self._held if held[0] > now]
        return True

    def hand_over(self) -> None:
        """This process is the resident one from here on: what was asked of it waits at the host's pipes."""
        self._host.early.extend(self._offer())
        self._host.early.extend(line for _, _, line in self._held)
        self._held = []

    def pass_on(self, connection: socket.socket) -> End:
        """Until the host or the process ends, or the resident process does; then everything asked of it is answered."""
        gone = False

        def lost() -> None:
            nonlocal gone
            gone = True

        self._to_resident = Outlet(connection.fileno(), lost)
        from_resident = Lines()
        poller = select.poll()
        for descriptor in (self._host.inlet, connection.fileno(), self._wake):
            poller.register(descriptor, select.POLLIN)
        try:
            for line in self._offer():
                self._to_resident.send(line)
            held, self._held = self._held, []
            self._ask([line for _, _, line in held])
            while not gone:
                ready = {descriptor for descriptor, _ in poller.poll(1000)}
                if self._wake in ready:
                    return "stopped"
                if connection.fileno() in ready:
                    chunk = read_some(connection.fileno())
                    for said in from_resident.feed(chunk):
                        self._answer(said)
                    gone = gone or not chunk
                if self._host.inlet in ready and not gone:
                    chunk = read_some(self._host.inlet)
                    if not chunk:
                        return "stopped"
                    self._ask(self._host.lines.feed(chunk))
            return "resident gone"
        finally:
            self._to_resident.close()
            connection.close()
            self._give_up()

    def _hold(self, line: bytes | None) -> None:
        try:
            call = message.parsed(line)
        except message.Failure as failure:
            if line is None or line.strip():
                self._host.outlet.send(message.error_line(None, failure))
            return
        except message.Misused as wrong:
            if wrong.id is not None:
                self._host.outlet.send(message.error_line(wrong.id, wrong.failure))
            return
        if isinstance(call, message.Answer) or line is None:
            return  # whoever asked it is gone
        self._note_offers(call)
        seconds = PATIENCE if call.seconds is None else min(PATIENCE, call.seconds - MARGIN)
        if len(self._held) >= MOST_HELD:
            seconds = 0.0
        self._held.append((time.monotonic() + seconds, call, line))

    def _answer_for_nobody(self, call: message.Call, why: str) -> None:
        if call.id is None:
            return
        if call.method in NOTHING:
            said = message.result_line(call.id, NOTHING[call.method])
        else:
            said = message.error_line(call.id, message.Failure(message.NOT_READY, f"memory is not ready: {why}"))
        self._host.outlet.send(said)

    def _ask(self, lines: list[bytes | None]) -> None:
        for line in lines:
            said: message.Call | message.Answer | None
            try:
                said = message.parsed(line)
            except message.Misused:
                said = None
            except message.Failure as failure:
                if line is None:  # too long to be passed on
                    self._host.outlet.send(message.error_line(None, failure))
                    continue
                said = None
            if line is None or self._to_resident is None:
                continue
            if isinstance(said, message.Answer):
                self._asked_of_host.discard(said.id or "")
            elif said is not None:
                self._note_offers(said)
                if said.id is not None:
                    self._under_way.add(said.id)
            self._to_resident.send(line)

    def _answer(self, line: bytes | None) -> None:
        if line is None:
            return
        try:
            said = json.loads(line)
            known, is_question = said.get("id"), "method" in said
        except (ValueError, AttributeError, RecursionError):
            return  # nothing but protocol is passed on
        if is_question and isinstance(known, str):
            self._asked_of_host.add(known)
        elif not is_question and isinstance(known, int | str):
            self._under_way.discard(known)
        self._host.outlet.send(line)

    def _give_up(self) -> None:
        failure = message.Failure(message.FAULT, GONE)
        for known in self._under_way:
            self._host.outlet.send(message.error_line(known, failure))
        self._under_way.clear()
        for asked in self._asked_of_host:
            self._host.outlet.send(message.notice_line("cancel", {"id": asked}))
        self._asked_of_host.clear()

    def _note_offers(self, call: message.Call) -> None:
        if call.method == "hello":
            self._offers = offers(call)

    def _offer(self) -> list[bytes]:
        """What tells a resident process that was not there when the host said it."""
        return [message.notice_line("hello", {"offers": sorted(self._offers)})] if self._offers else []
