"""What is known of an agent's sessions apart from their entries; the database tells it for the files as well.

Who took part in a session and what the person took back is said in one place only, while the texts may stand in both
eras: a database that was made from files outweighs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clawmark.model import StreamKind


@dataclass(frozen=True, slots=True)
class Session:
    """Whose a session is; one that nothing is known of is the owner's own, without a channel."""

    kind: StreamKind = "direct"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """What a database says about the sessions of its agent.

    forgotten   sessions the person asked to forget          deleted   deleted ones without a live row
    sessions    whose each session is                        losses    changes when one of its entries was taken back
    cold        session by the name of its cold archive      held      sessions of which entries stand here
    pending     sessions whose archive file may not have been written yet
    """

    forgotten: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    sessions: Mapping[str, Session] = field(default_factory=dict)
    losses: Mapping[str, str] = field(default_factory=dict)
    cold: Mapping[str, str] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    pending: frozenset[str] = frozenset()


NOTHING_KNOWN = Known()
