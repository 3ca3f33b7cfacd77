"""Laws of clawmark.guard.secrets. Secrets are put together at run time, so that no scanner finds one in this file."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import string
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from helpers import RATIO, growth, seconds
from hypothesis import given, settings
from hypothesis import strategies as st

from clawmark.guard import secrets
from clawmark.guard.secrets import RULES, Secret, _known_words, find, mask

ALNUM = string.ascii_letters + string.digits
URL = ALNUM + "-_"
B64 = ALNUM + "+/"
HEX = "0123456789abcdef"
WORDS = "abandon ability able about above absent absorb abstract absurd abuse access accident"


def rnd(alphabet: str, n: int, seed: int = 1) -> str:
    """n characters, always with a digit and both cases where the alphabet has them."""
    r = random.Random(f"{seed}:{n}:{alphabet}")
    while True:
        out = "".join(r.choice(alphabet) for _ in range(n))
        if all(
            any(c in kind for c in out) or not set(kind) & set(alphabet)
            for kind in (string.digits, string.ascii_lowercase)
        ):
            return out


def shared(name: str) -> Path:
    root = Path(os.environ.get("CLAWMARK_SHARED") or Path(__file__).resolve().parent.parent.parent / "shared")
    path = root / "corpora" / name
    if not path.is_file():
        pytest.skip(f"shared corpora not found: {path} (set CLAWMARK_SHARED)")
    return path


@pytest.fixture(scope="module")
def corpus() -> ModuleType:
    spec = importlib.util.spec_from_file_location("secrets_corpus", shared("secrets_corpus.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["secrets_corpus"] = module
    spec.loader.exec_module(module)
    return module


def benign() -> list[str]:
    with shared("benign.jsonl").open(encoding="utf-8") as f:
        return [json.loads(line)["text"] for line in f]


def pem(label: str, end: bool = True, newline: str = "\n") -> str:
    body = [rnd(B64, 64, i) for i in range(6)]
    lines = ["-----BEG" + f"IN {label}-----", *body, *(["-----E" + f"ND {label}-----"] if end else [])]
    return newline.join(lines)


# what stands around a secret, the secret
SPOKEN_AND_WRITTEN: list[tuple[str, str]] = [
    # vendor prefixes
    ("{s}", "gh" + "p_" + rnd(ALNUM, 36)),
    ("use {s} please", "github" + "_pat_" + rnd(ALNUM, 22) + "_" + rnd(ALNUM, 59)),
    ("{s}", "gl" + "pat-" + rnd(URL, 20)),
    ("{s}", "xo" + "xb-" + rnd(string.digits, 12) + "-" + rnd(ALNUM, 24)),
    ("{s}", "xa" + "pp-1-" + rnd(ALNUM, 11) + "-" + rnd(HEX, 64)),
    ("{s}", "AK" + "IA" + rnd(string.ascii_uppercase + "234567", 16)),
    ("{s}", "sk" + "-" + rnd(ALNUM, 48)),
    ("{s}", "sk" + "-proj-" + rnd(URL, 80)),
    ("{s}", "sk" + "-ant-api03-" + rnd(URL, 95)),
    ("{s}", "hs" + "k-" + rnd(ALNUM, 24)),
    ("{s}", "me" + "m0_" + rnd(ALNUM, 24)),
    ("{s}", "br" + "v_" + rnd(ALNUM, 24)),
    ("{s}", "retain" + "db_" + rnd(HEX, 32)),
    ("{s}", "AI" + "za" + rnd(URL, 35)),
    ("{s}", "12" + "34567890:AA" + rnd(URL, 33)),
    ("{s}", "MT" + rnd(ALNUM, 22) + "." + rnd(ALNUM, 6) + "." + rnd(URL, 38)),
    ("{s}", "dop" + "_v1_" + rnd(HEX, 64)),
    ("{s}", "pat" + rnd(ALNUM, 14) + "." + rnd(HEX, 64)),
    ("{s}", "S" + "G." + rnd(URL, 22) + "." + rnd(URL, 43)),
    ("{s}", "S" + "K" + rnd(HEX, 32)),
    # prefixes no table names
    ("{s}", "acme_sk_" + rnd(ALNUM, 32)),
    ("{s}", "zq_live_" + rnd(ALNUM, 24)),
    ("{s}", "zz-" + rnd(ALNUM, 40)),
    # documents with keys
    ("{s}", pem("RSA PRIVATE " + "KEY")),
    ("{s}", pem("PRIVATE " + "KEY", end=False)),
    ("{s}", pem("OPENSSH PRIVATE " + "KEY", newline="\\n")),
    # headers and URLs
    ("Authorization: Bearer {s}", rnd(ALNUM, 30)),
    ("Authorization: Basic {s}", "Ym9i" + "OmYwMGI0cg=="),
    ("https://bob:{s}@example.org/x", rnd(ALNUM, 12)),
    ("mysql://root:{s}@10.0.0.1:3306/db", rnd(ALNUM, 12)),
    ("https://discord.com/api/webhooks/123456789012345678/{s}", rnd(URL, 68)),
    ("DefaultEndpointsProtocol=https;AccountKey={s};x=y", rnd(B64, 86) + "=="),
    # assignments
    ("export API_TOKEN={s}", rnd(ALNUM, 20)),
    ('"api_key": "{s}"', rnd(ALNUM, 24)),
    ("client_secret: {s}", rnd(ALNUM, 24)),
    ("const apiKey = '{s}';", rnd(ALNUM, 24)),
    ("Server=x;Password={s};Database=y", rnd(ALNUM, 12)),
    ("password: {s}", "sword" + "fish"),
    ("DB_PASSWORD={s}", "let" + "mein"),
    ("PASSWORD='{s}'", "correct horse battery " + "staple"),
    ("--password {s}", "hunter" + "2x"),
    ("curl -u admin:{s} https://example.org", "hunter" + "2x"),
    ("mysql -u root -p{s}", "hunter" + "2x"),
    ("machine example.org login bob password {s}", "s3cr" + "3tzz"),
    ("localhost:5432:db:bob:{s}", "s3cr" + "3tzz"),
    # sentences
    ("my password is {s}", "hunter" + "2"),
    ("the password for the router is {s}", "Tr0ub4dor" + "&3"),
    ("please change the password to {s}", "Winter" + "#77x"),
    ("Das WLAN-Passwort lautet {s}.", "Blume" + "2024x"),
    ("mon mot de passe est {s}", "Soleil" + "42!"),
    ("mi contraseña es {s}", "gato" + "1234"),
    ("密码是{s}", "abc" + "12345"),
    ("パスワードは{s}です", "sakura" + "99"),
    ("the token for staging is {s} ok", rnd(ALNUM, 20)),
    ("my wallet private key is {s}", "0x" + rnd(HEX, 64)),
    ("the PIN is {s}", "48" + "21"),
    ("Die PIN lautet {s}", "48" + "21"),
    ("the alarm code is {s}", "82" + "13"),
    ("2FA code: {s}", "4829" + "13"),
    ("Backup codes: {s} keep them safe", "1234-5678 " + "8271-2231"),
    ("my recovery phrase is {s}", WORDS),
    ("{s}", WORDS),
    # numbers with check digits
    ("card {s} exp 12/27", "4111 1111 " + "1111 1111"),
    ("{s}", "5555555555" + "554444"),
    ("IBAN {s} please", "DE89 3704 0044 " + "0532 0130 00"),
    ("SSN {s}", "123-45-" + "6789"),
    ("CPF {s}", "111.444." + "777-35"),
    ("id card {s}", "110105" + "19491231002X"),
    ("NIR {s} voilà", "2 55 08 14 " + "168 025 38"),
    ("WIFI:T:WPA;S:home;P:{s};;", "kuchen" + "1950"),
]

HARMLESS = [
    "monkey=1",
    "hotkey=ctrl+shift+p",
    "commit 3f2a9c1e5b7d4a6f8e0c2b4d6f8a0c2e4b6d8f0a",
    "3f2a9c1",
    "123e4567-e89b-12d3-a456-426614174000",
    "v1.2.3-rc.4",
    "+49 151 23456789",
    "555-123-4567",
    "password reset link",
    "the token bucket algorithm",
    "my password is stored in the vault",
    "the password is great!!",
    "Password must have 12-character minimum",
    "pin the dependency to 4.2.1",
    "2024-05-06T12:00:00Z",
    "1712345678901",
    "order #4111111111111111",
    "API_KEY=<your-key>",
    "API_KEY=xxxxxxxx",
    "API_KEY=$API_KEY",
    "password=${DB_PASSWORD}",
    "apiKey: process.env.API_KEY",
    "api_key=os.environ['API_KEY']",
    "password = getpass.getpass()",
    "password: str | None",
    "max_tokens: 4096",
    "token_count=1500",
    "primary_key=user_id",
    "OPENAI_API_KEY=sk-...",
    "password: ********",
    "Password: (unchanged)",
    "tokenizer=cl100k_base",
    "Bearer <token>",
    "bearer of bad news",
    "https://user:<password>@host/db",
    "https://user@example.com/path",
    "git@github.com:org/repo.git",
    "http://localhost:8080/user@host",
    "sk-button-primary-large-rounded",
    "key: C major",
    "zip code 90210",
    "The secret to success is 10x thinking and consistency",
    "1Password holds the api key",
]


@pytest.mark.parametrize(("around", "secret"), SPOKEN_AND_WRITTEN)
def test_each_kind_is_masked_and_nothing_else(around: str, secret: str) -> None:
    text = around.format(s=secret)
    covered = [text[s.start : s.end] for s in find(text)]
    assert covered == [secret]
    assert mask(text) == around.format(s=f"[REDACTED:{find(text)[0].kind}]")


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert mask(text) == text


def test_monkey_is_no_key() -> None:
    assert find("monkey=1") == ()
    assert find("monkey=" + rnd(ALNUM, 24)) == ()


def test_identifiers_and_content_are_no_secrets() -> None:
    for text in (
        "docker pull repo@sha256:" + rnd(HEX, 64),
        "test-123e4567-e89b-12d3-a456-426614174000",
        "image-" + rnd(HEX, 40),
        "integrity sha512-" + rnd(B64, 86) + "==",
        "logo: data:image/png;base64," + rnd(B64, 300),
        "https://docs.google.com/document/d/1" + rnd(URL, 43) + "/edit",
        "ssh-ed25519 AAAA" + rnd(B64, 64) + " bob@example.org",
        "/nix/store/" + rnd("0123456789abcdfghijklmnpqrsvwxyz", 32) + "-python3-3.11.7",
        "toolu_" + rnd(ALNUM, 24),
    ):
        assert mask(text) == text


def test_several_secrets_in_one_text_are_all_masked() -> None:
    a, b = "gh" + "p_" + rnd(ALNUM, 36), "hunter" + "2"
    text = f"token {a}, and my password is {b}\nthanks"
    assert mask(text) == "token [REDACTED:github_token], and my password is [REDACTED:password]\nthanks"


def test_offsets_count_code_points_of_the_given_text() -> None:
    for prefix in ("", "İİİ ", "🙂🙂 ", "ẞß "):
        secret = "Tr0ub" + "4dor"
        text = f"{prefix}My PASSWORD is {secret}"
        assert [text[s.start : s.end] for s in find(text)] == [secret]


def test_lowering_keeps_the_length_of_every_character() -> None:
    for code in range(0x110000):
        assert len(secrets._lower(chr(code))) == 1


def test_masked_text_is_left_alone() -> None:
    for rule in RULES:
        text = f'password="[REDACTED:{rule.kind}]" and my PIN is [REDACTED:{rule.kind}]'
        assert mask(text) == text


def test_kinds_are_plain_words() -> None:
    assert all(
        r.kind.isascii() and r.kind.replace("_", "a").islower() and r.kind.replace("_", "a").isalnum() for r in RULES
    )


def test_literals_are_lower_case() -> None:
    assert all(literal == literal.lower() for r in RULES for literal in r.literals)


FRAGMENTS = st.sampled_from(
    [around.replace("{s}", "") for around, _ in SPOKEN_AND_WRITTEN]
    + [secret for _, secret in SPOKEN_AND_WRITTEN]
    + [secret[: len(secret) // 2] for _, secret in SPOKEN_AND_WRITTEN]
    + [literal for r in RULES for literal in r.literals]
    + [
        " ",
        "\n",
        "=",
        ": ",
        '"',
        "'",
        "@",
        "/",
        ":",
        "-",
        "_",
        "[REDACTED:",
        "]",
        "[REDACTED:password]",
        "a1B2c3D4",
        "4821",
    ]
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(FRAGMENTS, max_size=12).map("".join),
    st.lists(st.one_of(FRAGMENTS, st.text(max_size=8)), max_size=12).map(" ".join),
)


@settings(max_examples=1500, deadline=None)
@given(TEXTS)
def test_masking_twice_changes_nothing(text: str) -> None:
    once = mask(text)
    assert mask(once) == once
    assert find(once) == ()


@settings(max_examples=500, deadline=None)
@given(TEXTS)
def test_spans_are_sorted_disjoint_and_inside(text: str) -> None:
    at = 0
    for s in find(text):
        assert at <= s.start < s.end <= len(text)
        at = s.end


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_mask_changes_the_spans_only(text: str) -> None:
    masked, at, out = mask(text), 0, []
    for s in find(text):
        assert isinstance(s, Secret)
        out += [text[at : s.start], f"[REDACTED:{s.kind}]"]
        at = s.end
    assert masked == "".join([*out, text[at:]])


def test_recall_on_the_corpus(corpus: ModuleType) -> None:
    rows: list[dict[str, Any]] = corpus.secrets((1, 2, 3))
    missed = [f"{r['kind']}/{r['form']}" for r in rows if r["secret"] in mask(r["text"])]
    assert len(missed) <= 0.03 * len(rows), missed


def test_lookalikes_stay(corpus: ModuleType) -> None:
    rows: list[dict[str, str]] = corpus.lookalikes(9, 26)
    assert len(rows) >= 200
    masked = [mask(r["text"]) for r in rows if find(r["text"])]
    assert len(masked) <= 2, masked


def test_benign_rows_stay() -> None:
    masked = [mask(text) for text in benign() if find(text)]
    assert len(masked) <= 1, masked


def hostile() -> list[str]:
    units = {literal for r in RULES for literal in r.literals}
    units |= {u + tail for u in sorted(units) for tail in ("=", " is ", "a1B2")}
    units |= {
        "a ",
        "able ",
        "1",
        "4111 ",
        "a-",
        "://a:",
        "de89 3704 ",
        pem("PRIVATE " + "KEY")[:27],
        "my password for the ",
        "\n",
    }
    units |= {
        "password=[",
        "password is ",
        "-u a:",
        "eyJaaaaaaaaa.",
        "backup code is abcd1234 ",
        "seed phrase is " + WORDS + " ",
    }
    return sorted(units - {""})


def test_hostile_repetition_costs_in_proportion() -> None:
    """Every unit is tried; what takes much longer than the others of its length is measured for how it grows."""
    units = hostile()
    took = {unit: seconds(find, unit * (20_000 // len(unit)), tries=1) for unit in units}
    usual = sorted(took.values())[len(took) // 2]
    slowest = sorted(units, key=took.__getitem__)[-20:]
    suspects = {unit for unit in units if took[unit] > 10 * usual} | set(slowest)
    assert {unit: grown for unit in sorted(suspects) if (grown := growth(find, unit)) > RATIO} == {}


def test_the_cache_of_known_words_holds_no_value() -> None:
    assert mask("my password is hunter2-xy!9") == "my password is [REDACTED:password]"
    mask("the pin is 4711 and hunter2-xy!9 again, as a word of its own: hunter2-xy!9 ; passwort: Gr\u00fcn-Haus7")
    assert not [word for word in _known_words if any(part in word for part in ("hunter2", "xy!9", "4711", "haus7"))]
    assert not [word for word in _known_words if len([c for c in word if c.isdigit()]) > 4]


def test_the_cache_of_known_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_MOST_WORDS", 100)
    _known_words.clear()
    for number in range(26 * 26):
        mask(f"the word{chr(97 + number // 26)}{chr(97 + number % 26)} key")
    assert len(_known_words) <= 100


@pytest.mark.parametrize("prefix", ["ghp_", "glpat-", "sk-proj-"])
def test_a_token_whose_random_body_holds_a_long_row_of_digits_is_one(prefix: str) -> None:
    body = "dfd42b442221d163" + "20921072296732831006"
    assert [found.kind for found in secrets.find(f"the token is {prefix}{body}, keep it")] != []
    assert secrets.find(f"see {prefix}documentation-of-2026-and-more-words") == ()
