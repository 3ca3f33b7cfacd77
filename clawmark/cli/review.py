"""`review` and `why`: what waits for the person, and where what is known is from.

Whatever is printed of a proposal is all of its value, on one line and without control characters: what a person says yes
to is what they have seen, and its name holds the hash of it. One that cannot be decided goes on waiting.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from clawmark.cli.common import JSON, SCOPE, WRITERS, complain, is_asked, opened, print_json, unknown_scope

if TYPE_CHECKING:
    from clawmark.belief import Way
    from clawmark.memory import Memory
    from clawmark.model import Event, Excerpt, Fact, Proposal, Why

LATER_DAYS = 7
SCISSORS = "# ---------------------------- >8 ----------------------------"
EXPLAINED = f"""\
{SCISSORS}
# The first line is the key, what follows up to here is the value. Everything from that line on is left out.
# Save an empty file to change nothing.
"""


@click.command()
@click.option("--list", "listing", is_flag=True, help="Print what waits; the default where nobody can be asked.")
@click.option("--deferred", is_flag=True, help="List those that were put off as well.")
@click.option("--accept", metavar="ID", multiple=True, help="Store it as your word, or erase what it wants erased.")
@click.option("--reject", metavar="ID", multiple=True, help="Leave it; the same words are not proposed again.")
@click.option("--defer", metavar="ID", multiple=True, help=f"Put it off for {LATER_DAYS} days.")
@click.option("--edit", metavar="ID", help="Accept it as corrected: by --value and --key, else in your editor.")
@click.option("--merge", metavar="KEY", help="With --accept: make it a part of the fact KEY.")
@click.option("--supersede", is_flag=True, help="With --accept: the fact it is against was true until now.")
@click.option("--keep-both", is_flag=True, help="With --accept: the fact it is against stays as well.")
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

    edited = () if edit is None else (edit,)
    ids = [*accept, *reject, *defer, *edited]
    wrong = _wrong_use(
        [
            (bool(ids) and (listing or deferred), "--list and --deferred show what waits; leave them out to decide."),
            (bool(ids) and scope is not None, "--scope narrows a list; an ID says which one is meant."),
            (len({_number(one) for one in ids}) < len(ids), "one ID is named twice; say once what becomes of it."),
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
    with opened() as memory:
        if not ids:
            return _look(memory, scope, deferred=deferred, walk=not listing and not deferred, as_json=as_json)
        desk = Desk(memory)
        steps = [
            *((one, lambda p: desk.accept(p, into=merge, way=way)) for one in accept),
            *((one, lambda p: desk.edit(p, value, key, into=merge, way=way)) for one in edited),
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


def _number(name: str) -> str:
    return name.partition("-")[0]


# Deciding


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Nothing was decided, and why."""

    said: str


class Desk:
    """Where proposals are decided. Each call says in one line what became of one; `decided` has it for programs."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.decided: list[dict[str, Any]] = []

    def find(self, name: str) -> Proposal:
        """The one that waits under this name. Whoever gives its number alone is asked about what stands there now."""
        from clawmark.errors import UsageError

        number, _, hashed = name.strip().partition("-")
        for one in self.memory.proposals(deferred=True):
            if number == str(one.id) and one.content_hash.startswith(hashed):
                return one
            if number == str(one.id):
                raise UsageError(f"{name} says something else by now: it is {one.name}; look at it again.")
        raise UsageError(f"nothing waits under {name!r}; `clawmark review --list` names what does.")

    def accept(
        self,
        proposal: Proposal,
        *,
        value: str | None = None,
        key: str | None = None,
        into: str | None = None,
        way: Way = "replace",
    ) -> str:
        from clawmark.guard.markers import defuse

        fact = self.memory.accept(proposal.name, value=value, key=key, into=into, way=way)
        self._note(proposal, "accepted", fact)
        if fact is None:
            return f"{proposal.key} is erased ({proposal.scope})"
        return f"{fact.key} is set: {defuse(fact.value)}  ({fact.scope})"

    def edit(
        self,
        proposal: Proposal,
        value: str | None,
        key: str | None,
        *,
        into: str | None = None,
        way: Way = "replace",
    ) -> str | Unchanged:
        """As corrected; in the person's editor where they did not say how."""
        from clawmark.errors import UsageError

        if proposal.kind == "forget":
            raise UsageError(f"{proposal.name} wants a fact erased; there is nothing to edit. Accept or reject it.")
        if value is None and key is None:
            written = _written(proposal)
            if written is None:
                return Unchanged(f"{proposal.name} is as it was, and waits")
            key, value = written
        return self.accept(proposal, value=value, key=key, into=into, way=way)

    def reject(self, proposal: Proposal, reason: str) -> str:
        self.memory.reject(proposal.name, reason)
        self._note(proposal, "rejected", None)
        if proposal.kind == "forget":
            return f"{proposal.key} stays ({proposal.scope})"
        return f"{proposal.name} is rejected; nothing is stored"

    def defer(self, proposal: Proposal, days: int) -> str:
        self.memory.defer(proposal.name, days)
        later = self.find(proposal.name)
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
            done = step(desk.find(name))
        except ClawmarkError as failed:
            complain(str(failed))
            code = code or failed.exit_code
            continue
        if not quiet:
            click.echo(done.said if isinstance(done, Unchanged) else done)
    return code


def _written(proposal: Proposal) -> tuple[str, str] | None:
    """Key and value as the person leaves them in their editor; None where they change nothing."""
    text = click.edit(f"{proposal.key}\n{proposal.value}\n\n{EXPLAINED}")
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
    for one in waiting:
        click.echo(f"{one.name}  {said(one)}")
        click.echo(f"    {waits_because(one)}")
    if not waiting:
        click.echo("nothing waits for you", err=True)
    for line in unknown_scope(memory, scope):
        complain(line)


def said(proposal: Proposal) -> str:
    """What it says, whole and on one line."""
    from clawmark.guard.markers import defuse

    what = f"{defuse(proposal.key)}: {defuse(proposal.value)}"
    return f"erase {what}" if proposal.kind == "forget" else what


def waits_because(proposal: Proposal) -> str:
    """Whose it is, whose word, how sure, and why it waits."""
    from clawmark.cli.reasons import speaker, words_of

    put_off = f"; put off until {proposal.deferred_until:%Y-%m-%d}" if proposal.deferred_until else ""
    return (
        f"{proposal.scope}; {speaker(proposal.origin)}, {proposal.observed_at:%Y-%m-%d}; "
        f"confidence {proposal.confidence:.2f}; {words_of(proposal.reason)}{put_off}"
    )


CONFLICTS = {
    "duplicate": "It is known already:",
    "merge_candidate": "It says much of what this says:",
    "conflict_candidate": "It says something else than this:",
}


def _walk(memory: Memory, waiting: Sequence[Proposal]) -> None:
    """One by one, until all are decided or the person stops. What was decided stays decided."""
    from clawmark.errors import ClawmarkError

    desk = Desk(memory)
    for number, proposal in enumerate(waiting, 1):
        against = _against(memory, proposal)
        click.echo(f"\n{number} of {len(waiting)}  {proposal.name}")
        for line in _told(memory, proposal, against):
            click.echo(f"  {line}")
        while True:
            try:
                answer, _, rest = click.prompt(_choices(proposal, against), default="", show_default=False).partition(
                    " "
                )
            except click.Abort:
                answer, rest = "q", ""
                click.echo()
            if answer == "q":
                return _left(memory)
            try:
                done = _answered(desk, proposal, against, answer, rest.strip())
            except (ClawmarkError, click.ClickException) as failed:
                complain(failed.message if isinstance(failed, click.ClickException) else str(failed))
                continue
            click.echo(done.said if isinstance(done, Unchanged) else done)
            if not isinstance(done, Unchanged):
                break
    _left(memory)


def _left(memory: Memory) -> None:
    left = len(memory.proposals())
    click.echo(f"{left} still wait" if left > 1 else "1 still waits" if left else "nothing waits any more")


def _choices(proposal: Proposal, against: Fact | None) -> str:
    if proposal.kind == "forget":
        return "[a]ccept and erase, [r]eject and keep, [l]ater, [q]uit, [?]"
    other = " [m]erge, [s]upersede, [k]eep both," if against is not None else ""
    return f"[a]ccept, [e]dit,{other} [r]eject, [l]ater, [q]uit, [?]"


HELP = {
    "a": "store it as your word; in place of the fact it is against, where there is one",
    "e": "correct it in your editor, and store that",
    "m": "make it a part of the fact it is against",
    "s": "store it, and the fact it is against was true until now",
    "k": "store it, and the fact it is against stays",
    "r": "leave it, and do not propose it again; a reason may follow: r not true any more",
    "l": f"ask again in {LATER_DAYS} days, or as you say: l 30",
    "q": "stop here; what is not decided waits",
}


def _answered(desk: Desk, proposal: Proposal, against: Fact | None, answer: str, rest: str) -> str | Unchanged:
    can = "arlq" if proposal.kind == "forget" else "aemskrlq" if against is not None else "aerlq"
    if len(answer) != 1 or answer not in can:
        return Unchanged("\n".join(f"  {letter}  {HELP[letter]}" for letter in can))
    if answer == "e":
        return desk.edit(proposal, None, None)
    if answer == "r":
        return desk.reject(proposal, rest)
    if answer == "l":
        if rest and not (rest.isascii() and rest.isdigit() and 1 <= int(rest[:4]) <= 365):
            return Unchanged("say for how many days, from 1 to 365: l 30")
        return desk.defer(proposal, int(rest) if rest else LATER_DAYS)
    if answer == "m" and against is not None:
        return desk.accept(proposal, into=against.key)
    return desk.accept(proposal, way="supersede" if answer == "s" else "keep_both" if answer == "k" else "replace")


def _against(memory: Memory, proposal: Proposal) -> Fact | None:
    """The fact that it is about, as it stands now."""
    from clawmark.model import SHARED

    found = [fact for fact in memory.facts(proposal.scope) if fact.key == proposal.against]
    own = [fact for fact in found if fact.scope == proposal.scope]
    return next(iter(own or [fact for fact in found if fact.scope == SHARED]), None)


def _told(memory: Memory, proposal: Proposal, against: Fact | None) -> list[str]:
    """All that a person needs to decide."""
    from clawmark.guard.markers import defuse

    lines = [said(proposal), waits_because(proposal)]
    if against is not None:
        about = CONFLICTS.get(proposal.conflict, "It is about this:")
        writer = WRITERS.get(against.source, against.source)
        lines.append(f"{about} {against.key}: {defuse(against.value)}  ({writer}, {against.observed_at:%Y-%m-%d})")
    for known in memory.why(proposal.key, proposal.scope):
        if known.scope == proposal.scope:
            lines += _rests_on(known)
    return lines


# Why


@click.command()
@click.argument("key")
@SCOPE
@JSON
def why(key: str, scope: str | None, as_json: bool) -> None:
    """Say what stands under KEY, who said it when, and what it was before."""
    from clawmark.facts import gate

    key = gate.key(key)
    with opened() as memory:
        found = memory.why(key, scope)
        unknown = unknown_scope(memory, scope)
        names = memory.scopes()
    if as_json:
        return print_json({"why": [one.as_json() for one in found]})
    for number, one in enumerate(found):
        if number:
            click.echo()
        click.echo(f"{one.key}  ({names.get(one.scope) or one.scope})")
        for line in _explained(one):
            click.echo(f"  {line}")
    if not found:
        click.echo(f"nothing is known of {key}", err=True)
    for line in unknown:
        complain(line)


def _explained(known: Why) -> list[str]:
    from clawmark.guard.markers import defuse

    lines = []
    if known.fact is None:
        lines.append("nothing is stored there now")
    else:
        fact = known.fact
        hidden = "; hidden by an agent, see clawmark facts --hidden" if known.hidden else ""
        lines.append(f"value     {defuse(fact.value)}")
        lines.append(
            f"said by   {WRITERS.get(fact.source, fact.source)}, first on {fact.observed_at:%Y-%m-%d}, last on "
            f"{fact.reinforced_at:%Y-%m-%d}; confidence {fact.confidence:.2f}{hidden}"
        )
    lines += [f"rests on  {line}" for line in _rests_on(known)]
    lines += [f"history   {line}" for line in history(known.history, known.fact)]
    lines += [f"waits     {one.name}  {said(one)}; {waits_because(one)}" for one in known.proposals]
    return lines


def _rests_on(known: Why) -> list[str]:
    """What was said, with dates, oldest first; of what cannot be read now the date alone."""
    read = [(one.at, _excerpt(one)) for one in known.evidence]
    gone = [(at, f"{at:%Y-%m-%d}  (its log cannot be read now)") for at in known.unread]
    return [line for _, line in sorted([*read, *gone], key=lambda pair: (pair[0] is not None, pair[0]))]


def _excerpt(excerpt: Excerpt) -> str:
    from clawmark.guard.markers import defuse, quote

    when = "unknown   " if excerpt.at is None else f"{excerpt.at:%Y-%m-%d}"
    who = "assistant" if excerpt.role == "assistant" else defuse(excerpt.author) if excerpt.author else "you"
    return f"{when}  {who}: {quote(excerpt.excerpt)}"


ENDS = ("create", "update", "forget", "supersede", "withdraw")
"""Events with which the value before them stood no more."""

HAPPENED = {
    "accept": "you accepted what was proposed",
    "conflict_skip": "something else was said, and did not replace it",
    "decay": "nobody had stated it for a year: it was hidden",
    "forget": "it was erased",
    "hide": "an agent had it forgotten unasked: it was hidden",
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
        return f"{what}, true from {self.since}{until}  ({WRITERS.get(self.writer, self.writer)}{times})"


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
