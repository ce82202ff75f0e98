"""Keys, certificates and tokens of a control plane that lives for one run.

One certificate authority signs the API server's certificate and the client certificates; the fixed accounts (the admin
and the control plane's own programs) use static tokens.
"""

import datetime as dt
import ipaddress
import secrets
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = dt.timedelta(days=7)
_CLOCK_SKEW = dt.timedelta(minutes=5)

# What the bootstrap RBAC roles are bound to; kwok plays many kubelets at once and therefore is an administrator.
ACCOUNTS: dict[str, tuple[str, ...]] = {
    "admin": ("system:masters",),
    "kwok": ("system:masters",),
    "system:kube-scheduler": (),
    "system:kube-controller-manager": (),
}


class Credentials:
    """The files of one control plane's identities, in `folder`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._ca_key = ec.generate_private_key(ec.SECP256R1())
        self._ca = self._certificate("cardquota-local-ca", (), self._ca_key, authority=True)
        self.ca_file = write_private(folder / "ca.crt", _pem(self._ca))
        self.tokens = {account: secrets.token_urlsafe(24) for account in ACCOUNTS}
        lines = (
            f'{self.tokens[user]},{user},{user},"{",".join(groups)}"' for user, groups in ACCOUNTS.items()
        )
        self.token_file = write_private(folder / "tokens.csv", "\n".join([*lines, ""]).encode())
        key = ec.generate_private_key(ec.SECP256R1())
        self.service_account_key = write_private(folder / "service-accounts.key", _key_pem(key))
        self.server_certificate, self.server_key = self._server_pair()

    def client_pair(self, user: str, groups: Sequence[str]) -> tuple[bytes, bytes]:
        """Return certificate and key (PEM) that the API server takes for `user` in `groups`."""
        key = ec.generate_private_key(ec.SECP256R1())
        return _pem(self._certificate(user, groups, key)), _key_pem(key)

    def _server_pair(self) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [
            x509.DNSName(name) for name in ("localhost", "kubernetes.default", "kubernetes.default.svc")
        ]
        names.append(x509.IPAddress(ipaddress.IPv4Address("127.0.0.1")))
        certificate = self._certificate("kube-apiserver", (), key, names=names)
        return (
            write_private(self._folder / "apiserver.crt", _pem(certificate)),
            write_private(self._folder / "apiserver.key", _key_pem(key)),
        )

    def _certificate(
        self,
        name: str,
        groups: Sequence[str],
        key: ec.EllipticCurvePrivateKey,
        *,
        authority: bool = False,
        names: Sequence[x509.GeneralName] = (),
    ) -> x509.Certificate:
        # Kubernetes reads the user from CN and the groups from O.
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if authority else self._ca.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCK_SKEW)
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(_key_usage(authority=authority), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._ca_key.public_key()), critical=False
            )
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        if not authority:
            usage = ExtendedKeyUsageOID.SERVER_AUTH if names else ExtendedKeyUsageOID.CLIENT_AUTH
            builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        return builder.sign(self._ca_key, hashes.SHA256())


def write_private(path: Path, content: bytes) -> Path:
    """Write a file that only its owner can read and return its path."""
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # "Traditional" for elliptic curves is the EC PRIVATE KEY block, which kube-apiserver reads for signing tokens too.
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=authority,
        crl_sign=authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
