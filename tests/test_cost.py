"""Cost: hostile repetition in a log costs time in proportion to its length, never its square."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from helpers import RATIO, growth

from clawmark import clean
from clawmark.guard import markers
from clawmark.text import best_window, cut, split

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
