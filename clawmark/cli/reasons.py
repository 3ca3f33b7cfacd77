"""Why a statement waits for the person, in their words.

Rules have short ids, which events and JSON hold and which never change; a person reads these sentences instead. A rule
that nobody has put into words yet is named by its id, so that nothing is ever said without a reason.
"""

from __future__ import annotations

from typing import Final

WORDS: Final = {
    "about_person": "the agent noted it about you, and you did not say it in that session",
    "address": "it holds a postal address, and you did not say it in that session",
    "command": "it holds a command line, and a memory is no place from which things are run",
    "conflict_candidate": "it says something else than a fact you have",
    "credentials": "it is about credentials",
    "email": "it holds an e-mail address",
    "foreign": "you did not say it: it stands in the words of somebody else",
    "imperative": "it reads like an order to somebody",
    "injection": "it reads like an attempt to give an agent orders",
    "key": "its key is no plain name",
    "length": "it is longer than a statement is",
    "low_confidence": "whoever extracted it was not sure",
    "marker": "you said it with a word like `remember`, `always` or `prefer`; no model has looked at it",
    "merge_candidate": "it says much of what a fact you have says",
    "not_plain": "it is no short, plain statement",
    "payment": "it is about a payment",
    "review": "everything waits for you (CLAWMARK_PROMOTE=review)",
    "telephone": "it holds a telephone number",
    "tools": "it is about the agent's tools",
    "unasked": "the agent had it forgotten, and you had not asked for that",
    "unfit_key": "you said it, but not of what the key names",
    "unsupported": "your own words do not plainly say it",
    "url": "it holds a link",
}

ORIGINS: Final = {
    "owner": "you",
    "participant": "somebody else in a group",
    "assistant": "the assistant, in a conversation",
    "agent": "the agent, by a tool",
    "host": "the host program",
}
"""Who said it."""


def words_of(rule: str) -> str:
    return WORDS.get(rule, f"the rule {rule!r} applies")


def speaker(origin: str) -> str:
    return ORIGINS.get(origin, origin)
