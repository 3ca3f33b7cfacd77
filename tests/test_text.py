"""Text: normal forms, words, cuts and windows, for any text there is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest
from helpers import graphemes
from hypothesis import example, given
from hypothesis import strategies as st

from clawmark import text

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
JOINED = st.sampled_from(
    [FAMILY, "\U0001f1f8\U0001f1ea", "e\u0301", "\r\n", "\u0e01\u0e33", "\U0001f44d\U0001f3fd", "각", "\u0301", " ",
     "\n\n", ". ", "。", "word ", "失效链接", "1\ufe0f\u20e3", "x"]
)  # fmt: skip
TEXT = st.text(max_size=80) | st.lists(JOINED, max_size=60).map("".join)
LONG = st.lists(JOINED, min_size=1, max_size=40).flatmap(
    lambda parts: st.integers(1, 40).map(lambda n: "".join(parts) * n)
)


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Ends a loop that would not end."""

    def late(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still running after {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


# --- forms ------------------------------------------------------------------------------------------------------------


@given(TEXT)
@example("ﬁ İ ß ǰ ᾳ ﾌﾟ")
def test_normal_is_idempotent(said: str) -> None:
    once = text.normal(said)
    assert text.normal(once) == once


@given(TEXT)
def test_canonical_is_idempotent_and_keeps_the_words(said: str) -> None:
    once = text.canonical(said)
    assert text.canonical(once) == once
    assert text.words(once) == text.words(said)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("café", "cafe\u0301"),
        ("Straße", "STRASSE"),
        ("İzmir", "i\u0307zmir"),
        ("ﬁle", "file"),
        ("ﾌﾟﾘﾝﾀ", "プリンタ"),
        ("Ｆｕｌｌ", "full"),
        ("회의실", "\u1112\u116c\u110b\u1174\u1109\u1175\u11af"),
    ],
)
def test_forms_of_one_word_are_one_word(one: str, other: str) -> None:
    """E4."""
    assert text.words(one) == text.words(other)


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=50))
@example("\ud83d alone")
@example("\ud83d\ude00")
def test_without_surrogates_can_be_written_and_keeps_all_else(said: str) -> None:
    """F9."""
    clean = text.without_surrogates(said)
    assert clean.encode().decode() == clean
    assert len(clean) == len(said)
    assert all(a == b or (b == "\ufffd" and "\ud800" <= a <= "\udfff") for a, b in zip(said, clean, strict=True))


@given(TEXT)
def test_lexical_form_holds_no_control_character(said: str) -> None:
    assert not any(ord(char) < 32 and char not in "\t\n\r" for char in text.lexical(said))


def test_a_run_of_cjk_becomes_overlapping_pairs() -> None:
    assert text.words("第3步 重建idx-cache后12个") == ["第", "3", "步", "重建", "idx", "cache", "后", "12", "个"]
    assert text.words("失效链接") == ["失效", "效链", "链接"]


def test_content_words_of_a_question_are_what_it_asks_about() -> None:
    assert text.content_words("What did I say about the boiler in my cellar?") == ["say", "boiler", "cellar"]
    assert text.query_words("what was it that we were") != []


@given(st.lists(st.sampled_from([f"w{n}" for n in range(200)]), max_size=300))
def test_a_query_has_at_most_64_words_from_both_ends(said: list[str]) -> None:
    found = text.query_words(" ".join(said))
    assert len(found) <= 64
    if said:
        assert found[0] == said[0]
    assert set(found) <= set(said)


def test_length_in_letters_counts_cjk_as_five() -> None:
    assert text.length_in_letters("我对芝麻") == 20
    assert text.length_in_letters("four") == 4


@given(st.sets(st.text(max_size=3), max_size=8), st.sets(st.text(max_size=3), max_size=8))
def test_jaccard_is_symmetric_and_between_0_and_1(a: set[str], b: set[str]) -> None:
    assert 0 <= text.jaccard(a, b) == text.jaccard(b, a) <= 1
    assert text.jaccard(a, a) == (1 if a else 0)


# --- cuts -------------------------------------------------------------------------------------------------------------


@given(TEXT, st.integers(0, 200))
@example("a" + "\u0301" * 100, 50)
@example("\r\n" * 50, 33)
@example("\U0001f1f8\U0001f1ea" * 50, 71)
@example("\u0e01\u0e33\u0301", 2)  # a vowel sign that Unicode calls a letter
@example("\u0915\u094d\u0937\u093f", 3)  # two consonants joined to one
@example("\u1100\uac01\u0301", 2)  # a jamo and the syllable it belongs to
def test_a_boundary_is_a_border_between_visible_characters(said: str, at: int) -> None:
    """F10, told by a walk over the whole text."""
    found = text.boundary(said, at)
    assert found == max(border for border in graphemes(said) if border <= at)


@given(LONG, st.integers(1, 1200))
def test_a_cut_is_the_longest_head_that_ends_between_visible_characters(said: str, limit: int) -> None:
    """F10."""
    head = text.cut(said, limit)
    assert said.startswith(head)
    assert len(head) <= limit
    assert len(head) in graphemes(said)
    assert not [b for b in graphemes(said) if len(head) < b <= limit]


@pytest.mark.parametrize("limit", [400, 500, 2000])
@pytest.mark.parametrize("joined", [FAMILY, "e\u0301", "\U0001f44d\U0001f3fd", "\U0001f1f8\U0001f1ea"])
def test_what_lies_across_a_cut_is_left_out_whole(joined: str, limit: int) -> None:
    """F10."""
    said = "a" * (limit - 1) + joined + "b"
    assert text.cut(said, limit) == "a" * (limit - 1)


# --- parts ------------------------------------------------------------------------------------------------------------


def visible(said: str) -> str:
    return "".join(said.split())


@given(LONG, st.integers(60, 300))
def test_parts_respect_the_length_and_cover_every_character(said: str, length: int) -> None:
    parts = text.split(said, length, length // 8)
    assert all(len(part) <= length for part in parts)
    assert all(part in said for part in parts)
    position = 0
    whole = visible(said)
    for part in map(visible, parts):  # each begins no later than the one before it ended
        found = whole.rfind(part, 0, position + len(part))
        assert found >= 0
        position = max(position, found + len(part))
    assert position == len(whole)


@given(st.text(alphabet="ab \n.", max_size=400))
def test_a_text_that_fits_is_one_part(said: str) -> None:
    assert text.split(said) == [said.strip()]


@given(st.lists(st.sampled_from([FAMILY, "e\u0301", "x", "word ", "。", "각"]), min_size=30, max_size=300))
def test_parts_end_between_visible_characters(pieces: list[str]) -> None:
    said = "".join(pieces).strip()
    borders = graphemes(said)
    start = 0
    for part in text.split(said, 60, 8):
        start = said.index(part, max(0, start - 60))
        assert start in borders
        assert start + len(part) in borders
        start += len(part)


def test_a_visible_character_longer_than_a_part_is_split_all_the_same() -> None:
    with within(1):
        parts = text.split("a" + "\u0301" * 300, 200, 20)
    assert all(len(part) <= 200 for part in parts)


def test_parts_break_at_the_strongest_border() -> None:
    first = "One sentence. Another sentence here.\nA line of it."
    assert text.split(f"{first}\n\nThe second paragraph begins here and is long enough.", 70, 0)[0] == first


# --- windows ----------------------------------------------------------------------------------------------------------


@given(LONG, st.lists(st.sampled_from(["word", "x", "失效"]), max_size=3), st.integers(20, 400))
def test_a_window_is_one_line_of_at_most_its_limit(said: str, wanted: list[str], limit: int) -> None:
    window = text.best_window(said, wanted, limit)
    assert len(window) <= limit
    assert len(window.splitlines()) <= 1
    assert window.strip("…").strip() in text.one_line(said)


@given(
    st.lists(st.sampled_from(["The weather stays fine. ", "nothing to see ", "。", "x" * 50, "\n\n"]), max_size=150),
    st.lists(st.sampled_from(["So it goes on; ", "more of the same ", "y" * 30]), max_size=150),
)
def test_a_needle_in_a_long_text_is_in_its_window(before: list[str], after: list[str]) -> None:
    """R1."""
    said = f"{''.join(before)} the spare key hangs behind the boiler. {''.join(after)}"
    window = text.best_window(said, ["spare", "key", "boiler"], 400)
    assert len(window) <= 400
    assert "spare key hangs behind the boiler" in window


@given(st.integers(300, 500))
def test_a_window_is_never_cut_inside_a_visible_character(offset: int) -> None:
    """F10."""
    said = "a" * offset + FAMILY * 40 + "b" * 300
    window = text.best_window(said, ["nothing"], 400).strip("…")
    start = said.index(window)
    assert {start, start + len(window)} <= graphemes(said)
