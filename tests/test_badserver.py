"""Every way an embeddings endpoint is known to misbehave: the shared badserver, and what becomes of twelve texts."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from helpers import Seconds, shared

from clawmark import net
from clawmark.embed import Failure
from clawmark.embed import http as endpoint
from clawmark.embed.http import HttpEmbedder
from clawmark.errors import EmbedderDown, EmbedderError

SCRIPT = shared("harness", "endpoint", "badserver.py")
pytestmark = pytest.mark.skipif(SCRIPT is None, reason="the shared harness is not at hand")

DIMENSION = 16
POISONED, LONG = 3, 5
TEXTS = [f"text number {n}" for n in range(12)]
TEXTS[POISONED] = "POISON ivy"
TEXTS[LONG] = "a long text " * 110
KEY = "s3cr3t"

Outcome = dict[int, str] | tuple[type[Exception], str]
"""Which texts got a Failure and why (all others their vector), or the error and what its line says."""

OUTCOMES: dict[str, Outcome] = {
    # order and number
    "ok": {},
    "reordered": {},
    "shuffled_noindex": {},
    "float_index": {},
    "dup_index": (EmbedderDown, "wrong index"),
    "neg_index": (EmbedderDown, "wrong index"),
    "too_many": (EmbedderDown, "wrong index"),
    "too_few": {11: "missing"},
    "empty_data": dict.fromkeys(range(12), "missing"),
    "no_data": (EmbedderDown, "no list of embeddings"),
    # values
    "wrong_dim": (EmbedderError, "17 numbers where 16"),
    "mixed_dim": (EmbedderError, "17 numbers where 16"),
    "nan": {0: "not_a_vector"},
    "inf": {0: "not_a_vector"},
    "zero": {0: "zero"},
    "huge_float": {0: "not_finite"},
    "strings": {0: "not_a_vector"},
    "null_vec": {0: "not_a_vector"},
    "null_item": {0: "missing"},
    "not_normalised": {},
    "base64": {},
    # The name in an answer proves nothing (a path, an alias, a date): what tells models apart is the probe of a space.
    "other_model": {},
    # errors that depend on the input
    "error_200": (EmbedderDown, "answered with an error"),
    "one_too_long": {},
    "too_long_413": {},
    "poison_item": {POISONED: "refused"},
    # errors that do not
    "500": (EmbedderDown, "500 to every text"),
    "502_html": (EmbedderDown, "502"),
    "503": (EmbedderDown, "503"),
    "200_html": (EmbedderDown, "no list of embeddings"),
    "401": (EmbedderError, "401; check CLAWMARK_EMBEDDING_API_KEY"),
    "404": (EmbedderError, "404; check CLAWMARK_EMBEDDING_MODEL"),
    "429": (EmbedderDown, "429"),
    "429_date": (EmbedderDown, "429 and asks to be left alone for 600 s"),
    "429_huge": (EmbedderDown, "429 and asks to be left alone for 600 s"),
    "redirect": (EmbedderError, r"redirects to 127\.0\.0\.1,.*CLAWMARK_EMBEDDING_URL"),
    "redirect_loop": (EmbedderError, "redirects to another path of its own,.*CLAWMARK_EMBEDDING_URL"),
    # answers that are none
    "partial_json": (EmbedderDown, "no list of embeddings"),
    "short_body": (EmbedderDown, "no sound answer"),
    "empty_body": (EmbedderDown, "no list of embeddings"),
    "bad_utf8": (EmbedderDown, "no list of embeddings"),
    "bom": {},
    "nul_body": (EmbedderDown, "no list of embeddings"),
    "gzip_bomb": (EmbedderDown, "compressed"),
    "bad_gzip": (EmbedderDown, "compressed"),
    "deep_json": (EmbedderDown, "no list of embeddings"),
    "big_int": (EmbedderDown, "no list of embeddings"),
    "no_http": (EmbedderDown, "no sound answer"),
    "header_bomb": (EmbedderDown, "no sound answer"),
    # time and the connection
    "reset": (EmbedderDown, "no sound answer"),
    "close_now": (EmbedderDown, "no sound answer"),
    "hang": (EmbedderDown, r"within 0\.4 s"),
    "slowloris": (EmbedderDown, r"within 0\.4 s"),
    "slow_ok": {},
    "endless": (EmbedderDown, "more than 1,048,576 bytes"),
}
IMPATIENCE = {"hang": 0.4, "slowloris": 0.4}
SLEPT = {"429": [2.0, 2.0, 2.0]}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    assert SCRIPT is not None
    command = [sys.executable, str(SCRIPT), "--port", "0", "--dim", str(DIMENSION), "--max-s", "300"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def told(server: str, path: str) -> Any:
    with urllib.request.urlopen(f"{server}/{path}", timeout=20) as answer:
        return json.load(answer)


def embedder(server: str, mode: str, time: Seconds) -> HttpEmbedder:
    return HttpEmbedder(
        f"{server}/{mode}", "m", key=KEY, dimension=DIMENSION, patient=True, sleep=time.sleep, clock=time
    )


@pytest.fixture(scope="module")
def vectors(server: str) -> list[Any]:
    """What a server that behaves answers."""
    return embedder(server, "ok", Seconds()).embed(TEXTS)


def check(results: list[Any], failures: dict[int, str], vectors: list[Any], *, shortened: bool = False) -> None:
    assert {n: r.reason for n, r in enumerate(results) if isinstance(r, Failure)} == failures
    for n, (result, right) in enumerate(zip(results, vectors, strict=True)):
        if n not in failures:
            assert result.dtype == np.float32 and abs(float(np.linalg.norm(result)) - 1) < 1e-5
            assert np.allclose(result, right, atol=1e-6) or (shortened and n == LONG)


def test_every_mode_has_its_outcome(server: str) -> None:
    modes = told(server, "_modes")
    assert set(OUTCOMES) == {*modes["any"], *modes["embeddings"]}


@pytest.mark.parametrize("mode", OUTCOMES)
def test_what_becomes_of_twelve_texts(
    mode: str, server: str, vectors: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoint, "DOCUMENT_SECONDS", IMPATIENCE.get(mode, 60.0))
    monkeypatch.setattr(net, "MOST_BYTES", 2**20)
    time, outcome = Seconds(), OUTCOMES[mode]
    asked = embedder(server, mode, time)
    if isinstance(outcome, dict):
        check(asked.embed(TEXTS), outcome, vectors, shortened=mode == "one_too_long")
        assert asked.space.dimension == DIMENSION
    else:
        kind, said = outcome
        with pytest.raises(kind, match=said) as raised:
            asked.embed(TEXTS)
        line = str(raised.value)
        assert KEY not in line and "\n" not in line and not any(text in line for text in TEXTS)
    assert time.slept == SLEPT.get(mode, [])


@pytest.mark.parametrize(
    "mode", ["503", "reset", "401", "429_huge", "wrong_dim", "dup_index", "partial_json", "no_http"]
)
def test_nothing_is_lost_when_the_endpoint_recovers(mode: str, server: str, vectors: list[Any]) -> None:
    time = Seconds()
    asked = embedder(server, f"seq:{mode},ok", time)
    with pytest.raises((EmbedderDown, EmbedderError)):
        asked.embed(TEXTS)
    time.now += net.LONGEST_REST_SECONDS
    check(asked.embed(TEXTS), {}, vectors)


def test_a_server_that_is_busy_for_a_while_is_waited_for(server: str, vectors: list[Any]) -> None:
    """D6."""
    time = Seconds()
    check(embedder(server, "seq:429,429,ok", time).embed(TEXTS), {}, vectors)
    assert time.slept == [2.0, 2.0]


@pytest.mark.parametrize("mode", ["500", "502_html", "reset", "401"])
def test_a_broken_server_is_not_asked_without_end(mode: str, server: str) -> None:
    before = len(told(server, "_log"))
    with pytest.raises((EmbedderDown, EmbedderError)):
        embedder(server, mode, Seconds()).embed([f"{mode} {n}" for n in range(400)])
    seen = told(server, "_log")[before:]
    assert 1 <= len([entry for entry in seen if entry["mode"] == mode]) <= 20
    assert all(entry["auth"] for entry in seen)


@pytest.mark.parametrize(("mode", "most"), [("endless", 2 * 2**20), ("gzip_bomb", 2**20), ("slowloris", 2**10)])
def test_no_more_is_read_than_is_needed_to_refuse(
    mode: str, most: int, server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to 1.3 GB, 200 MiB and half an hour, were they let."""
    monkeypatch.setattr(endpoint, "DOCUMENT_SECONDS", IMPATIENCE.get(mode, 60.0))
    monkeypatch.setattr(net, "MOST_BYTES", 2**20)
    read = 0
    original = socket.socket.recv

    def recv(self: socket.socket, *arguments: Any) -> bytes:
        nonlocal read
        data = original(self, *arguments)
        read += len(data)
        return data

    monkeypatch.setattr(socket.socket, "recv", recv)
    with pytest.raises(EmbedderDown):
        embedder(server, mode, Seconds()).embed(TEXTS)
    assert 0 < read <= most
