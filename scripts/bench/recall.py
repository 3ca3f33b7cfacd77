"""Turn-level recall on LoCoMo, through the same search that hosts use.

    recall.py [--embedder none|auto] [--pooled N]

One store per conversation; with --pooled all conversations share one store with N distractor messages. Needs the
benchmark folder (`CLAWMARK_SHARED` or `../shared` beside the project), which is not part of this project: the data set
is licensed for research only.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

from common import distractors, shared

from clawmark import Memory, Settings


def opened(root: Path, sessions: Path, embedder: Literal["none", "auto"]) -> Memory:
    settings = Settings(db_path=root / "memory.db", transcripts_dir=sessions, embedder=embedder)
    return Memory.open(settings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", choices=["none", "auto"], default="none")
    parser.add_argument("--pooled", type=int, metavar="N", help="one store for all, with N distractor messages")
    parser.add_argument("--conv", help="only these conversations, comma-separated")
    arguments = parser.parse_args()
    folder = shared()
    sys.path.insert(0, str(folder / "bench"))
    import locomo

    conversations = [
        c
        for c in locomo.load(str(folder / "data" / "locomo"))
        if not arguments.conv or c["id"] in arguments.conv.split(",")
    ]
    rows: list[Any] = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.pooled is None:
            for conversation in conversations:
                root = Path(scratch) / conversation["id"]
                refs = locomo.convert(conversation, str(root / "sessions"))
                with opened(root, root / "sessions", arguments.embedder) as memory:
                    memory.sync()
                    rows += locomo.evaluate(conversation, searcher(memory), refs)
        else:
            rows = pooled(locomo, conversations, Path(scratch), arguments)
    print(locomo.table(rows))
    print(f"embedder {arguments.embedder}, {time.monotonic() - started:.0f} s")


def searcher(memory: Memory) -> Any:
    return lambda query, limit: [found.ref for found in memory.search(query, limit=limit).recalled]


def pooled(locomo: Any, conversations: list[Any], scratch: Path, arguments: argparse.Namespace) -> list[Any]:
    """All conversations in one store. Entry ids repeat between them, so a ref of another conversation is no hit."""
    sys.path.insert(0, str(shared() / "bench"))
    import gen_transcripts

    sessions = scratch / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    index: dict[str, Any] = {}
    placed = []
    for conversation in conversations:
        refs = locomo.convert(conversation, str(sessions))
        listed = json.loads((sessions / "sessions.json").read_text(encoding="utf-8"))
        index |= listed
        placed.append((conversation, refs, {entry["sessionId"] for entry in listed.values()}))
    (sessions / "sessions.json").write_text(json.dumps(index), encoding="utf-8")
    talk = {locomo.turn_text(turn) for conversation in conversations for turn in conversation["turns"]}
    own = {turn["text"] for conversation in conversations for turn in conversation["turns"]}
    distractors(
        sessions, arguments.pooled, [t for t in gen_transcripts.texts(20_000) if t not in talk and t not in own]
    )
    rows: list[Any] = []
    with opened(scratch, sessions, arguments.embedder) as memory:
        memory.sync()
        search = searcher(memory)
        for conversation, refs, mine in placed:

            def within(query: str, limit: int, mine: set[str] = mine) -> list[str]:
                return [ref if ref.split("/")[0] in mine else "elsewhere" for ref in search(query, limit)]

            rows += locomo.evaluate(conversation, within, refs)
    return rows


if __name__ == "__main__":
    main()
