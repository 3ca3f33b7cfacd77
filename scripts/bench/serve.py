"""Speed and memory of the resident process and its client, each as a figure with its goal, in one run.

    serve.py trip     round trip of the protocol: p50 and p99 of `hello`; what the process adds to a block by itself
    serve.py client   a hook's client against a bare `python -I -S -c pass`
    serve.py start    from start to `hello`, and the time its end takes in the middle of a pass
    serve.py blocks   the same with a long log; p99 while a pass runs against at rest; memory
                      [--sizes 20000 100000]

The passages of `blocks` have made-up vectors in the local model's space, so that a long log is there within a minute; its
queries, its words and the pass that runs meanwhile are real. Needs the `local` extra and the benchmark folder
(`CLAWMARK_SHARED` or `../shared` beside the project); without them it says so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from common import chat, distractors, shared

from clawmark import Memory, Settings, client
from clawmark.embed.local import LocalEmbedder, available
from clawmark.embed.probe import PROBE
from clawmark.model import Turn

PYTHON = sys.executable
RUN = "from pathlib import Path; import sys; from clawmark.serve import run\n"
RUN += "sys.exit(run(stdio=False, socket=Path(sys.argv[1]), idle_exit=None))"


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def timed(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


class Resident:
    """A resident process and one connection to it."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.path = str(folder / "s.sock")
        env = {name: value for name, value in os.environ.items() if not name.startswith("CLAWMARK_")}
        env |= {"CLAWMARK_DB_PATH": str(folder / "memory.db"), "CLAWMARK_TRANSCRIPTS_DIR": str(folder / "sessions")}
        self.started = time.perf_counter()
        self.log = open(folder / "log", "ab")  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(
            [PYTHON, "-c", RUN, self.path], env=env | settings, stderr=self.log, stdin=subprocess.DEVNULL
        )
        while True:
            try:
                self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self.socket.connect(self.path)
                break
            except OSError:
                time.sleep(0.002)
        self.file = self.socket.makefile("rb")
        self.hello = self.ask("hello")
        self.seconds = time.perf_counter() - self.started

    def send(self, method: str, **params: Any) -> None:
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        self.socket.sendall(line.encode() + b"\n")

    def ask(self, method: str, **params: Any) -> Any:
        self.send(method, **params)
        answer = json.loads(self.file.readline())
        if "result" not in answer:
            sys.exit(f"{method}: {answer}")
        return answer["result"]

    def ready(self) -> None:
        while not self.ask("hello")["ready"]:
            time.sleep(0.05)

    def memory_mb(self, what: str = "VmRSS") -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))

    def end(self) -> float:
        start = time.perf_counter()
        self.process.terminate()
        self.process.wait()
        self.file.close()
        self.socket.close()
        self.log.close()
        return time.perf_counter() - start


@contextmanager
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cm-") as folder:
        (Path(folder) / "sessions").mkdir()
        yield Path(folder)


def trip(arguments: argparse.Namespace) -> None:
    with scratch() as folder:
        resident = Resident(folder, CLAWMARK_EMBEDDER="none")
        resident.ready()
        time.sleep(1)
        taken = [timed(lambda: resident.ask("hello")) for _ in range(5000)]
        turn = {"host": "cli", "scope": "main", "prompt": "Which key opens the shed?"}
        added = []
        settings = Settings(db_path=folder / "memory.db", transcripts_dir=folder / "sessions", embedder="none")
        with Memory.open(settings) as memory:
            for _ in range(500):  # by turns, so that both meet the same machine
                through = timed(lambda: resident.ask("block", turn=turn))
                added.append(through - timed(partial(memory.block, Turn(turn["prompt"], host="cli", scope="main"))))
        resident.end()
    print(f"round trip: p50 {percentile(taken, 0.5):.3f} ms, p99 {percentile(taken, 0.99):.3f} ms (goal 0.5)")
    print(f"a block of an empty memory: {statistics.median(added):.2f} ms more than Memory.block (goal 3)")


def hook(arguments: argparse.Namespace) -> None:
    event = json.dumps({"hook_event_name": "UserPromptSubmit", "session_id": "s", "cwd": "/", "prompt": "hello there"})
    place = str(Path(client.__file__).resolve())
    with scratch() as folder:
        resident = Resident(folder, CLAWMARK_EMBEDDER="none")
        resident.ready()
        time.sleep(1)
        command = [PYTHON, "-I", "-S", place, "claude-code", "--socket", resident.path]

        def ran(command: list[str]) -> float:
            return timed(lambda: subprocess.run(command, input=event.encode(), capture_output=True, check=True))

        bare, ours = [], []
        for _ in range(100):  # by turns, so that both meet the same machine
            bare.append(ran([PYTHON, "-I", "-S", "-c", "pass"]))
            ours.append(ran(command))
        resident.end()
    ratio = statistics.median(ours) / statistics.median(bare)
    print(
        f"client {statistics.median(ours):.1f} ms, bare python {statistics.median(bare):.1f} ms: ratio {ratio:.2f} (goal 2.5)"
    )


def start(arguments: argparse.Namespace) -> None:
    with scratch() as folder:
        distractors(folder / "sessions", 40_000, chat(5_000, 245))
        seconds, ends = [], []
        for _ in range(5):
            resident = Resident(folder, CLAWMARK_EMBEDDER="none")
            seconds.append(resident.seconds)
            resident.ready()
            ends.append(resident.end())  # the first pass runs
    print(f"start to hello: median {statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s (goal 1)")
    print(f"signal to end, in the middle of a pass: worst {max(ends):.2f} s (goal 3)")


class HalfLocal(LocalEmbedder):
    """The local model's space; what is no probe gets a made-up vector."""

    def embed(self, texts: Sequence[str], kind: Any = "document") -> Any:
        import numpy as np

        rng = np.random.default_rng(len(texts))
        known = {PROBE}
        real = dict(zip(known, super().embed(sorted(known), kind), strict=True)) if known & set(texts) else {}
        made = rng.standard_normal((len(texts), self.space.dimension)).astype(np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        return [real.get(text, row) for text, row in zip(texts, made, strict=True)]


def blocks(arguments: argparse.Namespace) -> None:
    if not available():
        sys.exit("skipped: the local extra is not installed")
    questions = [
        asked["question"]
        for path in sorted((shared() / "data" / "locomo").glob("*.json"))
        for asked in json.loads(path.read_text(encoding="utf-8"))["qa"]
    ]
    asked = random.Random(1).sample(questions, 300)
    for size in arguments.sizes:
        with scratch() as folder:
            texts = chat(20_000, 245)
            distractors(folder / "sessions", size, texts)
            settings = Settings(db_path=folder / "memory.db", transcripts_dir=folder / "sessions", embedder="local")
            with Memory.open(settings, embedder=HalfLocal(threads=1)) as memory:
                memory.sync()
            measured(folder, settings, size, asked, texts, arguments.seconds)


def measured(folder: Path, settings: Settings, size: int, asked: list[str], texts: list[str], seconds: float) -> None:
    resident = Resident(folder, CLAWMARK_EMBEDDER="local")
    resident.ready()

    def block(question: str) -> float:
        return timed(lambda: resident.ask("block", turn={"host": "cli", "scope": "main", "prompt": question}))

    inside, rest = [], []
    with Memory.open(settings) as memory:
        for question in asked[:30]:
            block(question)
            memory.block(Turn(question, host="cli", scope="main"))
        resident.ask("reconcile", caller={})
        for question in asked[30:]:  # by turns, so that both meet the same machine
            rest.append(block(question))
            inside.append(timed(partial(memory.block, Turn(question, host="cli", scope="main"))))
    rss = resident.memory_mb()
    more = folder / "sessions" / "more"
    more.mkdir()
    distractors(more, 20_000, texts[::-1])
    for number, path in enumerate(sorted(more.iterdir())):
        path.rename(folder / "sessions" / f"{number:08x}{path.name[8:]}")
    more.rmdir()
    other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    other.connect(resident.path)
    other.sendall(b'{"jsonrpc":"2.0","id":1,"method":"reconcile","params":{"caller":{}}}\n')
    began = time.perf_counter()
    busy: list[tuple[float, float]] = []
    while (at := time.perf_counter() - began) < seconds:
        busy.append((at, block(f"{asked[len(busy) % len(asked)]} {len(busy)}")))  # a new one: its vector is not kept
        time.sleep(0.01)  # people are no loop: the pass must get on as well
    log = (folder / "log").read_text()
    running = resident.ask("status")["resident"]["job"]
    ended = resident.end()
    other.close()
    print(
        f"{size:>7} passages: Memory.block p50 {percentile(inside, 0.5):.1f} ms, p99 {percentile(inside, 0.99):.1f} ms"
    )
    print(
        f"        through the process: p50 {percentile(rest, 0.5):.1f} ms, p99 {percentile(rest, 0.99):.1f} ms; "
        f"adds {statistics.median(a - b for a, b in zip(rest, inside, strict=True)):.1f} ms (goal 3)"
    )
    for name, first, last in (("indexing (first 4 s)", 0.0, 4.0), ("embedding (after it)", 4.0, 1e9)):
        window = [taken for at, taken in busy if first <= at < last]
        if window:
            ratio = percentile(window, 0.99) / percentile(rest, 0.99)
            print(
                f"        {name}: p50 {percentile(window, 0.5):.1f} ms, p99 {percentile(window, 0.99):.1f} ms of "
                f"{len(window)}; ratio of p99 {ratio:.2f} (goal 2)"
            )
    print(f"        memory {rss:.0f} MB at rest (goal 400); the pass was {running}; end {ended:.2f} s (goal 3)")
    if "failed" in log:
        print(log[-500:])


WHAT = {"trip": trip, "client": hook, "start": start, "blocks": blocks}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*WHAT, "all"], nargs="?", default="all")
    parser.add_argument("--sizes", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    for name in WHAT if arguments.what == "all" else [arguments.what]:
        WHAT[name](arguments)


if __name__ == "__main__":
    main()
