"""Which addresses a turn code may fetch: the rules that an author lists, and what they allow."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from typing import Final
from urllib.parse import SplitResult, urlsplit

from everturn.errors import BadInput

PORTS: Final = {"http": 80, "https": 443}
_NAME: Final = re.compile(r"(?:\*\.)?[a-z0-9_.-]+")


class NotAllowed(Exception):
    """A request goes where no rule lets it go; the message names the host, never the rest of the URL."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a rule speaks about: scheme, host in lower case, port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == PORTS[self.scheme] else f":{self.port}")


class Outbound:
    """The rules. A host ("api.example.com") or its subdomains ("*.example.com") by https; with a scheme or a port in
    front or behind ("http://10.0.0.7:8080", "api.example.com:8443") exactly that.

    A host must have public addresses. A private one has to be listed: as the host itself ("http://127.0.0.1:8000",
    "http://localhost:8000"), or, for a name that leads to it, as an address or network beside it ("10.1.0.0/16").

    Raises BadInput for a rule of another form.
    """

    def __init__(self, rules: Iterable[str]) -> None:
        given = (rules,) if isinstance(rules, str) else tuple(rules)
        self._targets: list[Target] = []
        self._networks: list[IPv4Network | IPv6Network] = []
        for rule in given:
            network = _network(rule)
            if network is not None and "/" in rule:
                self._networks.append(network)
                continue
            target = _target(rule)
            self._targets.append(target)
            listed = network or _network(target.host)
            if listed is not None:
                self._networks.append(listed)

    def check(self, url: str) -> tuple[Target, str]:
        """The target of a URL, and the URL as it may be fetched: every reader finds the same host in it.

        Raises NotAllowed.
        """
        try:
            parts = urlsplit(url)
            target = _target_of(parts)
        except ValueError as error:
            raise NotAllowed(f"the URL cannot be used: {error}") from None
        if parts.username is not None or parts.password is not None:
            raise NotAllowed(f"the URL for {target} has a user in it; send a header instead")
        if not any(_fits(rule, target) for rule in self._targets):
            raise NotAllowed(f"{target} is not among the hook's outbound hosts")
        query = f"?{parts.query}" if parts.query else ""
        return target, f"{target}{parts.path or '/'}{query}"

    def check_address(self, host: str, address: str) -> None:
        """Raises NotAllowed if `host` leads to a private address that is not listed."""
        found = ipaddress.ip_address(address.partition("%")[0])
        mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
        found = mapped or found
        if found.is_global and not found.is_multicast:
            return
        if found.is_loopback and host == "localhost":
            return
        if not any(found in network for network in self._networks):
            raise NotAllowed(
                f"{host} leads to the private address {found}, which is not listed among the outbound hosts"
            )


def _target(rule: str) -> Target:
    try:
        parts = urlsplit(rule if "://" in rule else f"https://{_bracketed(rule)}")
        target = _target_of(parts)
    except ValueError as error:
        raise BadInput(f"outbound rule {rule!r} cannot be used: {error}") from error
    plain = target.host.removeprefix("*.")
    if parts.path.strip("/") or parts.query or parts.fragment or parts.username is not None or "*" in plain:
        raise BadInput(
            f'outbound rule {rule!r} cannot be used; give a host: "api.example.com", "*.example.com", '
            '"http://127.0.0.1:8000", or a network "10.0.0.0/8"'
        )
    return target


def _target_of(parts: SplitResult) -> Target:
    if parts.scheme not in PORTS:
        raise ValueError(f"its scheme is {parts.scheme!r}; use http or https")
    host = (parts.hostname or "").rstrip(".")
    if not host.isascii():
        host = host.encode("idna").decode()
    if not _NAME.fullmatch(host) and _network(host) is None:
        raise ValueError("it names no host")
    return Target(parts.scheme, host, PORTS[parts.scheme] if parts.port is None else parts.port)


def _fits(rule: Target, target: Target) -> bool:
    if (rule.scheme, rule.port) != (target.scheme, target.port):
        return False
    if rule.host.startswith("*."):
        return target.host.endswith(rule.host[1:])
    return target.host == rule.host


def _network(text: str) -> IPv4Network | IPv6Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None


def _bracketed(rule: str) -> str:
    """An IPv6 address as URLs have it."""
    return f"[{rule}]" if isinstance(_network(rule), IPv6Network) else rule
