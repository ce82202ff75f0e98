"""A small certificate authority of our own: what is issued, and when it is time to issue again.

Pure but for the key material: the time is an argument, and nothing is stored. The certificates carry what strict
verifiers ask for (key identifiers, key usage, names as subjectAltName), so that both Go's and Python's strictest
defaults accept them.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
RENEWAL_MARGIN = timedelta(days=90)
"""A certificate is replaced when this much of its life is left: three months in which a failing renewal is seen."""

BACKDATING = timedelta(hours=1)
"""Start of validity before the time of issue, for API servers whose clocks are behind."""

_COMMON_NAME_LIMIT = 64
_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Bundle:
    """An authority and a serving pair that it issued.

    `ca_certificates` holds the issuing certificate first; others may follow, of former authorities whose leaves are
    still being served somewhere. All of them together are what clients are to trust.
    """

    ca_certificates: bytes
    ca_key: bytes = field(repr=False)
    leaf: Pair


def issue_ca(now: datetime, *, common_name: str = "cardquota") -> Pair:
    """A new self-signed authority that may sign leaves only, valid for CA_LIFETIME from `now` (with a zone)."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = (
        _builder(subject, subject, key.public_key(), now, CA_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    )
    return _pair(builder.sign(key, hashes.SHA256()), key)


def issue_leaf(ca: Pair, names: Iterable[str], now: datetime, *, clients: bool = True) -> Pair:
    """A new pair for the given DNS names and IP addresses, for servers and, with `clients`, for clients as well.

    It is valid for LEAF_LIFETIME.

    Raises ValueError when there are no names, or the authority is not a readable EC pair.
    """
    sans = _alternative_names(names)
    issuer, signer = x509.load_pem_x509_certificate(ca.certificate), _private_key(ca.key)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, str(sans[0].value)[:_COMMON_NAME_LIMIT])])
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, *([ExtendedKeyUsageOID.CLIENT_AUTH] if clients else [])]
    builder = (
        _builder(subject, issuer.subject, key.public_key(), now, LEAF_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False
        )
        .add_extension(x509.SubjectAlternativeName(sans), critical=False)
    )
    return _pair(builder.sign(signer, hashes.SHA256()), key)


def renewed(bundle: Bundle | None, names: Sequence[str], now: datetime, *, keep_leaf: bool = False) -> Bundle:
    """The very same bundle when it serves all `names` for long enough, else one with what had to be issued anew.

    A usable authority is kept when only the leaf is to be replaced. With `keep_leaf` a leaf that can still be served stays
    although its time has come: whoever has to trust the next one may not know its authority yet.
    """
    ca = _usable_ca(bundle, now)
    if bundle is None or ca is None:
        ca = issue_ca(now)
        former = b"" if bundle is None else still_valid(bundle.ca_certificates, now)
        bundle = Bundle(ca.certificate + former, ca.key, Pair(b"", b"") if bundle is None else bundle.leaf)
    leaf = renewed_leaf(bundle, bundle.leaf, names, now, clients=True, keep=keep_leaf)
    return bundle if leaf is bundle.leaf else replace(bundle, leaf=leaf)


def renewed_leaf(
    bundle: Bundle,
    leaf: Pair | None,
    names: Sequence[str],
    now: datetime,
    *,
    clients: bool,
    keep: bool = False,
) -> Pair:
    """The very same leaf when it is as the authority would issue it and valid for long enough, else a new one.

    A new one has exactly these `names`, and proves a client's identity only with `clients`. With `keep`, as for `renewed`.
    """
    ca = Pair(_first(bundle.ca_certificates), bundle.ca_key)
    if leaf is not None:
        wanted = {str(name.value) for name in _alternative_names(names)}
        proper = _names_served(leaf, ca) == wanted and serves_clients(leaf) == clients
        if proper and not needs_renewal(leaf.certificate, now):
            return leaf
        if keep and _matches(leaf) and _valid(leaf, now) and issued(leaf.certificate, bundle.ca_certificates):
            return leaf
    return issue_leaf(ca, names, now, clients=clients)


def issued(certificate: bytes, ca_certificates: bytes) -> bool:
    """Whether one of these authorities issued the first certificate of a PEM, or the one of a DER."""
    try:
        leaf = _read(certificate)
        authorities = x509.load_pem_x509_certificates(ca_certificates)
    except ValueError:
        return False
    return any(_is_issuer(authority, leaf) for authority in authorities)


def trusted(chain: bytes, ca_certificates: bytes) -> bool:
    """Whether who trusts these authorities and is shown this chain finds a way to one of them; periods are not looked at."""
    shown, authorities = _readable(chain), _readable(ca_certificates)
    reached, between = shown[:1], [one for one in shown[1:] if _is_authority(one)]
    for certificate in reached:
        if certificate in authorities or any(_is_issuer(authority, certificate) for authority in authorities):
            return True
        reached += [one for one in between if one not in reached and _is_issuer(one, certificate)]
    return False


def _readable(pem: bytes) -> list[x509.Certificate]:
    """The certificates that can be read; an API server passes over the others as well."""
    found = []
    for block in _BLOCK.findall(pem):
        try:
            found.append(x509.load_pem_x509_certificate(block))
        except ValueError:
            continue
    return found


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, ValueError):
        return False


def serves_clients(leaf: Pair) -> bool:
    """Whether a server would take the leaf for a client's."""
    try:
        certificate = x509.load_pem_x509_certificate(leaf.certificate)
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    except ValueError:
        return False
    return ExtendedKeyUsageOID.CLIENT_AUTH in usages


def issuing_only(bundle: Bundle) -> Bundle:
    """The very same bundle when it trusts no former authority, else one that does not any more."""
    first = _first(bundle.ca_certificates)
    count = len(x509.load_pem_x509_certificates(bundle.ca_certificates))
    return bundle if count == 1 else replace(bundle, ca_certificates=first)


def needs_renewal(pem: bytes, now: datetime, *, margin: timedelta = RENEWAL_MARGIN) -> bool:
    """Whether the first certificate in `pem` is unreadable, not valid yet, or not valid any more `margin` from now."""
    try:
        certificate = x509.load_pem_x509_certificate(pem)
    except ValueError:
        return True
    return not certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - margin


def _usable_ca(bundle: Bundle | None, now: datetime) -> Pair | None:
    """The issuing pair, if it can go on issuing."""
    if bundle is None or needs_renewal(bundle.ca_certificates, now, margin=LEAF_LIFETIME):
        return None
    certificate = x509.load_pem_x509_certificate(bundle.ca_certificates)
    pair = Pair(certificate.public_bytes(serialization.Encoding.PEM), bundle.ca_key)
    return pair if _matches(pair) else None


def _names_served(leaf: Pair, ca: Pair) -> set[str]:
    """The names of a leaf that this authority issued and whose key is there; empty for any other."""
    try:
        certificate = x509.load_pem_x509_certificate(leaf.certificate)
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(ca.certificate))
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return set()
    return {str(name.value) for name in extension.value} if _matches(leaf) else set()


def _is_issuer(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _read(certificate: bytes) -> x509.Certificate:
    """Raises ValueError."""
    if certificate.startswith(b"-----BEGIN"):
        return x509.load_pem_x509_certificate(certificate)
    return x509.load_der_x509_certificate(certificate)


def _first(pem: bytes) -> bytes:
    return x509.load_pem_x509_certificate(pem).public_bytes(serialization.Encoding.PEM)


def _valid(leaf: Pair, now: datetime) -> bool:
    return not needs_renewal(leaf.certificate, now, margin=timedelta())


def _matches(pair: Pair) -> bool:
    try:
        certificate = x509.load_pem_x509_certificate(pair.certificate)
        return _private_key(pair.key).public_key() == certificate.public_key()
    except ValueError:
        return False


def still_valid(pem: bytes, now: datetime) -> bytes:
    """Those of the PEM certificates that have not ended; none where the text cannot be read."""
    try:
        certificates = x509.load_pem_x509_certificates(pem)
    except ValueError:
        return b""
    valid = [certificate for certificate in certificates if now < certificate.not_valid_after_utc]
    return b"".join(certificate.public_bytes(serialization.Encoding.PEM) for certificate in valid)


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Raises ValueError for anything but an unencrypted EC key."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (TypeError, UnsupportedAlgorithm) as error:
        raise ValueError("not an unencrypted private key") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not an EC private key")  # noqa: TRY004 - content, not a wrong call
    return key


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATING)
        .not_valid_after(now + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative_names(names: Iterable[str]) -> list[x509.DNSName | x509.IPAddress]:
    found: list[x509.DNSName | x509.IPAddress] = []
    for name in dict.fromkeys(names):
        try:
            found.append(x509.IPAddress(ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name.lower()))
    if not found:
        raise ValueError("a leaf needs at least one name")
    return found


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
