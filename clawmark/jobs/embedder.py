"""Which embedder makes vectors in this pass, when what the settings name may not be asked.

An endpoint outside this machine that only one of the two keys allows is not connected. The local model steps in only
where it would mix with no other: no vectors yet, or its own. Otherwise nothing is embedded and recall runs on words.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import apsw

from clawmark import net
from clawmark.embed import Embedder, choose
from clawmark.embed.local import LocalEmbedder, available
from clawmark.errors import ConsentMissing, EmbedderError, EndpointDown, EndpointError
from clawmark.settings import Settings
from clawmark.store import cursors, events, spaces
from clawmark.store.db import transaction

NO_EMBEDDER = "there is no embedder; install clawmark[local] or set CLAWMARK_EMBEDDING_URL."
OF_AN_ENDPOINT = (
    "the vectors are of an endpoint, and CLAWMARK_EMBEDDING_URL is not set here; nothing is embedded. Set it, or set "
    "CLAWMARK_EMBEDDER=local to have them all made anew by the local model."
)
WARNED = "config:warning"
"""The cursor that holds the warning that stands now, so that it is one event and not one per pass."""


def for_background(
    connection: apsw.Connection, path: Path, settings: Settings, clock: Callable[[], datetime]
) -> Embedder | None:
    """The embedder for the vectors job; None = nothing is embedded, and an event says why unless it was asked for."""
    chosen, warning = _allowed(connection, settings)
    if warning != cursors.get(connection, WARNED):
        with transaction(connection, path):
            if warning is None:
                cursors.drop(connection, WARNED)
            else:
                cursors.put(connection, WARNED, warning, clock())
                events.add(connection, "config_warning", clock(), source="settings", detail=warning)
    return chosen


def standing_warning(connection: apsw.Connection) -> str | None:
    """Why nothing is embedded, as the last pass found it."""
    return cursors.get(connection, WARNED)


def _allowed(connection: apsw.Connection, settings: Settings) -> tuple[Embedder | None, str | None]:
    """What may be asked, and what is wrong with what the settings name."""
    try:
        chosen = choose(settings, background=True)
        if chosen is not None and chosen.endpoint:
            net.require_consent(chosen.endpoint, settings.allow_remote)
        elif chosen is not None and settings.embedder == "auto" and is_anothers(connection, chosen):
            return None, OF_AN_ENDPOINT
    except EmbedderError as impossible:
        return None, str(impossible)
    except ConsentMissing as missing:
        stand_in = _stand_in(connection)
        instead = "recall runs on words" if stand_in is None else f"{stand_in.name} is used instead"
        return stand_in, f"{missing} Meanwhile {instead}."
    except (EndpointDown, EndpointError):
        pass  # asking it says the same, where it is noted as an embedder that is unavailable
    return chosen, None


def is_anothers(connection: apsw.Connection, chosen: Embedder) -> bool:
    """Whether a model of this process was chosen, and the vectors are of an endpoint: a shell without its variable must
    not have them all made anew."""
    used = spaces.in_use(connection)
    return bool(used and used[0].endpoint and not chosen.endpoint) and not spaces.same_model(
        used[0].space, chosen.space
    )


def _stand_in(connection: apsw.Connection) -> Embedder | None:
    if not available():
        return None
    local = LocalEmbedder(threads=1)
    used = spaces.in_use(connection)
    return local if not used or spaces.same_model(used[0].space, local.space) else None
