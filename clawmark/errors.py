"""What clawmark raises, and what a caller can do about it.

ClawmarkError                 something failed; the message says what to do next
├── UsageError                the caller's own input is wrong (exit 2)
│   ├── SettingsError         a setting has a value it cannot have
│   └── Refused               a fact was not stored; `.code` says why
├── SourceError               a message log could not be read
│   ├── SourceAbsent          it is not there; the next source may be
│   │   └── SourceEmpty       its place is there and holds nothing yet
│   ├── SourceDrift           it is there, in a form this version does not know
│   ├── SourceCorrupt         it is damaged; never touched, never skipped over in silence
│   └── SourceBusy            somebody holds it; try again (exit 75)
├── DatabaseError             the memory's own file
│   ├── DatabaseBusy          another process holds it; try again (exit 75)
│   ├── DatabaseNewer         a later clawmark wrote it
│   ├── DatabaseDamaged       it cannot be trusted; set aside, never deleted, by the next pass
│   ├── DatabaseForeign       somebody else's file; left as it is
│   └── DatabaseUnwritable    no room, no permission or no disk (exit 75)
├── EndpointDown              a server does not answer now; try again (exit 75)
├── EndpointError             a server is set up wrongly; trying again changes nothing
│   └── ConsentMissing        its host is outside this machine and not allowed; nothing was sent
├── ReplyUnusable             a model's reply held nothing that can be read; its words are never in the message
├── EmbedderDown              nothing can be embedded now; what waits stays pending (exit 75)
│   └── ModelChanged          two models answered one call; none of its vectors is used
└── EmbedderError             the embedder is set up wrongly; trying again changes nothing
    └── EmbedderRefused       its host is not allowed: the second key, CLAWMARK_ALLOW_REMOTE, is missing
"""

from __future__ import annotations

EXIT_ERROR, EXIT_USAGE, EXIT_BUSY = 1, 2, 75


class ClawmarkError(Exception):
    """Base of all. `exit_code` is what the command line ends with."""

    exit_code = EXIT_ERROR


class UsageError(ClawmarkError):
    exit_code = EXIT_USAGE


class SettingsError(UsageError):
    pass


class Refused(UsageError):
    """A fact that was not stored. `code` is one of KEY_FORMAT, VALUE_SIZE, SECRET, CONFLICT_SKIP,
    FORGOTTEN, NOT_OWNER, REVIEW (it waits for the person)."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason


class SourceError(ClawmarkError):
    """`parts`: what the names of the streams begin with that it is about; empty = all of the source's."""

    parts: tuple[str, ...] = ()


class SourceAbsent(SourceError):
    pass


class SourceEmpty(SourceAbsent):
    pass


class SourceDrift(SourceError):
    pass


class SourceCorrupt(SourceError):
    pass


class SourceBusy(SourceError):
    exit_code = EXIT_BUSY


class DatabaseError(ClawmarkError):
    pass


class DatabaseBusy(DatabaseError):
    exit_code = EXIT_BUSY


class DatabaseNewer(DatabaseError):
    pass


class DatabaseDamaged(DatabaseError):
    pass


class DatabaseForeign(DatabaseError):
    pass


class DatabaseUnwritable(DatabaseError):
    exit_code = EXIT_BUSY


class EndpointDown(ClawmarkError):
    exit_code = EXIT_BUSY


class EndpointError(ClawmarkError):
    pass


class ConsentMissing(EndpointError):
    pass


class ReplyUnusable(ClawmarkError):
    pass


class EmbedderDown(ClawmarkError):
    exit_code = EXIT_BUSY


class ModelChanged(EmbedderDown):
    pass


class EmbedderError(ClawmarkError):
    pass


class EmbedderRefused(EmbedderError):
    pass
