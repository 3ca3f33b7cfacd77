"""The parts of the resident process by themselves: lines, messages, pools, jobs, what it keeps, where it is met."""

from __future__ import annotations

import gc
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from serving import WAIT, until

from clawmark import socketpath
from clawmark.errors import (
    ClawmarkError,
    DatabaseBusy,
    DatabaseForeign,
    EndpointDown,
    EndpointError,
    ReplyUnusable,
    SourceAbsent,
    UsageError,
)
from clawmark.model import Block, Said, SyncReport, Turn
from clawmark.serve import message, said
from clawmark.serve.hostmodel import HostModel
from clawmark.serve.jobs import Jobs
from clawmark.serve.message import Failure
from clawmark.serve.methods import Facts, Methods
from clawmark.serve.outgoing import Outgoing, Unanswered
from clawmark.serve.peer import MOST_BYTES, Lines, Outlet, Peer
from clawmark.serve.pool import Pool, Watchdog
from clawmark.serve.request import Request
from clawmark.serve.sessions import LONGEST_TYPED, MOST_RUNS, MOST_SESSIONS, MOST_TYPED, RUN_SECONDS, Runs, Typed

NOW = datetime(2026, 12, 1, tzinfo=UTC)
GARBAGE_ANSWERS = (
    b'{"jsonrpc":"2.0","id":1,"result":{"text":"a number"}}',
    b'{"jsonrpc":"2.0","id":"here-0","result":{"text":"another"}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32603}}',
    b'{"jsonrpc":"2.0","error":7}',
    b'{"jsonrpc":"2.0","method":"cancel","params":{"id":"here-1"}}',
    b"[" * 5000,
)
MARK = (1,)

# --- lines and messages -----------------------------------------------------------------------------------------------


@given(some.lists(some.binary(max_size=20).filter(lambda line: b"\n" not in line)), some.lists(some.integers(0, 200)))
def test_lines_are_the_same_however_they_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    reader = Lines()
    found = [line for a, b in itertools.pairwise(places) for line in reader.feed(whole[a:b])]
    assert found == lines


def test_a_line_that_is_too_long_is_not_held() -> None:
    reader = Lines()
    for _ in range(100):
        assert reader.feed(b"x" * 100_000) == []
    assert sum(len(part) for part in reader._held) <= MOST_BYTES
    assert reader.feed(b"\nnext\n") == [None, b"next"]
    assert reader.feed(b"x" * MOST_BYTES + b"\n") == [b"x" * MOST_BYTES]


@given(some.binary(max_size=60))
def test_no_line_raises_anything_but_a_named_error(line: bytes) -> None:
    try:
        message.parsed(line)
    except Failure as failure:
        assert failure.code in (message.PARSE, message.INVALID, message.PARAMS)
    except message.Misused as wrong:
        assert wrong.failure.code in (message.PARSE, message.INVALID, message.PARAMS)


def test_an_answer_is_no_question() -> None:
    assert message.parsed(b'{"jsonrpc":"2.0","id":"a-1","result":{"b":2}}') == message.Answer("a-1", {"b": 2}, None)
    for line in (b'{"id":1,"result":{}}', b'{"id":null,"error":{}}', b'{"result":7}', b'{"id":["a-1"],"result":{}}'):
        answer = message.parsed(line)
        assert isinstance(answer, message.Answer) and answer.id is None


@pytest.mark.parametrize(
    ("error", "code", "stable"),
    [
        ({"code": -32004, "message": "canary", "data": {"code": "NOT_ALLOWED"}}, -32004, {"code": "NOT_ALLOWED"}),
        ({"code": -32001, "message": "canary"}, -32001, None),
        ({"code": True, "data": {"code": ["canary"]}}, -32603, None),
        ({"data": "canary"}, -32603, None),
        ("canary", -32603, None),
        (None, -32603, None),
    ],
)
def test_an_answer_that_is_an_error_keeps_its_codes_and_no_words(error: Any, code: int, stable: Any) -> None:
    answer = message.parsed(json.dumps({"id": "a-1", "result": "canary", "error": error}).encode())
    assert isinstance(answer, message.Answer) and answer.failure is not None
    assert (answer.id, answer.result, answer.failure.code, answer.failure.data) == ("a-1", None, code, stable)
    assert "canary" not in repr((answer.failure.message, answer.failure.data, answer.failure.args))


def test_what_is_written_is_one_line_of_strict_json() -> None:
    assert (
        message.result_line(1, {"a": "x\ny\ud83d\u2028"})
        == '{"jsonrpc":"2.0","id":1,"result":{"a":"x\\ny�\u2028"}}'.encode()
    )
    with pytest.raises(ValueError):
        message.result_line(1, float("nan"))


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def test_what_is_not_read_waits_without_holding_anybody_up(pipe: tuple[int, int]) -> None:
    read, write = pipe
    out: list[str] = []
    outlet = Outlet(write, lambda: out.append("broken"), WAIT)
    outlet.send(b"x" * 500_000, lambda: out.append("first"))
    outlet.send(b"second", lambda: out.append("second"))
    assert out == []  # a pipe holds less
    found = b""
    while not found.endswith(b"second\n"):
        found += os.read(read, 65536)
    assert found == b"x" * 500_000 + b"\nsecond\n"
    until(lambda: out == ["first", "second"], "both")
    outlet.close()


def test_whoever_does_not_read_is_dropped(pipe: tuple[int, int]) -> None:
    broken = threading.Event()
    outlet = Outlet(pipe[1], broken.set, 0.1)
    outlet.send(b"x" * 500_000, lambda: pytest.fail("it is not out"))
    assert broken.wait(WAIT)


def test_more_than_a_limit_does_not_wait(pipe: tuple[int, int]) -> None:
    broken = threading.Event()
    outlet = Outlet(pipe[1], broken.set, WAIT)
    for _ in range(12):
        outlet.send(b"x" * MOST_BYTES)
    assert broken.is_set()


# --- threads ----------------------------------------------------------------------------------------------------------


def test_a_pool_has_no_more_threads_than_slots_and_refuses_what_is_too_much() -> None:
    go, running = threading.Event(), threading.Semaphore(0)

    def work() -> None:
        running.release()
        go.wait(WAIT)

    pool = Pool("test", 2, 3)
    assert pool.run(work) and pool.run(work)
    assert running.acquire(timeout=WAIT) and running.acquire(timeout=WAIT)
    assert [pool.run(work) for _ in range(4)] == [True, True, True, False]
    assert not running.acquire(timeout=0.05)
    go.set()
    for _ in range(3):
        assert running.acquire(timeout=WAIT)


def test_deadlines_come_in_their_order() -> None:
    came: list[int] = []
    watchdog = Watchdog()
    for number, seconds in ((3, 0.09), (1, 0.03), (2, 0.06)):
        watchdog.after(seconds, lambda number=number: came.append(number))
    until(lambda: len(came) == 3, "three deadlines")
    assert came == [1, 2, 3]


def test_a_request_that_was_answered_is_held_by_no_deadline() -> None:
    jobs = Jobs(Memory, lambda memory: None, every=30, idle_seconds=3600.0, prompts_waiting=lambda: False)
    methods = Methods(jobs, Facts(Path("/data/one.db"), NOW, lambda: 1), Outgoing("here"))
    sent: list[bytes] = []
    outlet: Any = SimpleNamespace(send=lambda line, then=None: sent.append(line))
    peer = Peer(-1, outlet, methods.received)
    methods.received(peer, b'{"jsonrpc":"2.0","id":1,"method":"status","params":{"deadline_ms":600000}}')
    until(lambda: sent, "the answer")
    assert b'"id":1' in sent[0]

    def held() -> list[Request]:
        gc.collect()
        return [one for one in gc.get_objects() if isinstance(one, Request) and one.peer is peer]

    until(lambda: not held(), "the end of the request")


# --- what is asked of peers -------------------------------------------------------------------------------------------


SCHEMA = MappingProxyType({"type": "array", "items": MappingProxyType({})})
"""Frozen, as that of the extractor's prompt is."""


class Side:
    """A peer that offers its model, and does with each question what the test says: `answers` gives lines, or None."""

    def __init__(self, methods: Methods, answers: Callable[[dict[str, Any]], Any] = lambda asked: None) -> None:
        self.said: list[dict[str, Any]] = []
        self._methods = methods
        self._answers = answers
        outlet: Any = SimpleNamespace(send=self._send)
        self.peer = Peer(-1, outlet, methods.received)
        self.says({"method": "hello", "params": {"offers": ["complete", "unheard of", 7]}})

    def says(self, value: Any) -> None:
        line = value if isinstance(value, bytes) else json.dumps({"jsonrpc": "2.0", **value}).encode()
        self._methods.received(self.peer, line)

    def _send(self, line: bytes, then: Any = None) -> None:
        self.said.append(json.loads(line))
        if self.asked and self.said[-1] is self.asked[-1]:
            for answer in self._answers(self.said[-1]) or []:
                self.says(answer)

    @property
    def asked(self) -> list[dict[str, Any]]:
        return [one for one in self.said if one.get("method") == "complete"]

    @property
    def cancelled(self) -> list[str]:
        return [one["params"]["id"] for one in self.said if one.get("method") == "cancel"]


@pytest.fixture
def outgoing() -> Outgoing:
    return Outgoing("here")


@pytest.fixture
def methods(outgoing: Outgoing) -> Methods:
    idle = Jobs(Memory, lambda memory: None, every=30, idle_seconds=3600.0, prompts_waiting=lambda: False)
    return Methods(idle, Facts(Path("/data/one.db"), NOW, lambda: 1), outgoing)


def right(asked: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"id": asked["id"], "result": {"text": "[1]", "model": "a/b"}}]


def complete(outgoing: Outgoing, seconds: float = WAIT) -> str:
    return HostModel(outgoing).complete("canary S", "canary U", SCHEMA, most_tokens=50, seconds=seconds)


def test_a_question_says_all_that_is_needed_and_its_answer_is_the_text(outgoing: Outgoing, methods: Methods) -> None:
    side = Side(methods, right)
    assert complete(outgoing, 20.0) == "[1]"
    (asked,) = side.asked
    system = asked["params"].pop("system")
    assert asked["params"] == {"user": "canary U", "most_tokens": 50, "deadline_ms": 20_000}
    assert system.startswith("canary S\n") and system.endswith('{"type":"array","items":{}}')


def test_who_offers_nothing_is_not_asked(outgoing: Outgoing, methods: Methods) -> None:
    side = Side(methods, right)
    for offers in ([], None, "complete", {"complete": True}, ["Complete"]):
        side.says({"id": 1, "method": "hello", "params": {"offers": offers}})
        with pytest.raises(EndpointDown, match="clawmark install openclaw"):
            complete(outgoing)
    assert side.asked == []
    side.says({"id": 1, "method": "hello", "params": {"offers": ["complete"]}})
    assert complete(outgoing) == "[1]"


def test_what_was_asked_of_nobody_makes_a_pass_due_once_somebody_offers_it(
    outgoing: Outgoing, methods: Methods, monkeypatch: pytest.MonkeyPatch
) -> None:
    nudges: list[str] = []
    monkeypatch.setattr(Jobs, "nudge", lambda self, why, session="": nudges.append(why))
    Side(methods, right)
    assert nudges == []
    methods.ended(next(iter(outgoing._offers)))
    with pytest.raises(EndpointDown):
        complete(outgoing)
    Side(methods, right)
    Side(methods, right)
    assert nudges == ["offer"]


def test_an_answer_counts_once_and_from_the_side_that_was_asked(outgoing: Outgoing, methods: Methods) -> None:
    other = Side(methods)

    def answers(asked: dict[str, Any]) -> list[dict[str, Any]]:
        other.says({"id": asked["id"], "result": {"text": "of another side"}})
        first, second = right(asked), {"id": asked["id"], "result": {"text": "a second one"}}
        return [{"id": f"{asked['id']}0", "result": {"text": "unasked"}}, *first, second, *first]

    Side(methods, answers)
    assert [complete(outgoing), complete(outgoing)] == ["[1]", "[1]"]
    assert other.asked == []


@given(some.lists(some.one_of(some.binary(max_size=30), some.sampled_from(GARBAGE_ANSWERS)), max_size=6))
def test_garbage_from_a_peer_disturbs_no_question(garbage: list[bytes]) -> None:
    outgoing = Outgoing("here")
    idle = Jobs(Memory, lambda memory: None, every=30, idle_seconds=3600.0, prompts_waiting=lambda: False)
    methods = Methods(idle, Facts(Path("/data/one.db"), NOW, lambda: 1), outgoing)
    Side(methods, lambda asked: [*garbage, *right(asked)])
    assert complete(outgoing) == "[1]"


def test_an_id_of_ours_is_none_of_a_peers_own(outgoing: Outgoing, methods: Methods) -> None:
    """A peer may ask under the very id that it is asked under."""

    def answers(asked: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"id": asked["id"], "method": "nothing of ours"}, *right(asked)]

    side = Side(methods, answers)
    assert complete(outgoing) == "[1]"
    assert [one["error"]["code"] for one in side.said if "error" in one] == [message.NO_METHOD]


def test_a_late_answer_is_cancelled_and_the_next_question_goes_elsewhere(outgoing: Outgoing, methods: Methods) -> None:
    good, silent = Side(methods, right), Side(methods)
    with pytest.raises(EndpointDown, match=r"within 0\.05 s"):
        complete(outgoing, 0.05)
    assert silent.cancelled == [silent.asked[0]["id"]]
    silent.says({"id": silent.asked[0]["id"], "result": {"text": "too late"}})
    assert complete(outgoing) == "[1]"
    assert (len(silent.asked), len(good.asked)) == (1, 1)


@pytest.mark.parametrize("end", ["peer", "process"])
def test_nobody_waits_for_a_side_that_went_away(outgoing: Outgoing, methods: Methods, end: str) -> None:
    def answers(asked: dict[str, Any]) -> None:
        threading.Thread(target=lambda: methods.ended(side.peer) if end == "peer" else outgoing.close()).start()

    side = Side(methods, answers)
    began = time.monotonic()
    with pytest.raises(EndpointDown, match="went away"):
        complete(outgoing)
    assert time.monotonic() - began < WAIT / 2
    with pytest.raises(EndpointDown, match="connected"):
        complete(outgoing)
    assert len(side.asked) == 1


def test_after_its_end_a_process_asks_nobody(outgoing: Outgoing, methods: Methods) -> None:
    outgoing.close()
    side = Side(methods, right)
    with pytest.raises(EndpointDown):
        complete(outgoing)
    assert side.asked == []


def test_a_question_over_a_line_is_not_sent(outgoing: Outgoing, methods: Methods) -> None:
    side = Side(methods, right)
    with pytest.raises(ReplyUnusable, match="too long"):
        HostModel(outgoing).complete("S", "x" * MOST_BYTES, {}, most_tokens=1, seconds=WAIT)
    assert side.asked == []
    with pytest.raises(Unanswered):
        outgoing.ask("complete", {"user": "ü" * MOST_BYTES}, WAIT)


ANSWERS: list[tuple[dict[str, Any], type[ClawmarkError]]] = [
    ({"error": {"code": -32004, "message": "canary", "data": {"code": "NOT_ALLOWED"}}}, EndpointError),
    ({"error": {"code": -32004, "message": "canary", "data": {"code": "NOT_CONFIGURED"}}}, EndpointError),
    ({"error": {"code": -32004, "message": "canary", "data": {"code": "UNSUPPORTED"}}}, EndpointError),
    ({"error": {"code": -32004, "message": "canary", "data": {"code": "UNUSABLE"}}}, ReplyUnusable),
    ({"error": {"code": -32004, "message": "canary", "data": {"code": "FAILED"}}}, EndpointDown),
    ({"error": {"code": -32004, "message": "canary", "data": {"code": "canary"}}}, EndpointDown),
    ({"error": {"code": -32004, "message": "canary", "data": {"code": "REFUSED"}}}, EndpointError),
    ({"error": {"code": -32004, "message": "canary", "data": {"code": "SILENT"}}}, EndpointDown),
    ({"error": {"code": -32001, "message": "canary"}}, EndpointDown),
    ({"error": {"code": -32601, "message": "canary"}}, EndpointDown),
    ({"error": "canary"}, EndpointDown),
    ({"result": {"text": ""}}, ReplyUnusable),
    ({"result": {"text": " \n"}}, ReplyUnusable),
    ({"result": {"text": ["canary"]}}, EndpointDown),
    ({"result": "canary"}, EndpointDown),
    ({"result": None}, EndpointDown),
]


@pytest.mark.parametrize(("answer", "raised"), ANSWERS, ids=range(len(ANSWERS)))
def test_what_a_gateway_cannot_give_is_named_without_a_word_of_anybody(
    outgoing: Outgoing, methods: Methods, answer: dict[str, Any], raised: type[ClawmarkError]
) -> None:
    Side(methods, lambda asked: [{"id": asked["id"], **answer}])
    with pytest.raises(ClawmarkError) as caught:
        complete(outgoing)
    assert caught.type is raised
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("code", ["REFUSED", "SILENT"])
def test_what_is_wrong_with_one_request_is_told_from_what_is_wrong_with_all(
    outgoing: Outgoing, methods: Methods, code: str
) -> None:
    def answers(asked: dict[str, Any]) -> list[dict[str, Any]]:
        failed = {"id": asked["id"], "error": {"code": -32004, "data": {"code": code}}}
        return [failed] if "canary" in asked["params"]["user"] else right(asked)

    side = Side(methods, answers)
    with pytest.raises(ReplyUnusable, match="answers others"):
        complete(outgoing)
    first, second = side.asked
    assert "canary" in first["params"]["user"] and "canary" not in json.dumps(second)


# --- jobs -------------------------------------------------------------------------------------------------------------


class Memory:
    """Counts passes; each takes as long as the test holds it, and fails as it says."""

    def __init__(self) -> None:
        self.passes = 0
        self.failure: Exception | None = None
        self.begun = threading.Semaphore(0)
        self.held = False
        self.go = threading.Semaphore(0)
        self.hurried: list[bool] = []
        self.unasked: list[int] = []

    def search(self, query: str, limit: int) -> None:
        pass

    def sync(self, progress: Callable[[str, int, int | None], None], *, most_batches: int, hurry: bool) -> SyncReport:
        self.passes += 1
        self.hurried.append(hurry)
        report = SyncReport(read=self.passes, unasked=self.unasked.pop(0) if self.unasked else 0)
        self.begun.release()
        while self.held and not self.go.acquire(timeout=0.01):
            progress("messages", 1, None)
        progress("messages", 1, None)
        if self.failure is not None:
            raise self.failure
        return report


@pytest.fixture
def passes() -> Memory:
    return Memory()


@pytest.fixture
def jobs(passes: Memory) -> Iterator[Callable[..., Jobs]]:
    made: list[Jobs] = []

    def start(open_memory: Callable[[], Any] = lambda: passes, **options: Any) -> Jobs:
        options = {"every": 30, "idle_seconds": 3600.0, "prompts_waiting": lambda: False} | options
        made.append(Jobs(open_memory, lambda memory: None, **options))
        made[-1].start()
        return made[-1]

    yield start
    for one in made:
        assert one.stop(WAIT)


def test_a_pass_runs_at_the_start(jobs: Callable[..., Jobs], passes: Memory) -> None:
    jobs()
    assert passes.begun.acquire(timeout=WAIT)


def test_so_many_messages_make_a_pass_due(jobs: Callable[..., Jobs], passes: Memory) -> None:
    running = jobs(every=30)
    assert passes.begun.acquire(timeout=WAIT)
    for _ in range(14):
        running.said(2)
    assert not passes.begun.acquire(timeout=0.1)
    running.said(2)
    assert passes.begun.acquire(timeout=WAIT)
    assert not passes.begun.acquire(timeout=0.1)


def test_silence_after_a_few_messages_makes_a_pass_due(jobs: Callable[..., Jobs], passes: Memory) -> None:
    running = jobs(idle_seconds=0.1)
    assert passes.begun.acquire(timeout=WAIT)
    assert not passes.begun.acquire(timeout=0.3)  # nothing was said at all
    running.said(1)
    assert passes.begun.acquire(timeout=WAIT)


def test_silence_is_no_reason_to_try_to_open_again(jobs: Callable[..., Jobs], monkeypatch: pytest.MonkeyPatch) -> None:
    """A time that has passed would be one at every moment."""
    tries: list[float] = []

    def fails() -> Any:
        tries.append(time.monotonic())
        raise DatabaseForeign("another program's")

    running = jobs(idle_seconds=0.01, open_memory=fails)
    running.said(1)
    time.sleep(0.5)
    assert len(tries) <= 3


def test_sessions_that_begin_together_want_one_pass(jobs: Callable[..., Jobs], passes: Memory) -> None:
    running = jobs()
    assert passes.begun.acquire(timeout=WAIT)
    for _ in range(10):
        running.nudge("session_start")
    assert passes.begun.acquire(timeout=WAIT)
    assert not passes.begun.acquire(timeout=1.0)


def test_what_is_wanted_while_a_pass_runs_is_one_more_behind_it(jobs: Callable[..., Jobs], passes: Memory) -> None:
    passes.held = True
    running = jobs()
    assert passes.begun.acquire(timeout=WAIT)
    for _ in range(5):
        running.nudge("session_start")
        running.said(100)
    passes.held = False
    assert passes.begun.acquire(timeout=WAIT)
    assert not passes.begun.acquire(timeout=0.2)


def read(running: Jobs) -> int:
    report = running.reconcile(lambda: False)
    assert report is not None
    return report.read


def test_reconcile_drains_what_waits_as_long_as_there_is_less_of_it(jobs: Callable[..., Jobs], passes: Memory) -> None:
    running = jobs()
    assert passes.begun.acquire(timeout=WAIT)
    passes.unasked = [9, 4, 4, 0]
    report = running.reconcile(lambda: False)
    assert report is not None and (report.read, report.unasked) == (2 + 3 + 4, 4)
    passes.unasked = [9, 0]
    once = running.reconcile(lambda: False, drain=False)
    assert once is not None and (once.read, once.unasked) == (5, 9)


def test_reconcile_gives_the_report_of_a_pass_that_began_after_it(jobs: Callable[..., Jobs], passes: Memory) -> None:
    passes.held = True
    running = jobs()
    assert passes.begun.acquire(timeout=WAIT)
    reports: list[int] = []
    asked = [threading.Thread(target=lambda: reports.append(read(running))) for _ in range(3)]
    for one in asked:
        one.start()
    until(lambda: len(running._asked) == 3, "all three")
    passes.held = False
    for one in asked:
        one.join(WAIT)
    assert reports == [2, 2, 2]


def test_nobody_waits_for_a_pass_longer_than_wanted(jobs: Callable[..., Jobs], passes: Memory) -> None:
    passes.held = True
    running = jobs()
    assert passes.begun.acquire(timeout=WAIT)
    assert running.reconcile(lambda: True) is None


def test_a_pass_that_fails_is_told_once_and_is_not_the_last_one(
    jobs: Callable[..., Jobs], passes: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    passes.failure = RuntimeError("canary")
    running = jobs()
    for _ in range(3):
        with pytest.raises(RuntimeError):
            running.reconcile(lambda: False)
    assert sum("pass_failed" in line for line in caplog.messages) == 1
    assert "canary" not in caplog.text
    passes.failure = SourceAbsent("no log")
    with pytest.raises(SourceAbsent):
        running.reconcile(lambda: False)
    passes.failure = None
    running.reconcile(lambda: False)
    assert running.failing == ""
    assert sum("jobs_work_again" in line for line in caplog.messages) == 1


def test_a_memory_that_cannot_be_opened_is_tried_again(
    jobs: Callable[..., Jobs], passes: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    tries = iter([DatabaseBusy("held"), DatabaseBusy("held")])

    def open_memory() -> Memory:
        failure = next(tries, None)
        if failure is not None:
            raise failure
        return passes

    running = jobs(open_memory)
    assert running.ready.wait(WAIT)
    assert running.problem == ""
    assert sum("memory_not_ready" in line for line in caplog.messages) == 1


def test_a_pass_gives_way_to_prompts_but_not_for_ever(jobs: Callable[..., Jobs], passes: Memory) -> None:
    running = jobs(prompts_waiting=lambda: True)
    assert read(running)


def test_the_end_does_not_wait_for_a_pass(jobs: Callable[..., Jobs], passes: Memory) -> None:
    passes.held = True
    running = jobs()
    assert passes.begun.acquire(timeout=WAIT)
    assert running.stop(WAIT)


def test_what_is_left_to_extract_is_one_more_pass_while_there_is_less_of_it(
    jobs: Callable[..., Jobs], passes: Memory
) -> None:
    passes.unasked = [9, 4, 4, 0]
    jobs()
    for _ in range(3):
        assert passes.begun.acquire(timeout=WAIT)
    assert not passes.begun.acquire(timeout=1.0), "an endpoint that is down is not asked in a circle"


def test_a_few_messages_wait_for_more_only_while_somebody_talks(jobs: Callable[..., Jobs], passes: Memory) -> None:
    running = jobs(every=2)
    assert passes.begun.acquire(timeout=WAIT)
    running.said(2)
    assert passes.begun.acquire(timeout=WAIT)
    running.reconcile(lambda: False)
    assert passes.hurried == [True, False, True]


# --- what is kept of sessions -----------------------------------------------------------------------------------------


def test_what_was_typed_is_bounded_and_of_its_session_alone() -> None:
    typed = Typed()
    for number in range(MOST_TYPED + 5):
        typed.add("openclaw", "s", Said(f"line {number}" + "x" * LONGEST_TYPED, NOW))
    lines = typed.of("openclaw", "s")
    assert len(lines) == MOST_TYPED
    assert lines[-1].text.startswith(f"line {MOST_TYPED + 4}x")
    assert max(len(line.text) for line in lines) <= LONGEST_TYPED
    assert typed.of("claude-code", "s") == []
    for number in range(MOST_SESSIONS):
        typed.add("openclaw", f"s{number}", Said("x", NOW))
    assert typed.of("openclaw", "s") == []


def test_a_prompt_that_comes_again_is_one_line() -> None:
    typed = Typed()
    for _ in range(3):
        typed.add("openclaw", "s", Said("the same", NOW))
    assert len(typed.of("openclaw", "s")) == 1


def test_blocks_of_runs_are_bounded_and_end() -> None:
    now = [0.0]
    runs = Runs(lambda: now[0])
    first = Turn("p", host="openclaw", run="r")
    assert runs.get(first, MARK) is None
    made = runs.keep(first, Block("text"), MARK)
    assert runs.get(first, MARK) is made
    assert runs.get(Turn("p", host="cli", run="r"), MARK) is None
    now[0] = RUN_SECONDS + 1
    runs.tidy()
    assert not runs._made  # not held, and not only not given
    for number in range(MOST_RUNS + 1):
        runs.keep(Turn("p", run=str(number)), Block("text"), MARK)
    assert runs.get(Turn("p", run="0"), MARK) is None
    assert runs.get(Turn("p", run="1"), MARK) is not None


def test_a_block_of_a_run_is_given_again_only_while_nothing_changed() -> None:
    runs, turn = Runs(), Turn("p", host="openclaw", run="r")
    made = runs.keep(turn, Block("text"), MARK)
    assert made.is_first()
    assert runs.get(turn, (2,)) is None
    again = runs.keep(turn, Block("text"), (2,))
    assert (again is made, again.is_first()) == (True, False)  # shown once
    other = runs.keep(turn, Block("less"), (3,))
    assert (other.is_first(), runs.get(turn, (3,))) == (True, other)


# --- whose turn it is -------------------------------------------------------------------------------------------------


def test_the_owner_speaks_in_a_direct_conversation_where_nothing_else_is_said() -> None:
    def owner(**fields: Any) -> bool:
        return said.turn({"turn": {"prompt": "x", **fields}}, NOW)[1]

    assert owner(kind="direct")
    assert owner(kind="group", owner=True)
    assert not owner(kind="direct", owner=False)
    assert not owner(kind="group")
    assert not owner()


def test_a_host_speaks_in_its_own_words() -> None:
    fields = {"host": "openclaw", "agentId": "work", "sessionKey": "agent:work:main", "sessionId": "s", "prompt": "x"}
    turn, owner = said.turn({"turn": fields}, NOW)
    assert (turn.scope, turn.session, turn.host, owner) == ("work", "s", "openclaw", True)
    caller = said.caller({"caller": fields})
    assert (caller.scope, caller.session, caller.typed) == ("work", "s", None)


def test_a_caller_that_says_nothing_is_an_mcp_client() -> None:
    caller = said.caller({})
    assert (caller.host, caller.scope, caller.owner, caller.typed) == ("mcp", None, False, None)


def test_a_folder_stands_for_its_scope(tmp_path: Path) -> None:
    turn, _ = said.turn({"turn": {"prompt": "x", "folder": str(tmp_path)}}, NOW)
    assert turn.scope is not None and len(turn.scope) == 12
    turn, _ = said.turn({"turn": {"prompt": "x", "folder": str(tmp_path), "scope": "work"}}, NOW)
    assert turn.scope == "work"


# --- where it is met --------------------------------------------------------------------------------------------------


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    import shutil
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="cm-"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    yield folder
    shutil.rmtree(folder)


def test_a_database_is_met_at_one_place_of_its_own(runtime: Path) -> None:
    one = socketpath.socket_path(Path("/data/one.db"))
    assert one == socketpath.socket_path(Path("/data/one.db"))
    assert one.parent == runtime / "clawmark"
    assert one != socketpath.socket_path(Path("/data/two.db"))
    assert len(os.fsencode(one)) <= 103


@pytest.mark.parametrize("fault", ["open to others", "a link", "too long", "relative"])
def test_a_folder_that_is_not_ours_alone_is_passed_over(
    runtime: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    if fault == "open to others":
        (runtime / "clawmark").mkdir()
        (runtime / "clawmark").chmod(0o777)
    elif fault == "a link":
        (runtime / "elsewhere").mkdir()
        (runtime / "clawmark").symlink_to(runtime / "elsewhere")
    elif fault == "too long":
        (runtime / ("x" * 100)).mkdir()
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime / ("x" * 100)))
    else:
        monkeypatch.setenv("XDG_RUNTIME_DIR", "run")
    assert not socketpath.socket_path(Path("/data/one.db")).is_relative_to(runtime)


def test_the_folder_of_a_socket_is_made_for_its_owner_alone(runtime: Path) -> None:
    previous = os.umask(0)
    try:
        socketpath.prepare(runtime / "clawmark" / "x.sock")
    finally:
        os.umask(previous)
    assert (runtime / "clawmark").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("path", ["relative.sock", "/" + "x" * 200, "/proc/clawmark/x.sock"])
def test_a_place_where_no_socket_can_stand_is_named(path: str) -> None:
    with pytest.raises(UsageError, match="no socket can be made"):
        socketpath.prepare(Path(path))
