"""What can be asked of the resident process, and who answers it; what it asks itself is given to whoever waits for it.

Blocks have threads of their own: a status, a pass that is waited for or a slow tool never takes a prompt's place.
"""

from __future__ import annotations

import logging
import os
import platform
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clawmark import __version__
from clawmark.errors import ClawmarkError, Refused
from clawmark.serve import message, said
from clawmark.serve.desk import Blocks, Desk
from clawmark.serve.hostmodel import KNOWN_CODES
from clawmark.serve.jobs import Jobs, told
from clawmark.serve.message import Failure
from clawmark.serve.outgoing import Outgoing, Unanswered, offers
from clawmark.serve.peer import Peer
from clawmark.serve.pool import Pool, Watchdog
from clawmark.serve.request import Request

if TYPE_CHECKING:
    from clawmark.memory import Memory
    from clawmark.tools import Answer, Caller

log = logging.getLogger("clawmark")

PROTOCOL = 1
MOST_UNDER_WAY = 256
"""Requests of one side."""

MOST_WAITING = 256
"""Requests of one kind, of all sides."""

MOST_COUNT = 10_000
"""Messages in one notice."""

LONGEST_COMPLETION, MOST_TOKENS = 120.0, 4_096
"""Seconds and tokens of what a command has the gateway's model answer."""

TOLD = 0.5
"""Seconds before its deadline at which a request is told that the pass it waits for goes on."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the process says of itself."""

    database: Path
    since: datetime
    clients: Callable[[], int]


class Methods:
    def __init__(self, jobs: Jobs, facts: Facts, outgoing: Outgoing) -> None:
        self._prompts: set[Request] = set()
        self._jobs = jobs
        self._facts = facts
        self._outgoing = outgoing
        self._blocks = Blocks(jobs)
        self._under_way: dict[tuple[Peer, message.Id], Request] = {}
        self._watchdog = Watchdog()
        prompts, others = Pool("prompt", 4, MOST_WAITING), Pool("tool", 4, MOST_WAITING)
        status, reconcile = Pool("status", 1, MOST_WAITING), Pool("reconcile", 4, MOST_WAITING)
        self._answered: dict[str, tuple[Pool, Callable[[Request], None]]] = {
            "block": (prompts, self._block),
            "hook": (prompts, self._hook),
            "search": (others, self._search),
            "set": (others, self._set),
            "forget": (others, self._forget),
            "review": (others, self._review),
            "status": (status, self._status),
            "reconcile": (reconcile, self._reconcile),
            "complete": (Pool("complete", 2, MOST_WAITING), self._complete),
        }

    def tidy(self) -> None:
        """Now and then, asked or not: what is kept for a short time is kept no longer."""
        self._blocks.tidy()

    def prompts_waiting(self) -> bool:
        """Whether a prompt is being answered now."""
        return bool(self._prompts)

    # Lines

    def received(self, peer: Peer, line: bytes | None) -> None:
        """One line of one side. Quick: what takes its time goes to a pool. Whatever is raised, its side is read on."""
        try:
            self._received(peer, line)
        except Exception as fault:  # noqa: BLE001 - the request handler's edge, before there is a request
            why = told(fault)
            log.error("line_failed reason=%s", why)
            peer.send(message.error_line(None, Failure(message.FAULT, why)))

    def _received(self, peer: Peer, line: bytes | None) -> None:
        if line is not None and not line.strip():
            return
        try:
            call = message.parsed(line)
        except Failure as failure:
            peer.send(message.error_line(None, failure))
            return
        except message.Misused as wrong:
            if wrong.id is not None:
                peer.send(message.error_line(wrong.id, wrong.failure))
            return
        if isinstance(call, message.Answer):
            self._outgoing.answered(peer, call)
        elif call.id is None:
            self._noticed(peer, call)
        else:
            self._asked(peer, call, call.id)

    def ended(self, peer: Peer) -> None:
        """Nobody waits for what this side asked, nor is it asked any more."""
        self._outgoing.ended(peer)
        for request in [request for request in list(self._under_way.values()) if request.peer is peer]:
            request.drop()

    def _noticed(self, peer: Peer, call: message.Call) -> None:
        """A notification: nobody is told what is wrong with it."""
        if call.method == "cancel":
            known = call.params.get("id")
            if isinstance(known, int | str):
                request = self._under_way.get((peer, known))
                if request is not None:
                    request.fail(Failure(message.CANCELLED, "cancelled"))
        elif call.method == "notify":
            try:
                self._notify(call.params)
            except Failure as failure:
                log.info("notice_refused reason=%s", failure.message)
        elif call.method == "hello":
            self._offered(peer, call)

    def _asked(self, peer: Peer, call: message.Call, id: message.Id) -> None:
        key = (peer, id)
        if key in self._under_way:
            peer.send(message.error_line(None, Failure(message.INVALID, "a request with this id is under way")))
            return
        request = Request(peer, call, id, self._over)
        if call.method == "hello":
            self._offered(peer, call)
            request.answer(self._hello())
            return
        if call.method == "notify":
            self._guarded(request, self._notified)
            return
        known = self._answered.get(call.method)
        if known is None:
            request.fail(Failure(message.NO_METHOD, "no such method"))
            return
        pool, work = known
        if sum(1 for other, _ in list(self._under_way) if other is peer) >= MOST_UNDER_WAY:
            request.fail(Failure(message.FAULT, "too many requests are under way; wait for their answers"))
            return
        self._under_way[key] = request
        if call.seconds is not None:
            waiting = weakref.ref(request)  # what was answered, and the prompt in it, is not held until then
            self._watchdog.after(call.seconds, lambda: _fail_late(waiting()))
        if not pool.run(lambda: self._run(request, work)):
            request.fail(Failure(message.FAULT, "too many requests wait; try later"))

    def _over(self, request: Request) -> None:
        key = (request.peer, request.id)
        if self._under_way.get(key) is request:
            del self._under_way[key]

    def _run(self, request: Request, work: Callable[[Request], None]) -> None:
        if request.is_over:  # it waited for its place too long
            return
        if request.method in ("block", "hook"):
            self._prompts.add(request)
        self._guarded(request, work)
        self._prompts.discard(request)

    def _guarded(self, request: Request, work: Callable[[Request], None]) -> None:
        """The request handler's edge: whatever is raised is an answer, and without the words of what was asked."""
        try:
            work(request)
        except Failure as failure:
            request.fail(failure)
        except Refused as refused:
            request.fail(Failure(message.REFUSED, str(refused), {"code": refused.code}))
        except ClawmarkError as failed:
            request.fail(Failure(message.REFUSED, str(failed)))
        except Exception as fault:  # noqa: BLE001 - see above
            why = told(fault)
            log.error("request_failed method=%s reason=%s", request.method, why)
            request.fail(Failure(message.FAULT, why))

    # Methods

    def _hello(self) -> dict[str, Any]:
        return {
            "protocol": PROTOCOL,
            "version": __version__,
            "python": platform.python_version(),
            "pid": os.getpid(),
            "database": str(self._facts.database),
            "ready": self._jobs.ready.is_set(),
            "problem": self._jobs.problem,
        }

    def _offered(self, peer: Peer, call: message.Call) -> None:
        if self._outgoing.offered(peer, offers(call)):
            self._jobs.nudge("offer")

    def _notify(self, params: Mapping[str, Any]) -> None:
        event = said.a_text(params, "event")
        if event == "messages":
            count = params.get("count", 1)
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise Failure(message.PARAMS, "count is no whole number")
            self._jobs.said(min(count, MOST_COUNT))
        elif event in ("session_start", "session_end"):
            session = params.get("session")
            self._jobs.nudge(event, session if isinstance(session, str) else "")
        else:
            raise Failure(message.PARAMS, "event is none of session_start, session_end, messages")

    def _notified(self, request: Request) -> None:
        self._notify(request.params)
        request.answer({})

    def _block(self, request: Request) -> None:
        turn, owner = said.turn(request.params, _now())
        self._blocks.said(turn, owner)
        made = self._blocks.made(turn, request)
        with self._blocks.answering([turn]):
            request.answer({"text": made.block.text}, lambda: self._blocks.went_out(turn, made))

    def _hook(self, request: Request) -> None:
        place = said.HOOKS.get(said.a_text(request.params, "host"))
        if place is None:
            raise Failure(message.PARAMS, f"host is none of {', '.join(said.HOOKS)}")
        event = said.an_object(request.params, "event")
        desk = Desk(self._blocks, request)
        printed: str = import_module(place).answer(event, desk, _now())
        with self._blocks.answering(desk.turns):
            request.answer({"stdout": printed}, desk.went_out)

    def _search(self, request: Request) -> None:
        from clawmark import tools

        caller, memory = said.caller(request.params), self._memory()
        limit = request.params.get("limit")
        _answer(request, tools.search(memory, caller, said.a_text(request.params, "query"), limit))

    def _set(self, request: Request) -> None:
        from clawmark import tools

        caller, memory = self._caller(request)
        key, value = said.a_text(request.params, "key"), said.a_text(request.params, "value")
        _answer(request, tools.set_fact(memory, caller, key, value))

    def _forget(self, request: Request) -> None:
        from clawmark import tools

        caller, memory = self._caller(request)
        answer = tools.forget(memory, caller, said.a_text(request.params, "key"), _now())
        self._blocks.forget()
        _answer(request, answer)

    def _review(self, request: Request) -> None:
        from clawmark import tools

        caller, memory = said.caller(request.params), self._memory()
        _answer(request, tools.review(memory, caller, request.params.get("days")))

    def _reconcile(self, request: Request) -> None:
        from clawmark import tools

        caller, memory = said.caller(request.params), self._memory()
        drain = request.params.get("drain")

        def is_over() -> bool:
            return request.is_over or request.left(TOLD) < TOLD

        _answer(
            request, tools.reconcile(memory, caller, lambda wanted: self._jobs.reconcile(is_over, drain=wanted), drain)
        )

    def _complete(self, request: Request) -> None:
        """Have the gateway's model answer for a command of this person, which counts what it costs."""
        from clawmark import llm

        settings = self._memory().settings
        if llm.named(settings) != llm.HOST or llm.refusal(settings) is not None:
            raise Failure(message.REFUSED, "the settings of this process do not let the gateway's model be asked")
        asked: dict[str, Any] = {name: said.a_text(request.params, name) for name in ("system", "user")}
        most_tokens = request.params.get("most_tokens")
        if type(most_tokens) is not int or not 0 < most_tokens <= MOST_TOKENS:
            raise Failure(message.PARAMS, f"most_tokens is no whole number from 1 to {MOST_TOKENS}")
        asked["most_tokens"] = most_tokens
        seconds = request.left(LONGEST_COMPLETION)
        try:
            request.answer(self._outgoing.ask("complete", asked, seconds, lambda: request.is_over))
        except Unanswered as unanswered:
            raise Failure(message.NOT_READY, "the gateway did not answer", {"unanswered": unanswered.why}) from None
        except Failure as failure:  # in its own words nothing is passed on
            code = (failure.data or {}).get("code")
            known = {"code": code} if code in KNOWN_CODES else None
            raise Failure(failure.code, "the gateway could not ask its model", known) from None

    def _status(self, request: Request) -> None:
        last = self._blocks.last
        resident = {
            "pid": os.getpid(),
            "since": self._facts.since.isoformat(),
            "clients": self._facts.clients(),
            "job": "running" if self._jobs.is_running else self._jobs.failing or "idle",
            "last_block": None if last is None else last.isoformat(),
        }
        request.answer({**self._memory().status().as_json(), "resident": resident})

    def _caller(self, request: Request) -> tuple[Caller, Memory]:
        caller, memory = said.caller(request.params), self._memory()
        if caller.session is None or not caller.owner or caller.host in said.WITHOUT_OWNER:
            return caller, memory
        logged = memory.typed(caller.session, caller.scope)
        return replace(caller, typed=[*logged, *self._blocks.typed.of(caller.host, caller.session)]), memory

    def _memory(self) -> Memory:
        memory = self._jobs.memory
        if memory is None:
            self._jobs.wanted()
            raise Failure(message.NOT_READY, f"memory is not ready: {self._jobs.problem}")
        return memory


def _answer(request: Request, answer: Answer) -> None:
    request.answer({**answer.data, "text": answer.text, "outcome": answer.outcome})


def _fail_late(request: Request | None) -> None:
    if request is not None:
        request.fail(Failure(message.LATE, "the deadline has passed"))


def _now() -> datetime:
    return datetime.now(UTC)
