"""Keeps keys out of everything that is stored, traced or shown."""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "[secret]"

_KEY_LIKE = re.compile(
    r"""
      \b(?:sk|pk|rk|gsk|xai|hf|nvapi|pplx|r8|fw|csk|tgp|ghp|gho|glpat)[-_][\w*.-]{6,}   # keys with a provider's prefix
    | \bAIza[\w-]{20,}                                                                   # Google
    | \b(?:AKIA|ASIA)[A-Z0-9]{12,}                                                       # AWS
    | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*                                                  # a JSON web token
    """,
    re.VERBOSE,
)
_NAMED = re.compile(
    r"""(?ix)
    ( \b(?:api[-_ ]?key|access[-_ ]?key|secret|token|password|authorization|x-api-key)\b["']?
      \s* (?: provided | is )? \s* [:=] \s* ["']? (?:bearer\s+)? | \bbearer\s+ )
    (?! \[secret\] )
    ( [^\s"',;}\]]{6,} )
    """
)


def scrub(text: str, secrets: Iterable[str | None] = ()) -> str:
    """`text` without the given secrets, and without whatever looks like a key."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, HIDDEN)
    return _NAMED.sub(rf"\g<1>{HIDDEN}", _KEY_LIKE.sub(HIDDEN, text))
