"""`review` and `why`: what waits for the person, and where what is known is from.

Whatever is printed of a proposal is all of its value, on one line and without control characters: what a person says yes
to is what they have seen, and its name holds the hash of it. With it stands what it would replace or is against, as that
is now. One that cannot be decided goes on waiting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from clawmark.cli.common import (
    FADED,
    JSON,
    SCOPE,
    Command,
    called,
    complain,
    is_asked,
    opened,
    print_json,
    said_by,
    said_on,
    told,
    unknown_scope,
)

if TYPE_CHECKING:
    from clawmark.memory import Memory
    from clawmark.model import Event, Fact, Proposal, Way, Why, Yes

LATER_DAYS = 7
HEAD = 160
"""Most characters of the messages' words in a list."""
SCISSORS = "# ---------------------------- >8 ----------------------------"
EXPLAINED = f"""\
{SCISSORS}
# The first line is the key, what follows up to here is the value. Everything from that line on is left out.
# Save an empty file to change nothing.
"""


@click.command(cls=Command)
@click.option("--list", "listing", is_flag=True, help="Print what waits; the default where nobody can be asked.")
@click.option("--deferred", is_flag=True, help="List those that were put off as well.")
@click.option("--accept", metavar="ID", multiple=True, help="Store it as your word, or erase what it wants erased.")
@click.option("--reject", metavar="ID", multiple=True, help="Leave it; the same words are not proposed again.")
@click.option("--defer", metavar="ID", multiple=True, help=f"Put it off for {LATER_DAYS} days.")
@click.option("--edit", metavar="ID", help="Accept it as corrected: by --value and --key, else in your editor.")
@click.option("--merge", metavar="KEY", help="With --accept or --edit: make it a part of the fact KEY.")
@click.option(
    "--supersede",
    is_flag=True,
    help="With --accept or --edit: what stands under its key, or the fact it is against, was true until now.",
)
@click.option("--keep-both", is_flag=True, help="With --accept or --edit: what stands there now stays as well.")
@click.option("--value", metavar="TEXT", help="With --edit: what is stored instead.")
@click.option("--key", metavar="KEY", help="With --edit: where it is stored.")
@click.option("--reason", metavar="TEXT", help="With --reject: why, in your words.")
@click.option("--days", metavar="N", type=click.IntRange(1, 365), help="With --defer: for so many days.")
@SCOPE
@JSON
def review(
    listing: bool,
    deferred: bool,
    accept: tuple[str, ...],
    reject: tuple[str, ...],
    defer: tuple[str, ...],
    edit: str | None,
    merge: str | None,
    supersede: bool,
    keep_both: bool,
    value: str | None,
    key: str | None,
    reason: str | None,
    days: int | None,
    scope: str | None,
    as_json: bool,
) -> None:
    """Decide what waits for you: one by one on a terminal, or by ID."""
    from clawmark.errors import UsageError
    from clawmark.model import Yes
    from clawmark.store.proposals import number_in

    edited = () if edit is None else (edit,)
    ids = [*accept, *reject, *defer, *edited]
    wrong = _wrong_use(
        [
            (bool(ids) and (listing or deferred), "--list and --deferred show what waits; leave them out to decide."),
            (bool(ids) and scope is not None, "--scope narrows a list; an ID says which one is meant."),
            (
                len({number_in(one) or one for one in ids}) < len(ids),
                "one ID is named twice; say once what becomes of it.",
            ),
            (sum([merge is not None, supersede, keep_both]) > 1, "--merge, --supersede, --keep-both: say one of them."),
            (
                (merge is not None or supersede or keep_both) and not (accept or edited),
                "--merge, --supersede and --keep-both go with --accept or --edit.",
            ),
            (merge is not None and key is not None, "--merge names the key already; leave --key out."),
            ((value is not None or key is not None) and not edited, "--value and --key go with --edit."),
            (bool(edited) and value is None and key is None and not is_asked(), "say what to store: --value or --key."),
            (reason is not None and not reject, "--reason goes with --reject."),
            (days is not None and not defer, "--days goes with --defer."),
        ]
    )
    if wrong:
        raise UsageError(wrong)
    way: Way = "supersede" if supersede else "keep_both" if keep_both else "replace"
    yes = Yes(value=value, key=key, into=merge, way=way)
    with opened() as memory:
        if not ids:
            return _look(memory, scope, deferred=deferred, walk=not listing and not deferred, as_json=as_json)
        desk = Desk(memory)
        steps = [
            *((one, lambda p: desk.accept(p, replace(yes, value=None, key=None))) for one in accept),
            *((one, lambda p: desk.edit(p, yes)) for one in edited),
            *((one, lambda p: desk.reject(p, reason or "")) for one in reject),
            *((one, lambda p: desk.defer(p, days or LATER_DAYS)) for one in defer),
        ]
        code = _decide(desk, steps, quiet=as_json)
        if as_json:
            left = memory.proposals()
            print_json({"decided": desk.decided, "proposals": [one.as_json() for one in left]})
    if code:
        raise SystemExit(code)


def _wrong_use(rules: Sequence[tuple[bool, str]]) -> str:
    return next((said for is_wrong, said in rules if is_wrong), "")


# Deciding


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Nothing was decided, and why."""

    said: str


class Desk:
    """Where proposals are decided. Each call says in one line what became of one; `decided` has it for programs."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.scopes = memory.scopes()
        self.decided: list[dict[str, Any]] = []

    def now(self, proposal: Proposal) -> Proposal | None:
        """The same one as it stands by now; None where it does not wait any more."""
        from clawmark.errors import UsageError

        try:
            return self.memory.proposal(proposal.name)
        except UsageError:
            return None

    def accept(self, proposal: Proposal, yes: Yes) -> str:
        from clawmark.guard.markers import defuse, quote

        before = self.memory.facts()
        fact = self.memory.accept(proposal.name, value=yes.value, key=yes.key, into=yes.into, way=yes.way)
        self._note(proposal, "accepted", fact)
        if fact is None:
            return f"{proposal.key} is erased ({called(proposal.scope, self.scopes)})"
        left = {(one.scope, one.key) for one in self.memory.facts()}
        ended = [one for one in before if (one.scope, one.key) not in left]
        lines = [f"{fact.key} is set: {defuse(fact.value)}  ({called(fact.scope, self.scopes)})"]
        lines += [f"{one.key} ended: {quote(one.value)}  ({called(one.scope, self.scopes)})" for one in ended]
        return "\n".join(lines)

    def edit(self, proposal: Proposal, yes: Yes) -> str | Unchanged:
        """As corrected; in the person's editor where they did not say how."""
        from clawmark.errors import UsageError

        if proposal.kind == "forget":
            raise UsageError(f"{proposal.name} wants a fact erased; there is nothing to edit. Accept or reject it.")
        if yes.value is None and yes.key is None:
            written = _written(proposal)
            if written is None:
                return Unchanged(f"{proposal.name} is as it was, and waits")
            key, value = written
            yes = replace(yes, value=value, key=None if key == proposal.key else key)
        return self.accept(proposal, yes)

    def reject(self, proposal: Proposal, reason: str) -> str:
        self.memory.reject(proposal.name, reason)
        self._note(proposal, "rejected", None)
        if proposal.kind == "forget":
            return f"{proposal.key} stays ({called(proposal.scope, self.scopes)})"
        return f"{proposal.name} is rejected; nothing is stored"

    def defer(self, proposal: Proposal, days: int) -> str:
        self.memory.defer(proposal.name, days)
        later = self.memory.proposal(proposal.name)
        self._note(later, "deferred", None)
        until = later.deferred_until
        return f"{proposal.name} waits until {until:%Y-%m-%d}" if until is not None else f"{proposal.name} waits"

    def _note(self, proposal: Proposal, became: str, fact: Fact | None) -> None:
        until = proposal.deferred_until if became == "deferred" else None
        self.decided.append(
            {
                "id": proposal.name,
                "kind": proposal.kind,
                "scope": proposal.scope,
                "key": proposal.key,
                "became": became,
                "fact": None if fact is None else fact.as_json(),
                "deferred_until": None if until is None else until.isoformat(),
            }
        )


Step: TypeAlias = tuple[str, Callable[["Proposal"], "str | Unchanged"]]


def _decide(desk: Desk, steps: Sequence[Step], *, quiet: bool) -> int:
    """Take all steps; the exit code. One that cannot be taken is named, and holds up no other."""
    from clawmark.errors import ClawmarkError

    code = 0
    for name, step in steps:
        try:
            done = step(desk.memory.proposal(name))
        except ClawmarkError as failed:
            complain(str(failed))
            code = code or failed.exit_code
            continue
        if not quiet:
            click.echo(done.said if isinstance(done, Unchanged) else done)
    return code


def _written(proposal: Proposal) -> tuple[str, str] | None:
    """Key and value as the person leaves them in their editor; None where they change nothing. Raises UsageError where
    the editor cannot be run, or leaves no text."""
    from clawmark.errors import UsageError

    try:
        text = click.edit(f"{proposal.key}\n{proposal.value}\n\n{EXPLAINED}")
    except UnicodeDecodeError:
        raise UsageError(f"what your editor saved is no UTF-8 text; {proposal.name} is as it was, and waits.") from None
    except ValueError as unreadable:  # a quotation mark that is never closed
        raise UsageError(
            f"$VISUAL or $EDITOR names no command ({unreadable}); {proposal.name} is as it was, and waits."
        ) from None
    except (click.ClickException, OSError) as failed:
        said = failed.message if isinstance(failed, click.ClickException) else failed.strerror or str(failed)
        raise UsageError(f"{said}; {proposal.name} is as it was, and waits.") from None
    kept = (text or "").partition(SCISSORS)[0]
    key, _, value = kept.strip("\n").partition("\n")
    if not key.strip() or not value.strip() or (key, value.strip()) == (proposal.key, proposal.value.strip()):
        return None
    return key, value.strip()


# Looking


def _look(memory: Memory, scope: str | None, *, deferred: bool, walk: bool, as_json: bool) -> None:
    waiting = memory.proposals(scope, deferred=deferred)
    if as_json:
        return print_json({"decided": [], "proposals": [one.as_json() for one in waiting]})
    if waiting and walk and is_asked():
        return _walk(memory, waiting)
    names = memory.scopes()
    for one in waiting:
        click.echo(f"{one.name}  {said(one)}")
        for line in (waits_because(one, names), *_rests_on_briefly(memory, one)):
            click.echo(f"    {line}")
        beside = _beside(memory, one)
        for line in (*(_against(one, fact, names) for fact in beside), *_against_waiting(memory, one, beside)):
            click.echo(f"    {line}")
    if not waiting:
        click.echo("nothing waits for you" + (f" in {scope}" if scope is not None else ""), err=True)
        for line in unknown_scope(memory, scope):
            complain(line)


def said(proposal: Proposal) -> str:
    """What it says, whole and on one line."""
    from clawmark.guard.markers import defuse

    what = f"{defuse(proposal.key)}: {defuse(proposal.value)}"
    return f"erase {what}" if proposal.kind == "forget" else what


def waits_because(proposal: Proposal, names: dict[str, str]) -> str:
    """Whose it is, whose word, how sure, and why it waits."""
    from clawmark.cli.reasons import speaker, words_of

    put_off = f"; put off until {proposal.deferred_until:%Y-%m-%d}" if proposal.deferred_until else ""
    return (
        f"{called(proposal.scope, names)}; {speaker(proposal.origin)}, said {proposal.observed_at:%Y-%m-%d}; "
        f"confidence {proposal.confidence:.2f}; {words_of(proposal.reason)}{put_off}"
    )


def _rests_on(memory: Memory, proposal: Proposal) -> list[str]:
    """The messages that it rests on itself, not those of another value of its key."""
    found = [told(one) for one in memory.evidence(proposal)]
    if not found and proposal.kind == "set" and proposal.origin != "agent":
        return ["what it rests on cannot be read now"]
    return found


def _rests_on_briefly(memory: Memory, proposal: Proposal) -> list[str]:
    """The head of the newest of them, on one line."""
    from clawmark.text import cut

    lines = _rests_on(memory, proposal)
    more = f"  (and {len(lines) - 1} earlier)" if len(lines) > 1 else ""
    return [(line if len(line) <= HEAD else f'{cut(line, HEAD)}…"') + more for line in lines[-1:]]


def _beside(memory: Memory, proposal: Proposal) -> list[Fact]:
    """The facts that a yes is about, as they stand now: what stands under its key, and what it is against; of one key
    that of its own scope, else the shared one. What it would erase it says itself."""
    from clawmark.model import SHARED
    from clawmark.text import likeness

    if proposal.kind == "forget":
        return []
    stored = {(fact.key, fact.scope): fact for fact in memory.facts(proposal.scope)}
    found = [
        stored.get((key, proposal.scope)) or stored.get((key, SHARED))
        for key in dict.fromkeys((proposal.key, proposal.against or proposal.key))
    ]
    return [
        fact
        for fact in found
        if fact is not None and (fact.key != proposal.key or likeness(fact.value) != likeness(proposal.value))
    ]


CONFLICTS = {
    "duplicate": "known already as",
    "merge_candidate": "says much of what is said by",
    "conflict_candidate": "against",
}


def _against(proposal: Proposal, fact: Fact, names: dict[str, str]) -> str:
    """How a proposal stands to a fact beside it, and what a yes does to that."""
    from clawmark.facts.subject import same_subject
    from clawmark.guard.markers import quote

    how = CONFLICTS.get(proposal.conflict, "against") if fact.key == proposal.against else "against"
    where = "" if fact.scope == proposal.scope else f"{called(fact.scope, names)}, "
    does = ""
    if same_subject(fact.key, proposal.key):
        is_later = fact.reinforced_at > proposal.observed_at
        does = ", which was said later: only superseding replaces it" if is_later else "; a yes replaces it"
    return f"{how} {fact.key}: {quote(fact.value)}  ({where}{said_by(fact.source)}, {said_on(fact)}){does}"


def _against_waiting(memory: Memory, proposal: Proposal, beside: Sequence[Fact]) -> list[str]:
    """What waits longer and says the opposite, where no fact does: a yes to both would leave both."""
    if proposal.against is None or any(fact.key == proposal.against for fact in beside):
        return []
    known = memory.why(proposal.against, proposal.scope)
    waiting = [one for about in known for one in about.proposals if one.id < proposal.id]
    return [f"against what waits as {one.name}: {said(one)}" for one in waiting]


def _walk(memory: Memory, waiting: Sequence[Proposal]) -> None:
    """One by one, until all are decided or the person stops. What was decided stays decided."""
    from clawmark.errors import ClawmarkError

    desk = Desk(memory)
    for number, listed in enumerate(waiting, 1):
        click.echo(f"\n{number} of {len(waiting)}  {listed.name}")
        proposal = desk.now(listed)  # what was decided before may have changed what it is against
        if proposal is None:
            click.echo("  it does not wait any more")
            continue
        beside = _beside(memory, proposal)
        against = [_against(proposal, fact, desk.scopes) for fact in beside]
        against += _against_waiting(memory, proposal, beside)
        for line in (said(proposal), waits_because(proposal, desk.scopes), *_rests_on(memory, proposal), *against):
            click.echo(f"  {line}")
        while True:
            answer, rest = _asked(proposal, beside)
            if answer == "q":
                return _left(memory)
            try:
                done = _answered(desk, proposal, beside, answer, rest)
            except ClawmarkError as failed:
                complain(str(failed))
                continue
            click.echo(done.said if isinstance(done, Unchanged) else done)
            if not isinstance(done, Unchanged):
                break
    _left(memory)


def _left(memory: Memory) -> None:
    left = len(memory.proposals())
    click.echo(f"{left} still wait" if left > 1 else "1 still waits" if left else "nothing waits any more")


HELP = {
    "a": "store it as your word, in the place of what is known of the same thing",
    "e": "correct it in your editor, and store that",
    "m": "make it a part of the fact it is against",
    "s": "store it; what stands there now was true until then",
    "k": "store it; what stands there now stays as well",
    "r": "leave it, and do not propose it again; a reason may follow: r not true any more",
    "l": f"ask again in {LATER_DAYS} days, or as you say: l 30",
    "q": "stop here; what is not decided waits",
}
HELP_TO_ERASE = HELP | {
    "a": "erase it, with what was said of it",
    "r": "keep it, and show it again; a reason may follow",
}
LETTERS = {
    "accept": "a",
    "edit": "e",
    "merge": "m",
    "supersede": "s",
    "keep": "k",
    "reject": "r",
    "later": "l",
    "quit": "q",
}


def _can(proposal: Proposal, beside: Sequence[Fact]) -> str:
    """The letters that can be answered."""
    if proposal.kind == "forget":
        return "arlq"
    return "aemskrlq" if beside else "aerlq"


def _choices(can: str, *, erases: bool) -> str:
    if erases:
        return "[a]ccept and erase, [r]eject and keep, [l]ater, [q]uit, [?]"
    named = {letter: f"[{letter}]{word[1:]}" for word, letter in LETTERS.items()} | {"k": "[k]eep both"}
    return ", ".join([*(named[letter] for letter in can), "[?]"])


def _asked(proposal: Proposal, beside: Sequence[Fact]) -> tuple[str, str]:
    """What the person answers: a letter, "" or what is no answer; and what they said after it. The end of what can be
    read is a "q"."""
    choices = _choices(_can(proposal, beside), erases=proposal.kind == "forget")
    try:
        typed = click.prompt(choices, default="", show_default=False)
    except click.Abort:
        click.echo()
        return "q", ""
    first, _, rest = typed.strip().partition(" ")
    return LETTERS.get(first.casefold(), first.casefold()), rest.strip()


def _answered(desk: Desk, proposal: Proposal, beside: Sequence[Fact], answer: str, rest: str) -> str | Unchanged:
    from clawmark.model import Yes

    can = _can(proposal, beside)
    if not answer:  # the person has lost sight of it
        again = [said(proposal), *(_against(proposal, fact, desk.scopes) for fact in beside)]
        return Unchanged("\n".join(f"  {line}" for line in again))
    has_more = bool(rest) and answer not in "rl" and (answer, rest.casefold()) != ("k", "both")
    if len(answer) != 1 or answer not in can or has_more:
        told = HELP_TO_ERASE if proposal.kind == "forget" else HELP
        return Unchanged("\n".join(f"  {letter}  {told[letter]}" for letter in can))
    if answer == "e":
        return desk.edit(proposal, Yes())
    if answer == "r":
        return desk.reject(proposal, rest)
    if answer == "l":
        if rest and not (rest.isascii() and rest.isdigit() and 1 <= int(rest[:4]) <= 365):
            return Unchanged("say for how many days, from 1 to 365: l 30")
        return desk.defer(proposal, int(rest) if rest else LATER_DAYS)
    if answer == "m":
        takes_in = next((fact for fact in beside if fact.key == proposal.against), beside[0])
        return desk.accept(proposal, Yes(into=takes_in.key))
    return desk.accept(proposal, Yes(way="supersede" if answer == "s" else "keep_both" if answer == "k" else "replace"))


# Why


@click.command(cls=Command)
@click.argument("key")
@SCOPE
@JSON
def why(key: str, scope: str | None, as_json: bool) -> None:
    """Say what stands under KEY, who said it when, and what it was before."""
    from clawmark.facts import statement

    key = statement.named(key)
    with opened() as memory:
        found = memory.why(key, scope)
        unknown = unknown_scope(memory, scope)
        names = memory.scopes()
        faded = memory.faded([one.fact for one in found if one.fact is not None])
    if as_json:
        return print_json({"why": [one.as_json() | {"faded": (one.scope, one.key) in faded} for one in found]})
    for number, one in enumerate(found):
        if number:
            click.echo()
        click.echo(f"{one.key}  ({called(one.scope, names)})")
        for line in _explained(one, names, is_faded=(one.scope, one.key) in faded):
            click.echo(f"  {line}")
    if not found:
        click.echo(f"nothing is known of {key}" + (f" in {scope}" if scope is not None else ""), err=True)
    for line in unknown:
        complain(line)


def _explained(known: Why, names: dict[str, str], *, is_faded: bool) -> list[str]:
    from clawmark.guard.markers import defuse

    lines = []
    if known.fact is None:
        lines.append("nothing is stored there now")
    else:
        fact = known.fact
        state = "; hidden, see clawmark facts --hidden" if known.hidden else f"; {FADED}" if is_faded else ""
        lines.append(f"value     {defuse(fact.value)}")
        lines.append(
            f"said by   {said_by(fact.source)}, first on {fact.observed_at:%Y-%m-%d}, last on "
            f"{fact.reinforced_at:%Y-%m-%d}; confidence {fact.confidence:.2f}{state}"
        )
    lines += [f"rests on  {line}" for line in _all_it_rests_on(known)]
    lines += [f"history   {line}" for line in history(known.history, known.fact)]
    lines += [f"waits     {one.name}  {said(one)}; {waits_because(one, names)}" for one in known.proposals]
    return lines


def _all_it_rests_on(known: Why) -> list[str]:
    """What was said, with dates, oldest first; of what cannot be read now the date alone."""
    read = [(one.at, told(one)) for one in known.evidence]
    gone = [(at, f"{at:%Y-%m-%d}  (its log cannot be read now)") for at in known.unread]
    return [line for _, line in sorted([*read, *gone], key=lambda pair: (pair[0] is not None, pair[0]))]


ENDS = ("create", "update", "forget", "supersede", "withdraw")
"""Events with which the value before them stood no more."""

HAPPENED = {
    "accept": "you accepted what was proposed",
    "conflict_skip": "something else was said, and did not replace it",
    "decay": "nobody had stated it for a year: it was hidden",
    "forget": "it was erased",
    "hide": "the agent had it forgotten unasked: it was hidden",
    "injection_flag": "it reads like an order, and was stored since you set it yourself",
    "supersede": "it gave way to another fact",
    "unhide": "you took it back",
    "withdraw": "it was erased: all it rested on was deleted",
}


@dataclass(slots=True)
class _Stood:
    """A value and how long it stood, as ISO dates; value None = it was forgotten, and nobody knows it any more."""

    value: str | None
    writer: str
    since: str
    until: str = ""
    times: int = 1

    def told(self) -> str:
        from clawmark.guard.markers import quote

        what = "something that was forgotten" if self.value is None else quote(self.value)
        until = f" until {self.until}" if self.until else ""
        times = f", said {self.times} times" if self.times > 1 else ""
        return f"{what}, true from {self.since}{until}  ({said_by(self.writer)}{times})"


def history(events: Sequence[Event], fact: Fact | None) -> list[str]:
    """What stood there from when to when, and what else happened; oldest first, as `events` are.

    fact: what stands there now. When something was said may be long before it was stored: events of a change say it.
    """
    lines: list[_Stood | str] = []
    now: _Stood | None = None
    for event in events:
        detail, day = _detail(event), f"{event.created_at:%Y-%m-%d}"
        if event.event_type in ENDS and now is not None:
            now.since, now.until = _text(detail, "from") or now.since, _text(detail, "until") or day
            now = None
        if event.event_type in ("create", "update"):
            now = _Stood(event.new_value, event.source, _text(detail, "until") or day)
            lines.append(now)
        elif event.event_type == "reinforce" and now is not None:
            now.times += 1
        else:
            what = HAPPENED.get(event.event_type, event.event_type.replace("_", " "))
            by = _text(detail, "by")
            lines.append(f"{day}  {what}{by and f', {by}'}")
    if now is not None and fact is not None:
        now.since = f"{fact.observed_at:%Y-%m-%d}"
    return [line if isinstance(line, str) else line.told() for line in lines]


def _detail(event: Event) -> dict[str, Any]:
    try:
        detail = json.loads(event.detail or "")
    except ValueError:
        return {}
    return detail if isinstance(detail, dict) else {}


def _text(detail: Mapping[str, Any], name: str) -> str:
    value = detail.get(name)
    return value if isinstance(value, str) else ""
