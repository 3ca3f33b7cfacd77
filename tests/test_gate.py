"""The gate: what a key and a value must be, and that a refusal never tells the value."""

from __future__ import annotations

import re
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.errors import Refused
from clawmark.facts import gate


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ("pref.editor", "pref.editor"),
        ("Pref.Editor", "pref.editor"),
        ("pref.x y", "pref.x_y"),
        ("pref.x-y", "pref.x_y"),
        ("  user.city ", "user.city"),
        ("project.a.b.c1", "project.a.b.c1"),
    ],
)
def test_a_key_has_one_form(raw: str, key: str) -> None:
    """C7."""
    assert gate.key(raw) == key
    assert gate.key(key) == key


@pytest.mark.parametrize(
    "raw", ["", "编辑器", "random_key", "pref", "pref.", "pref..a", "pref.a.", "pref.a_", "prefs.a", "pref.ä", "pref.a\nb:",
            "user.x/../y", "pref." + "a" * 100, "pref.\ud83d", "pref.a]"]
)  # fmt: skip
def test_other_keys_are_refused(raw: str) -> None:
    """C7."""
    with pytest.raises(Refused) as refused:
        gate.key(raw)
    assert refused.value.code == "KEY_FORMAT"
    assert refused.value.exit_code == 2


@given(st.text(max_size=120))
def test_a_key_is_well_formed_or_refused(raw: str) -> None:
    for prefix in ("", "pref."):
        try:
            key = gate.key(prefix + raw)
        except Refused:
            continue
        assert re.fullmatch(r"(user|pref|lesson|project|ref)(\.[a-z0-9_]+)+", key)
        assert len(key) <= 100


@pytest.mark.parametrize("raw", ["", "   ", "\n\t ", "\0\0", "\u200b\u200d", "\u202e"])
def test_a_blank_value_is_refused_with_its_reason(raw: str) -> None:
    """H7."""
    with pytest.raises(Refused, match="blank") as refused:
        gate.value(raw)
    assert refused.value.code == "VALUE_SIZE"


def test_a_value_has_at_most_2000_characters() -> None:
    assert gate.value("x" * 2000) == "x" * 2000
    with pytest.raises(Refused, match="2001") as refused:
        gate.value("x" * 2001)
    assert refused.value.code == "VALUE_SIZE"


@pytest.mark.parametrize(
    "raw",
    ["When I ask for JSON, respond only with JSON", "you are now on the Pro plan", "forget all about the old project"],
)
def test_a_sentence_that_looks_like_an_order_is_stored(raw: str) -> None:
    """H6."""
    assert gate.value(raw) == raw


def test_a_secret_is_refused_by_kind_and_never_named() -> None:
    """R14."""
    token = "ghp_" + secrets.token_hex(18)
    with pytest.raises(Refused) as refused:
        gate.value(f"my token is {token}")
    assert refused.value.code == "SECRET"
    assert token not in str(refused.value)


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=60))
def test_what_is_let_through_can_be_written(raw: str) -> None:
    """F9."""
    try:
        gate.value(raw).encode()
    except Refused:
        pass
