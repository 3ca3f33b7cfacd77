"""Speed and memory of reading, indexing, embedding and searching, each as a ratio or a rate within one run.

    speed.py scan    [--mb 300]             source alone against reading the same bytes from the page cache
    speed.py index   [--mb 300]             messages a second until they are searchable by words, peak memory
    speed.py line    [--mb 100]             one line of that size: skipped, and the memory it cost
    speed.py vectors                        share of the vectors job that is spent in the embedder
    speed.py search  [--sizes 3000 20000 100000]   p50 and p99 of one search in a warm process, query already embedded

Data comes from the benchmark folder (`CLAWMARK_SHARED` or `../shared` beside the project); without it this says so.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import chat, distractors, shared

from clawmark import Memory, Settings
from clawmark.model import Space
from clawmark.source import Folders, select

READ = 4 * 1024 * 1024


def generated(out: Path, mb: int) -> dict[str, Any]:
    script = shared() / "bench" / "gen_transcripts.py"
    command = [sys.executable, str(script), "jsonl", str(out), "--mb", str(mb)]
    made: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return made


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def read_bytes(folder: Path) -> int:
    total = 0
    for path in sorted(folder.glob("*.jsonl")):
        with open(path, "rb", buffering=0) as file:
            while chunk := file.read(READ):
                total += len(chunk)
    return total


def scan_messages(folder: Path) -> int:
    source = select("transcripts", Folders(folder, folder))[0]
    count = 0
    for stream in source.streams():
        cursor, end = None, False
        while not end:
            batch = source.read(stream, cursor, 500)
            count, cursor, end = count + len(batch.messages), batch.cursor, batch.end
    return count


def scan(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "sessions"
        made = generated(folder, arguments.mb)
        read_bytes(folder)
        ratios, rates = [], []
        for _ in range(3):
            start = time.perf_counter()
            size = read_bytes(folder)
            middle = time.perf_counter()
            count = scan_messages(folder)
            end = time.perf_counter()
            ratios.append((middle - start) / (end - middle))
            rates.append(size / 1e6 / (end - middle))
        expected = made["user"] + made["assistant"]
        print(f"messages {count} of {expected} expected; {statistics.median(rates):.0f} MB/s")
        print(f"speed against reading the same bytes: {statistics.median(ratios):.3f} (goal 0.1)")
        print(f"peak memory {peak_mb():.0f} MB")


def index(arguments: argparse.Namespace) -> None:
    """On ordinary talk (245 characters a message), and on agent work, where tool results are most of the bytes."""
    with tempfile.TemporaryDirectory() as scratch:
        talk = Path(scratch) / "talk"
        talk.mkdir()
        distractors(talk, 40_000, chat(40_000, 245))
        indexed("talk", talk, Path(scratch) / "talk.db")
        work = Path(scratch) / "work"
        generated(work, arguments.mb)
        indexed(f"agent work, {arguments.mb} MB", work, Path(scratch) / "work.db")
        print(f"peak memory {peak_mb():.0f} MB (goal 400)")


def indexed(name: str, folder: Path, database: Path) -> None:
    size = read_bytes(folder)
    with Memory.open(Settings(db_path=database, transcripts_dir=folder, embedder="none")) as memory:
        start = time.perf_counter()
        report = memory.sync()
        seconds = time.perf_counter() - start
        passages = memory.status().passages
        again = time.perf_counter()
        memory.sync()
        again = time.perf_counter() - again
    print(
        f"{name}: {report.read} messages in {seconds:.1f} s, {report.read / seconds:.0f} a second (goal 10000), "
        f"{size / 1e6 / seconds:.0f} MB/s; {passages} passages, {database.stat().st_size / passages:.0f} bytes each; "
        f"nothing new: {again * 1000:.0f} ms"
    )


def line(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "sessions"
        folder.mkdir()
        session = "5a5a5a5a-0000-4000-8000-000000000001"
        said = {"role": "user", "content": [{"type": "text", "text": "the spare key hangs behind the boiler"}]}
        entry = {"type": "message", "id": "00000001", "timestamp": "2026-01-01T00:00:00Z", "message": said}
        header = {"type": "session", "version": 3, "id": session, "timestamp": "2026-01-01T00:00:00Z"}
        with open(folder / f"{session}.jsonl", "w", encoding="utf-8") as file:
            file.write(json.dumps(header) + '\n{"type":"message","id":"0","message":{"role":"user","content":"')
            for _ in range(arguments.mb):
                file.write("x" * 1_000_000)
            file.write('"}}\n' + json.dumps(entry) + "\n")
        settings = Settings(db_path=Path(scratch) / "memory.db", transcripts_dir=folder, embedder="none")
        with Memory.open(settings) as memory:
            before = peak_mb()
            report = memory.sync()
            found = memory.search("spare key").recalled
        print(f"{report.as_json()}; the next line is found: {bool(found)}")
        print(f"peak memory grew by {peak_mb() - before:.0f} MB")


class Timed:
    """An embedder that adds up the time spent inside another one."""

    fixed = True
    endpoint = ""
    batch_limit: int | None = None

    def __init__(self, inner: Any) -> None:
        self.inner, self.name, self.seconds = inner, inner.name, 0.0

    @property
    def space(self) -> Space:
        space: Space = self.inner.space
        return space

    def embed(self, texts: Sequence[str], kind: Any = "document") -> Any:
        start = time.perf_counter()
        try:
            return self.inner.embed(texts, kind)
        finally:
            self.seconds += time.perf_counter() - start


def vectors(arguments: argparse.Namespace) -> None:
    from clawmark.embed.local import LocalEmbedder, available

    if not available():
        sys.exit("skipped: the local extra is not installed")
    sample = Path(__file__).parents[2] / "tests" / "fixtures" / "openclaw" / "sqlite"
    with tempfile.TemporaryDirectory() as scratch:
        settings = Settings(db_path=Path(scratch) / "memory.db", transcripts_dir=sample, embedder="none")
        with Memory.open(settings) as memory:
            memory.sync()
        embedder = Timed(LocalEmbedder(threads=1))
        embedder.embed(["warm"])
        embedder.seconds = 0.0
        with Memory.open(settings, embedder=embedder) as memory:
            start = time.perf_counter()
            report = memory.sync()
            seconds = time.perf_counter() - start
        print(
            f"{report.vectors} vectors in {seconds:.1f} s, {embedder.seconds / seconds:.1%} in the embedder (goal 90 %)"
        )


def search(arguments: argparse.Namespace) -> None:
    """Vectors are made up (unit, clustered); the words, refs, database and excerpts are real."""
    import numpy as np

    from clawmark.embed import Failure

    class Made:
        name, space = "made", Space("made", 384)
        fixed, endpoint = True, ""
        batch_limit: int | None = None

        def embed(self, texts: Sequence[str], kind: Any = "document") -> list[Any | Failure]:
            rows = np.stack([np.random.default_rng(abs(hash(t)) % 2**32).standard_normal(384) for t in texts])
            return list((rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32))

    sys.path.insert(0, str(shared() / "bench"))
    import gen_transcripts

    questions = [
        asked["question"]
        for path in sorted((shared() / "data" / "locomo").glob("*.json"))
        for asked in json.loads(path.read_text(encoding="utf-8"))["qa"]
    ]
    for size in arguments.sizes:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "sessions"
            folder.mkdir()
            distractors(folder, size, gen_transcripts.texts(20_000))
            settings = Settings(db_path=Path(scratch) / "memory.db", transcripts_dir=folder)
            with Memory.open(settings, embedder=Made()) as memory:
                memory.sync()
                asked = random.Random(1).sample(questions, 120)
                for question in asked:
                    memory.search(question)  # embeds, loads the matrix, warms the page cache
                taken = []
                for question in asked:
                    start = time.perf_counter()
                    memory.search(question)
                    taken.append((time.perf_counter() - start) * 1000)
                passages = memory.status().passages
        taken.sort()
        print(
            f"{passages:>7} passages: p50 {taken[len(taken) // 2]:.1f} ms, p99 {taken[int(len(taken) * 0.99)]:.1f} ms"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["scan", "index", "line", "vectors", "search"])
    parser.add_argument("--mb", type=int)
    parser.add_argument("--sizes", type=int, nargs="+", default=[3_000, 20_000, 100_000])
    arguments = parser.parse_args()
    arguments.mb = arguments.mb or (100 if arguments.what == "line" else 300)
    {"scan": scan, "index": index, "line": line, "vectors": vectors, "search": search}[arguments.what](arguments)


if __name__ == "__main__":
    main()
