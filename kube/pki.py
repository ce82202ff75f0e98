"""A small certificate authority of our own: what is issued, and when it is time to issue again.

Pure but for the key material: the time is an argument, and nothing is stored. The certificates carry what strict
verifiers ask for (key identifiers, key usage, names as subjectAltName), so that both Go's and Python's strictest
defaults accept them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kube import pem

CA_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
RENEWAL_MARGIN = timedelta(days=90)
"""A certificate is replaced when this much of its life is left: three months in which a failing renewal is seen."""

BACKDATING = timedelta(hours=1)
"""Start of validity before the time of issue, for API servers whose clocks are behind."""

_COMMON_NAME_LIMIT = 64


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

    Raises ValueError when there are no names, or the authority is no EC pair that can issue.
    """
    sans = _alternative_names(names)
    issuer, signer = pem.read(ca.certificate), _private_key(ca.key)
    identifier = pem.extension(issuer, x509.SubjectKeyIdentifier)
    if identifier is None:
        raise pem.UnreadableError("the authority's certificate has no identifier of its key")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, str(sans[0].value)[:_COMMON_NAME_LIMIT])])
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
    ca = None if bundle is None else _usable_ca(bundle, now)
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
    ca = Pair(pem.first(bundle.ca_certificates), bundle.ca_key)
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
        leaf = pem.read(certificate)
    except pem.UnreadableError:
        return False
    return any(_is_issuer(authority, leaf) for authority in pem.certificates(ca_certificates))


def trusted(chain: bytes, ca_certificates: bytes) -> bool:
    """Whether who trusts these authorities and is shown this chain finds a way to one of them; periods are not looked at."""
    shown, authorities = pem.certificates(chain), pem.certificates(ca_certificates)
    reached, between = shown[:1], [one for one in shown[1:] if _is_authority(one)]
    for certificate in reached:
        if certificate in authorities or any(_is_issuer(authority, certificate) for authority in authorities):
            return True
        reached += [one for one in between if one not in reached and _is_issuer(one, certificate)]
    return False


def serves_clients(leaf: Pair) -> bool:
    """Whether a server would take the leaf for a client's."""
    try:
        usages = pem.extension(pem.read(leaf.certificate), x509.ExtendedKeyUsage)
    except pem.UnreadableError:
        return False
    return usages is None or ExtendedKeyUsageOID.CLIENT_AUTH in usages


def issuing_only(bundle: Bundle) -> Bundle:
    """The very same bundle when its issuing authority is all it holds, else one that holds nothing else.

    Raises UnreadableError where it holds none.
    """
    first = pem.first(bundle.ca_certificates)
    return bundle if bundle.ca_certificates == first else replace(bundle, ca_certificates=first)


def trusting(bundle: Bundle, others: bytes, now: datetime) -> Bundle:
    """The very same bundle when it trusts those of the other authorities that have not ended, else one that does as well."""
    known = pem.certificates(bundle.ca_certificates)
    more = [one for one in dict.fromkeys(pem.certificates(others)) if one not in known and _lasts(one, now)]
    return replace(bundle, ca_certificates=pem.encoded(known + more)) if more else bundle


def needs_renewal(certificate: bytes, now: datetime, *, margin: timedelta = RENEWAL_MARGIN) -> bool:
    """Whether the first certificate of a PEM is unreadable, not valid yet, or not valid any more `margin` from now."""
    try:
        read = pem.read(certificate)
    except pem.UnreadableError:
        return True
    return not read.not_valid_before_utc <= now < read.not_valid_after_utc - margin


def can_issue(bundle: Bundle, now: datetime) -> bool:
    """Whether its authority can go on issuing."""
    return _usable_ca(bundle, now) is not None


def _usable_ca(bundle: Bundle, now: datetime) -> Pair | None:
    """The issuing pair, if it can go on issuing."""
    try:
        pair = Pair(pem.first(bundle.ca_certificates), bundle.ca_key)
    except pem.UnreadableError:
        return None
    lasts = not needs_renewal(pair.certificate, now, margin=LEAF_LIFETIME)
    identified = pem.extension(pem.read(pair.certificate), x509.SubjectKeyIdentifier) is not None
    return pair if lasts and identified and _matches(pair) else None


def _names_served(leaf: Pair, ca: Pair) -> set[str]:
    """The names of a leaf that this authority issued and whose key is there; empty for any other."""
    if not issued(leaf.certificate, ca.certificate) or not _matches(leaf):
        return set()
    names = pem.extension(pem.read(leaf.certificate), x509.SubjectAlternativeName)
    return {str(name.value) for name in names or ()}


def _is_authority(certificate: x509.Certificate) -> bool:
    constraints = pem.extension(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def _is_issuer(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _valid(leaf: Pair, now: datetime) -> bool:
    return not needs_renewal(leaf.certificate, now, margin=timedelta())


def _matches(pair: Pair) -> bool:
    try:
        return _private_key(pair.key).public_key() == pem.read(pair.certificate).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return False


def still_valid(authorities: bytes, now: datetime) -> bytes:
    """Those of the PEM certificates that can be read and have not ended."""
    return pem.encoded(one for one in pem.certificates(authorities) if _lasts(one, now))


def _lasts(certificate: x509.Certificate, now: datetime) -> bool:
    return now < certificate.not_valid_after_utc


def _private_key(text: bytes) -> ec.EllipticCurvePrivateKey:
    """Raises ValueError for anything but an unencrypted EC key."""
    try:
        key = serialization.load_pem_private_key(text, password=None)
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
