"""configure_session: what an agent says once, when a worker starts, about all its conversations."""

from __future__ import annotations

from everturn import Agent
from everturn.hooks.session import ContextRequest, Session


def opening_hours(request: ContextRequest) -> str:
    """Asked once per thread and kept, so that provider caches keep hitting."""
    return f"Tenant {request.tenant_id or 'none'}: open from 9 to 17."


class Librarian(Agent):
    name = "librarian"
    model = "openai/gpt-4o-mini"
    system = "You are a librarian."

    def configure_session(self, session: Session) -> Session:
        return (
            session.context("House rules", "Never recommend a book that is lent out.")
            .context("Opening hours", opening_hours, max_tokens=50)
            .compact_after(tokens=60_000)
            .truncation(keep_last=6, tool_output=300)
        )
