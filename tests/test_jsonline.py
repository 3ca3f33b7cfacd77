"""Lines of JSON as hosts log them: strict parsing, whole text, times in any form."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark_sources.jsonline import Unreadable, milliseconds, parse, whole

NOON = 1_772_452_800_000


@pytest.mark.parametrize(
    "logged",
    [NOON, NOON / 1000, str(NOON), "2026-03-02T12:00:00Z", " 2026-03-02T12:00:00", "2026-03-02T13:00:00+01:00"],
)
def test_one_moment_in_every_form(logged: Any) -> None:
    assert milliseconds(logged) == NOON
    assert datetime.fromtimestamp(NOON / 1000, UTC).isoformat() == "2026-03-02T12:00:00+00:00"


@pytest.mark.parametrize(
    "logged",
    [0, -1, True, None, "", "yesterday", "٣", 10**400, -(10**400), float("nan"), float("inf"), [], {}, "9" * 5000],
)
def test_what_is_no_time_is_none(logged: Any) -> None:
    assert milliseconds(logged) is None


@given(st.one_of(st.integers(), st.floats(), st.text(), st.booleans(), st.none()))
def test_a_time_is_one_that_a_datetime_can_hold(logged: Any) -> None:
    ms = milliseconds(logged)
    assert ms is None or datetime.fromtimestamp(ms / 1000, UTC)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a":NaN}', "number_constant"),
        (b'{"a":1} x', "invalid_json"),
        (b"\xff", "invalid_utf8"),
        (b"[" * 100_000, "too_deep"),
        (b"1" * 5_000, "number_size"),
    ],
)
def test_what_is_no_line_says_why(line: bytes, reason: str) -> None:
    with pytest.raises(Unreadable) as unreadable:
        parse(line)
    assert unreadable.value.reason == reason


def test_half_characters_become_the_sign_for_what_is_unknown() -> None:
    assert whole("a\ud83d b") == "a\ufffd b"
    assert parse(b'\xef\xbb\xbf {"a": 1}\r') == {"a": 1}
