"""How well it is told what the owner typed: false yes and misses of the labelled pairs, by category.

support.py [FILE ...]    JSON lines as in tests/fixtures/support.jsonl, the default with its further sets
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from clawmark.facts.support import asks_to_forget, supporting
from clawmark.model import Said

FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures"
NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


def decided(pair: dict[str, Any]) -> bool:
    """What is decided of one pair; its messages were typed a minute apart, the newest a minute ago."""
    count = len(pair["said"])
    said = [Said(text, NOW - timedelta(minutes=count - place)) for place, text in enumerate(pair["said"])]
    call = pair["call"]
    if call["tool"] == "set":
        return supporting(call["key"], call["value"], said) is not None
    return asks_to_forget(call["key"], call["value"], said, NOW) is not None


def report(path: Path) -> None:
    pairs = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    start = time.perf_counter()
    answers = [decided(pair) for pair in pairs]
    each = (time.perf_counter() - start) / len(pairs) * 1e6
    total, right, false, missed = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for pair, answer in zip(pairs, answers, strict=True):
        category = pair["category"]
        total[category] += 1
        right[category] += pair["supported"]
        false[category] += answer and not pair["supported"]
        missed[category] += pair["supported"] and not answer
        if answer != pair["supported"]:
            print(f"  {'false' if answer else 'missed'}  {pair['id']}")
    print(f"{path.name}: {len(pairs)} pairs, {right.total()} supported, {each:.0f} us each")
    print(f"  {'category':<18}{'pairs':>6}{'supported':>11}{'false':>7}{'missed':>8}")
    for category in total:
        print(f"  {category:<18}{total[category]:>6}{right[category]:>11}{false[category]:>7}{missed[category]:>8}")
    print(
        f"  {'all':<18}{len(pairs):>6}{right.total():>11}{false.total():>7}{missed.total():>8}"
        f"   missed {missed.total() / max(1, right.total()):.1%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=sorted(FIXTURES.glob("support*.jsonl")))
    for path in parser.parse_args().files:
        report(path)


if __name__ == "__main__":
    main()
