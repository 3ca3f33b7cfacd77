"""A resident process as a test wants it: speaks the protocol, and misbehaves as CLAWMARK_TEST says.

Each line that it gets stands in the file that CLAWMARK_TEST_LOG names, after one with its process id.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

does = os.environ.get("CLAWMARK_TEST", "")
log = open(os.environ["CLAWMARK_TEST_LOG"], "a", encoding="utf-8", buffering=1)  # noqa: SIM115
lock = threading.Lock()


def note(said: dict[str, Any]) -> None:
    with lock:
        log.write(json.dumps(said) + "\n")


def say(said: dict[str, Any]) -> None:
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **said}) + "\n")
        sys.stdout.flush()


def answer(asked: dict[str, Any]) -> None:
    method, params, number = asked["method"], asked.get("params", {}), asked.get("id")
    if number is None:
        return
    if method == "hello":
        protocol = 2 if does == "protocol" else 1
        result = {"protocol": protocol, "version": "0.4.0.dev0", "python": "3.11.7", "pid": os.getpid()}
        return say({"id": number, "result": {**result, "database": "memory.db", "ready": True, "problem": None}})
    if method == "block":
        prompt = params["turn"]["prompt"]
        if "slow" in prompt:
            time.sleep(4)
        if "hang" in prompt:
            return os.kill(os.getpid(), signal.SIGSTOP)
        if "die" in prompt:
            os.kill(os.getpid(), signal.SIGKILL)
        if "fault" in prompt:
            return say({"id": number, "error": {"code": -32603, "message": "a fault"}})
        if prompt.startswith("say "):
            say(json.loads(prompt[4:]))
            return say({"id": number, "result": {"text": ""}})
        if "nothing" in prompt:
            return say({"id": number, "result": {"text": ""}})
        return say({"id": number, "result": {"text": f"[block {os.getpid()} {number}]"}})
    if method == "forget":
        return say(
            {"id": number, "error": {"code": -32004, "message": "KEY_FORMAT: no", "data": {"code": "KEY_FORMAT"}}}
        )
    if method == "reconcile":
        return say({"id": number, "error": {"code": -32002, "message": "memory is not ready: it opens"}})
    return say({"id": number, "result": {"text": f"did {method}", "outcome": "user"}})


note({"pid": os.getpid(), "argv": sys.argv[1:]})
if does == "chatty":
    sys.stdout.write("a line that is none\n")
    say({"method": "log", "params": {"level": "warning", "message": "the log\nis not there"}})
    say({"id": 77, "method": "ask", "params": {}})
if does == "starting":
    while not os.path.exists(os.environ["CLAWMARK_TEST_LOG"] + ".go"):
        time.sleep(0.02)
if does == "long":
    sys.stdout.write("x" * 3_000_000)
    sys.stdout.flush()
for line in sys.stdin:
    received = json.loads(line)
    note(received)
    if "method" in received:
        threading.Thread(target=answer, args=(received,), daemon=True).start()
if does == "deaf":
    time.sleep(3600)
