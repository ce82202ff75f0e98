"""How stored bytes become certificates: others may have put anything there.

An API server passes over what it cannot read of a `caBundle`, so of authorities one that cannot be read costs that one alone.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
"""One that has lost its last line does not take the next one with it, as for an API server."""

_Kind = TypeVar("_Kind", bound=x509.ExtensionType)


class UnreadableError(ValueError):
    """Where a certificate should be stored there is none that can be read and used."""


def read(certificate: bytes) -> x509.Certificate:
    """The first certificate of a PEM, or the one of a DER. Raises UnreadableError."""
    try:
        if certificate.startswith(b"-----BEGIN"):
            return x509.load_pem_x509_certificate(certificate)
        return x509.load_der_x509_certificate(certificate)
    except (ValueError, x509.InvalidVersion) as error:
        raise UnreadableError(f"a certificate cannot be read: {error}") from error


def certificates(pem: bytes) -> list[x509.Certificate]:
    """Those that can be read."""
    found = []
    for block in _BLOCK.findall(pem):
        with suppress(UnreadableError):
            found.append(read(block))
    return found


def readable(pem: bytes) -> bytes:
    """Those that can be read, for whoever takes all or nothing. Raises UnreadableError where there is none."""
    return encoded(_some(pem))


def first(pem: bytes) -> bytes:
    """The first one that can be read. Raises UnreadableError where there is none."""
    return encoded(_some(pem)[:1])


def encoded(found: Iterable[x509.Certificate]) -> bytes:
    """The certificates as PEM."""
    return b"".join(one.public_bytes(Encoding.PEM) for one in found)


def extension(certificate: x509.Certificate, kind: type[_Kind]) -> _Kind | None:
    """One extension of a certificate; None where it has none, or none that can be read."""
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except (
        ValueError,
        x509.ExtensionNotFound,
        x509.DuplicateExtension,
        x509.UnsupportedGeneralNameType,
    ):
        return None


def _some(pem: bytes) -> list[x509.Certificate]:
    found = certificates(pem)
    if not found:
        raise UnreadableError("no certificate of an authority can be read")
    return found
