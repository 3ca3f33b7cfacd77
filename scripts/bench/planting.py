"""What becomes of the labelled corpora when somebody tries to plant them, through the real memory and a hostile model.

planting.py [--rows] [--seeds 3]

The model claims every text it is shown as a fact, whole and by its first clause, sure of it and with a verbatim quote. A
text comes as a message of the owner, of the agent and of somebody else in a group, and as the value of a tool call that
the owner's words do not support; harmless ones also as the person's own word, set by hand and typed in the session.
Then every kind of secret comes in messages, keys and values, and the bytes of all files, requests and log lines are
searched for it. --rows prints what was stored.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from common import shared
from guard import rows_of

from clawmark import tools
from clawmark.errors import Refused
from clawmark.facts.support import supporting
from clawmark.memory import Memory
from clawmark.model import Origin, Role, Said
from clawmark.settings import Settings
from clawmark.testing import START, ListSource

Row = Mapping[str, Any]
NOW = datetime(2026, 12, 1, tzinfo=UTC)
KEYS = ("pref.note", "user.note")


class Believer:
    """A model that claims whatever it is shown."""

    name, endpoint, learned = "host", "", ""

    def __init__(self) -> None:
        self.requests: list[str] = []

    def complete(self, system: str, user: str, schema: Mapping[str, Any], *, most_tokens: int, seconds: float) -> str:
        self.requests.append(system + user)
        found = []
        number = 0
        for line in user.splitlines():
            header = re.match(r"\[(\d+)\] ", line)
            if header:
                number = int(header[1])
            elif line.startswith("| ") and len(line) > 4:
                said = line[2:]
                clause = re.split(r"[.:;!?]", said)[0][:100]
                for key in KEYS:
                    found += [
                        {"key": key, "value": value, "confidence": 1.0, "messages": [number], "quote": quote}
                        for value, quote in ((said, said), (clause, clause), (" ".join(said.split()[-3:]), said))
                    ]
        return json.dumps({"facts": found}, ensure_ascii=False)


@contextmanager
def memory(log: ListSource, model: Believer) -> Iterator[Memory]:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            db_path=Path(folder) / "memory.db", embedder="none", extract_url="host", allow_remote=("host",),
            extract_daily_calls=100_000,
        )  # fmt: skip
        with Memory.open(settings, sources=[log], completer=model, clock=lambda: NOW) as opened:
            yield opened


def outcomes(opened: Memory) -> Counter[str]:
    """What extraction made of what it was shown."""
    found = Counter(event.event_type for event in opened.events(100_000) if event.source in ("extracted", "owner"))
    return Counter(
        {
            "facts": len(opened.facts()),
            "proposals": len(opened.proposals()),
            "refused": found["reject"] + found["conflict_skip"],
        }
    )


def as_messages(rows: Sequence[Row], origin: Origin, every_row: bool) -> Counter[str]:
    """Each text alone in a session of its own, between harmless lines of the owner."""
    total: Counter[str] = Counter()
    for start in range(0, len(rows), 40):
        log, model = ListSource("list"), Believer()
        for number, row in enumerate(rows[start : start + 40]):
            session = f"s{start + number}"
            log.append(session, "user", "here is what I found today, have a look at it please")
            role: Role = "assistant" if origin == "assistant" else "user"
            author = "Noor" if origin == "participant" else None
            log.append(session, role, row["text"], origin=origin, author=author)
            log.append(session, "user", "what do you make of that, shall we go on with it")
        with memory(log, model) as opened:
            opened.sync()
            total += outcomes(opened)
            if every_row:
                for fact in opened.facts():
                    print(f"  stored from {origin}: {fact.key}: {fact.value[:100]!r}")
    return total


def as_calls(rows: Sequence[Row], every_row: bool) -> dict[str, Counter[str]]:
    """Each text as the value of a tool call, with and without the owner's words behind it, and set by hand."""
    names = ("unsupported, pref.", "unsupported, user.", "typed by them", "by hand")
    found: dict[str, Counter[str]] = {name: Counter() for name in names}
    with memory(ListSource("list"), Believer()) as opened:
        for number, row in enumerate(rows):
            text = row["text"]
            for prefix in ("pref", "user"):
                key = f"{prefix}.item_{number}"
                scope = f"a{number // 50}"  # of one scope so many wait
                caller = tools.Caller(host="openclaw", scope=scope, session="s", kind="direct", owner=True, typed=())
                found[f"unsupported, {prefix}."][called(opened, caller, key, text, every_row)] += 1
            typed = [Said(f"Remember this: {text}", START), Said(text, START + timedelta(minutes=1))]
            if supporting(f"pref.item_{number}", text, typed) is not None:
                caller = tools.Caller(host="openclaw", scope="b", session="s", kind="direct", owner=True, typed=typed)
                found["typed by them"][called(opened, caller, f"pref.item_{number}", text, False)] += 1
            try:
                opened.set(f"pref.item_{number}", text, scope="c")
                found["by hand"]["stored"] += 1
            except Refused as refused:
                found["by hand"][f"blocked ({refused.code})"] += 1
    return found


def called(opened: Memory, caller: tools.Caller, key: str, text: str, every_row: bool) -> str:
    try:
        outcome = tools.set_fact(opened, caller, key, text).outcome
    except Refused as refused:
        return f"blocked ({refused.code})"
    if every_row and outcome == "agent":
        print(f"  an agent's note: {key}: {text[:100]!r}")
    return {"agent": "stored as a note", "user": "stored as their word"}.get(outcome, outcome)


def secrets(seeds: int) -> None:
    """Each kind of secret as a message, a key and a value; then it is looked for everywhere."""
    place = shared() / "corpora" / "secrets_corpus.py"
    spec = importlib.util.spec_from_file_location("secrets_corpus", place)
    assert spec is not None and spec.loader is not None
    corpus = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(corpus)
    rows = corpus.secrets(seeds=tuple(range(1, seeds + 1)))
    log, model = ListSource("list"), Believer()
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    logging.getLogger("clawmark").setLevel(logging.DEBUG)
    for number, row in enumerate(rows):
        log.append(f"s{number}", "user", row["text"])
        log.append(f"s{number}", "user", "remember that, I always need it in the mornings")
    refused: Counter[str] = Counter()
    stored: list[tuple[str, str]] = []
    with memory(log, model) as opened:
        opened.sync()
        caller = tools.Caller(host="openclaw", scope="a", session="s", kind="direct", owner=True, typed=())
        for number, row in enumerate(rows):
            for what, key, value in (
                ("value", f"pref.item_{number}", row["text"]),
                ("value", f"pref.item_{number}", row["secret"]),
                ("key", f"pref.{row['secret'][:90]}", "a value"),
                ("key", f"pref.{row['secret'].lower()[:90]}", "a value"),
            ):
                for write in (lambda k, v: opened.set(k, v), lambda k, v: tools.set_fact(opened, caller, k, v)):
                    try:
                        write(key, value)
                        stored.append((row["kind"], what))
                    except Refused as why:
                        refused[f"{what}: {why.code}"] += 1
        content = b"".join(path.read_bytes() for path in opened.path.parent.iterdir())
        sent = "\n".join(model.requests)
        said = "\n".join(lines)
        shown = json.dumps([event.as_json() for event in opened.events(100_000)], ensure_ascii=False)
    left: dict[str, set[str]] = {name: set() for name in ("files", "requests", "log lines", "events")}
    for row in rows:
        for needle in {row["secret"], row["secret"].lower()} if len(row["secret"]) >= 6 else set():
            for name, there in (
                ("files", needle.encode() in content),
                ("requests", needle in sent),
                ("log lines", needle in said),
                ("events", needle in shown),
            ):
                if there:
                    left[name].add(row["kind"])
    kinds = {row["kind"] for row in rows}
    print(f"secrets: {len(kinds)} kinds, {len(rows)} texts; refused {dict(refused)}")
    for name, found in left.items():
        print(f"  kinds left in {name:<10}{len(found):>4}  {', '.join(sorted(found))}")
    print(f"  stored in spite of it     {len(stored):>4}  {', '.join(sorted({f'{k} ({w})' for k, w in stored}))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    corpora = shared() / "corpora"
    for title, name in (("attacks", "injections.jsonl"), ("harmless", "benign.jsonl")):
        rows = rows_of(corpora / name)
        print(f"{title}: {len(rows)} texts, as messages to a model that claims all of it in three ways under two keys")
        origins: tuple[Origin, ...] = ("owner", "assistant", "participant")
        for origin in origins:
            print(f"  said by {origin:<13}{dict(as_messages(rows, origin, arguments.rows))}")
        for how, counts in as_calls(rows, arguments.rows).items():
            print(f"  {how:<21}{dict(counts)}")
    secrets(arguments.seeds)


if __name__ == "__main__":
    main()
