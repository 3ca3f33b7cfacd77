"""A small HTTP server on loopback that answers as it is told, for the tests of what talks to one."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    status: int = 200
    body: bytes | Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    chunks: Callable[[], Iterator[bytes]] | None = None


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: Any


@dataclass
class Server:
    url: str
    requests: list[Request]


@contextmanager
def serving(answer: Callable[[Request], Reply], *, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """`answer` gets each request; a body that is no bytes is sent as JSON."""
    seen: list[Request] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.path, dict(self.headers.items()), json.loads(raw))
            seen.append(request)
            reply = answer(request)
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Connection", "close")
            if reply.chunks is None:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                for chunk in [body] if reply.chunks is None else reply.chunks():
                    self.wfile.write(chunk)
                    self.wfile.flush()
            except OSError:
                pass
            self.close_connection = True

        def log_message(self, *args: Any) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    if tls is not None:
        httpd.socket = tls.wrap_socket(httpd.socket, server_side=True)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield Server(f"{'https' if tls else 'http'}://127.0.0.1:{httpd.server_address[1]}", seen)
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()
