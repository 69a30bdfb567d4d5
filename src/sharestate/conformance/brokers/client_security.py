"""TLS and the login in the names of librdkafka, as a file of the option ``--command-config`` has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from ssl import CERT_NONE, SSLContext, SSLError, create_default_context
from typing import Final

from sharestate.errors import MalformedInputError
from sharestate.persister.kafka.security import PLAIN, Security

_FIELDS: Final = {
    "security_protocol": "security.protocol",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
}
"""The names of Security's fields."""

_VERIFIES: Final = "enable.ssl.certificate.verification"
_IDENTIFIES: Final = "ssl.endpoint.identification.algorithm"
_AUTHORITY, _CERTIFICATE, _KEY, _PASSWORD = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
)

_TLS: Final = (_AUTHORITY, _CERTIFICATE, _KEY, _PASSWORD, _VERIFIES, _IDENTIFIES)
_KNOWN: Final = (*_FIELDS.values(), "sasl.mechanisms", *_TLS)


def security_of(settings: Mapping[str, str]) -> Security:
    """
    Return how brokers are connected to, by settings in the names of librdkafka.

    Any other setting of a client is refused: nobody here would follow it.

    Raises:
        UnsupportedSaslMechanismError: The mechanism is neither PLAIN nor SCRAM.
        MalformedInputError: A setting is not known, is missing, does not go with the others, or names a file that
            cannot be used; the error's field is its name.
    """
    if unknown := sorted(settings.keys() - set(_KNOWN)):
        message = f"is not a setting of TLS or the login that is known here; those are {', '.join(_KNOWN)}"
        raise MalformedInputError(message, unknown[0])
    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    is_tls = protocol.endswith("SSL")
    if not is_tls and (name := next((name for name in _TLS if name in settings), None)):
        message = f"expected none for {protocol}"
        raise MalformedInputError(message, name)
    try:
        return Security(
            security_protocol=protocol,
            ssl_context=_context(settings) if is_tls else None,
            sasl_mechanism=settings.get("sasl.mechanism", settings.get("sasl.mechanisms", PLAIN)),
            sasl_plain_username=settings.get("sasl.username"),
            sasl_plain_password=settings.get("sasl.password"),
        )
    except MalformedInputError as error:
        raise type(error)(error.message, _FIELDS.get(error.field or "", error.field)) from error


def _context(settings: Mapping[str, str]) -> SSLContext:
    context = _trusting(settings.get(_AUTHORITY))
    if _one_of(settings, _IDENTIFIES, "https", "none") == "none":
        context.check_hostname = False
    if _one_of(settings, _VERIFIES, "true", "false") == "false":
        context.check_hostname, context.verify_mode = False, CERT_NONE
    if certificate := settings.get(_CERTIFICATE):
        try:  # without a password of its own OpenSSL would ask for one on the terminal
            context.load_cert_chain(certificate, settings.get(_KEY), settings.get(_PASSWORD, ""))
        except (OSError, ValueError) as error:
            raise _unusable(certificate, _CERTIFICATE, error) from error
    elif name := next((name for name in (_KEY, _PASSWORD) if name in settings), None):
        message = f"expected {_CERTIFICATE}, too"
        raise MalformedInputError(message, name)
    return context


def _trusting(authority: str | None) -> SSLContext:
    """Return what trusts the certificates in a file or a directory; without one, those that the system trusts."""
    if authority is None:
        return create_default_context()
    try:
        is_folder = Path(authority).is_dir()
        return create_default_context(capath=authority) if is_folder else create_default_context(cafile=authority)
    except (OSError, ValueError) as error:
        raise _unusable(authority, _AUTHORITY, error) from error


def _unusable(file: str, name: str, error: OSError | ValueError) -> MalformedInputError:
    """Return the error for a file; Python raises ValueError for a NUL in its name, and a password that is too long."""
    reason = error.reason if isinstance(error, SSLError) else getattr(error, "strerror", None)
    return MalformedInputError(f"{file}: {reason or error}", name)


def _one_of(settings: Mapping[str, str], name: str, *values: str) -> str:
    """Return a setting that has one of *values*, of which the first is the default."""
    value = settings.get(name, values[0])
    if value not in values:
        message = f"expected {' or '.join(values)}, got {value!r}"
        raise MalformedInputError(message, name)
    return value
