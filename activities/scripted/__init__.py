"""A model server that follows scripts: real HTTP and SSE on loopback, for tests and for the `demo` model."""

from __future__ import annotations

from everturn.activities.scripted.log import LogRecord
from everturn.activities.scripted.server import ScriptedModelServer

__all__ = ["LogRecord", "ScriptedModelServer"]
