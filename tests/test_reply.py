"""A model's reply: what is whole is read, what is torn is dropped, and nothing is read that nobody wrote."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from helpers import growth
from hypothesis import example, given
from hypothesis import strategies as st

from clawmark.errors import ReplyUnusable
from clawmark.facts import reply
from clawmark.facts.prompt import MOST_FACTS
from clawmark.facts.reply import read
from clawmark.keys import VALUE_LENGTH
from clawmark.model import Candidate


def item(key: str = "pref.tea", value: Any = "decaf", **changes: Any) -> dict[str, Any]:
    whole = {"messages": [1], "quote": "I drink decaf", "key": key, "value": value, "confidence": 0.9}
    return {name: member for name, member in (whole | changes).items() if member is not ...}


def candidate(key: str = "pref.tea", value: str = "decaf", **changes: Any) -> Candidate:
    return Candidate(
        key, value, changes.get("confidence", 0.9), changes.get("cited", (1,)), changes.get("quote", "I drink decaf")
    )


ONE = json.dumps({"facts": [item()]})
TWO = [candidate(), candidate("pref.editor", "Helix")]
TWO_ITEMS = [item(), item("pref.editor", "Helix")]
TWO_FACTS = json.dumps({"facts": TWO_ITEMS})


FINAL = "<|channel|>final<|message|>"


def kept(text: str) -> list[Candidate]:
    return list(read(text).candidates)


def test_facts_are_read_as_they_stand() -> None:
    assert read(TWO_FACTS) == reply.Reply(tuple(TWO), {})


# --- what a reply is wrapped in ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"<think>maybe {{a}} or [b]</think>\n<think>{{}} no: {{'x': 1}}</think>\n{TWO_FACTS}",  # C1
        f"<thinking>What about {{\"facts\": []}}?</thinking>{TWO_FACTS}",  # C2
        f"I begin to reason {{here}}.</think>\n\n{TWO_FACTS}",  # the template opened the thought
        f"{TWO_FACTS}<think>Was that right? {json.dumps({'facts': [item('user.x', 'y')]})}",
        f"[THINK]{json.dumps({'facts': [item('user.x', 'y')]})}[/THINK]{TWO_FACTS}",
        f"◁think▷hm◁/think▷{TWO_FACTS}",
        f"<|channel>thought\nhm {{}}<channel|>{TWO_FACTS}",
        f'<|channel|>analysis<|message|>{{"key": "user.x"}}?<|end|><|start|>assistant{FINAL}{TWO_FACTS}<|return|>',  # C2
        f"<|channel|>analysis<|message|>hm<|end|><|channel|>final <|constrain|>json<|message|>{TWO_FACTS}",
        f"analysisWe look for {{facts}}.assistantfinal{TWO_FACTS}",
    ],
)  # fmt: skip
def test_what_the_model_thought_is_no_part_of_its_answer(text: str) -> None:
    assert read(text) == reply.Reply(tuple(TWO), {})


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{TWO_FACTS}\n```",  # C3
        f"```\n{TWO_FACTS}\n```",
        f"```json\n{TWO_FACTS}\n```\nI found [two] facts; {{both}} are sure.",
        f"Here {{note}}: {TWO_FACTS}",  # C4
        f"The messages [1] and [2] say:\n{TWO_FACTS}\nAnything else?",
        f"\ufeff \n{TWO_FACTS}",
        f"<tool_call>{json.dumps({'name': 'save', 'arguments': {'facts': TWO_ITEMS}})}</tool_call>",
        json.dumps(TWO_FACTS),  # JSON in JSON
    ],
)
def test_what_stands_around_the_answer_is_passed_over(text: str) -> None:
    assert read(text) == reply.Reply(tuple(TWO), {})


@pytest.mark.parametrize("name", ["facts", "memories", "items", "data", "results", "Facts", "extracted_facts"])
def test_a_wrapper_may_have_any_name(name: str) -> None:
    """C6."""
    assert kept(json.dumps({name: TWO_ITEMS})) == TWO
    assert kept(json.dumps({"note": "two facts", "result": {name: TWO_ITEMS}})) == TWO


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(TWO_ITEMS),
        "\n".join(map(json.dumps, TWO_ITEMS)),
        f"1. {json.dumps(TWO_ITEMS[0])}\n2. {json.dumps(TWO_ITEMS[1])}",
    ],
)
def test_there_may_be_no_wrapper(text: str) -> None:
    assert kept(text) == TWO


def test_one_fact_may_stand_alone_or_be_the_wrapper_s_only_member() -> None:
    assert kept(json.dumps(item())) == [candidate()]
    assert kept(json.dumps({"facts": item()})) == [candidate()]


@pytest.mark.parametrize(
    "text",
    [
        '{"facts": []}',
        '{"facts": null}',
        "[]",
        "```json\n[]\n```",
        "{'facts': [],}",
        "<think>nothing</think>{\"memories\": []}",
        "There is none: {\"facts\": []}",
    ],
)  # fmt: skip
def test_no_facts_is_an_answer(text: str) -> None:
    assert read(text) == reply.Reply((), {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "null",
        "I found no facts.",
        "<think>" + ONE,
        "<|channel|>analysis<|message|>" + ONE,
        '{"facts": [',
        '{"facts": [{"key": "pref.tea", "value": "dec',
        '{"error": "overloaded"}',
        '["a", "b"]',
        "[1] Sat 2026-03-14 23:30 -05:00, the user, may be cited\n| I drink decaf",
        "\0" * 100,
        "[" * 100_000,
        '{"facts":' * 50_000,
        '{"facts": ' + "9" * 100_000 + "}",
    ],
)
def test_a_reply_without_a_fact_or_the_word_that_there_is_none_is_unusable(text: str) -> None:
    with pytest.raises(ReplyUnusable):
        read(text)


def test_the_error_holds_no_word_of_the_reply() -> None:
    for text in ("my lapisgecko is called Finn", '{"facts": [{"key": "pref.tea", "value": "lapisgecko'):
        with pytest.raises(ReplyUnusable) as raised:
            read(text)
        assert "lapisgecko" not in str(raised.value) and raised.value.__cause__ is None


# --- torn and misspelled JSON -----------------------------------------------------------------------------------------


def test_a_reply_that_was_cut_off_gives_what_is_whole() -> None:
    """C6: at every place where it may be cut."""
    items = [item("pref.a", "one"), item("pref.b", "two {x}"), item("pref.c", "three")]
    whole = json.dumps({"facts": items})
    ends = [whole.index(json.dumps(each)) + len(json.dumps(each)) for each in items]
    for end in range(len(whole)):
        complete = sum(end >= each for each in ends)
        if complete:
            assert [c.key for c in read(whole[:end]).candidates] == ["pref.a", "pref.b", "pref.c"][:complete], end
        else:
            with pytest.raises(ReplyUnusable):
                read(whole[:end])


def test_what_is_cut_off_is_counted() -> None:
    whole = json.dumps({"facts": [item(), item("pref.b")]})
    assert read(whole[:-20]).refused == {"broken": 1}


def test_a_broken_escape_costs_its_own_item_alone() -> None:
    """C5."""
    good = json.dumps(item("pref.b", "ok"))
    broken = json.dumps(item("pref.a", "xZZ")).replace("xZZ", r"x\uZZ")
    for text in (f'{{"facts":[{broken},{good}]}}', f'{{"facts":[{good},{broken}]}}', f"[{broken},{good}]"):
        assert read(text) == reply.Reply((candidate("pref.b", "ok"),), {"broken": 1})
    with pytest.raises(ReplyUnusable):
        read(f'{{"facts":[{broken}]}}')


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"facts": TWO_ITEMS}).replace("}]}", "},]}"),
        json.dumps({"facts": TWO_ITEMS}).replace("}]}", "}"),
        str({"facts": TWO_ITEMS}),  # single quotes
        str({"facts": TWO_ITEMS}).replace("}", ",}"),
        json.dumps({"facts": TWO_ITEMS}).replace('"key"', "key").replace('"value"', "value"),
        re.sub(r'"([^"]*)"', r"“\1”", json.dumps({"facts": TWO_ITEMS})),
        json.dumps({"facts": TWO_ITEMS}, indent=2).replace("\n", "\r\n"),
    ],
)
def test_slips_of_spelling_cost_nothing(text: str) -> None:
    """C6."""
    assert kept(text) == TWO


def test_a_line_end_inside_a_text_is_read_as_one() -> None:
    assert kept(ONE.replace("I drink", "I\ndrink")) == [candidate(quote="I\ndrink decaf")]


def test_what_was_cut_off_is_not_completed_by_repair() -> None:
    """Single quotes, so that nothing can be read as it stands: the last one would become a fact of half a word."""
    torn = str({"facts": TWO_ITEMS})[: -len("lix', 'confidence': 0.9}]}")]
    read_of = read(torn)
    assert list(read_of.candidates) == [candidate()] and read_of.refused == {"broken": 1}


def test_half_a_character_is_replaced() -> None:
    """F9."""
    text = ONE.replace("decaf", r"\ud83d decaf")
    assert kept(text) == [candidate(value="\ufffd decaf", quote="I drink \ufffd decaf")]
    kept(text)[0].value.encode()


# --- what an item must be ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"key": ...}, "key"),
        ({"key": None}, "key"),
        ({"key": 5}, "key"),
        ({"key": "  "}, "key"),
        ({"value": ...}, "value"),
        ({"value": None}, "value"),
        ({"value": " \n"}, "value"),
        ({"value": ["a"]}, "value"),
        ({"value": {"a": 1}}, "value"),
        ({"value": True}, "value"),
        ({"value": float("nan")}, "value"),
        ({"value": float("inf")}, "value"),
        ({"confidence": ...}, "confidence"),
        ({"confidence": None}, "confidence"),
        ({"confidence": True}, "confidence"),
        ({"confidence": "0.9"}, "confidence"),
        ({"confidence": "high"}, "confidence"),
        ({"confidence": [0.9]}, "confidence"),
        ({"confidence": float("nan")}, "confidence"),
        ({"confidence": float("inf")}, "confidence"),
        ({"confidence": 99}, "confidence"),
        ({"confidence": 1.0001}, "confidence"),
        ({"confidence": -0.1}, "confidence"),
        ({"messages": ...}, "uncited"),
        ({"messages": []}, "uncited"),
        ({"messages": None}, "uncited"),
        ({"messages": [True]}, "uncited"),
        ({"messages": ["first"]}, "uncited"),
        ({"messages": [-1]}, "uncited"),
        ({"messages": [1.5]}, "uncited"),
        ({"messages": {"1": 1}}, "uncited"),
        ({"messages": [10**4000]}, "uncited"),
        ({"quote": ...}, "unquoted"),
        ({"quote": ""}, "unquoted"),
        ({"quote": ["I drink decaf"]}, "unquoted"),
        ({"key": "pref." + "a" * 300}, "size"),
        ({"value": "a" * (VALUE_LENGTH + 1)}, "size"),
        ({"quote": "a" * (VALUE_LENGTH + 1)}, "size"),
    ],
)
def test_an_item_that_is_none_is_refused_by_rule(changes: dict[str, Any], rule: str) -> None:
    """C7, and the table of what tiny models send."""
    text = json.dumps({"facts": [item("pref.editor", "Helix"), item(**changes)]})
    assert read(text) == reply.Reply((candidate("pref.editor", "Helix"),), {rule: 1})
    assert read(json.dumps({"facts": [item(**changes)]})) == reply.Reply((), {rule: 1})


@pytest.mark.parametrize("confidence", [0, 1, 0.0, 1.0, 0.8, 1e-3])
def test_confidence_is_a_number_within_0_and_1(confidence: float) -> None:
    assert kept(json.dumps([item(confidence=confidence)])) == [candidate(confidence=float(confidence))]


@pytest.mark.parametrize("written", ["42", "1.50", "-3", "1e3", "12345678901234567890"])
def test_a_number_as_a_value_is_its_text_as_written(written: str) -> None:
    """C7."""
    assert kept(ONE.replace('"decaf"', written)) == [candidate(value=written)]


@pytest.mark.parametrize(
    ("messages", "cited"),
    [([2, 1], (2, 1)), (["1", "3"], (1, 3)), ([1, 1], (1,)), (2, (2,)), ("2", (2,)), ([3.0], (3,)), ([1, "x"], (1,))],
)
def test_messages_are_numbers_or_digits(messages: Any, cited: tuple[int, ...]) -> None:
    assert kept(json.dumps([item(messages=messages)])) == [candidate(cited=cited)]


def test_members_of_a_list_that_are_no_objects_are_refused() -> None:
    assert read(json.dumps([item(), None, "x", [1]])) == reply.Reply((candidate(),), {"broken": 3})


def test_what_is_said_twice_counts_once() -> None:
    assert read(json.dumps([item()] * 5)) == reply.Reply((candidate(),), {"repeated": 4})


@pytest.mark.parametrize("count", [MOST_FACTS, MOST_FACTS + 1, 40, 100])
def test_no_more_facts_are_kept_than_were_asked_for(count: int) -> None:
    """C13."""
    result = read(json.dumps({"facts": [item(f"pref.n{n}") for n in range(count)]}))
    assert [c.key for c in result.candidates] == [f"pref.n{n}" for n in range(MOST_FACTS)]
    assert result.refused == ({"left_out": count - MOST_FACTS} if count > MOST_FACTS else {})


def test_every_item_is_kept_or_counted() -> None:
    items = [item(), item(value=None), item(confidence=9), item(), None, *(item(f"pref.n{n}") for n in range(30))]
    result = read(json.dumps(items))
    assert len(result.candidates) + sum(result.refused.values()) == len(items)


# --- whatever comes ---------------------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [ONE, TWO_FACTS, "{", "}", "[", "]", '"', "'", ":", ",", "\\", r"\uZZ", r"\ud83d", "NaN", "null", "true", "9" * 30,
     "0.9", "-1", '"key"', '"value":', '"confidence":', '"messages":[1]', '"quote":"x"', '{"key":"pref.a"', '{"facts":[',
     "facts", "```json", "```", "<think>", "</think>", "<|channel|>final<|message|>", "<|channel|>analysis<|message|>",
     "<|end|>", "assistantfinal", "analysis", "[THINK]", "[/THINK]", " ", "\n", "\0", "\ud800", "a"]
)  # fmt: skip
HOSTILE = st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=80)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["key", "value", "confidence", "messages", "quote", "facts", "x"]), inner)
    ),
    max_leaves=20,
)


@given(HOSTILE | JSON.map(json.dumps) | JSON.map(str))
@example('{"key":"pref.a","key":"pref.b"}')
def test_whatever_comes_is_a_reply_or_unusable(text: str) -> None:
    try:
        result = read(text)
    except ReplyUnusable:
        return
    assert len(result.candidates) <= MOST_FACTS
    for each in result.candidates:
        assert each.key.strip() and each.value.strip() and each.quote.strip() and each.cited
        assert type(each.confidence) is float and 0 <= each.confidence <= 1
        assert type(each.key) is type(each.value) is type(each.quote) is str
        f"{each.key}{each.value}{each.quote}".encode()
    assert all(count > 0 for count in result.refused.values())


VALUES = st.text(min_size=1, max_size=30).map(str.strip).filter(bool)


@given(
    st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=6, unique=True),
    st.sampled_from(["", "Sure!\n", "```json\n"]),
)
def test_what_a_sound_reply_says_comes_out_unchanged(said: list[tuple[str, str, str]], before: str) -> None:
    items = [item(key, value, quote=quote) for key, value, quote in said]
    expected = [candidate(key, value, quote=quote) for key, value, quote in said]
    assert kept(before + json.dumps({"facts": items}, ensure_ascii=False)) == expected


UNITS = [
    "{", "[", '{"', "[{", '{"key":', '{"key":"', "{'key':'", "{'key':'a'}", '{"key":"a"},', '{"key":"a', "<think>", "</think>",
    "<think></think>", "[THINK]", FINAL, "<|channel|>a", "analysis", "assistantfinal",
    "```json", "{ ", "[ ", '"', "\\", r"\u", "9", "[]", "{}", '{"facts":[]}', "{'facts':[",
]  # fmt: skip


@pytest.mark.parametrize("unit", UNITS)
def test_time_grows_with_the_length(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "MOST_CHARACTERS", 10**9)

    def reading(text: str) -> None:
        try:
            read(text)
        except ReplyUnusable:
            pass

    assert growth(reading, unit) < 20


def test_a_reply_of_any_length_is_read_in_no_time() -> None:
    began = time.perf_counter()
    assert kept(json.dumps([item(), item(value="A" * 5_000_000)])) == [candidate()]
    with pytest.raises(ReplyUnusable):
        read('[{"key":"a.b","value":"' + "A" * 5_000_000 + '","confidence":0.9}]')
    assert time.perf_counter() - began < 2
