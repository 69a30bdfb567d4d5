"""
The login to a broker, without I/O: what a client sends to say who it is, and what it makes of the answers.

The messages of SCRAM are written here, with the hashes of the standard library. The libraries for it prepare names and
passwords as RFC 5802 has it (SASLprep), but Kafka takes them as they are, so some that are right would be refused; and
they do as many iterations as a broker asks for.

Source:
    RFC 4616 (PLAIN); RFC 5802 and RFC 7677 (SCRAM); ScramSaslClient, ScramFormatter, ScramMessages (Kafka 4.4.0).
"""

from __future__ import annotations

import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Generator, Iterable
from hashlib import new, pbkdf2_hmac
from secrets import token_urlsafe
from typing import Final, TypeAlias

from sharestate.errors import ErrorCode, ExternalError, ResponseFormatError
from sharestate.persister.kafka.security import PLAIN, SCRAM_HASHES, Security
from sharestate.values.checks import brief_repr

Login: TypeAlias = Generator[bytes, bytes, None]
"""Yields each message to send, takes the broker's answer to it, and ends when the client is logged in."""

FEWEST_ITERATIONS: Final = 4_096
"""The least that a broker asks for (``ScramMechanism``): with fewer, a password that is overheard is guessed sooner."""

MOST_ITERATIONS: Final = 2**20
"""The most that a broker may ask for, some tenths of a second; Kafka stores no credentials with more than 16,384."""

_NONCE_BYTES: Final = 24

_CHALLENGE: Final = re.compile(
    rb"r=([!-+\--~]+),s=((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?),i=([0-9]{1,9})(?:,.*)?"
)
"""What a broker sends first: the nonce, the salt, and the number of iterations; extensions may follow."""


def log_in(security: Security, nonce: bytes | None = None) -> Login:
    """
    Return the login of *security*, a generator of messages.

    Args:
        security: The mechanism, the name and the password.
        nonce: What SCRAM makes each login another one with; by default drawn at random.

    Raises:
        ExternalError: Out of the generator: the broker asks for too few or too many iterations, refuses the login in
            a message of SCRAM, or does not prove that it knows the password; with SASL_AUTHENTICATION_FAILED.
        ResponseFormatError: Out of the generator: an answer is no message of SCRAM.
    """
    if security.sasl_mechanism == PLAIN:
        return _plain(security)
    return _scram(security, nonce or token_urlsafe(_NONCE_BYTES).encode())


def not_enabled(mechanism: str, enabled: Iterable[str]) -> str:
    """Return what is said of a broker that does not take a mechanism, by those that it names."""
    return f"it does not take the SASL mechanism {mechanism}, but these: {', '.join(enabled) or 'none'}"


def _plain(security: Security) -> Login:
    yield "\0{}\0{}".format(*security.credentials).encode()


def _scram(security: Security, nonce: bytes) -> Login:
    hash_name = SCRAM_HASHES[security.sasl_mechanism]
    name, password = (text.encode() for text in security.credentials)
    hello = b"n=%s,r=%s" % (name.replace(b"=", b"=3D").replace(b",", b"=2C"), nonce)
    challenge = yield b"n,," + hello
    both_nonces, salt, iterations = _challenge(challenge, nonce)
    reply = b"c=biws,r=" + both_nonces  # biws is "n,,": the connection is not bound to that of TLS
    said = b",".join((hello, challenge, reply))
    salted = pbkdf2_hmac(hash_name, password, salt, iterations)
    key = hmac.digest(salted, b"Client Key", hash_name)
    signature = hmac.digest(new(hash_name, key).digest(), said, hash_name)
    answer = yield reply + b",p=" + b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True)))
    proof = hmac.digest(hmac.digest(salted, b"Server Key", hash_name), said, hash_name)
    outcome, _, _ = answer.partition(b",")  # extensions may follow
    if outcome.startswith(b"e="):
        message = f"it refuses the login: {brief_repr(outcome[2:].decode(errors='replace'))}"
        raise _refused(message)
    if not hmac.compare_digest(outcome, b"v=" + b64encode(proof)):
        message = "the broker has not proved that it knows the password"
        raise _refused(message)


def _challenge(data: bytes, nonce: bytes) -> tuple[bytes, bytes, int]:
    """Return the nonces of both sides, the salt, and the number of iterations."""
    match = _CHALLENGE.fullmatch(data)
    if match is None or not match[1].startswith(nonce):
        message = f"expected SCRAM's nonce, salt and iterations, got {brief_repr(data)}"
        raise ResponseFormatError(message, "auth_bytes", 0)
    iterations = int(match[3])
    if not FEWEST_ITERATIONS <= iterations <= MOST_ITERATIONS:
        message = f"{iterations} iterations are asked for, and not {FEWEST_ITERATIONS} to {MOST_ITERATIONS}"
        raise _refused(message)
    return match[1], b64decode(match[2]), iterations


def _refused(message: str) -> ExternalError:
    code = ErrorCode.SASL_AUTHENTICATION_FAILED
    return ExternalError(message, code, code.exception)
