"""Versions: a known version gives way to the one that the owner is on now, and to nothing else that has its shape."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from helpers import RATIO, fact, growth
from hypothesis import given
from hypothesis import strategies as st

from clawmark.facts import gate, ladder
from clawmark.facts.support import supporting
from clawmark.facts.versions import is_next_version
from clawmark.model import Candidate, Fact, Ruling, Said, Utterance

AT = datetime(2026, 6, 1, tzinfo=UTC)
KEY = "project.version"


def held(key: str = KEY, value: str = "1.2", source: str = "extracted") -> Fact:
    return fact(key, value, source=source, confidence=0.9, scope="main")


def ruled(key: str, value: str, text: str, *known: Fact) -> Ruling:
    said = Utterance(1, 1, "owner", None, text, AT, True, "s", "main", b"1" * 16, True)
    candidate = Candidate(key, value, 0.95, (1,), text)
    return gate.ruled(
        candidate, [said], known, threshold=0.8, promote="auto", is_forgotten=lambda *_: False, zone=None
    )  # fmt: skip


SAYING = [
    "we are on 2.0 now",
    "We're on 2.0 now.",
    "we are now on 2.0",
    "Done! We're on 2.0 now.",
    "the project is on 2.0 now",
    "we run 2.0",
    "we moved to 2.0",
    "We've upgraded to 2.0",
    "we switched from 1.2 to 2.0",
    "Wir sind jetzt auf 2.0",
    "wir nutzen jetzt die 2.0",
    "wir sind von 1.2 auf 2.0 umgestiegen",
    "ahora usamos la 2.0",
    "nous sommes passés à la 2.0",
    "nous sommes maintenant en 2.0",
    "agora usamos a 2.0",
    "we zitten nu op 2.0",
    "we zijn overgestapt op 2.0",
    "Wir haben auf 2.0 aktualisiert",
    "We upgraded to 2.0 yesterday",
    "мы сейчас на 2.0",
    "мы перешли на 2.0",
    "我们现在用2.0",
    "我们升级到 2.0 了",
    "今は2.0を使っています",
    "2.0にアップグレードしました",
    "2.0으로 업그레이드했어요",
]


@pytest.mark.parametrize("text", SAYING)
def test_what_a_known_version_is_now_takes_its_place(text: str) -> None:
    """B1."""
    ruling = ruled(KEY, "2.0", text, held())
    assert (ruling.outcome, ruling.rule, ruling.key, ruling.value) == ("store", "supported", KEY, "2.0")
    stated = ladder.Statement(ruling.key, ruling.value, ruling.confidence, "extracted", "main", ruling.observed_at)
    assert ladder.decide(held(), stated) == "update"
    assert ruled(KEY, "2.0", text).rule == "unfit_key", "nothing known says what it is a version of"


@pytest.mark.parametrize(
    "text",
    [
        # needed, wanted, planned, out
        "we need 2.0", "we want 2.0 now", "we will be on 2.0", "we are moving to 2.0", "we plan to use 2.0",
        "we have to use 2.0", "the project is to use 2.0", "we should be on 2.0 now", "we're almost on 2.0",
        "2.0 is out", "2.0 is out now", "wir brauchen 2.0", "wir wollen auf 2.0 umsteigen", "necesitamos la 2.0",
        "nous voulons la 2.0", "нам нужна 2.0", "我们需要2.0", "我们要升级到2.0", "2.0が出ました",
        # orders, and the value alone
        "use 2.0", "run 2.0", "使用2.0", "2.0을 써요", "2.0", "now 2.0",
        # of something else
        "Borealis is on 2.0 now", "borealis is on 2.0", "we are on Borealis 2.0 now", "we are on 2.0 of Borealis",
        "Borealis: we are on 2.0 now", "In Borealis we are on 2.0 now", "About Borealis. We are on 2.0 now.",
        "our database is on 2.0 now", "we are on 2.0 in staging", "they are on 2.0 now", "you are on 2.0 now",
        "I'm on 2.0 now",
        # prices, times, ages
        "the price is 2.0 now", "it costs 2.0 now", "we pay 2.0", "we are on 2.0 euros now", "we meet at 2.0 now",
        "we are at 2.0", "she is on 2.0 now", "the baby is 2.0 now",
        # in part, for a while, not, asked, supposed, told
        "we use 2.0 and 1.2", "we use 1.2 and 2.0", "we are on 2.0 until Monday", "we are on 2.0 tomorrow",
        "we are on 2.0 beta", "we moved from 2.0 to 1.2", "we were on 2.0", "we used 2.0",
        "Wir haben 2.0 benutzt", "Wir haben gestern 2.0 verwendet", "Wij hebben 2.0 gebruikt", "we've run 2.0",
        "ayer usamos la 2.0", "we are not on 2.0 now",
        "2.0を使っていません", "are we on 2.0 now?", "we are on 2.0 now, right?", "if we are on 2.0 now",
        "maybe we are on 2.0 now", "haha we are on 2.0 now", "Noor said we are on 2.0 now", '"we are on 2.0 now"',
        "> we are on 2.0 now",
    ],
)  # fmt: skip
def test_whatever_else_has_its_shape_waits_or_is_refused(text: str) -> None:
    assert not is_next_version(KEY, "2.0", text, [held()])
    assert ruled(KEY, "2.0", text, held()).outcome != "store"


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [
        ("project.price", "1.2", "2.0"),
        ("project.standup", "9.30", "10.0"),
        ("user.weight", "71.5", "70.0"),
        ("user.age", "41", "42"),
        ("project.version", "1.2", "2"),
        ("project.version", "the first one", "2.0"),
        ("project.version", "1.2", "10.0.0.0.1"),
        ("project.min_version", "1.2", "2.0"),
        ("project.next_version", "1.2", "2.0"),
        ("project.former_version", "1.2", "2.0"),
        ("project.python_version", "1.2", "2.0"),
    ],
)
def test_only_a_version_gives_way_to_a_version(key: str, old: str, new: str) -> None:
    for text in (f"we are on {new} now", f"I'm on {new} now"):
        assert not is_next_version(key, new, text, [held(key, old)]), text


def test_all_of_its_words_are_said_of_one_of_several_versions() -> None:
    known = [held("project.alpha.version"), held("project.beta.version", "1.3")]
    for text, moves in (
        ("we are on 2.0 now", False),
        ("beta is on 2.0 now", False),
        ("Alpha is on 2.0 now", True),
        ("we moved alpha to 2.0", True),
    ):
        assert is_next_version("project.alpha.version", "2.0", text, known) is moves, text
    assert is_next_version("project.alpha.version", "2.0", "we are on 2.0 now", known[:1])


@pytest.mark.parametrize(
    ("key", "value", "is_alone"),
    [
        ("project.app.python", "3.11", False),
        ("project.app.runtime", "Python 3.11", False),
        ("project.app.node_version", "20.1", False),
        ("project.app.port", "8080", True),
        ("project.app.owner", "the team of Kim", True),
    ],
)
def test_what_else_stands_at_a_version_may_be_what_is_meant(key: str, value: str, is_alone: bool) -> None:
    """Whatever its key."""
    known = [held("project.app.version"), held(key, value)]
    text = "We upgraded to 3.12 yesterday."
    assert is_next_version("project.app.version", "3.12", text, known) is is_alone
    assert (ruled("project.app.version", "3.12", text, *known).outcome == "store") is is_alone
    assert is_next_version("project.app.version", "3.12", "We upgraded the app to 3.12 yesterday.", known)


def test_what_else_a_key_names_is_said() -> None:
    known = [held("user.python_version", "3.11")]
    for text, moves in (
        ("I'm on Python 3.12 now", True),
        ("I moved to Python 3.12", True),
        ("I'm on 3.12 now", False),
        ("I'm on Node 3.12 now", False),
    ):
        assert is_next_version("user.python_version", "3.12", text, known) is moves, text


@pytest.mark.parametrize("source", ["user", "agent"])
def test_a_version_that_the_person_or_an_agent_set_is_asked_about(source: str) -> None:
    assert ruled(KEY, "2.0", "we are on 2.0 now", held(source=source)).rule == "conflict_candidate"


FOREIGN = st.text("abcdefghijklmnopqrstuvwxyz", min_size=4, max_size=9)


@given(st.sampled_from([text for text in SAYING if text.isascii()]), FOREIGN.map(lambda word: f"qu{word}"), st.data())
def test_no_sentence_that_has_a_word_of_something_else_moves_it(text: str, word: str, data: st.DataObject) -> None:
    """Wherever it stands, but behind the sentence's end."""
    words = text.rstrip(".").split()
    at = data.draw(st.integers(0, len(words)))
    assert not is_next_version(KEY, "2.0", " ".join([*words[:at], word, *words[at:]]), [held()])


def test_an_order_moves_nothing() -> None:
    for text in ("use version 2.0 now", "run version 2.0", "please use 2.0"):
        assert not is_next_version(KEY, "2.0", text, [held()]), text


def test_what_moves_it_is_supported() -> None:
    assert [text for text in SAYING if supporting(KEY, "2.0", [Said(text, AT)]) is None] == []


@given(st.text(max_size=30), st.text(max_size=80))
def test_no_text_makes_it_fail(value: str, text: str) -> None:
    assert is_next_version(KEY, value, f"{text} {value}", [held()]) in (True, False)


@pytest.mark.parametrize("unit", ["we are on 2.0 now ", "2.0 ", "我们用", "使用しています", "쓰고있어요 "])
def test_a_long_message_costs_in_proportion(unit: str) -> None:
    assert growth(lambda text: is_next_version(KEY, "2.0", text[:1400] + " we are on 2.0", [held()]), unit) <= RATIO
