"""What is read of stored bytes, whatever is among them."""

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from kube import pem, pki
from tests.unit.kube.damaged import without_line

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ONE, OTHER = (pki.issue_ca(NOW, common_name=name).certificate for name in ("one", "other"))


@pytest.mark.parametrize(
    "text",
    [
        without_line(OTHER) + ONE,
        ONE + without_line(OTHER),
        b"# ours\r\n" + ONE.replace(b"\n", b"\r\n") + b"the end",
        ONE + without_line(OTHER, -1),
        without_line(OTHER, -1) + ONE,
        without_line(OTHER, 0) + ONE,
    ],
)
def test_what_cannot_be_read_is_passed_over_and_takes_nothing_with_it(text: bytes) -> None:
    assert pem.readable(text) == pem.first(text) == ONE


def test_the_order_stays() -> None:
    both = ONE + without_line(OTHER) + OTHER
    assert pem.readable(both) == ONE + OTHER
    assert pem.first(both) == ONE


@pytest.mark.parametrize("text", [b"", b"garbage", without_line(ONE)])
def test_where_nothing_can_be_read_is_said_so(text: bytes) -> None:
    """Else whoever builds a store of it would trust nobody, or everybody whom the system trusts."""
    assert pem.certificates(text) == []
    for function in (pem.readable, pem.first, pem.read):
        with pytest.raises(pem.UnreadableError):
            function(text)


def test_an_extension_that_is_not_there_is_none() -> None:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    bare = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + timedelta(days=1))
    assert pem.extension(bare.sign(key, hashes.SHA256()), x509.BasicConstraints) is None
    assert pem.extension(pem.read(ONE), x509.BasicConstraints) == x509.BasicConstraints(True, 0)
