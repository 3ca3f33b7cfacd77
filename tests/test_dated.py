"""Dates in words: the day of the message decides, and what may be two days is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from helpers import Clock, Log, open_memory
from hypothesis import given
from hypothesis import strategies as st

from clawmark.facts.dated import as_said, days_in, local
from clawmark.text import normal

SATURDAY = date(2026, 3, 14)


def test_a_day_is_that_of_the_place_where_it_was_said() -> None:
    """B2: a log in UTC says nothing of the place, so the person's zone counts."""
    there, home = timezone(timedelta(hours=-5)), ZoneInfo("Asia/Shanghai")
    at = datetime(2026, 3, 14, 23, 30, tzinfo=there)
    assert [local(at, zone).date() for zone in (None, home)] == [SATURDAY, SATURDAY]
    assert local(at.astimezone(UTC), home).isoformat() == "2026-03-15T12:30:00+08:00"
    assert local(at.astimezone(UTC), None).isoformat() == "2026-03-15T04:30:00+00:00"


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("my train leaves tomorrow", "2026-03-15"),
        ("the day after tomorrow", "2026-03-16"),
        ("übermorgen", "2026-03-16"),
        ("pasado mañana", "2026-03-16"),
        ("gestern", "2026-03-13"),
        ("in 3 days", "2026-03-17"),
        ("in zwei Wochen", "2026-03-28"),
        ("через 3 дня", "2026-03-17"),
        ("3일 뒤", "2026-03-17"),
        ("3天后", "2026-03-17"),
        ("on Friday", "2026-03-20"),
        ("next Friday", "2026-03-20"),
        ("am Montag", "2026-03-16"),
        ("le lundi", "2026-03-16"),
        ("周一", "2026-03-16"),
        ("来週の月曜日", "2026-03-16"),
        ("15 March 2026", "2026-03-15"),
        ("March 15th, 2026", "2026-03-15"),
        ("15.3.2026", "2026-03-15"),
        ("el 15 de marzo de 2026", "2026-03-15"),
        ("2026年3月15日", "2026-03-15"),
    ],
)
def test_a_day_in_words_is_counted_from_the_day_it_was_said(text: str, day: str) -> None:
    assert [meant.isoformat() for _, meant in days_in(normal(text), SATURDAY)] == [day]


@pytest.mark.parametrize(
    "text",
    ["on Saturday", "last Friday", "every Friday", "I met him on Friday last week", "3/4/2026", "31.2.2026", "guten Morgen",
     "por la mañana", "next week", "每周一", "since Monday"],
)  # fmt: skip
def test_what_may_be_another_day_is_none(text: str) -> None:
    assert [day for _, day in days_in(normal(text), SATURDAY)] == []


@pytest.mark.parametrize("said_on", range(7))
def test_next_is_taken_only_where_both_readings_are_one_day(said_on: int) -> None:
    """On a Wednesday next Friday is the one of this week or of the next."""
    day = date(2026, 3, 9) + timedelta(days=said_on)
    meant = [one for _, one in days_in("next friday", day)]
    assert meant == ([date(2026, 3, 20)] if said_on > 4 else [])


def test_a_date_is_taken_back_to_the_words_that_mean_it() -> None:
    quote = "my train leaves tomorrow"
    assert as_said("leaves 2026-03-15", quote, SATURDAY) == "leaves tomorrow"
    assert as_said("leaves 2026-03-16", quote, SATURDAY) is None
    assert as_said("leaves at nine", quote, SATURDAY) == "leaves at nine"
    assert as_said("2026-03-16", "it is on 2026-03-16", SATURDAY) == "2026-03-16"


@given(st.dates(), st.integers(-400, 400))
def test_only_the_day_after_is_tomorrow(day: date, off: int) -> None:
    try:
        claimed = (day + timedelta(days=off)).isoformat()
    except OverflowError:
        return
    assert as_said(claimed, "it ends tomorrow", day) == ("tomorrow" if off == 1 else None)


@given(st.text(max_size=80), st.text(max_size=80), st.dates())
def test_no_text_makes_it_fail(value: str, quote: str, day: date) -> None:
    as_said(f"{value} 2026-03-15", quote, day)
    list(days_in(normal(quote), day))


@dataclass
class Reader:
    """A host's model that says when the train leaves, and keeps what it was shown."""

    day: str
    shown: str = ""
    name: str = "host"
    endpoint: str = ""
    learned: str = ""

    def complete(self, system: str, user: str, schema: Mapping[str, Any], *, most_tokens: int, seconds: float) -> str:
        self.shown = user
        claim = {"messages": [1], "quote": TRAIN, "key": "user.train", "value": self.day, "confidence": 0.95}
        return json.dumps({"facts": [claim]})


TRAIN = "my train leaves tomorrow"


@pytest.mark.parametrize(("day", "stored"), [("2026-03-15", True), ("2026-03-16", False)])
def test_the_offset_of_a_log_goes_all_the_way(db_path: Path, log: Log, clock: Clock, day: str, stored: bool) -> None:
    """B2: into the prompt, and into what is believed."""
    at = datetime.fromisoformat("2026-03-14T23:30:00-05:00")
    log.say(TRAIN, at=at)
    clock.now = at.astimezone(UTC) + timedelta(days=1)
    memory = open_memory(
        db_path, log, clock=clock, extract_url="host", allow_remote=("host",), timezone="Asia/Shanghai"
    )
    memory._host_model = reader = Reader(day)
    memory.sync()
    assert "[1] Sat 2026-03-14 23:30 -05:00, " in reader.shown
    assert [(fact.value, fact.observed_at.isoformat()) for fact in memory.facts()] == (
        [(day, "2026-03-15T04:30:00+00:00")] if stored else []
    )
