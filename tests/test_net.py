"""The network: one place, one deadline, two keys for leaving the machine, and rests that end."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from server import Reply, Request, serving

from clawmark import net
from clawmark.errors import ConsentMissing, EndpointDown, EndpointError

NOON = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


class Time:
    """A clock in seconds that is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def reached(url: str, **options: Any) -> net.Endpoint:
    return net.Endpoint(net.endpoint(url, "embeddings"), **({"key": None, "allowed": ()} | options))


def post(url: str, seconds: float = 5.0, **options: Any) -> net.Answer:
    return reached(url, **options).post({"input": ["x"]}, seconds)


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Every name stands for these addresses; returns the list of names that were looked up."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, *args: Any, **kwargs: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET6 if ":" in a else socket.AF_INET, 1, 6, "", (a, port)) for a in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "full"),
    [
        ("http://h:1", "http://h:1/v1/embeddings"),
        ("http://h:1/", "http://h:1/v1/embeddings"),
        ("http://h:1//", "http://h:1/v1/embeddings"),
        ("http://h:1/v1", "http://h:1/v1/embeddings"),
        ("http://h:1/v1/", "http://h:1/v1/embeddings"),
        ("http://h:1/V1", "http://h:1/V1/embeddings"),
        ("http://h:1/v1/embeddings", "http://h:1/v1/embeddings"),
        ("http://h:1/v1/embeddings/", "http://h:1/v1/embeddings"),
        ("http://h:1/embeddings", "http://h:1/embeddings"),
        ("http://[::1]:1", "http://[::1]:1/v1/embeddings"),
        ("http://[::1]", "http://[::1]/v1/embeddings"),
        ("http://h:1/prefix/v1", "http://h:1/prefix/v1/embeddings"),
        ("http://h:1/prefix", "http://h:1/prefix/v1/embeddings"),
        ("http://h:1/v1beta/openai/", "http://h:1/v1beta/openai/embeddings"),
        ("http://h:1/v1/account/gateway/openai", "http://h:1/v1/account/gateway/openai/embeddings"),
        ("http://h:1/openai/v1?api-version=2", "http://h:1/openai/v1/embeddings?api-version=2"),
        ("http://h:1/d/m/embeddings?api-version=2", "http://h:1/d/m/embeddings?api-version=2"),
        ("http://h:1?api-version=2#top", "http://h:1/v1/embeddings?api-version=2"),
        ("http://us%40er:pw@h:1", "http://us%40er:pw@h:1/v1/embeddings"),
        (" http://h:1/v2 ", "http://h:1/v2/embeddings"),
    ],
)
def test_every_spelling_of_a_base_url_leads_to_one_path(url: str, full: str) -> None:
    """D11."""
    assert net.endpoint(url, "embeddings") == full
    assert net.endpoint(full, "embeddings") == full


def test_a_path_of_two_parts_is_one_path() -> None:
    assert net.endpoint("http://h/v1/", "chat/completions") == "http://h/v1/chat/completions"
    assert net.endpoint("http://h/v1/chat/completions", "chat/completions") == "http://h/v1/chat/completions"


def test_the_path_that_is_asked_is_the_one_meant() -> None:
    """D11, on the wire."""
    with serving(lambda request: Reply(200, {})) as server:
        for spelling in ("", "/", "/v1", "/v1/", "/v1/embeddings", "/v1?api-version=2"):
            post(server.url + spelling)
    assert {request.path for request in server.requests} == {"/v1/embeddings", "/v1/embeddings?api-version=2"}


@pytest.mark.parametrize(
    ("url", "one"),
    [
        ("http://h", "http://h:80"),
        ("https://H.Example./v1", "https://h.example:443"),
        ("HTTP://user:pw@h:8092/v1?key=x", "http://h:8092"),
        ("http://[0:0:0:0:0:0:0:1]:1/", "http://[::1]:1"),
        ("http://müller.example", "http://xn--mller-kva.example:80"),
    ],
)
def test_one_server_has_one_origin(url: str, one: str) -> None:
    assert net.origin(url) == one


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("http://user:hunter2@h:1/v1", "http://h:1/v1"),
        ("http://hunter2@h/v1/?api-version=2", "http://h/v1/?api-version=2"),
        ("http://h/v1?api_key=hunter2&api-version=2", "http://h/v1?api-version=2"),
        ("http://h/v1?subscription-key=hunter2#hunter2", "http://h/v1"),
        ("http://h:1/v1", "http://h:1/v1"),
    ],
)
def test_what_is_kept_of_a_url_holds_no_credentials(url: str, bare: str) -> None:
    assert net.without_credentials(url) == bare


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://h:99999", "http://h:0", "ftp://h", "h:1", "", "http:///v1", "http://a b/"]
)
def test_an_address_that_is_none_is_an_error_of_ours(url: str) -> None:
    """A server may be named by hand, past the settings."""
    with pytest.raises(EndpointError, match="CLAWMARK_EMBEDDING_URL"):
        post(url)


# --- consent ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1",
        "http://127.8.8.8",
        "http://localhost:1",
        "http://localhost.:1",
        "http://[::1]:1",
        "http://[::ffff:10.0.0.1]",
        "http://10.1.2.3",
        "http://172.31.0.1",
        "http://192.168.1.2",
        "http://100.64.1.1",
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
        "http://0.0.0.0",
        "http://[::]",
        "http://169.254.169.254/latest",
        "http://[fe80::1]",
        "http://224.0.0.1",
        "http://255.255.255.255",
        "http://172.32.0.1",
        "http://100.128.0.1",
        "http://192.0.2.1",
        "http://[::ffff:8.8.8.8]",
        "http://[::7f00:1]",
        "http://[64:ff9b::7f00:1]",
        "http://[2606:4700::1111]/",
        "http://user:pw@8.8.8.8",
    ],
)
def test_any_other_host_needs_a_second_key_and_the_line_says_which(url: str) -> None:
    """H8."""
    with pytest.raises(ConsentMissing, match="CLAWMARK_ALLOW_REMOTE") as refused:
        net.require_consent(url, ("api.example.com",))
    assert "pw" not in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "entry"),
    [
        ("https://API.example.com/v1", "api.EXAMPLE.com"),
        ("https://api.example.com./v1", "api.example.com"),
        ("https://api.example.com/v1", " api.example.com. "),
        ("https://api.example.com/v1", "api.example.com:443"),
        ("http://api.example.com:8080", "api.example.com:8080"),
        ("http://[2606:4700::1111]/", "2606:4700:0::1111"),
        ("http://[2606:4700::1111]:80/", "[2606:4700::1111]:80"),
        ("http://müller.example", "xn--mller-kva.example"),
    ],
)
def test_a_host_that_was_named_is_allowed_without_asking_anybody(url: str, entry: str) -> None:
    net.require_consent(url, ("other.example", entry))


@pytest.mark.parametrize(
    "url",
    [
        "http://api.example.com.evil.example",
        "http://evil.example/api.example.com",
        "http://api.example.com@evil.example",
        "http://evil.example\\@api.example.com:1",
        "http://evil.example#@api.example.com",
        "http://api.example.com:8081",
        "http://xapi.example.com",
    ],
)
def test_a_host_that_only_looks_like_the_named_one_is_not_allowed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "93.184.216.34")
    with pytest.raises(EndpointError):
        net.require_consent(url, ("api.example.com:8080", "", ":", "[", "*"))


def test_one_public_address_among_private_ones_is_enough_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, "10.0.0.1", "93.184.216.34")
    with pytest.raises(ConsentMissing):
        net.require_consent("http://mixed.example", ())


def test_a_host_nobody_knows_is_down_not_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: Any, **kwargs: Any) -> Any:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(EndpointDown, match=r"nowhere\.example"):
        net.require_consent("http://nowhere.example", ())


def test_a_request_asks_for_consent_itself() -> None:
    with pytest.raises(ConsentMissing, match="CLAWMARK_ALLOW_REMOTE"):
        post("http://8.8.8.8")


def test_what_a_name_stood_for_when_it_was_judged_is_what_is_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rebinding: the name is private when asked for once, and public ever after."""
    with serving(lambda request: Reply(200, {})) as server:
        port = server.url.rpartition(":")[2]
        asked: list[str] = []

        def getaddrinfo(host: str, port: int, *args: Any, **kwargs: Any) -> list[Any]:
            asked.append(host)
            return [(2, 1, 6, "", ("127.0.0.1" if len(asked) == 1 else "93.184.216.34", port))]

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        assert post(f"http://box.example:{port}").status == 200
        assert asked == ["box.example"]
        assert server.requests[0].headers["Host"] == f"box.example:{port}"
        with pytest.raises(ConsentMissing):
            post(f"http://box.example:{port}")
    assert len(server.requests) == 1


def test_the_addresses_of_a_name_are_tried_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """localhost is often ::1 and then 127.0.0.1, and a server listens on one of them."""
    with serving(lambda request: Reply(200, {})) as server:
        resolving(monkeypatch, "::1", "127.0.0.2", "127.0.0.1")
        assert post(server.url.replace("127.0.0.1", "localhost")).status == 200
    assert len(server.requests) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="needs a second loopback address and a listener that is deaf")
def test_an_address_that_stays_silent_does_not_take_the_time_of_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(lambda request: Reply(200, {})) as server, socket.socket() as deaf:
        deaf.bind(("127.0.0.2", int(server.url.rpartition(":")[2])))
        deaf.listen(0)
        resolving(monkeypatch, "127.0.0.2", "127.0.0.1")
        with socket.create_connection(deaf.getsockname()):
            assert post(server.url.replace("127.0.0.1", "box.example"), seconds=1.0).status == 200


# --- TLS --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A key and a certificate for box.example, in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    key, cert, both = tmp_path / "key.pem", tmp_path / "cert.pem", tmp_path / "both.pem"
    subject = ["-subj", "/CN=box.example", "-addext", "subjectAltName=DNS:box.example"]
    made = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-keyout",
        str(key),
        "-out",
        str(cert),
    ]
    subprocess.run([openssl, "req", "-x509", "-days", "2", *made, *subject], check=True, capture_output=True)
    both.write_text(key.read_text() + cert.read_text())
    return both


def test_the_certificate_is_that_of_the_name_and_not_of_the_address(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    names: list[str | None] = []
    context.sni_callback = lambda sock, name, context: names.append(name)
    resolving(monkeypatch, "127.0.0.1")
    with serving(lambda request: Reply(200, {}), tls=context) as server:
        port = server.url.rpartition(":")[2]
        with pytest.raises(EndpointError, match=r"certificate.*CLAWMARK_EMBEDDING_URL"):
            post(f"https://box.example:{port}")
        monkeypatch.setattr(net, "_tls", lambda: ssl.create_default_context(cafile=str(certificate)))
        assert post(f"https://box.example:{port}").status == 200
        with pytest.raises(EndpointError, match="certificate"):
            post(f"https://other.example:{port}")
    assert names == ["box.example", "box.example", "other.example"]
    assert len(server.requests) == 1


def test_the_set_up_of_tls_is_paid_once() -> None:
    assert net._tls() is net._tls()


# --- one request ------------------------------------------------------------------------------------------------------


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


def test_a_user_in_the_url_is_sent_as_basic_authentication() -> None:
    with serving(lambda request: Reply(200, {})) as server:
        post(server.url.replace("//", "//us%40er:p%3Aw@"))
    assert server.requests[0].headers["Authorization"] == "Basic dXNAZXI6cDp3"  # us@er:p:w
    assert "@" not in server.requests[0].headers["Host"]


@pytest.mark.parametrize("key", ["bad\nkey", "schlüssel"])
def test_a_key_that_no_header_can_hold_is_an_error_that_does_not_show_it(key: str) -> None:
    with (
        serving(lambda request: Reply(200, {})) as server,
        pytest.raises(EndpointError, match="CLAWMARK_EMBEDDING_API_KEY") as wrong,
    ):
        post(server.url, key=key)
    assert key not in str(wrong.value)


def test_no_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(lambda request: Reply(200, {})) as server:
        assert post(server.url).status == 200


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("http://user:hunter2@other.example/hunter2?hunter2", "redirects to other.example,"),
        ("/elsewhere", "redirects to another path of its own,"),
        ("http://[", "redirects to another path of its own,"),
        ("http://<b>hunter2</b>/", "redirects to another host,"),
        (None, "redirects to another path of its own,"),
    ],
)
def test_no_redirect_is_followed_and_only_its_host_is_named(location: str | None, named: str) -> None:
    headers = {} if location is None else {"Location": location}
    with serving(lambda request: Reply(307, {}, headers)) as server:
        with pytest.raises(EndpointError, match="CLAWMARK_EMBEDDING_URL") as wrong:
            post(server.url)
        assert len(server.requests) == 1
    assert named in str(wrong.value) and "hunter2" not in str(wrong.value)


def test_a_message_names_the_variables_of_its_own_settings() -> None:
    with serving(lambda request: Reply(307, {})) as server, pytest.raises(EndpointError, match="CLAWMARK_EXTRACT_URL"):
        post(server.url, variable="CLAWMARK_EXTRACT")


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
        with pytest.raises(EndpointDown, match=r"within 0\.2 s"):
            post(server.url, seconds=0.2)
        stop.set()


def test_a_compressed_answer_is_refused_unread() -> None:
    bomb = gzip.compress(b"0" * 1_000_000)
    with (
        serving(lambda request: Reply(200, bomb, {"Content-Encoding": "gzip"})) as server,
        pytest.raises(EndpointDown, match="compressed"),
    ):
        post(server.url)


def test_no_more_than_the_cap_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(net, "MOST_BYTES", 100_000)

    def flood() -> Iterator[bytes]:
        while True:
            yield b"0" * 10_000

    with serving(lambda request: Reply(200, chunks=flood)) as server, pytest.raises(EndpointDown, match="more than"):
        post(server.url)


def test_an_answer_cut_short_is_down() -> None:
    with (
        serving(lambda request: Reply(200, chunks=lambda: iter([b"{"]), headers={"Content-Length": "999"})) as server,
        pytest.raises(EndpointDown),
    ):
        post(server.url)


def test_nobody_there_is_down_and_the_line_holds_no_key() -> None:
    port = closed_port()
    with pytest.raises(EndpointDown) as down:
        post(f"http://user:hunter2@127.0.0.1:{port}", key="s3cr3t")
    assert f"127.0.0.1:{port}" in str(down.value)
    assert "s3cr3t" not in str(down.value) and "hunter2" not in str(down.value) and "\n" not in str(down.value)


def test_it_works_inside_a_running_event_loop() -> None:
    async def inside(url: str) -> net.Answer:
        return post(url)

    with serving(lambda request: Reply(200, {"a": 1})) as server:
        assert asyncio.run(inside(server.url)) == net.Answer(200, {"a": 1})


@pytest.mark.parametrize(
    ("given", "sent"), [("größer 東京", "größer 東京"), ("half \ud83d a boiler", "half \ufffd a boiler")]
)
def test_what_is_sent_is_utf_8(given: str, sent: str) -> None:
    with serving(lambda request: Reply(200, {})) as server:
        reached(server.url).post({"input": [given]}, 5)
    assert server.requests[0].body == {"input": [sent]}


# --- what came back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"<html>busy</html>", b"[" * 200_000, b"\xff\xfe", b"\0" * 100, b'{"a":'])
def test_what_is_no_json_is_none(body: bytes) -> None:
    with serving(lambda request: Reply(200, body)) as server:
        assert post(server.url) == net.Answer(200, None)


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a": NaN}', {"a": None}),
        (b"[-Infinity, Infinity, 1]", [None, None, 1]),
        (b"[1e999]", [float("inf")]),
        (b"[" + b"9" * 100_000 + b", -" + b"9" * 5000 + b", 7]", [float("inf"), float("-inf"), 7]),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        (b'{"a": "\xff\xfe"}', {"a": "\ufffd\ufffd"}),
        (rb'{"\udc00": ["\ud83d x", "\ud83d\ude00", 0.1, NaN]}', {"\ufffd": ["\ufffd x", "\U0001f600", 0.1, None]}),
        (rb'["\\ud83d"]', ["\\ud83d"]),
    ],
)
def test_what_is_odd_spoils_only_itself(body: bytes, value: Any) -> None:
    with serving(lambda request: Reply(200, body)) as server:
        assert post(server.url) == net.Answer(200, value)


@given(st.binary(max_size=200))
def test_whatever_came_back_can_be_written_down(body: bytes) -> None:
    json.dumps(net._decoded(body), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("2", 2.0),
        ("0", 0.0),
        ("1.5", 1.5),
        ("999999999", 600.0),
        ("9" * 5000, 600.0),
        ("Fri, 01 May 2026 12:00:07 GMT", 7.0),
        ("Fri, 01 May 2026 14:00:07 +0200", 7.0),
        ("Fri, 01 May 2026 11:00:00 GMT", 0.0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 600.0),
        ("-1", None),
        ("soon", None),
        ("nan", None),
        ("٣", None),
        ("", None),
    ],
)
def test_a_wish_to_be_left_alone_is_seconds_or_a_date_and_has_an_end(header: str, seconds: float | None) -> None:
    assert net._retry_after(header, lambda: NOON) == seconds


def test_the_wish_stands_in_the_answer() -> None:
    with serving(lambda request: Reply(429, {}, {"Retry-After": "Fri, 01 May 2026 12:00:09 GMT"})) as server:
        assert post(server.url, wall=lambda: NOON) == net.Answer(429, {}, 9.0)


# --- rests ------------------------------------------------------------------------------------------------------------


class Fickle:
    """A server that answers as it is told, and an endpoint with a clock that is set."""

    def __init__(self, url: str, requests: list[Request]) -> None:
        self.time = Time()
        self.endpoint = net.Endpoint(url, key=None, allowed=(), clock=self.time)
        self.requests = requests
        self.status = 503
        self.headers: dict[str, str] = {}

    def answer(self, request: Request) -> Reply:
        return Reply(self.status, {}, self.headers)

    def asks(self, *, patient: bool = False) -> bool:
        """Whether a post reached the server."""
        before = len(self.requests)
        try:
            self.endpoint.post({}, 5, patient=patient)
        except (EndpointDown, EndpointError):
            pass
        return len(self.requests) > before


@pytest.fixture
def fickle() -> Iterator[Fickle]:
    answer: list[Callable[[Request], Reply]] = []
    with serving(lambda request: answer[0](request)) as server:
        made = Fickle(server.url, server.requests)
        answer.append(made.answer)
        yield made


@pytest.mark.parametrize("status", [401, 403, 404, 405, 408, 429, 502, 503, 504, 307])
def test_after_a_failure_prompts_rest_and_background_work_does_not(fickle: Fickle, status: int) -> None:
    fickle.status = status
    assert fickle.asks()
    fickle.time.now += 29
    assert not fickle.asks()
    assert fickle.asks(patient=True)


@pytest.mark.parametrize("status", [200, 400, 413, 422, 500])
def test_an_answer_about_the_text_is_no_failure_of_the_server(fickle: Fickle, status: int) -> None:
    assert fickle.asks()
    fickle.time.now += 30
    fickle.status = status
    assert fickle.asks() and fickle.asks()


def test_a_server_that_is_not_there_is_asked_once() -> None:
    endpoint = net.Endpoint(f"http://127.0.0.1:{closed_port()}", key=None, allowed=(), clock=Time())
    with pytest.raises(EndpointDown, match="cannot be reached"):
        endpoint.post({}, 5)
    with pytest.raises(EndpointDown, match="asked again in 30 s"):
        endpoint.post({}, 5)


def test_each_failure_doubles_the_rest_up_to_ten_minutes(fickle: Fickle) -> None:
    assert fickle.asks()
    rests = []
    for _ in range(7):
        began = fickle.time.now
        while not fickle.asks():
            fickle.time.now += 10
        rests.append(fickle.time.now - began)
    assert rests == [30, 60, 120, 240, 480, 600, 600]


def test_one_caller_tries_when_the_rest_is_over_and_the_others_wait_for_it(fickle: Fickle) -> None:
    tried: list[bool] = []
    assert fickle.asks()
    fickle.time.now += 31

    def while_the_trial_runs(request: Request) -> Reply:
        with pytest.raises(EndpointDown):
            fickle.endpoint.post({}, 5)
        tried.append(True)
        return Reply(200, {})

    fickle.answer = while_the_trial_runs  # type: ignore[method-assign]
    with serving(while_the_trial_runs) as server:
        fickle.endpoint._url = server.url
        fickle.endpoint.post({}, 5)
    assert tried == [True]


def test_success_ends_the_rest_and_the_doubling(fickle: Fickle) -> None:
    for _ in range(3):
        fickle.asks(patient=True)
    fickle.status = 200
    assert not fickle.asks()
    assert fickle.asks(patient=True)
    assert fickle.asks()
    fickle.status = 503
    assert fickle.asks()
    fickle.time.now += 30
    assert fickle.asks()


def test_a_wish_to_be_left_alone_is_kept_by_everybody(fickle: Fickle) -> None:
    fickle.status, fickle.headers = 429, {"Retry-After": "100"}
    assert fickle.asks(patient=True)
    fickle.time.now += 99
    with pytest.raises(EndpointDown, match="another 1 s"):
        fickle.endpoint.post({}, 5, patient=True)
    assert not fickle.asks()
    fickle.time.now += 1
    assert fickle.asks(patient=True)


def test_who_slept_it_out_may_ask(fickle: Fickle) -> None:
    fickle.status, fickle.headers = 429, {"Retry-After": "100"}
    assert fickle.asks(patient=True)
    fickle.endpoint.waited()
    assert fickle.asks(patient=True)


def test_an_answer_that_was_of_no_use_counts_as_none(fickle: Fickle) -> None:
    fickle.status = 200
    assert fickle.asks()
    fickle.endpoint.failed()
    assert not fickle.asks()


def test_requests_that_fail_together_count_once() -> None:
    time, both = Time(), threading.Barrier(2)

    def fail(request: Request) -> Reply:
        both.wait(20)
        time.now += 1
        return Reply(503, {})

    with serving(fail) as server:
        endpoint = net.Endpoint(server.url, key=None, allowed=(), clock=time)
        threads = [threading.Thread(target=endpoint.post, args=({}, 20), kwargs={"patient": True}) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        with pytest.raises(EndpointDown, match=r"again in (29|30) s"):
            endpoint.post({}, 20)
        assert len(server.requests) == 2


def test_missing_consent_is_said_each_time() -> None:
    endpoint = net.Endpoint("http://8.8.8.8", key=None, allowed=())
    for _ in range(2):
        with pytest.raises(ConsentMissing):
            endpoint.post({}, 5)


# --- what hangs -------------------------------------------------------------------------------------------------------


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Every look-up hangs until the event is set: the system's knows no deadline of its own."""
    awake = threading.Event()

    def hang(*args: Any, **kwargs: Any) -> Any:
        awake.wait(20)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    yield awake
    awake.set()
    for thread in tuple(net._left_behind):
        thread.join(20)


def test_a_name_look_up_that_hangs_ends_within_the_deadline(hanging: threading.Event) -> None:
    with pytest.raises(EndpointDown, match=r"box\.example did not answer within 0\.05 s"):
        post("http://box.example", seconds=0.05)
    assert not hanging.is_set(), "nobody woke it"


def test_what_hangs_does_not_pile_up(hanging: threading.Event) -> None:
    before = threading.active_count()
    for _ in range(net.MOST_LEFT_BEHIND):
        with pytest.raises(EndpointDown, match="did not answer"):
            post("http://box.example", seconds=0.01)
    for _ in range(20):
        with pytest.raises(EndpointDown, match="hang already"):
            post("http://box.example", seconds=0.01)
    assert threading.active_count() <= before + net.MOST_LEFT_BEHIND
    hanging.set()
    for thread in tuple(net._left_behind):
        thread.join(20)
    with pytest.raises(EndpointDown, match="cannot be resolved"):
        post("http://box.example")


HANGING = """
import socket, sys, threading
from clawmark import net
from clawmark.errors import EndpointDown
socket.getaddrinfo = lambda *a, **k: threading.Event().wait()
try: net.Endpoint("http://box.example", key=None, allowed=()).post({}, 0.05)
except EndpointDown: print("down", flush=True)
"""


def test_what_hangs_does_not_hold_up_the_end_of_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ("down\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_takes_nothing_along_that_hangs() -> None:
    """The child asks a real server although its parent has as many hanging requests as there may be."""
    with serving(lambda request: Reply(200, {})) as server:
        code = (
            HANGING
            + f"""
import os
real, url = socket.create_connection, {server.url!r}
for _ in range(net.MOST_LEFT_BEHIND):
    try: net.Endpoint("http://box.example", key=None, allowed=()).post({{}}, 0.01)
    except EndpointDown: pass
socket.getaddrinfo = lambda host, port, *a, **k: [(2, 1, 6, "", ("127.0.0.1", port))]
child = os.fork()
if not child:
    status = net.Endpoint(url, key=None, allowed=()).post({{}}, 20).status
    print("child", status, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "child 200" in done.stdout


def test_httpx_is_imported_when_something_is_asked() -> None:
    code = (
        "import sys\nfrom clawmark import net\nnet.require_consent('http://127.0.0.1', ())\n"
        "net.Endpoint('http://127.0.0.1', key=None, allowed=())\nsys.exit('httpx' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_deadline_holds_where_a_connection_is_never_answered() -> None:
    """A listener whose queue is full: the system neither accepts nor refuses."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        with socket.create_connection(deaf.getsockname()), pytest.raises(EndpointDown, match=r"within 0\.2 s"):
            post(f"http://127.0.0.1:{deaf.getsockname()[1]}", seconds=0.2)


def test_consent_waits_for_no_look_up_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    hanging = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: hanging.wait(30))
    try:
        with pytest.raises(EndpointDown, match=r"did not answer within 0\.05 s"):
            net.require_consent("http://slow.example/v1", (), seconds=0.05)
    finally:
        hanging.set()
