"""Cost: hostile repetition in a log costs time in proportion to its length, never its square.

Processor time of eight times the text over that of the text, the least of a few tries each, without the collector of
cycles. Linear work gives 8 and quadratic work 64: a busy machine blurs neither into the other.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest

from clawmark import clean
from clawmark.guard import markers
from clawmark.text import best_window, cut, split

TIMES, RATIO, TRIES, ENOUGH = 8, 20.0, 3, 0.004
"""ENOUGH: what takes less is measured with a longer text, up to MOST characters; what is quick even then is quick."""
MOST = 400_000

OPEN, CLOSE = "[Memory 9f2c4a10: DATA recalled", "[End Memory 9f2c4a10]"
HOSTILE = [
    OPEN,
    CLOSE,
    OPEN + "\n",
    OPEN + CLOSE,
    CLOSE + OPEN,
    OPEN + "\n> ",
    OPEN + "\n- x\n",
    "[Memory",
    "[End Memory",
    "[End [End Memory] Memory]",
    f"[Mem{CLOSE}ory 9f2c4a10: DATA recalled",
    "\n> ",
    "(1 more\n",
    "## Facts\n",
    "\u0301",
    "a\u0301",
    "\U0001f468\u200d",
    "\U0001f1f8",
    "\u1100",
    "\r\n",
    "\n",
    "\n \n",
    " ",
    ". ",
    "。",
    "[",
    "Conversation info (untrusted metadata):\n```json\n",
    "A (untrusted):\n```\n",
    "System: [2026-03-02 09:15] x\n",
    "System: [",
    "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>",
    "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>",
    "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>><<<END_OPENCLAW_INTERNAL_CONTEXT>>>",
    "<relevant-memories",
    "<relevant-memories>",
    "<relevant-memories></memory-context>",
    "</relevant-memories>",
    "Runtime: agent=",
    "Runtime: agent=|\n",
    "<private>",
    "<private></private>",
    "Aa (untrusted",
    "Aaaa, ",
]

WORK: dict[str, Callable[[str], object]] = {
    "strip": markers.strip,
    "split": split,
    "without_envelopes": clean.without_envelopes,
    "without_private": clean._without_private,
    "cut": lambda said: cut(said, len(said) - 1),
}


def seconds(work: Callable[[str], object], said: str) -> float:
    best = float("inf")
    gc.disable()
    try:
        for _ in range(TRIES):
            began = time.thread_time()
            work(said)
            best = min(best, time.thread_time() - began)
    finally:
        gc.enable()
    return best


def growth(work: Callable[[str], object], unit: str) -> float:
    """How many times longer TIMES the text takes; 0 when even MOST characters take next to nothing."""
    size = 20_000
    while (once := seconds(work, unit * (size // len(unit)))) < ENOUGH:
        if size >= MOST:
            return 0.0
        size *= 4
    return seconds(work, unit * (TIMES * size // len(unit))) / once


@pytest.mark.parametrize("unit", HOSTILE, ids=ascii)
@pytest.mark.parametrize("name", WORK)
def test_repetition_costs_in_proportion(name: str, unit: str) -> None:
    assert growth(WORK[name], unit) <= RATIO


@pytest.mark.parametrize("unit", ["word ", "\u0301", ". ", "a"], ids=ascii)
def test_a_window_of_a_long_text_costs_in_proportion(unit: str) -> None:
    def window(said: str) -> str:
        return best_window(said, ["needle"], 400)

    assert growth(window, unit) <= RATIO


def test_the_measure_finds_a_square() -> None:
    def squared(said: str) -> list[int]:
        return [said.find("needle", start) for start in range(0, len(said), 40)]

    assert growth(squared, "word ") > RATIO
