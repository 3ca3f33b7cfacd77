"""What each host can take, and when one of its turns deserves recall. Pure: values in, a decision out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from clawmark.text import count_cjk, normal


@dataclass(frozen=True, slots=True)
class Gate:
    """How often a host is given recall, where its transcript keeps what it was given.

    length     shortest prompt in characters, of which one of Chinese, Japanese or Korean counts double
    cooldown   seconds after a recall
    most       recalls in one session
    """

    length: int
    cooldown: float
    most: int


@dataclass(frozen=True, slots=True)
class Profile:
    """total and facts are caps in characters; excerpts is the most that are recalled at once.

    utf16         the host counts a character beyond the first 65,536 twice, as JavaScript does
    keeps_block   the host's transcript keeps the block, so nothing is shown twice in a session
    """

    total: int = 12_000
    facts: int = 6_000
    excerpts: int = 6
    gate: Gate | None = None
    keeps_block: bool = False
    utf16: bool = False

    def length(self, text: str) -> int:
        """Of a text, as the host counts it."""
        return len(text.encode("utf-16-le", "surrogatepass")) // 2 if self.utf16 else len(text)


PROFILES = {
    "openclaw": Profile(),
    "claude-code": Profile(total=9_500, excerpts=3, gate=Gate(60, 60.0, 5), keeps_block=True, utf16=True),
    "mcp": Profile(),
    "cli": Profile(),
}
"""Known hosts. OpenClaw takes the block away after the turn; Claude Code cuts what a hook adds at 10,000 characters and
keeps it. An MCP client asks by itself."""

FOUND = Profile(total=6_000, facts=3_000)
"""What a tool's answer holds: a model asked for it, and pays for every line."""

_TRIVIAL = re.compile(
    r"(?:hi|hey|hello|yo|ok(?:ay)?|k|yes|yep|yeah|no|nope|sure|thanks?|thank you|thx|ty|cool|great|nice|good|fine|done"
    r"|continue|go on|go ahead|proceed|next|more|stop|wait|please|lol|haha|bye|good (?:morning|night|evening)"
    r"|hallo|ja|nein|danke|好的?|嗯|是的?|谢谢|你好|はい|いいえ|ありがとう|おはよう|네|아니요)?[\s.!?,。！？~…]*"
)


def is_trivial(prompt: str) -> bool:
    """A prompt that asks nothing of memory: a greeting, an assent, punctuation, pictures."""
    text = normal(prompt).strip()
    return not any(char.isalnum() for char in text) or _TRIVIAL.fullmatch(text) is not None


def closed(gate: Gate, prompt: str, recalls: int, recalled_at: datetime | None, now: datetime) -> str:
    """Why this turn gets no recall: "short_prompt", "cooldown" or "budget"; "" = it does.

    recalls, recalled_at: how often the session was given something, and when last.
    """
    if len(prompt) + count_cjk(prompt) < gate.length:
        return "short_prompt"
    if recalls >= gate.most:
        return "budget"
    if recalled_at is not None and 0 <= (now - recalled_at).total_seconds() < gate.cooldown:
        return "cooldown"
    return ""
