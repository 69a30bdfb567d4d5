"""The login: the messages of SCRAM are those of its RFCs, and a broker that does not play by them is refused."""

from __future__ import annotations

from typing import Any, Final

import pytest
from scramp import ScramMechanism

from sharestate.errors import ErrorCode, ExternalError, ResponseFormatError
from sharestate.persister.kafka import Security
from sharestate.persister.kafka.login import Login, log_in, not_enabled

NONCE: Final = b"rOprNGfwEbeRWgbNEkqO"
BOTH: Final = NONCE + b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
CHALLENGE: Final = b"r=%s,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
"""Of the example in RFC 7677, section 3; the name there is user, and the password pencil."""


def security(mechanism: str = "SCRAM-SHA-256", name: str = "user", password: str = "pencil") -> Security:  # noqa: S107 - of RFC 7677
    """Return settings with a login."""
    login: Any = {"sasl_plain_username": name, "sasl_plain_password": password}
    return Security(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, **login)


def is_done(login: Login, answer: bytes) -> bool:
    """Return whether a login is done with an answer."""
    try:
        login.send(answer)
    except StopIteration:
        return True
    return False


def test_plain_sends_the_password_once() -> None:
    """A message of RFC 4616, and whatever is answered is the end."""
    login = log_in(security("PLAIN", "ann", "hidden"))

    assert next(login) == b"\0ann\0hidden"
    assert is_done(login, b"")


def test_the_messages_are_those_of_the_rfc() -> None:
    """SCRAM-SHA-256 says what the example in RFC 7677 says, and takes the broker's proof."""
    login = log_in(security(), NONCE)

    assert next(login) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    proof = login.send(CHALLENGE % BOTH)
    assert proof == b"c=biws,r=" + BOTH + b",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert is_done(login, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize(("name", "password"), [("ann", "right"), ("a=b,c", "=2C, \u00fc \u20ac")])
def test_another_implementation_takes_the_login(mechanism: str, name: str, password: str) -> None:
    """With either hash, and whatever is in the name and the password."""
    known = ScramMechanism(mechanism)
    server = known.make_server({name: known.make_auth_info(password)}.__getitem__)
    login = log_in(security(mechanism, name, password))
    server.set_client_first(next(login).decode())
    server.set_client_final(login.send(server.get_server_first().encode()).decode())

    assert is_done(login, server.get_server_final().encode())


def test_each_login_is_another_one() -> None:
    """The nonce is drawn anew."""
    assert next(log_in(security())) != next(log_in(security()))


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"\xff",
        CHALLENGE % b"another",
        CHALLENGE % BOTH + b"0000000",
        b"m=must," + CHALLENGE % BOTH,
        CHALLENGE.replace(b"==", b"") % BOTH,
        CHALLENGE.replace(b"i=4096", b"i=-4096") % BOTH,
        CHALLENGE.replace(b"i=4096", b"x=1") % BOTH,
    ],
    ids=["nothing", "bytes", "nonce", "digits", "must", "salt", "negative", "no-iterations"],
)
def test_what_is_no_challenge_is_refused(challenge: bytes) -> None:
    """The error is that of an answer which is none."""
    login = log_in(security(), NONCE)
    next(login)

    with pytest.raises(ResponseFormatError, match="auth_bytes, byte 0: expected SCRAM's nonce, salt and iterations"):
        login.send(challenge)


@pytest.mark.parametrize(
    ("iterations", "is_taken"), [(4_095, False), (4_096, True), (16_384, True), (2**20 + 1, False)]
)
def test_iterations_are_bounded(iterations: int, *, is_taken: bool) -> None:
    """As many as Kafka stores are taken; fewer would give the password away, and many more take long."""
    login = log_in(security(), NONCE)
    next(login)
    challenge = CHALLENGE.replace(b"4096", b"%d" % iterations) % BOTH

    if is_taken:
        assert login.send(challenge).startswith(b"c=biws,r=" + BOTH)
        return
    with pytest.raises(ExternalError, match=f"{iterations} iterations are asked for") as refused:
        login.send(challenge)
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("answer", [b"", b"v=", b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5="])
def test_a_broker_has_to_prove_itself(answer: bytes) -> None:
    """One that does not know the password is no broker to talk to, even if it says that all is well."""
    login = log_in(security(), NONCE)
    next(login)
    login.send(CHALLENGE % BOTH)

    with pytest.raises(ExternalError, match="has not proved") as refused:
        login.send(answer)
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize(("answer", "reason"), [(b"e=invalid-proof", "invalid-proof"), (b"e=no\xff,x=1", "no\ufffd")])
def test_the_reason_of_a_refusal_is_named(answer: bytes, reason: str) -> None:
    """A broker that says why it refuses the login is not blamed for not knowing the password (RFC 5802, section 7)."""
    login = log_in(security(), NONCE)
    next(login)
    login.send(CHALLENGE % BOTH)

    with pytest.raises(ExternalError, match=f"it refuses the login: '{reason}'") as refused:
        login.send(answer)
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_what_is_enabled_is_named() -> None:
    """The mechanisms that the broker takes, if any."""
    assert not_enabled("PLAIN", ["SCRAM-SHA-256", "GSSAPI"]).endswith("PLAIN, but these: SCRAM-SHA-256, GSSAPI")
    assert not_enabled("PLAIN", []).endswith("PLAIN, but these: none")
