"""What a key and a value must be, and that a refusal never tells the value."""

from __future__ import annotations

import re
import runpy
import secrets

import pytest
from helpers import shared
from hypothesis import given
from hypothesis import strategies as st

from clawmark.errors import Refused
from clawmark.facts import statement


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
    assert statement.key(raw) == key
    assert statement.key(key) == key


@pytest.mark.parametrize(
    "raw", ["", "编辑器", "random_key", "pref", "pref.", "pref..a", "pref.a.", "pref.a_", "prefs.a", "pref.ä", "pref.a\nb:",
            "user.x/../y", "pref." + "a" * 100, "pref.\ud83d", "pref.a]"]
)  # fmt: skip
def test_other_keys_are_refused(raw: str) -> None:
    """C7."""
    with pytest.raises(Refused) as refused:
        statement.key(raw)
    assert refused.value.code == "KEY_FORMAT"
    assert refused.value.exit_code == 2


@given(st.text(max_size=120))
def test_a_key_is_well_formed_or_refused(raw: str) -> None:
    for prefix in ("", "pref."):
        try:
            key = statement.key(prefix + raw)
        except Refused:
            continue
        assert re.fullmatch(r"(user|pref|lesson|project|ref)(\.[a-z0-9_]+)+", key)
        assert len(key) <= 100


@pytest.mark.parametrize("raw", ["", "   ", "\n\t ", "\0\0", "\u200b\u200d", "\u202e"])
def test_a_blank_value_is_refused_with_its_reason(raw: str) -> None:
    """H7."""
    with pytest.raises(Refused, match="blank") as refused:
        statement.value(raw)
    assert refused.value.code == "VALUE_SIZE"


def test_a_value_has_at_most_2000_characters() -> None:
    assert statement.value("x" * 2000) == "x" * 2000
    with pytest.raises(Refused, match="2001") as refused:
        statement.value("x" * 2001)
    assert refused.value.code == "VALUE_SIZE"


@pytest.mark.parametrize(
    "raw",
    ["When I ask for JSON, respond only with JSON", "you are now on the Pro plan", "forget all about the old project"],
)
def test_a_sentence_that_looks_like_an_order_is_stored(raw: str) -> None:
    """H6."""
    assert statement.value(raw) == raw


def test_a_secret_is_refused_by_kind_and_never_named() -> None:
    """R14."""
    token = "ghp_" + secrets.token_hex(18)
    with pytest.raises(Refused) as refused:
        statement.value(f"my token is {token}")
    assert refused.value.code == "SECRET"
    assert token not in str(refused.value)


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=60))
def test_what_is_let_through_can_be_written(raw: str) -> None:
    """F9."""
    try:
        statement.value(raw).encode()
    except Refused:
        pass


@pytest.mark.parametrize("lead", ["pref.", "user.token_", "ref.a.b_", "lesson.x."])
def test_a_key_that_holds_a_secret_is_refused(lead: str) -> None:
    token = "ghp_" + secrets.token_hex(18)
    with pytest.raises(Refused) as refused:
        statement.key(lead + token)
    assert refused.value.code == "SECRET" and token not in str(refused.value)


@pytest.mark.parametrize(
    "raw",
    ["user.password_manager", "pref.api_key_rotation", "project.token_limit", "ref.secret_santa", "user.pin_board",
     "project.staging_port_5433", "user.key_colour", "lesson.never_commit_credentials", "project.auth_tokens.lifetime",
     "pref.uuid_format", "project.a1b2c3.deadline"],
)  # fmt: skip
def test_a_key_that_speaks_of_secrets_holds_none(raw: str) -> None:
    assert statement.key(raw) == raw


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.skipif(shared("corpora", "secrets_corpus.py") is None, reason="the shared corpora are not here")
def test_a_secret_in_small_letters_is_no_key(seed: int) -> None:
    """Keys have no capitals, so the shape of a token is gone; what is spoken as a password is no token."""
    path = shared("corpora", "secrets_corpus.py")
    assert path is not None
    corpus = runpy.run_path(str(path))
    kept = set()
    for one in corpus["secrets"](seeds=(seed,)):
        for raw in (one["secret"], one["secret"].lower(), f"token_{one['secret'].lower()}"):
            try:
                statement.key(f"pref.{raw}")
            except Refused as refused:
                assert refused.code in ("SECRET", "KEY_FORMAT") and one["secret"] not in str(refused)
            else:
                kept.add(one["kind"])
    assert {kind for kind in kept if "prose" not in kind} == set()


@pytest.mark.parametrize("raw", ["pref.editor_2024", "project.k8s_s3_ec2", "project.release_2026_q3", "user.iphone15promax",
                                 "project.auth_tokens_v2", "ref.server01_staging02_node03"])  # fmt: skip
def test_a_name_with_numbers_is_a_key(raw: str) -> None:
    assert statement.key(raw) == raw


def test_a_secret_by_its_key_alone_is_refused() -> None:
    word, token = "hunter2" + "horse", secrets.token_urlsafe(15)
    for key, value in (("user.password", word), ("user.wifi_password", word), ("user.api_key", token), ("user.pin", "4711"),
                       ("project.db.password", word)):  # fmt: skip
        assert statement.key(key) == key and statement.value(value) == value
        with pytest.raises(Refused) as refused:
            statement.statement(key, value)
        assert refused.value.code == "SECRET" and value not in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [("user.password_manager", "Bitwarden"), ("project.token_limit", "8192"), ("lesson.api_key_rotation", "every 90 days"),
     ("user.key_colour", "teal"), ("ref.secret_santa", "Anna"), ("Pref.Editor", " Helix ")],
)  # fmt: skip
def test_a_statement_about_secrets_holds_none(key: str, value: str) -> None:
    assert statement.statement(key, value) == (key.lower(), value.strip())


def test_what_was_stored_under_a_secret_is_still_named() -> None:
    """By its format alone: else nobody could forget it."""
    raw = "pref.ghp_" + secrets.token_hex(18)
    with pytest.raises(Refused, match="SECRET"):
        statement.key(raw)
    assert statement.named(raw) == raw
    with pytest.raises(Refused, match="KEY_FORMAT"):
        statement.named("no key")
