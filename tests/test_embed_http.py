"""The endpoint: every answer a server can give, and what becomes of the texts."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import Clock, Log, open_memory, query, recalled
from server import Reply, Request, serving

from clawmark import net
from clawmark.embed import Failure, choose
from clawmark.embed import http as endpoint
from clawmark.embed.http import HttpEmbedder
from clawmark.errors import EmbedderDown, EmbedderError
from clawmark.model import Space
from clawmark.settings import Settings, load

POISON = "lapisgecko"


def vector(text: str) -> list[float]:
    return [1.0 + len(text), 2.0, 3.0, 4.0]


def good(request: Request) -> Reply:
    items = [{"index": n, "embedding": vector(t)} for n, t in enumerate(request.body["input"])]
    return Reply(200, {"data": items})


def asked(answer: Callable[[Request], Reply], texts: list[str], **options: Any) -> list[Any]:
    with serving(answer) as server:
        return HttpEmbedder(server.url, "m", **options).embed(texts)


def answering(items: Any) -> Callable[[Request], Reply]:
    return lambda request: Reply(200, {"data": items})


def unit(raw: list[float]) -> Any:
    return np.array(raw) / np.linalg.norm(raw)


# --- good answers --------------------------------------------------------------------------------------------------------


def test_vectors_come_back_normalised_in_the_order_asked() -> None:
    results = asked(good, ["a", "bbb"])
    assert [r.dtype for r in results] == [np.float32] * 2
    assert np.allclose(results[0], unit(vector("a"))) and np.allclose(results[1], unit(vector("bbb")))


def test_results_are_placed_by_index() -> None:
    items = [
        {"index": 2, "embedding": [0, 0, 3]},
        {"index": 0, "embedding": [1, 0, 0]},
        {"index": 1, "embedding": [0, 2, 0]},
    ]
    assert np.array_equal(np.stack(asked(answering(items), ["a", "b", "c"])), np.eye(3, dtype=np.float32))


def test_prefixes_are_put_in_front_and_belong_to_the_space() -> None:
    with serving(good) as server:
        embedder = HttpEmbedder(server.url, "m", query_prefix="query: ", document_prefix="passage: ")
        embedder.embed(["x"], "query")
        embedder.embed(["x"], "document")
        assert [request.body["input"] for request in server.requests] == [["query: x"], ["passage: x"]]
        assert embedder.space == Space("m", 4, "passage: ", "query: ")


def test_a_server_that_refuses_unknown_fields_is_asked_without_them_from_then_on() -> None:
    """C10."""
    with serving(lambda r: Reply(400, {}) if "input_type" in r.body else good(r)) as server:
        embedder = HttpEmbedder(server.url, "m")
        for _ in range(2):
            assert not isinstance(embedder.embed(["x"])[0], Failure)
        assert ["input_type" in request.body for request in server.requests] == [True, False, False]


def test_one_bad_text_does_not_end_the_sending_of_the_kind() -> None:
    """A server that chooses the prefix by the kind would embed questions as passages from then on."""
    with serving(lambda r: Reply(400, {}) if POISON in str(r.body["input"]) else good(r)) as server:
        embedder = HttpEmbedder(server.url, "m")
        assert embedder.embed([POISON]) == [Failure("refused")]
        embedder.embed(["x"], "query")
        assert server.requests[-1].body["input_type"] == "query"


def test_after_a_failure_prompts_rest_and_documents_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "QUERY_SECONDS", 0.1)
    now, hangs, awake = [1000.0], True, threading.Event()

    def answer(request: Request) -> Reply:
        if hangs:
            awake.wait(20)
        return good(request)

    monkeypatch.setattr(endpoint.time, "monotonic", lambda: now[0])
    with serving(answer) as server:
        embedder = HttpEmbedder(server.url, "m")
        for _ in range(5):
            with pytest.raises(EmbedderDown):
                embedder.embed(["x"], "query")
        assert len(server.requests) == 1, "one prompt waited, not each"
        hangs = False
        awake.set()
        embedder.embed(["x"], "document")
        now[0] += endpoint.REST_SECONDS + 1
        embedder.embed(["x"], "query")
        assert len(server.requests) == 3


# --- single bad items ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (None, "not_a_vector"),
        ("NaN", "not_a_vector"),
        ([], "not_a_vector"),
        ([1, "2"], "not_a_vector"),
        ([True, False], "not_a_vector"),
        ({"x": 1}, "not_a_vector"),
        ([None, 1.0], "not_a_vector"),
        ([0.0, 0.0], "zero"),
        ([1e308, 1.0], "not_finite"),
    ],
)
def test_one_bad_item_fails_alone(bad: Any, reason: str) -> None:
    """D4."""
    items = [
        {"index": 0, "embedding": [3.0, 4.0]},
        {"index": 1, "embedding": bad},
        {"index": 2, "embedding": [0.0, 1.0]},
    ]
    first, second, third = asked(answering(items), ["a", "b", "c"])
    assert second == Failure(reason)
    assert np.allclose(first, [0.6, 0.8]) and np.allclose(third, [0, 1])


def test_a_number_too_large_for_a_float_fails_alone() -> None:
    items = [{"index": 0, "embedding": [10**400, 1]}, {"index": 1, "embedding": [0.0, 1.0]}]
    first, second = asked(answering(items), ["a", "b"])
    assert isinstance(first, Failure) and not isinstance(second, Failure)


@pytest.mark.parametrize("constant", [b"NaN", b"Infinity"])
def test_a_bare_nan_fails_alone(constant: bytes) -> None:
    """D4."""
    body = b'{"data":[{"index":0,"embedding":[3.0,4.0]},{"index":1,"embedding":[%b,1.0]}]}' % constant
    first, second = asked(lambda request: Reply(200, body), ["a", "b"])
    assert not isinstance(first, Failure) and isinstance(second, Failure)


def test_a_missing_index_is_the_only_one_that_stays_pending() -> None:
    """D5."""
    items = [{"index": n, "embedding": [1.0, n]} for n in range(10) if n != 3]
    results = asked(answering(items), [str(n) for n in range(10)])
    assert [n for n, r in enumerate(results) if isinstance(r, Failure)] == [3]
    assert results[3] == Failure("missing")


# --- answers that cannot be placed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "items",
    [
        [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [2.0]}],
        [{"index": 2, "embedding": [1.0]}],
        [{"index": -1, "embedding": [1.0]}],
        [{"index": "0", "embedding": [1.0]}],
        [{"index": True, "embedding": [1.0]}],
        [{"index": 0.0, "embedding": [1.0]}],
        [{"embedding": [1.0]}] * 3,
    ],
)
def test_an_unsound_index_refuses_the_batch(items: Any) -> None:
    with pytest.raises(EmbedderDown, match="index"):
        asked(answering(items), ["a", "b"])


@pytest.mark.parametrize("body", [None, [], {}, {"data": None}, {"data": {}}, "x", 3, {"error": "x"}])
def test_an_answer_without_a_list_is_refused(body: Any) -> None:
    with pytest.raises(EmbedderDown):
        asked(lambda request: Reply(200, body), ["a"])


def test_a_wrong_dimension_refuses_the_batch_and_says_got_and_expected() -> None:
    items = [{"index": 0, "embedding": [1.0, 2.0, 3.0]}]
    with pytest.raises(EmbedderError, match=r"3 numbers where 4 were expected.*CLAWMARK_EMBEDDING_DIM"):
        asked(answering(items), ["a"], dimension=4)
    mixed = [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [1.0]}]
    with pytest.raises(EmbedderError, match="1 numbers where 2"):
        asked(answering(mixed), ["a", "b"])


# --- states ------------------------------------------------------------------------------------------------------------------


def test_a_server_that_refuses_everything_fails_each_text() -> None:
    def refuse(request: Request) -> Reply:
        return Reply(500, {"error": "the text was: x"})

    assert asked(refuse, ["a", "b", "c"]) == [Failure("refused")] * 3


def test_texts_that_are_refused_hold_up_no_older_ones(db_path: Path, log: Log, clock: Clock) -> None:
    for number in range(40):
        log.say(f"an old short text about topic{number}, long enough for a vector")
    for number in range(40):
        log.say(f"a new text about topic{number} that the server finds too long " + "long " * 40)

    def answer(request: Request) -> Reply:
        return Reply(400, {}) if any("too long" in text for text in request.body["input"]) else good(request)

    with (
        serving(answer) as server,
        open_memory(db_path, log, embedder=HttpEmbedder(server.url, "m"), clock=clock) as memory,
    ):
        assert memory.sync().vectors == 40
        assert memory.status()["pending"] == {"refused": 40}


@pytest.mark.parametrize("status", [429, 502, 503, 418])
def test_a_server_in_trouble_is_down(status: int) -> None:
    with pytest.raises(EmbedderDown, match=str(status)):
        asked(lambda request: Reply(status, {"error": "the text was: x"}), ["a"])


@pytest.mark.parametrize(
    ("status", "variable"),
    [
        (401, "CLAWMARK_EMBEDDING_API_KEY"),
        (403, "CLAWMARK_EMBEDDING_API_KEY"),
        (404, "CLAWMARK_EMBEDDING_URL"),
        (307, "CLAWMARK_EMBEDDING_URL"),
    ],
)
def test_a_wrong_setting_is_one_line_naming_it_and_no_key(status: int, variable: str) -> None:
    """D10."""
    with pytest.raises(EmbedderError, match=variable) as wrong:
        asked(lambda request: Reply(status, {}), ["a"], key="s3cr3t")
    assert "s3cr3t" not in str(wrong.value)


def test_without_an_answer_there_is_no_space_yet() -> None:
    with pytest.raises(EmbedderDown):
        _ = HttpEmbedder("http://127.0.0.1:1", "m").space
    assert HttpEmbedder("http://127.0.0.1:1", "m", dimension=8).space.dimension == 8


def test_without_consent_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """H8."""

    async def sent(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("something was sent")

    monkeypatch.setattr(net, "_post", sent)
    with pytest.raises(EmbedderError, match="ALLOW_REMOTE"):
        HttpEmbedder("http://8.8.8.8", "m", key="k").embed(["x"])


def test_a_name_that_points_elsewhere_later_is_asked_about_again(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = ["127.0.0.1"]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: [(2, 1, 6, "", (addresses[0], 0))])
    sent = 0

    async def answered(*args: Any, **kwargs: Any) -> net.Answer:
        nonlocal sent
        sent += 1
        return net.Answer(200, {"data": [{"embedding": [1.0]}]})

    monkeypatch.setattr(net, "_post", answered)
    embedder = HttpEmbedder("http://box.example", "m")
    embedder.embed(["x"])
    addresses[0] = "93.184.216.34"
    with pytest.raises(EmbedderError, match="ALLOW_REMOTE"):
        embedder.embed(["x"])
    assert sent == 1


def test_the_settings_choose() -> None:
    assert choose(Settings(embedder="none", embedding_url="http://127.0.0.1:1"), background=False) is None
    chosen = choose(Settings(embedding_url="http://user:pw@127.0.0.1:8092/v1"), background=True)
    assert isinstance(chosen, HttpEmbedder)
    assert chosen.name == "endpoint (127.0.0.1:8092)"


# --- through the jobs --------------------------------------------------------------------------------------------------------


def filled(log: Log, count: int = 40) -> None:
    for number in range(count):
        log.say(f"sentence number {number} speaks of topic{number} at some length")


def test_a_prompt_is_answered_by_words_when_the_endpoint_hangs(
    db_path: Path, log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D12."""
    filled(log, 5)
    awake = threading.Event()
    hanging = False

    def answer(request: Request) -> Reply:
        if hanging:
            awake.wait(10)
        return good(request)

    monkeypatch.setattr(endpoint, "QUERY_SECONDS", 0.1)
    with serving(answer) as server:
        with open_memory(db_path, log, embedder=HttpEmbedder(server.url, "m"), clock=clock) as memory:
            memory.sync()
            hanging = True
            assert recalled(memory, "topic3")[0].excerpt.startswith("sentence number 3 ")
            assert memory.block("what about topic3").text
            assert not awake.is_set()
        awake.set()


def test_a_server_that_fails_on_one_text_costs_that_text_alone(db_path: Path, log: Log, clock: Clock) -> None:
    """D3."""
    filled(log)
    log.say(f"the {POISON} sits on the windowsill in the sun")

    def answer(request: Request) -> Reply:
        poisoned = any(POISON in text for text in request.body["input"])
        return Reply(500, {"error": "json: unsupported value: NaN"}) if poisoned else good(request)

    with serving(answer) as server, open_memory(
        db_path, log, embedder=HttpEmbedder(server.url, "m"), clock=clock
    ) as memory:  # fmt: skip
        memory.sync()
        assert query(db_path, "SELECT count(*) FROM message_vectors") == [(40,)]
        assert [reason for (reason,) in query(db_path, "SELECT reason FROM pending_vectors")] != ["new"]


@pytest.mark.parametrize("status", [413, 422, 400])
def test_a_batch_that_is_too_large_is_halved_until_it_passes(
    db_path: Path, log: Log, clock: Clock, status: int
) -> None:
    """D7, D8."""
    filled(log)

    def answer(request: Request) -> Reply:
        return Reply(status, {}) if len(request.body["input"]) > 8 else good(request)

    with serving(answer) as server, open_memory(
        db_path, log, embedder=HttpEmbedder(server.url, "m"), clock=clock
    ) as memory:  # fmt: skip
        assert memory.sync().vectors == 40


def test_a_wrong_dimension_stores_nothing(db_path: Path, log: Log, clock: Clock) -> None:
    filled(log, 3)
    with serving(good) as server, open_memory(
        db_path, log, embedder=HttpEmbedder(server.url, "m", dimension=5), clock=clock
    ) as memory:  # fmt: skip
        report = memory.sync()
        assert (report.vectors, report.pending) == (0, 3)
        assert query(db_path, "SELECT count(*) FROM spaces") == [(0,)]
        assert any("4 numbers where 5" in problem for problem in memory.status()["problems"])


def test_a_key_stands_in_no_log_event_or_status(
    db_path: Path, log: Log, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """D10."""
    caplog.set_level(logging.DEBUG)
    filled(log, 3)
    with serving(lambda request: Reply(401, {"error": "bad key s3cr3t"})) as server, open_memory(
        db_path, log, embedder=HttpEmbedder(server.url, "m", key="s3cr3t"), clock=clock
    ) as memory:  # fmt: skip
        memory.sync()
        memory.search("topic1")
        told = f"{memory.events()} {memory.status()} {caplog.text}"
    assert "s3cr3t" not in told
    assert "CLAWMARK_EMBEDDING_API_KEY" in told
    assert "topic1" not in caplog.text


@pytest.mark.parametrize("said", ["the \ud83d boiler", "\udcff"])
def test_a_lone_surrogate_in_a_prompt_is_sent_as_text(db_path: Path, log: Log, clock: Clock, said: str) -> None:
    """F9."""
    filled(log, 3)
    with serving(good) as server, open_memory(
        db_path, log, embedder=HttpEmbedder(server.url, "m"), clock=clock
    ) as memory:  # fmt: skip
        memory.sync()
        memory.search(said)
        memory.block(said + " and so on?")


def test_the_endpoint_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch, log: Log, db_path: Path) -> None:
    with serving(good) as server:
        monkeypatch.setenv("CLAWMARK_EMBEDDING_URL", f"{server.url}/v1/")
        monkeypatch.setenv("CLAWMARK_EMBEDDING_MODEL", "some-model")
        embedder = choose(load(), background=False)
        assert embedder is not None
        embedder.embed(["x"])
        assert [(r.path, r.body["model"]) for r in server.requests] == [("/v1/embeddings", "some-model")]
