"""Asks an agent for its session when a worker starts."""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from typing import Final

from everturn.checks import said
from everturn.errors import InvalidAgent
from everturn.hooks.agent import Agent
from everturn.hooks.calling import invoke
from everturn.hooks.session import Session, SessionConfig

SESSION_TIMEOUT: Final = 60.0
"""Seconds: a worker that cannot start is to say so, not to hang."""


async def session_of(agent: Agent, name: str, executor: Executor) -> SessionConfig:
    """What `configure_session` makes of the session. Raises InvalidAgent, naming the agent, whatever went wrong."""
    session = Session()
    task = asyncio.ensure_future(invoke(agent.configure_session, executor, session))
    try:
        done, _ = await asyncio.wait({task}, timeout=SESSION_TIMEOUT)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        raise _invalid(name, f"took longer than {SESSION_TIMEOUT:g} s")
    if task.cancelled():
        raise _invalid(name, "raised CancelledError")
    error = task.exception()
    if error is not None:
        raise _invalid(name, f"failed: {type(error).__name__}: {said(error)}") from error
    given = task.result()
    if given is not None and not isinstance(given, Session):
        raise _invalid(name, f"returned {type(given).__name__}; it must return the session, or nothing")
    return (given or session).config


def _invalid(name: str, what: str) -> InvalidAgent:
    return InvalidAgent(f"agent {name!r}: configure_session {what}")
