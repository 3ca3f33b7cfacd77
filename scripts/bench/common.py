"""What the benchmarks share: the benchmark folder, and other people's talk to search among."""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path


def shared() -> Path:
    folder = Path(os.environ.get("CLAWMARK_SHARED") or Path(__file__).parents[3] / "shared")
    if not (folder / "bench" / "locomo.py").exists():
        sys.exit(f"skipped: no benchmark folder at {folder} (set CLAWMARK_SHARED)")
    return folder


def distractors(sessions: Path, count: int, texts: list[str]) -> None:
    """`count` messages of other people's talk, 40 a session, spread over three years before and after."""
    rng = random.Random(7)
    for number in range(0, count, 40):
        name = hashlib.sha256(f"distractor/{number}".encode()).hexdigest()
        session = f"{name[:8]}-{name[8:12]}-4{name[13:16]}-8{name[17:20]}-{name[20:32]}"
        at = datetime(2022, 1, 1, tzinfo=UTC) + timedelta(minutes=rng.randrange(3 * 365 * 1440))
        lines = [{"type": "session", "version": 3, "id": session, "timestamp": at.isoformat(), "cwd": "/home/user"}]
        for turn in range(min(40, count - number)):
            at += timedelta(seconds=45)
            lines.append(
                {
                    "type": "message",
                    "id": f"e{number + turn:07x}",
                    "parentId": None,
                    "timestamp": at.isoformat(),
                    "message": {
                        "role": "assistant" if turn % 2 else "user",
                        "content": [{"type": "text", "text": rng.choice(texts)}],
                        "timestamp": int(at.timestamp() * 1000),
                    },
                }
            )
        body = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        (sessions / f"{session}.jsonl").write_text(body, encoding="utf-8")


def chat(count: int, length: int) -> list[str]:
    """`count` different messages of people's talk, `length` characters on average."""
    rng = random.Random(3)
    said = [
        turn["text"]
        for path in sorted((shared() / "data" / "locomo").glob("*.json"))
        for session in json.loads(path.read_text(encoding="utf-8")).values()
        if isinstance(session, list)
        for turn in session
        if isinstance(turn, dict) and turn.get("text")
    ]
    texts: list[str] = []
    while len(texts) < count:
        text, wanted = rng.choice(said), rng.randint(length // 2, length + length // 2)
        while len(text) < wanted:
            text += " " + rng.choice(said)
        texts.append(text[:wanted])
    return texts
