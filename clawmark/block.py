"""The block: facts and excerpts as guarded, capped text for one host. Pure: values in, text out.

Same facts, same bytes: no clock and no chance enters the facts part. Every item is one quoted line, caps are counted on
the finished text, and with nothing to say the block is the empty string.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo

from clawmark.facts.ladder import STRENGTH, effective_confidence
from clawmark.guard import markers
from clawmark.keys import PREFIXES
from clawmark.model import SHARED, Block, Excerpt, Fact
from clawmark.profile import Profile
from clawmark.text import cut, likeness

Length = Callable[[str], int]

SPEAKER = 40
FACT_LINE = 700
"""Longest value shown; the rest of it is one `clawmark_search` away."""


def shown_facts(facts: Sequence[Fact], *, scope: str, threshold: float, now: datetime) -> list[Fact]:
    """The facts a block shows, in its order: believed enough, none twice: the stronger writer's, then own before shared.

    A key that is no line of its own, which only somebody else's hand can have stored, is not shown.
    """
    believed = [fact for fact in facts if fact.key.isprintable() and effective_confidence(fact, now) >= threshold]
    best: dict[str, Fact] = {}
    for fact in sorted(believed, key=lambda fact: (-STRENGTH.get(fact.source, 0), fact.scope != scope)):
        best.setdefault(fact.key, fact)
    return sorted(best.values(), key=_order)


def _order(fact: Fact) -> tuple[int, int, str, int]:
    prefix = next((i for i, p in enumerate(PREFIXES) if fact.key.startswith(p)), len(PREFIXES))
    return -STRENGTH.get(fact.source, 0), prefix, fact.key, int(fact.scope == SHARED)


def notice(waiting: int, most: int, noted: Sequence[str], most_named: int) -> str:
    """One line about what waits for the person, and the keys of what was noted by itself; "" where there is neither."""
    said: list[str] = []
    if waiting:
        count = f"{most}+" if waiting > most else str(waiting)
        what, verb = ("statement", "waits") if waiting == 1 else ("statements", "wait")
        said.append(f"{count} proposed {what} {verb} for the person's decision: `clawmark review`.")
    if noted:
        more = f" and {len(noted) - most_named} more" if len(noted) > most_named else ""
        said.append(
            f"Noted since the last session: {', '.join(noted[:most_named])}{more}; `clawmark why KEY` says from what."
        )
    return f"({' '.join(said)})" if said else ""


def build(
    facts: Sequence[Fact],
    recalled: Sequence[Excerpt],
    *,
    profile: Profile,
    nonce: str,
    zone: tzinfo | None,
    notice: str = "",
) -> Block:
    """The finished block. `facts` in the order of `shown_facts`, `recalled` best first; zone None = this machine's.
    notice: a line of its own, which goes in before anything else."""
    known = {likeness(fact.value) for fact in facts}
    recalled = [e for e in recalled if likeness(e.excerpt) not in known]
    head, tail = markers.opening(nonce), markers.closing(nonce)
    told = [notice] if notice else []
    room = profile.total - len(head) - len(tail) - 2 - sum(profile.length(line) + 1 for line in told)
    fact_lines, shown = _facts(facts, min(room, profile.facts), zone, profile.length)
    room -= sum(profile.length(line) + 1 for line in fact_lines)
    recall_lines, used = _recalled(recalled, room, zone, profile.length)
    if not fact_lines and not recall_lines and not told:
        return Block("")
    text = "\n".join([head, *fact_lines, *recall_lines, *told, tail])
    return Block(text, tuple(facts[:shown]), tuple(recalled[:used]), len(facts) - shown, notice=notice)


def _facts(facts: Sequence[Fact], room: int, zone: tzinfo | None, length: Length) -> tuple[list[str], int]:
    lines = [_fact_line(fact, zone) for fact in facts]
    taken = _that_fit(lines, room - len(markers.FACTS) - 1, length)
    if taken < len(lines):
        taken = _that_fit(lines, room - len(markers.FACTS) - 1 - len(_more(len(lines))) - 1, length)
    if not taken:
        return [], 0
    more = [_more(len(lines) - taken)] if taken < len(lines) else []
    return [markers.FACTS, *lines[:taken], *more], taken


def _recalled(recalled: Sequence[Excerpt], room: int, zone: tzinfo | None, length: Length) -> tuple[list[str], int]:
    lines = [_excerpt_line(excerpt, zone) for excerpt in recalled]
    taken = _that_fit(lines, room - len(markers.RECALLED) - 1, length)
    return ([markers.RECALLED, *lines[:taken]], taken) if taken else ([], 0)


def _that_fit(lines: Sequence[str], room: int, length: Length) -> int:
    for count, line in enumerate(lines):
        room -= length(line) + 1
        if room < 0:
            return count
    return len(lines)


def _more(count: int) -> str:
    return f"({count} more facts are not shown; search with clawmark_search)"


def _fact_line(fact: Fact, zone: tzinfo | None) -> str:
    writer = {"user": "you", "agent": "agent", "extracted": "noted"}.get(fact.source, "noted")
    value = fact.value if len(fact.value) <= FACT_LINE else cut(fact.value, FACT_LINE) + "…"
    return f"- {fact.key}: {markers.quote(value)} ({writer}, {_date(fact.observed_at, zone)})"


def _excerpt_line(excerpt: Excerpt, zone: tzinfo | None) -> str:
    if excerpt.role == "assistant":
        speaker = "assistant"
    elif excerpt.author:  # quoted like all that others wrote: a participant who is called "you" is not the owner
        speaker = markers.quote(cut(excerpt.author, SPEAKER))
    else:
        speaker = "you"
    return f"- ({_date(excerpt.at, zone)}, {speaker}) {markers.quote(excerpt.excerpt)}"


def _date(at: datetime | None, zone: tzinfo | None) -> str:
    if at is None:
        return "date unknown"
    try:
        return at.astimezone(zone).date().isoformat()
    except OverflowError:  # a logged time at the very end of what can be told
        return at.date().isoformat()
