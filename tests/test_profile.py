"""Profile: what each host can take, and when one of its turns deserves recall."""

from __future__ import annotations

from datetime import timedelta

import pytest
from helpers import START

from clawmark import profile
from clawmark.profile import PROFILES, Gate, closed

GATE = Gate(60, 60.0, 5)
LONG = "which of the two kilns did we fire the blue bowls in last spring?"


@pytest.mark.parametrize(
    "prompt", ["hi", "Hi!", "ok", "thanks", "👍", "...", "", "   ", "谢谢", "danke", "Good morning."]
)
def test_trivial_prompts_ask_nothing(prompt: str) -> None:
    assert profile.is_trivial(prompt)


@pytest.mark.parametrize(
    "prompt", ["ok but which port?", "hi, where is the key?", "谢谢，钥匙在哪里", "no sugar?", "key?"]
)
def test_other_prompts_ask_something(prompt: str) -> None:
    assert not profile.is_trivial(prompt)


@pytest.mark.parametrize(
    ("prompt", "recalls", "seconds", "why"),
    [
        (LONG, 0, None, ""),
        (LONG[:60], 0, None, ""),
        (LONG[:59], 0, None, "short_prompt"),
        ("釉" * 30, 0, None, ""),
        ("釉" * 29, 0, None, "short_prompt"),
        (LONG, 1, 59.9, "cooldown"),
        (LONG, 1, 60.0, ""),
        (LONG, 1, -1.0, ""),
        (LONG, 4, 61.0, ""),
        (LONG, 5, 61.0, "budget"),
        (LONG[:10], 9, 1.0, "short_prompt"),
    ],
)
def test_a_gate_closes_for_one_reason_at_a_time(prompt: str, recalls: int, seconds: float | None, why: str) -> None:
    """A clock that was set back closes nothing."""
    last = None if seconds is None else START - timedelta(seconds=seconds)
    assert closed(GATE, prompt, recalls, last, START) == why


def test_a_host_that_keeps_blocks_has_a_gate_and_room_for_its_own_cut() -> None:
    for host, known in PROFILES.items():
        assert known.keeps_block == (known.gate is not None), host
        assert known.facts < known.total
    assert PROFILES["claude-code"].total <= 9_500  # the host cuts at 10,000
