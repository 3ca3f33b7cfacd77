"""Speed and memory of reading, indexing, embedding and searching, each as a ratio or a rate within one run.

    speed.py scan    [--mb 300]             source alone against reading the same bytes from the page cache
    speed.py whole   [--mb 300]             against a reader that reads the whole file for every batch
    speed.py poll                           nothing new in 10,000 session files, against scandir and stat
    speed.py lcm                            a look for news in a Lossless Claw database of 300,000 rows
    speed.py index   [--mb 300]             messages a second until they are searchable by words, peak memory
    speed.py line    [--mb 100]             one line of that size: skipped, and the memory it cost
    speed.py vectors                        share of the vectors job that is spent in the embedder
    speed.py search  [--sizes 3000 20000 100000]   p50 and p99 of one search in a warm process, query already embedded

Data comes from the benchmark folder (`CLAWMARK_SHARED` or `../shared` beside the project); without it this says so.
"""

from __future__ import annotations

import argparse
import json
import os
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
    ((source,),) = select("transcripts", Folders(folder, folder))
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


def whole(arguments: argparse.Namespace) -> None:
    """Against the reader that everybody writes first: the whole file once a batch, every line parsed."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "sessions"
        generated(folder, arguments.mb)
        read_bytes(folder)
        start = time.perf_counter()
        ours = scan_messages(folder)
        middle = time.perf_counter()
        theirs = sum(whole_file_messages(path) for path in sorted(folder.glob("*.jsonl")))
        end = time.perf_counter()
        print(
            f"{arguments.mb} MB: {ours} messages in {middle - start:.1f} s; the other reader {theirs} in {end - middle:.1f} s"
        )
        print(f"ratio {(end - middle) / (middle - start):.1f} (goal 15)")


def whole_file_messages(path: Path) -> int:
    """Messages of a file, 500 a batch, each of which reads the file from its beginning."""
    count = passed = 0
    while True:
        taken = line_number = 0
        for line in path.read_text(encoding="utf-8").splitlines():
            line_number += 1
            if line_number <= passed:
                continue
            try:
                message = json.loads(line).get("message")
            except ValueError:
                continue
            content = message.get("content") if isinstance(message, dict) else None
            parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
            said = [part["text"] for part in parts if isinstance(part, dict) and part.get("type") == "text"]
            taken += isinstance(message, dict) and message.get("role") in ("user", "assistant") and any(said)
            if taken == 500:
                break
        count, passed = count + taken, line_number
        if taken < 500:
            return count


def poll(arguments: argparse.Namespace) -> None:
    """Nothing new in many session files, against `scandir` and `stat` of each of them."""
    for name, kind in (("transcripts", "sessions"), ("claude-code", "projects/one")):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / kind
            folder.mkdir(parents=True)
            for number in range(10_000):
                session = f"5a5a5a5a-0000-4000-8000-{number:012d}"
                (folder / f"{session}.jsonl").write_text(f'{{"type":"session","version":3,"id":"{session}"}}\n')
            ((source,),) = select(name, Folders(folder, folder, claude=Path(scratch)))
            assert len(list(source.streams())) == 10_000
            ratios = []
            for _ in range(7):
                start = time.perf_counter()
                with os.scandir(folder) as entries:
                    stats = [os.stat(entry.path) for entry in entries]
                middle = time.perf_counter()
                marks = {stream.name: stream.mark for stream in source.streams()}
                ratios.append((time.perf_counter() - middle) / (middle - start))
                assert len(stats) == len(marks)
            print(f"{name}: {statistics.median(ratios):.2f} of scandir and stat (goal 1.3)")


def lcm(arguments: argparse.Namespace) -> None:
    """Open, check and look for news in a database of 300,000 rows in 1,000 conversations."""
    import importlib.util

    place = Path(__file__).parents[1] / "fixtures" / "lcm.py"
    spec = importlib.util.spec_from_file_location("lcm_fixture", place)
    assert spec is not None and spec.loader is not None
    fixture = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = fixture
    spec.loader.exec_module(fixture)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "lcm.db"
        file = fixture.LcmFile(path)
        homes = [file.conversation(f"5e55-{number:06d}", f"agent:main:direct:{number}") for number in range(1_000)]
        with file.db:
            file.db.executemany(
                "INSERT INTO messages (conversation_id, seq, role, content, token_count) VALUES (?, ?, 'user', ?, 60)",
                ((home, seq, f"sentence {seq} of {home}. " * 10) for seq in range(300) for home in homes),
            )
        ((source,),) = select("lcm", Folders(None, Path(scratch), lcm=path))
        first = time.perf_counter()
        source.check()
        assert len(list(source.streams())) == 1_000
        first = (time.perf_counter() - first) * 1000
        taken = []
        for _ in range(30):
            start = time.perf_counter()
            source.check()
            count = len([stream.mark for stream in source.streams()])
            taken.append((time.perf_counter() - start) * 1000)
        print(f"{count} conversations: first {first:.1f} ms, then {statistics.median(taken):.1f} ms (goal 10)")


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
    parser.add_argument("what", choices=list(WHAT))
    parser.add_argument("--mb", type=int)
    parser.add_argument("--sizes", type=int, nargs="+", default=[3_000, 20_000, 100_000])
    arguments = parser.parse_args()
    arguments.mb = arguments.mb or (100 if arguments.what == "line" else 300)
    WHAT[arguments.what](arguments)


WHAT = {
    "scan": scan,
    "whole": whole,
    "poll": poll,
    "lcm": lcm,
    "index": index,
    "line": line,
    "vectors": vectors,
    "search": search,
}


if __name__ == "__main__":
    main()
