"""What the outbound rules of turn code allow."""

from __future__ import annotations

import pytest

from everturn.errors import BadInput
from everturn.hooks.code.outbound import NotAllowed, Outbound


@pytest.mark.parametrize(
    ("rule", "url"),
    [
        ("api.example.com", "https://api.example.com/x?y=1"),
        ("api.example.com", "https://API.Example.com.:443/"),
        ("*.example.com", "https://a.b.example.com/"),
        ("http://example.com", "http://example.com/"),
        ("example.com:8443", "https://example.com:8443/"),
        ("http://[::1]:8000", "http://[::1]:8000/"),
        ("2001:db8::1", "https://[2001:db8::1]/"),
        ("bücher.example", "https://xn--bcher-kva.example/"),
    ],
)
def test_a_rule_allows_its_host_by_its_scheme_and_port(rule: str, url: str) -> None:
    Outbound([rule]).check(url)


@pytest.mark.parametrize(
    ("rule", "url"),
    [
        ("api.example.com", "http://api.example.com/"),
        ("api.example.com", "https://api.example.com:8443/"),
        ("api.example.com", "https://evil.api.example.com/"),
        ("api.example.com", "https://api.example.com.evil.org/"),
        ("api.example.com", "https://evil.org/api.example.com"),
        ("api.example.com", "https://evil.org\\@api.example.com/"),
        ("api.example.com", "https://api.example.com@evil.org/"),
        ("api.example.com", "ftp://api.example.com/"),
        ("api.example.com", "file:///etc/passwd"),
        ("api.example.com", "https://api.example.com:99999/"),
        ("api.example.com", "//api.example.com/"),
        ("api.example.com", "https:///x"),
        ("*.example.com", "https://example.com/"),
        ("*.example.com", "https://badexample.com/"),
        ("10.0.0.0/8", "https://10.0.0.1/"),
    ],
)
def test_everything_else_is_refused(rule: str, url: str) -> None:
    with pytest.raises(NotAllowed):
        Outbound([rule]).check(url)


def test_the_url_that_is_fetched_is_built_from_what_was_checked() -> None:
    _, url = Outbound(["a.example"]).check("HTTPS://A.example:443/p/a th?q=1#part")
    assert url == "https://a.example/p/a th?q=1"


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1", "224.0.0.1"),
        *("::1", "fe80::1%eth0", "fd00::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254"),
    ],
)
def test_a_private_address_is_refused_unless_it_is_listed(address: str) -> None:
    with pytest.raises(NotAllowed, match="private address"):
        Outbound(["a.example", "10.2.0.0/16"]).check_address("a.example", address)


@pytest.mark.parametrize(
    ("rules", "host", "address"),
    [
        (["a.example"], "a.example", "93.184.215.14"),
        (["a.example"], "a.example", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"),
        (["a.example", "10.2.0.0/16"], "a.example", "10.2.3.4"),
        (["a.example", "10.2.0.0/16"], "a.example", "::ffff:10.2.3.4"),
        (["http://127.0.0.1:8000"], "127.0.0.1", "127.0.0.1"),
        (["http://localhost:8000"], "localhost", "127.0.0.1"),
        (["http://[::1]:8000"], "::1", "::1"),
    ],
)
def test_public_and_listed_addresses_are_allowed(rules: list[str], host: str, address: str) -> None:
    Outbound(rules).check_address(host, address)


@pytest.mark.parametrize(
    "rule", ["", "*", "*.*.org", "https://", "https://a.org/x", "https://u:p@a.org", "a b.org", "a.org:x"]
)
def test_a_rule_of_another_form_is_refused_by_name(rule: str) -> None:
    with pytest.raises(BadInput, match="outbound rule"):
        Outbound([rule])
