"""Connections to Temporal, with a deadline and one clear error."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.envconfig import ClientConfig
from temporalio.service import RPCError, RPCStatusCode

from everturn.data_converter import load_data_converter
from everturn.errors import BadInput, EverturnError, TemporalUnavailable
from everturn.settings import DEFAULT_NAMESPACE, DEFAULT_TARGET, Settings

LOCAL_WEB_UI_PORT_OFFSET = 1000  # the Temporal CLI's own convention: 7233 → 8233


@dataclass(frozen=True, slots=True)
class Place:
    """Where Temporal is: the address and the namespace."""

    target: str
    namespace: str


async def connect_temporal(
    settings: Settings, *, data_converter: DataConverter | None = None, plugins: tuple[Any, ...] = ()
) -> Client:
    """A client for the settings' target and namespace; what they leave open comes from Temporal's own environment
    variables and TOML profile, then from the defaults. data_converter: instead of the one that the settings name.
    Raises TemporalUnavailable or BadInput."""
    config: dict[str, Any] = dict(_from_environment())
    target = settings.target or config.get("target_host") or DEFAULT_TARGET
    namespace = settings.namespace or config.get("namespace") or DEFAULT_NAMESPACE
    config.update(target_host=target, namespace=namespace)
    if data_converter is None and settings.data_converter is not None:
        data_converter = load_data_converter(settings.data_converter)
    if data_converter is not None:
        config["data_converter"] = data_converter
    if plugins:
        config["plugins"] = list(plugins)
    try:
        async with asyncio.timeout(settings.connect_timeout):
            client = await Client.connect(**config)
            await check_namespace(client)
    except TimeoutError as error:
        raise TemporalUnavailable(target, f"no answer within {settings.connect_timeout:g} s") from error
    except RPCError as error:
        raise temporal_error(error, Place(target, namespace)) from error
    except RuntimeError as error:
        raise TemporalUnavailable(target, _connect_reason(error)) from error
    except ValueError as error:
        raise BadInput(f"the Temporal address {target!r} cannot be used: {_first_line(error)}") from error
    return client


async def check_namespace(client: Client) -> None:
    """Raises RPCError if the namespace does not exist."""
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest

    await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))


def place_of(client: Client) -> Place:
    return Place(client.service_client.config.target_host, client.namespace)


def temporal_error(error: RPCError, place: Place) -> EverturnError:
    """What an RPC failure means to a caller."""
    if error.status == RPCStatusCode.NOT_FOUND and "namespace" in error.message.lower():
        return BadInput(
            f"Temporal at {place.target} has no namespace {place.namespace!r}; create it or set EVERTURN_NAMESPACE"
        )
    if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED):
        return BadInput(
            f"Temporal at {place.target} refuses this client for namespace {place.namespace!r}: {error.message}"
        )
    if error.status == RPCStatusCode.INVALID_ARGUMENT:
        return BadInput(f"Temporal at {place.target} does not take this request: {error.message}")
    return TemporalUnavailable(place.target, f"{error.status.name.lower()}: {error.message}")


def web_ui_of(settings: Settings, client: Client) -> str | None:
    """The Web UI's address: as set, or as the Temporal CLI would have it for a local server."""
    if settings.web_ui:
        return settings.web_ui.rstrip("/")
    host, _, port = place_of(client).target.rpartition(":")
    if host in ("localhost", "127.0.0.1", "[::1]") and port.isdigit():
        return f"http://{host}:{int(port) + LOCAL_WEB_UI_PORT_OFFSET}"
    return None


def turn_link(web_ui: str | None, namespace: str, workflow: str) -> str | None:
    """The page of a workflow, whatever characters its id has; None without a Web UI."""
    where, which = quote(namespace, safe=""), quote(workflow, safe="")
    return f"{web_ui}/namespaces/{where}/workflows/{which}" if web_ui else None


def _from_environment() -> dict[str, Any]:
    try:
        return dict(ClientConfig.load_client_connect_config())
    except Exception as error:  # the SDK raises its own kinds here, all about the user's configuration file
        raise BadInput(f"Temporal's own configuration cannot be read: {_first_line(error)}") from error


def _connect_reason(error: RuntimeError) -> str:
    """The SDK hands on its network library's nested debug text; what people need is the innermost message."""
    messages = re.findall(r'(?:message|error): "([^"]+)"', str(error))
    return messages[-1].lower() if messages else _first_line(error)


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
