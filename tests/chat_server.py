"""A scripted OpenAI-compatible chat server on loopback: what it answers follows from the request alone.

    with chatting(Script(facts={"I drink decaf": {"key": "pref.tea", "value": "decaf"}})) as server: ...
    python tests/chat_server.py PORT SCRIPT.json        (PORT 0: any free one; the port is the first line it prints)

A request is answered from the words in the user's message, so the same batch gets the same reply however often a run
was killed before it, and a fact is cited by whatever number its message has in this batch. Standard library alone: it
runs as a process of its own as well.
"""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_HEADING = re.compile(r"\[(\d+)\] ")
_LINE = "| "


@dataclass
class Script:
    """What is answered, and which requests are refused.

    replies   words in the user's message → the reply, as it stands (no text: as JSON); the first that occurs counts
    facts     words in a message → one fact; all that occur are answered together. `messages` is the number of each
              message that holds the words, unless given; `quote` is the words, unless given
    refuse    fields that this server does not know: 400, naming the field (`blunt`: naming none)
    log       a file that gets each request as a line of JSON
    """

    replies: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    refuse: Sequence[str] = ()
    blunt: bool = False
    log: str = ""

    def answer(self, request: Mapping[str, Any]) -> tuple[int, Any]:
        """Status and body."""
        for name in self.refuse:
            if name in request:
                said = "unknown field" if self.blunt else f"unknown field `{name}`"
                return 400, {"error": {"message": said, "type": "invalid_request_error"}}
        user = "\n".join(str(each.get("content", "")) for each in request["messages"] if each["role"] == "user")
        message = {"role": "assistant", "content": self.content(user)}
        return 200, {
            "object": "chat.completion",
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        }

    def content(self, user: str) -> str:
        for words, reply in self.replies.items():
            if words in user:
                return reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
        found = []
        for words, fact in self.facts.items():
            numbers = _holding(words, user)
            if numbers:
                usual = {"messages": numbers, "quote": words, "confidence": 0.95}
                found.append({**usual, **fact})
        return json.dumps({"facts": found}, ensure_ascii=False)


def _holding(words: str, user: str) -> list[int]:
    """The numbers of the messages of a prompt that hold `words` in one line."""
    numbers: list[int] = []
    number = 0
    for line in user.splitlines():
        heading = _HEADING.match(line)
        if heading:
            number = int(heading[1])
        elif number and line.startswith(_LINE) and words in line and number not in numbers:
            numbers.append(number)
    return numbers


@dataclass
class ChatServer:
    """requests: the bodies that were sent, in order."""

    url: str
    requests: list[dict[str, Any]]

    @property
    def prompts(self) -> list[str]:
        return [request["messages"][-1]["content"] for request in self.requests]


def listening(script: Script, port: int, seen: list[dict[str, Any]]) -> ThreadingHTTPServer:
    log = Path(script.log) if script.log else None
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            with lock:
                seen.append(request)
                if log is not None:
                    with log.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(request, ensure_ascii=False) + "\n")
            status, answer = script.answer(request) if self.path.endswith("/chat/completions") else (404, {})
            body = json.dumps(answer).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # whoever asked was killed
            self.close_connection = True

        def log_message(self, *args: Any) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    httpd.daemon_threads = True
    return httpd


@contextmanager
def chatting(script: Script | None = None) -> Iterator[ChatServer]:
    seen: list[dict[str, Any]] = []
    httpd = listening(script or Script(), 0, seen)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield ChatServer(f"http://127.0.0.1:{httpd.server_address[1]}/v1", seen)
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with listening(Script(**json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))), int(sys.argv[1]), []) as httpd:
        print(httpd.server_address[1], flush=True)
        try:
            httpd.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
