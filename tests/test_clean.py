"""Cleaning: what memory may keep of a message."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest
from helpers import START, excerpt, fact
from hypothesis import given
from hypothesis import strategies as st

from clawmark import block
from clawmark.clean import Dropped, Kept, Rules, clean
from clawmark.model import Message, Origin
from clawmark.profile import Profile

BLOCK = block.build([fact(), fact("user.city", "Porto")], [excerpt()], profile=Profile(), nonce="1a2b3c4d", zone=None)
QUESTION = "Which port does the staging database use?"


def message(said: str, origin: Origin = "owner", note: str = "") -> Message:
    return Message("s/1", "s", "s", "main", origin, said, START, note=note)


def kept(said: str, origin: Origin = "owner") -> str:
    result = clean(message(said, origin))
    assert isinstance(result, Kept), result
    return result.text


def test_a_question_below_an_injected_block_is_all_that_is_kept() -> None:
    """A1."""
    assert kept(f"{BLOCK.text}\n\n{QUESTION}") == QUESTION


def test_a_quoted_block_contributes_nothing() -> None:
    """A2."""
    said = kept(f"I was told:\n{BLOCK.text}\nso I used Helix mode.", "assistant")
    assert "Porto" not in said and "ferry" not in said
    assert said.startswith("I was told:") and said.endswith("so I used Helix mode.")


@pytest.mark.parametrize("note", ["cron", "heartbeat", "subagent", ""])
def test_the_hosts_own_runs_are_left_out_under_their_name(note: str) -> None:
    """A4, A5."""
    assert clean(message("Read HEARTBEAT.md if it exists", "host", note)) == Dropped(note or "host")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("[clawmark:skip] the gift is a kayak", "skip_mark"),
        ("the gift is a kayak [HISTORIAN:SKIP]", "skip_mark"),
        ("<private>the gift is a kayak</private>", "private"),
        ("<private>the gift is a kayak", "private"),
        ("", "blank"),
        (" \n\t ", "blank"),
        (BLOCK.text, "blank"),
    ],
)
def test_what_the_person_keeps_out_is_dropped_with_its_reason(said: str, reason: str) -> None:
    assert clean(message(said)) == Dropped(reason)


def test_a_private_part_is_cut_out_of_what_stays() -> None:
    assert kept("before <Private>the\ngift</private> after") == "before  after"


def test_a_ruled_out_path_drops_the_whole_message() -> None:
    rules = Rules(("/vault",))
    assert clean(message("see /vault/x for it"), rules) == Dropped("never_index_path")
    assert isinstance(clean(message("see /var/x for it"), rules), Kept)


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        ("/home/mira/vault", "/home/mira/vault"),
        ("/home/mira/vault/notes", "/home/mira/vault/"),
        ("/home/mira/vault/notes", "//home/./mira/vault"),
        ("C:\\Users\\mira\\Vault\\notes", "c:\\users\\mira\\vault"),
        ("C:\\Users\\mira\\Vault", "C:/Users/mira/Vault"),
        ("\\\\server\\Share\\vault", "\\\\server\\share"),
        ("/home/mira/vault/notes", "vault"),
        ("D:\\work\\Mira\\vault", "mira/vault"),
    ],
)
def test_what_was_said_below_a_ruled_out_path_is_dropped(folder: str, path: str) -> None:
    assert clean(replace(message(QUESTION), folder=folder), Rules((path,))) == Dropped("never_index_path")


@pytest.mark.parametrize(
    ("folder", "path"),
    [
        ("", "/home/mira/vault"),
        ("/home/mira/vaults", "/home/mira/vault"),
        ("/home/mira", "/home/mira/vault"),
        ("/srv/home/mira/vault", "/home/mira/vault"),
        ("/home/mira/Vault", "/home/mira/vault"),
        ("C:\\Users\\mira", "D:\\Users\\mira"),
        ("C:\\vaults\\x", "C:\\vault"),
        ("/home/mira/my vault", "vault"),
    ],
)
def test_a_folder_is_ruled_out_by_whole_names_alone(folder: str, path: str) -> None:
    assert isinstance(clean(replace(message(QUESTION), folder=folder), Rules((path,))), Kept)


@pytest.mark.parametrize(
    "reminder",
    [
        "<system-reminder>\nThe user opened a.py\n</system-reminder>\n{}",
        "{}\n<system-reminder>x</system-reminder><System-Reminder kind='a'>y</system-reminder>",
        "{}\n<system-reminder>\nit never closes",
    ],
)
def test_what_the_host_reminds_the_model_of_goes(reminder: str) -> None:
    assert kept(reminder.format(QUESTION)) == QUESTION


def test_nothing_but_a_reminder_is_nothing() -> None:
    assert clean(message("<system-reminder>be brief</system-reminder>")) == Dropped("blank")


@pytest.mark.parametrize(
    "envelope",
    [
        "[Mon 2026-03-02 09:15 GMT+1] {}",
        'Conversation info (untrusted metadata):\n```json\n{{"chat": 1}}\n```\n\n{}',
        "System: [2026-03-02 09:15] Node connected\n{}",
        "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>\nx\n<<<END_OPENCLAW_INTERNAL_CONTEXT>>>\n{}",
        "<relevant-memories>\n- x\n</relevant-memories>\n{}",
    ],
)
def test_what_the_host_put_around_the_words_goes(envelope: str) -> None:
    assert kept(envelope.format(QUESTION)) == QUESTION


def test_an_ordinary_sentence_stays_as_it_is() -> None:
    for said in (
        QUESTION,
        "[x] tick the box",
        "System requirements: none",
        "<b>bold</b> memory",
        "a system-reminder > x",
        "größer, 東京 👍",
    ):
        assert kept(said) == said


def test_a_secret_is_masked() -> None:
    """H1."""
    token = "glpat-" + secrets.token_urlsafe(15).replace("_", "x").replace("-", "y")
    result = clean(message(f"use {token} for it"))
    assert isinstance(result, Kept)
    assert token not in result.text and "[REDACTED:" in result.text


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=200))
def test_any_text_is_kept_writable_and_stripped_or_dropped_with_a_reason(said: str) -> None:
    """F9."""
    result = clean(message(said))
    if isinstance(result, Dropped):
        assert result.reason
    else:
        assert result.text == result.text.strip() != ""
        result.text.encode()


@given(st.text(max_size=200))
def test_cleaning_twice_keeps_what_cleaning_once_kept(said: str) -> None:
    first = clean(message(said))
    if isinstance(first, Kept):
        assert clean(message(first.text)) == first
