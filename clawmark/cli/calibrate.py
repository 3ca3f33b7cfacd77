"""`calibrate`: what extraction would make of the last weeks, and how often the person agreed with it.

A dry run writes nothing. A threshold is recommended from decisions that a person made, never from what a model says of
itself, and only where there are enough of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from clawmark.cli.common import JSON, complain, opened, print_json

if TYPE_CHECKING:
    from clawmark.model import Decision, Ruling

TARGET = 0.7
"""Of what was decided, as much should be accepted."""
ENOUGH, ENOUGH_ABOVE = 20, 5
"""Decisions from which on a threshold is recommended, and how many of them must lie at or above it."""
MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Decisions:
    """How a person decided about statements that waited. edited: of those that were accepted."""

    accepted: int
    edited: int
    rejected: int

    @property
    def rate(self) -> float | None:
        """Accepted of all; None where nothing was decided."""
        decided = self.accepted + self.rejected
        return self.accepted / decided if decided else None

    def as_json(self) -> dict[str, Any]:
        rate = None if self.rate is None else round(self.rate, 3)
        return {
            "accepted": self.accepted,
            "edited": self.edited,
            "rejected": self.rejected,
            "rate": rate,
            "target": TARGET,
        }


@dataclass(frozen=True, slots=True)
class Measure:
    """How well a threshold tells what a person accepts from what they reject, as their decisions are the only labels there
    are. decided: at or above it."""

    threshold: float
    decided: int
    precision: float | None
    recall: float | None

    def as_json(self) -> dict[str, Any]:
        precision, recall = (None if one is None else round(one, 3) for one in (self.precision, self.recall))
        return {
            "threshold": self.threshold,
            "decided": self.decided,
            "precision": precision,
            "recall": recall,
        }


def measured(decided: Sequence[Decision], threshold: float) -> Measure:
    """precision: of what lies at or above the threshold, the share that was accepted; recall: of what was accepted, the share
    that lies there. None of nothing."""
    above = [one.accepted for one in decided if one.confidence >= threshold]
    accepted = sum(one.accepted for one in decided)
    return Measure(
        threshold,
        len(above),
        sum(above) / len(above) if above else None,
        sum(above) / accepted if accepted else None,
    )


def of_extraction(decided: Sequence[Decision], since: datetime) -> list[Decision]:
    """Those since then. What a tool call proposed is no judgement about extraction, and its confidence is always the same."""
    return [one for one in decided if one.at >= since and one.origin != "agent"]


def summed(decided: Sequence[Decision]) -> Decisions:
    accepted = sum(one.accepted for one in decided)
    return Decisions(accepted, sum(one.edited for one in decided), len(decided) - accepted)


def recommended(decided: Sequence[Decision]) -> float | None:
    """The lowest confidence from which on a person accepted as much as the target says; None where there is none, or where
    too little was decided to tell."""
    if len(decided) < ENOUGH:
        return None
    for threshold in sorted({one.confidence for one in decided}):
        above = [one.accepted for one in decided if one.confidence >= threshold]
        if len(above) >= ENOUGH_ABOVE and sum(above) / len(above) >= TARGET:
            return threshold
    return None


@click.command()
@click.option("--facts", is_flag=True, help="Extraction: a dry run, and what was decided.")
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=30,
    show_default=True,
    help="How far back: what was said, and what was decided.",
)
@JSON
def calibrate(facts: bool, days: int, as_json: bool) -> None:
    """Try extraction over what was said lately, without writing anything, and compare with what was decided."""
    from datetime import UTC

    from clawmark.errors import UsageError

    if not facts:
        raise UsageError("say what: --facts.")
    since = datetime.now(UTC) - timedelta(days=days)
    with opened() as memory:
        how = memory.extraction()
        if how.who.kind == "off":
            raise UsageError(
                "CLAWMARK_EXTRACT_URL is `off`, so nothing is extracted; set or remove it, then try again."
            )
        rulings = memory.dry_run(days)
        decided = of_extraction(memory.decisions(), since)
        is_read = bool(memory.scopes())
    # Marked sentences wait whatever the threshold says, each with the same confidence.
    advised = recommended(decided) if how.who.is_model else None
    if as_json:
        return print_json(
            {
                "days": days,
                "extractor": how.name,
                "counts": _counts(rulings),
                "rulings": [_ruling(scope, ruling) for scope, ruling in rulings],
                "decisions": summed(decided).as_json(),
                "threshold": how.threshold,
                "recommended": advised,
                "measured": [one.as_json() for one in _measures(decided, how.threshold, advised)],
            }
        )
    if not is_read:
        complain("nothing was read so far; `clawmark sync` reads the logs.")
    _show_rulings(rulings, how.name, days)
    _show_decisions(summed(decided), how.threshold, advised, by_model=how.who.is_model)
    for measure in _measures(decided, how.threshold, advised):
        _show_measure(measure)


def _measures(decided: Sequence[Decision], threshold: float, advised: float | None) -> list[Measure]:
    """Of the threshold that is set, and of the one that is recommended."""
    wanted = [threshold] if advised in (None, threshold) else [threshold, advised]
    return [measured(decided, one) for one in wanted if one is not None]


def _counts(rulings: Sequence[tuple[str, Ruling]]) -> dict[str, dict[str, int]]:
    """Outcome → rule → how many."""
    found: dict[str, Counter[str]] = {"store": Counter(), "propose": Counter(), "refuse": Counter()}
    for _, ruling in rulings:
        found.setdefault(ruling.outcome, Counter())[ruling.rule] += 1
    return {outcome: dict(sorted(rules.items())) for outcome, rules in found.items()}


def _ruling(scope: str, ruling: Ruling) -> dict[str, Any]:
    return {
        "scope": scope,
        "outcome": ruling.outcome,
        "rule": ruling.rule,
        "key": ruling.key,
        "value": _value(ruling),
        "confidence": ruling.confidence,
    }


def _value(ruling: Ruling) -> str:
    """What would be stored or wait; of what is refused the words are nobody's business."""
    from clawmark.guard.markers import defuse
    from clawmark.guard.secrets import mask

    return "" if ruling.outcome == "refuse" else mask(defuse(ruling.value))


def _show_rulings(rulings: Sequence[tuple[str, Ruling]], extractor: str, days: int) -> None:
    counts = _counts(rulings)
    click.echo(f"extractor  {extractor}, over the last {days} days; nothing was written")
    for outcome, word in (("store", "stored"), ("propose", "proposed"), ("refuse", "refused")):
        rules = ", ".join(f"{rule} {number}" for rule, number in counts[outcome].items() if rule)
        click.echo(f"{word:<9}  {sum(counts[outcome].values())}{f': {rules}' if rules else ''}")
    shown = [(scope, ruling) for scope, ruling in rulings if ruling.outcome != "refuse"]
    for scope, ruling in shown[:MOST_SHOWN]:
        click.echo(f"  {ruling.outcome:<7}  {ruling.key}: {_value(ruling)}  ({scope}, {ruling.confidence:.2f})")
    if len(shown) > MOST_SHOWN:
        click.echo(f"  and {len(shown) - MOST_SHOWN} more; --json lists all")


def _show_decisions(decided: Decisions, threshold: float, advised: float | None, *, by_model: bool) -> None:
    number = decided.accepted + decided.rejected
    if decided.rate is None:
        click.echo("decided    nothing yet; `clawmark review` shows what waits")
    else:
        click.echo(
            f"decided    {number}: {decided.accepted} accepted ({decided.edited} edited), "
            f"{decided.rejected} rejected; {decided.rate:.0%} accepted, {TARGET:.0%} wanted"
        )
    if not by_model:
        click.echo(f"threshold  {threshold:g}; without a model whatever is found waits, whatever the threshold")
    elif number < ENOUGH:
        click.echo(f"threshold  {threshold:g}; with {ENOUGH} decisions one can be recommended, there are {number}")
    elif advised is None:
        complain(
            f"from no confidence on are {TARGET:.0%} accepted; keep CLAWMARK_PROMOTE=review, or ask another model."
        )
    else:
        click.echo(f"threshold  {threshold:g}; CLAWMARK_CONFIDENCE_THRESHOLD={advised:g} fits what was decided")


def _show_measure(measure: Measure) -> None:
    if measure.precision is not None and measure.recall is not None:
        click.echo(
            f"at {measure.threshold:<6g}  precision {measure.precision:.0%}, recall {measure.recall:.0%} "
            f"of what was decided ({measure.decided} at or above it)"
        )
