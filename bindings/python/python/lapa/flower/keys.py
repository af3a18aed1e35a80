"""Certificates and key pairs for a federation on loopback. For real hosts see docs/deploy.md."""

from __future__ import annotations

import datetime
import ipaddress
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAYS = 30


def certificates(folder: Path, address: str) -> None:
    """Writes `ca.crt`, `server.pem` and `server.key` for a server at this IP address."""
    folder.mkdir(parents=True, exist_ok=True)
    authority, server = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    issuer, subject = _name("lapa loopback authority"), _name("lapa loopback server")
    alternatives = x509.SubjectAlternativeName(
        [x509.IPAddress(ipaddress.ip_address(address)), x509.DNSName("localhost")]
    )
    signed = (
        _certificate(issuer, issuer, authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), critical=False)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(authority, hashes.SHA384())
    )
    own = (
        _certificate(subject, issuer, server)
        .add_extension(alternatives, critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False
        )
        .add_extension(_usage(signs_certificates=False), critical=True)
        .sign(authority, hashes.SHA384())
    )
    (folder / "ca.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / "server.pem").write_bytes(own.public_bytes(serialization.Encoding.PEM))
    _write_secret(folder / "server.key", server, serialization.PrivateFormat.PKCS8)


def key_pair(folder: Path, name: str) -> Path:
    """Writes a SuperNode's key pair, NAME and NAME.pub as `ssh-keygen` would, and returns the private one's path."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP384R1())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    (folder / f"{name}.pub").write_bytes(public + b"\n")
    _write_secret(folder / name, key, serialization.PrivateFormat.OpenSSH)
    return folder / name


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _write_secret(path: Path, key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> None:
    secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(secret)
