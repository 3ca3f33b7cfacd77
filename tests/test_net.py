"""The network: one place, one deadline, two keys for leaving the machine."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from server import Reply, serving

from clawmark import net
from clawmark.errors import EmbedderDown, EmbedderError


def post(url: str, seconds: float = 5.0, key: str | None = None) -> net.Answer:
    return net.post_json(f"{url}/v1/embeddings", {"input": ["x"]}, key=key, seconds=seconds, allowed=())


@pytest.mark.parametrize(
    ("url", "full"),
    [
        ("http://h:1", "http://h:1/v1/embeddings"),
        ("http://h:1/", "http://h:1/v1/embeddings"),
        ("http://h:1/v1", "http://h:1/v1/embeddings"),
        ("http://h:1/v1/", "http://h:1/v1/embeddings"),
        ("http://h:1/v1/embeddings", "http://h:1/v1/embeddings"),
        ("http://h:1/v1/embeddings/", "http://h:1/v1/embeddings"),
        ("http://[::1]:1", "http://[::1]:1/v1/embeddings"),
        ("http://h:1/prefix/v1", "http://h:1/prefix/v1/embeddings"),
        ("http://h:1/prefix", "http://h:1/prefix/v1/embeddings"),
        (" http://h:1/v2 ", "http://h:1/v2/embeddings"),
    ],
)
def test_every_spelling_of_a_base_url_leads_to_one_path(url: str, full: str) -> None:
    """D11."""
    assert net.endpoint(url, "embeddings") == full


# --- consent -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "http://localhost:1",
        "http://[::1]:1",
        "http://10.1.2.3",
        "http://192.168.1.2",
        "http://[fd00::1]",
    ],
)
def test_this_machine_and_its_private_network_need_one_key(url: str) -> None:
    net.require_consent(url, ())


@pytest.mark.parametrize(
    "url",
    [
        "http://8.8.8.8/v1",
        "https://1.1.1.1",
        "http://[2606:4700::1111]/",
        "http://100.64.1.1",
        "http://user:pw@8.8.8.8",
    ],
)
def test_any_other_host_needs_a_second_key_and_the_line_says_which(url: str) -> None:
    """H8."""
    with pytest.raises(EmbedderError, match="CLAWMARK_ALLOW_REMOTE") as refused:
        net.require_consent(url, ("api.example.com",))
    assert "pw" not in str(refused.value)


def test_a_host_that_was_named_is_allowed_without_asking_anybody() -> None:
    net.require_consent("https://API.example.com/v1", ("api.EXAMPLE.com",))


@pytest.mark.parametrize("url", ["http://api.example.com.evil.example", "http://evil.example/api.example.com"])
def test_a_host_that_only_looks_like_the_named_one_is_not_allowed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: [(2, 1, 6, "", ("93.184.216.34", 0))])
    with pytest.raises(EmbedderError):
        net.require_consent(url, ("api.example.com",))


def test_one_public_address_among_private_ones_is_enough_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", ("10.0.0.1", 0)), (2, 1, 6, "", ("93.184.216.34", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: found)
    with pytest.raises(EmbedderError):
        net.require_consent("http://mixed.example", ())


def test_a_host_nobody_knows_is_down_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(EmbedderDown, match=r"nowhere\.example"):
        net.require_consent("http://nowhere.example", ())


# --- one request ---------------------------------------------------------------------------------------------------------


def test_an_answer_is_status_and_json() -> None:
    with serving(lambda request: Reply(503, {"said": request.body})) as server:
        assert post(server.url) == net.Answer(503, {"said": {"input": ["x"]}})


def test_a_key_is_sent_and_nothing_compressed_is_asked_for() -> None:
    """D10."""
    with serving(lambda request: Reply(200, {})) as server:
        post(server.url, key="s3cr3t")
        post(server.url)
    assert server.requests[0].headers["Authorization"] == "Bearer s3cr3t"
    assert "Authorization" not in server.requests[1].headers
    assert {request.headers["Accept-Encoding"] for request in server.requests} == {"identity"}


def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(lambda request: Reply(200, {})) as server:
        assert post(server.url).status == 200


def test_no_redirect_is_followed() -> None:
    with serving(lambda request: Reply(307, {}, {"Location": "http://203.0.113.9/"})) as server:
        assert post(server.url).status == 307
        assert len(server.requests) == 1


def test_one_deadline_covers_an_answer_that_drips() -> None:
    """An answer of a hundred drops, each in time, none of them late by itself."""
    stop = threading.Event()

    def drip() -> Iterator[bytes]:
        yield b"{"
        for _ in range(100):
            stop.wait(0.02)
            yield b" "
        yield b"}"

    with serving(lambda request: Reply(200, chunks=drip)) as server:
        with pytest.raises(EmbedderDown, match=r"within 0\.2 s"):
            post(server.url, seconds=0.2)
        stop.set()


def test_a_compressed_answer_is_refused_unread() -> None:
    bomb = gzip.compress(b"0" * 1_000_000)
    with (
        serving(lambda request: Reply(200, bomb, {"Content-Encoding": "gzip"})) as server,
        pytest.raises(EmbedderDown, match="compressed"),
    ):
        post(server.url)


def test_no_more_than_the_cap_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net, "MOST_BYTES", 100_000)

    def flood() -> Iterator[bytes]:
        while True:
            yield b"0" * 10_000

    with serving(lambda request: Reply(200, chunks=flood)) as server, pytest.raises(EmbedderDown, match="more than"):
        post(server.url)


@pytest.mark.parametrize("body", [b"", b"<html>busy</html>", b"[" * 100_000, b"\xff\xfe", b"1" * 5000])
def test_what_is_no_json_is_none(body: bytes) -> None:
    with serving(lambda request: Reply(200, body)) as server:
        assert post(server.url) == net.Answer(200, None)


@pytest.mark.parametrize("constant", [b"NaN", b"Infinity", b"-Infinity"])
def test_what_is_no_number_is_null(constant: bytes) -> None:
    with serving(lambda request: Reply(200, b'{"a": %b}' % constant)) as server:
        assert post(server.url) == net.Answer(200, {"a": None})


def test_an_answer_cut_short_is_down() -> None:
    with (
        serving(lambda request: Reply(200, chunks=lambda: iter([b"{"]), headers={"Content-Length": "999"})) as server,
        pytest.raises(EmbedderDown),
    ):
        post(server.url)


def test_nobody_there_is_down_and_the_line_holds_no_key() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(EmbedderDown) as down:
            post(f"http://user:hunter2@127.0.0.1:{port}", key="s3cr3t")
    assert f"127.0.0.1:{port}" in str(down.value)
    assert "s3cr3t" not in str(down.value) and "hunter2" not in str(down.value)


def test_it_works_inside_a_running_event_loop() -> None:
    async def inside(url: str) -> net.Answer:
        return post(url)

    with serving(lambda request: Reply(200, {"a": 1})) as server:
        assert asyncio.run(inside(server.url)) == net.Answer(200, {"a": 1})


def test_what_is_sent_is_json() -> None:
    with serving(lambda request: Reply(200, {})) as server:
        net.post_json(f"{server.url}/x", {"input": ["größer 東京"]}, key=None, seconds=5, allowed=())
    assert json.dumps(server.requests[0].body, ensure_ascii=False) == '{"input": ["größer 東京"]}'


def test_a_name_look_up_that_hangs_ends_within_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's look-up knows no deadline of its own."""
    awake = threading.Event()

    def hang(*args: Any, **kwargs: Any) -> Any:
        awake.wait(20)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    began = time.monotonic()
    try:
        with pytest.raises(EmbedderDown, match=r"box\.example did not answer within 0\.2 s"):
            post("http://box.example", seconds=0.2)
        assert time.monotonic() - began < 2
    finally:
        awake.set()


def test_a_request_asks_for_consent_itself() -> None:
    with pytest.raises(EmbedderError, match="CLAWMARK_ALLOW_REMOTE"):
        post("http://8.8.8.8")


def test_an_address_that_is_none_is_an_error_of_ours() -> None:
    """A server may be named by hand, past the settings."""
    for url in ("http://127.0.0.1:99999", "http://[::1"):
        with pytest.raises(EmbedderError):
            post(url)
