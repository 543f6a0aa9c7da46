"""Fixtures of the hook tests: the harness of the turn tests."""

from __future__ import annotations

from tests.integration.turns.conftest import scripted_server, start_lab, store_url, warm_models

__all__ = ["scripted_server", "start_lab", "store_url", "warm_models"]
