"""Beside a resident process that is there already: its lines are passed on, both ways, and nothing else is done.

What is asked and not answered when the resident process goes away is answered here, so that nobody waits for it.
"""

from __future__ import annotations

import json
import logging
import select
import socket
from typing import Literal

from clawmark.serve import message
from clawmark.serve.peer import Lines, Outlet, Stdio, read_some

log = logging.getLogger("clawmark")

GONE = "the resident process went away"
End = Literal["stopped", "resident gone"]


class Proxy:
    """Between the pipes of a host and one resident process after another; what was read of the host is kept between."""

    def __init__(self, host: Stdio, wake: int) -> None:
        """wake: readable when the process is to end."""
        self._host = host
        self._wake = wake
        self._under_way: set[message.Id] = set()
        self._to_resident: Outlet | None = None

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
            while not gone:
                ready = {descriptor for descriptor, _ in poller.poll(1000)}
                if self._wake in ready:
                    return "stopped"
                if connection.fileno() in ready:
                    chunk = read_some(connection.fileno())
                    for line in from_resident.feed(chunk):
                        self._answer(line)
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

    def _ask(self, lines: list[bytes | None]) -> None:
        for line in lines:
            try:
                call = message.parsed(line)
            except message.Misused:
                call = None
            except message.Failure as failure:
                if line is None:  # too long to be passed on
                    self._host.outlet.send(message.error_line(None, failure))
                    continue
                call = None
            if line is None or self._to_resident is None:
                continue
            if call is not None and call.id is not None:
                self._under_way.add(call.id)
            self._to_resident.send(line)

    def _answer(self, line: bytes | None) -> None:
        if line is None:
            return
        try:
            known = json.loads(line).get("id")
        except (ValueError, AttributeError, RecursionError):
            return  # nothing but protocol is passed on
        if isinstance(known, int | str):
            self._under_way.discard(known)
        self._host.outlet.send(line)

    def _give_up(self) -> None:
        failure = message.Failure(message.FAULT, GONE)
        for known in self._under_way:
            self._host.outlet.send(message.error_line(known, failure))
        self._under_way.clear()
