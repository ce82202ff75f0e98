import ssl
from datetime import UTC, datetime, timedelta, timezone
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509 import verification
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kube import pem, pki
from kube.pki import Bundle, Pair
from tests.unit.kube.damaged import without_line

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NAMES = ("cardquota.system.svc", "127.0.0.1", "::1")


def bundle() -> Bundle:
    return pki.renewed(None, NAMES, NOW)


def certificate(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


@pytest.mark.parametrize("name", NAMES)
def test_a_strict_client_accepts_the_chain_for_every_name(name: str) -> None:
    """A verifier that follows the web's rules: key identifiers, usages, alternative names, path length."""
    made = bundle()
    try:
        subject: x509.DNSName | x509.IPAddress = x509.IPAddress(ip_address(name))
    except ValueError:
        subject = x509.DNSName(name)
    store = verification.Store([certificate(made.ca_certificates)])
    verifier = verification.PolicyBuilder().store(store).time(NOW).build_server_verifier(subject)
    chain = verifier.verify(certificate(made.leaf.certificate), [])
    assert len(chain) == 2


def test_the_leaf_serves_and_calls() -> None:
    """Both usages: the pair is also what one replica shows another."""
    leaf = certificate(bundle().leaf.certificate)
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(usage) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}


def test_periods_and_key_type() -> None:
    """Ten years and one, an hour of back-dating, P-256."""
    made = bundle()
    ca, leaf = certificate(made.ca_certificates), certificate(made.leaf.certificate)
    assert ca.not_valid_after_utc - NOW == timedelta(days=3650)
    assert leaf.not_valid_after_utc - NOW == timedelta(days=365)
    assert NOW - leaf.not_valid_before_utc == timedelta(hours=1)
    key = leaf.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert key.curve.name == "secp256r1"


@pytest.mark.parametrize(
    ("days", "due"), [(-2, True), (0, False), (274, False), (276, True), (365, True), (400, True)]
)
def test_a_leaf_is_due_three_months_before_its_end(days: int, due: bool) -> None:
    """And when it is not valid yet."""
    leaf = bundle().leaf.certificate
    assert pki.needs_renewal(leaf, NOW + timedelta(days=days)) is due


def test_garbage_is_due() -> None:
    """What cannot be read has to be replaced."""
    assert pki.needs_renewal(b"", NOW)
    assert pki.needs_renewal(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", NOW)


def test_what_is_good_stays_the_same() -> None:
    """The very same value, in any order of names and whatever the zone of the clock."""
    made = bundle()
    later = (NOW + timedelta(days=200)).astimezone(timezone(timedelta(hours=8)))
    assert pki.renewed(made, tuple(reversed(NAMES)), later) is made
    assert pki.renewed(made, ("CardQuota.system.svc", "0:0::1", "127.0.0.1"), later) is made


def test_a_due_leaf_is_issued_by_the_same_authority() -> None:
    """Clients that trust the authority notice nothing."""
    made = bundle()
    new = pki.renewed(made, NAMES, NOW + timedelta(days=300))
    assert new.ca_certificates == made.ca_certificates
    certificate(new.leaf.certificate).verify_directly_issued_by(certificate(made.ca_certificates))
    assert new.leaf != made.leaf


def test_other_names_mean_a_leaf_for_exactly_these() -> None:
    """One that is good for another process' names could stand in for that process."""
    made = bundle()
    new = pki.renewed(made, ("other.svc",), NOW)
    sans = certificate(new.leaf.certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    assert {str(name.value) for name in sans.value} == {"other.svc"}
    assert pki.renewed(new, ("other.svc",), NOW) is new


def test_an_authority_about_to_end_is_followed_by_a_new_one_that_is_trusted_beside_it() -> None:
    """It has to outlive the leaves that it issues; the old one stays trusted until it ends."""
    made = bundle()
    late = NOW + timedelta(days=3650 - 300)
    new = pki.renewed(made, NAMES, late)
    authorities = x509.load_pem_x509_certificates(new.ca_certificates)
    assert len(authorities) == 2
    assert authorities[1] == certificate(made.ca_certificates)
    certificate(new.leaf.certificate).verify_directly_issued_by(authorities[0])
    ended = pki.renewed(made, NAMES, NOW + timedelta(days=4000))
    assert len(x509.load_pem_x509_certificates(ended.ca_certificates)) == 1
    assert pki.renewed(new, NAMES, late) is new


def rsa_key() -> bytes:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize("part", ["ca_certificates", "ca_key", "leaf.certificate", "leaf.key"])
@pytest.mark.parametrize("content", [b"garbage", b"other", b"rsa"])
def test_a_damaged_part_is_replaced(part: str, content: bytes) -> None:
    """Garbage, a part of another bundle, or a key of another kind: the result fits together again."""
    made, other = bundle(), bundle()
    value = {b"garbage": content, b"rsa": rsa_key()}.get(content)
    if part.startswith("leaf"):
        leaf = made.leaf
        damaged = Bundle(
            made.ca_certificates,
            made.ca_key,
            Pair(value or other.leaf.certificate, leaf.key)
            if part == "leaf.certificate"
            else Pair(leaf.certificate, value or other.leaf.key),
        )
    elif part == "ca_key":
        damaged = Bundle(made.ca_certificates, value or other.ca_key, made.leaf)
    else:
        damaged = Bundle(value or other.ca_certificates, made.ca_key, made.leaf)
    new = pki.renewed(damaged, NAMES, NOW)
    assert new is not damaged
    assert pki.renewed(new, NAMES, NOW) is new
    certificate(new.leaf.certificate).verify_directly_issued_by(certificate(new.ca_certificates))


def test_a_leaf_without_names_is_refused() -> None:
    """No client would accept it."""
    with pytest.raises(ValueError, match="name"):
        pki.issue_leaf(pki.issue_ca(NOW), (), NOW)


def test_keys_are_not_shown() -> None:
    """A bundle in a message or a trace gives nothing away."""
    assert "PRIVATE KEY" not in repr(bundle())


def test_openssl_reads_the_authority() -> None:
    """As the trust store of a client."""
    context = ssl.create_default_context(cadata=bundle().ca_certificates.decode())
    assert len(context.get_ca_certs()) == 1


def test_a_chain_is_trusted_by_its_root_its_issuer_or_itself() -> None:
    """As somebody else's authority may give it: the leaf, and who stands between it and the root."""
    root, other = pki.issue_ca(NOW), pki.issue_ca(NOW, common_name="other")
    leaf = pki.issue_leaf(root, ["a.svc"], NOW)
    between, issued = _intermediate(root)
    assert pki.trusted(leaf.certificate, root.certificate)
    assert pki.trusted(leaf.certificate, other.certificate + root.certificate)
    assert pki.trusted(leaf.certificate, leaf.certificate)
    assert pki.trusted(issued + between, root.certificate)
    assert pki.trusted(issued, between)
    assert not pki.trusted(issued, root.certificate), "nobody shows who stands between"
    assert not pki.trusted(leaf.certificate, other.certificate)
    assert not pki.trusted(leaf.certificate + root.certificate, other.certificate)
    assert not pki.trusted(leaf.certificate, b"garbage")
    assert not pki.trusted(b"garbage", root.certificate)


def test_what_cannot_be_read_beside_a_good_authority_is_passed_over() -> None:
    """As an API server does with what it is told to trust."""
    root = pki.issue_ca(NOW)
    leaf = pki.issue_leaf(root, ["a.svc"], NOW)
    unreadable = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    with_text = b"# company\r\n" + unreadable + root.certificate.replace(b"\n", b"\r\n") + b"the end"
    assert pki.trusted(leaf.certificate, with_text)
    assert not pki.trusted(leaf.certificate, unreadable)


def test_an_authority_that_cannot_be_read_costs_that_one_alone() -> None:
    good, other = pki.issue_ca(NOW), pki.issue_ca(NOW, common_name="other")
    leaf = pki.issue_leaf(good, ["a.svc"], NOW)
    for text in (
        good.certificate + without_line(other.certificate),
        without_line(other.certificate) + good.certificate,
    ):
        assert pki.issued(leaf.certificate, text)
        assert pki.still_valid(text, NOW) == good.certificate
        assert pki.issuing_only(Bundle(text, good.key, leaf)).ca_certificates == good.certificate
        assert pki.can_issue(Bundle(text, good.key, leaf), NOW)


def test_what_is_trusted_besides_is_added_once_and_not_after_its_end() -> None:
    made, other = bundle(), pki.issue_ca(NOW)
    ended = pki.issue_ca(NOW - timedelta(days=4000))
    others = ended.certificate + b"garbage" + made.ca_certificates + other.certificate * 2
    both = pki.trusting(made, others, NOW)
    assert both.ca_certificates == made.ca_certificates + other.certificate
    assert pki.trusting(both, others, NOW) is both


def test_an_authority_whose_leaves_strict_clients_would_refuse_issues_none() -> None:
    """They look for the identifier of the issuer's key; an authority made by hand may have none."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    bare = x509.CertificateBuilder(name, name, key.public_key(), 1, NOW, NOW + timedelta(days=3650))
    text = bare.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    ca = Pair(text, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(pem.UnreadableError, match="identifier"):
        pki.issue_leaf(ca, NAMES, NOW)
    new = pki.renewed(Bundle(ca.certificate, ca.key, Pair(b"", b"")), NAMES, NOW)
    assert new.ca_certificates.endswith(ca.certificate)
    assert pki.issued(new.leaf.certificate, pki.issuing_only(new).ca_certificates)


def test_who_is_no_authority_stands_between_nobody() -> None:
    """No API server would follow such a chain: with an ordinary pair of the company anybody could issue another."""
    root = pki.issue_ca(NOW)
    between, issued = _intermediate(root, authority=False)
    assert not pki.trusted(issued + between, root.certificate)


def _intermediate(root: pki.Pair, *, authority: bool = True) -> tuple[bytes, bytes]:
    """An authority below the root, and a leaf of it. Both have names of their own, as `issue_ca` signs for itself alone."""
    key, now = ec.generate_private_key(ec.SECP256R1()), NOW
    above = x509.load_pem_x509_certificate(root.certificate)
    root_key = load_pem_private_key(root.key, None)
    assert isinstance(root_key, ec.EllipticCurvePrivateKey)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "between")])
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(above.subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=9))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .sign(root_key, hashes.SHA256())
    )
    pair = pki.Pair(
        built.public_bytes(Encoding.PEM),
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
    return pair.certificate, pki.issue_leaf(pair, ["a.svc"], now).certificate
