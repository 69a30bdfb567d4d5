"""The way to brokers: their addresses, TLS and the login."""

from __future__ import annotations

from collections.abc import Iterable
from ssl import SSLContext, create_default_context
from typing import Final, NamedTuple

from attrs import field, frozen

from sharestate.errors import UnsupportedSaslMechanismError
from sharestate.values.checks import brief_repr, expect, integer, refuse

PLAIN: Final = "PLAIN"
"""The SASL mechanism that sends a name and a password as they are."""

SCRAM_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The mechanisms that prove to know a password and do not send it (RFC 5802), and the hash of each."""

MECHANISMS: Final = (PLAIN, *SCRAM_HASHES)
"""The SASL mechanisms that are spoken here."""

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Kafka's security protocols."""

_MAX_PORT: Final = 65_535
"""A port has 16 bits."""


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    """Its name or address."""

    port: int
    """Its port."""

    def __str__(self) -> str:
        """Return the address as it is written."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def addresses(bootstrap_servers: str | Iterable[str]) -> tuple[Address, ...]:
    """
    Return the addresses in *bootstrap_servers*: one text with commas, or several texts.

    Raises:
        MalformedInputError: There is none, or one is not like ``host:port``.

    >>> [str(address) for address in addresses("localhost:9092,[::1]:9093")]
    ['localhost:9092', '[::1]:9093']
    """
    names = bootstrap_servers.split(",") if isinstance(bootstrap_servers, str) else list(bootstrap_servers)
    return tuple(map(_address, names)) or refuse("expected an address, got none", "bootstrap_servers")


def _address(text: str) -> Address:
    host, _, port = expect(text, str, "bootstrap_servers").strip().rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not _can_be_looked_up(host) or not (port.isascii() and port.isdecimal()):
        refuse(f"expected an address such as 'localhost:9092', got {brief_repr(text)}", "bootstrap_servers")
    return Address(host, integer(int(port[:6]), "bootstrap_servers", 1, _MAX_PORT))


def _can_be_looked_up(host: str) -> bool:
    """Return whether *host* can be a name or an address: Python's sockets raise ValueError for what cannot."""
    try:
        return bool(host.encode("idna"))
    except UnicodeError:  # a label is empty or too long, or has what no name has
        return False


def _mechanism(_instance: object, _attribute: object, mechanism: object) -> None:
    if mechanism not in MECHANISMS:
        message = f"expected one of {', '.join(MECHANISMS)}, got {brief_repr(mechanism)}: no other is supported"
        raise UnsupportedSaslMechanismError(message, "sasl_mechanism")


@frozen(kw_only=True)
class Security:
    """
    How brokers are connected to; by default without TLS and without a login.

    Attributes:
        security_protocol: Kafka's ``security.protocol``: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        ssl_context: For SSL and SASL_SSL, whose certificates are trusted and which one is shown; by default as
            ``ssl.create_default_context`` has it.
        sasl_mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512. Others, such as GSSAPI or OAUTHBEARER, are not supported.
        sasl_plain_username: The name to log in with; with SCRAM of ASCII only, as Kafka takes no other there.
        sasl_plain_password: Its password.

    Raises:
        UnsupportedSaslMechanismError: The mechanism is another one.
        MalformedInputError: A field is of the wrong type, is missing, or does not go with the protocol.
    """

    security_protocol: str = field(default="PLAINTEXT")
    ssl_context: SSLContext | None = field(default=None, repr=False)
    sasl_mechanism: str = field(default=PLAIN, validator=_mechanism)
    sasl_plain_username: str | None = None
    sasl_plain_password: str | None = field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        """Check that the fields go together."""
        if self.security_protocol not in PROTOCOLS:
            known = ", ".join(PROTOCOLS)
            refuse(f"expected one of {known}, got {brief_repr(self.security_protocol)}", "security_protocol")
        if self.ssl_context is not None:
            expect(self.ssl_context, SSLContext, "ssl_context")
            if not self.is_tls:
                refuse(f"expected none for {self.security_protocol}", "ssl_context")
        for name in ("sasl_plain_username", "sasl_plain_password"):
            value = getattr(self, name)
            if self.is_sasl and not _can_be_sent(value):
                refuse(f"expected some text without NUL for {self.security_protocol}", name)
            if not self.is_sasl and value is not None:
                refuse(f"expected none for {self.security_protocol}", name)
        if self.sasl_mechanism in SCRAM_HASHES and not (self.sasl_plain_username or "").isascii():
            refuse(f"expected ASCII, which is all that Kafka takes with {self.sasl_mechanism}", "sasl_plain_username")

    @property
    def is_tls(self) -> bool:
        """True if connections are encrypted."""
        return self.security_protocol.endswith("SSL")

    @property
    def is_sasl(self) -> bool:
        """True if a login is needed."""
        return self.security_protocol.startswith("SASL")

    def context(self) -> SSLContext | None:
        """Return what connections are encrypted with; None without TLS."""
        return (self.ssl_context or create_default_context()) if self.is_tls else None

    @property
    def credentials(self) -> tuple[str, str]:
        """The name and the password; empty without a login."""
        return self.sasl_plain_username or "", self.sasl_plain_password or ""


def _can_be_sent(value: object) -> bool:
    """Return whether *value* can be a name or a password: RFC 4616 has them in UTF-8, with a NUL before each."""
    if not isinstance(value, str) or "\0" in value:
        return False
    return bool(value.encode(errors="ignore")) and value.encode(errors="ignore").decode() == value
