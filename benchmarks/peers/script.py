"""What the model shall do in a turn. It rides in the user's message: every contender carries it the same way."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass

TOKEN = re.compile(r"w(\d{4})x* ")
_DIRECTIVE = re.compile(r"\[\[bench ([^\]]*)\]\]")
_SHORTEST_TOKEN = 6


@dataclass(frozen=True, slots=True)
class Script:
    """tools: sequential tool calls before the answer. tokens: of the answer. gap_ms: between two tokens.
    token_bytes: length of a token, at least 6. message_bytes: to which the user's message is filled up."""

    turn: str
    tools: int = 2
    tokens: int = 20
    gap_ms: int = 0
    token_bytes: int = _SHORTEST_TOKEN
    message_bytes: int = 0

    @property
    def message(self) -> str:
        """The user's message."""
        facts = " ".join(f"{name}={value}" for name, value in asdict(self).items())
        return f"[[bench {facts}]] ".ljust(self.message_bytes, "u")

    @property
    def words(self) -> list[str]:
        """The tokens of the answer: numbered, so that doubles and gaps show."""
        fill = "x" * (max(self.token_bytes, _SHORTEST_TOKEN) - _SHORTEST_TOKEN)
        return [f"w{number:04d}{fill} " for number in range(self.tokens)]

    @classmethod
    def read(cls, text: str) -> Script | None:
        """The script in a message, None if there is none."""
        found = _DIRECTIVE.search(text)
        if found is None:
            return None
        facts = dict(fact.split("=", 1) for fact in found.group(1).split())
        turn = facts.pop("turn")
        return cls(turn, **{name: int(value) for name, value in facts.items()})


def earlier_exchanges(count: int, size: int = 2_000) -> list[tuple[str, str]]:
    """What was said before in a thread: user message and answer, `size` bytes each."""
    return [(f"question {n} ".ljust(size, "q"), f"answer {n} ".ljust(size, "a")) for n in range(count)]
