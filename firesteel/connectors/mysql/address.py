"""Where a MariaDB or MySQL is: JDBC's addresses, understood without Java."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from firesteel.common.secret import Secret
from firesteel.connectors.jdbc.address import DatabaseAddress, shown
from firesteel.errors import ConnectorError, FailureKind, ProgramError

__all__ = ["MySqlAddress"]

_WITHOUT_MEANING = (
    "rewriteBatchedStatements",
    "useServerPrepStmts",
    "cachePrepStmts",
    "useUnicode",
    "characterEncoding",
    "serverTimezone",
    "connectionTimeZone",
    "allowPublicKeyRetrieval",
    "tcpKeepAlive",
    "pinGlobalTxToPhysicalConnection",
    "allowMultiQueries",
)
"""Parameters that tune Java's drivers, or that are so here in any case."""

_MODES = {
    "DISABLED": "DISABLED",
    "PREFERRED": "PREFERRED",
    "REQUIRED": "REQUIRED",
    "VERIFY_CA": "VERIFY_CA",
    "VERIFY_IDENTITY": "VERIFY_IDENTITY",
    # MariaDB's names.
    "DISABLE": "DISABLED",
    "TRUST": "REQUIRED",
    "VERIFY_FULL": "VERIFY_IDENTITY",
}
_TLS = {
    name.lower(): name
    for name in (
        *("sslMode", "useSSL", "verifyServerCertificate", "trustServerCertificate", "disableSslHostnameVerification"),
        *("sslrootcert", "serverSslCert"),
    )
} | {"ssl-mode": "sslMode"}


@dataclass(frozen=True)
class MySqlAddress(DatabaseAddress):
    """One database and who asks. Its text never has the password.

    >>> MySqlAddress.parse("jdbc:mysql://db.example:3307/shop?user=ada&password=secret")
    MySqlAddress(host='db.example', port=3307, database='shop')
    >>> str(MySqlAddress.parse("mariadb://ada:secret@db/shop"))
    'db:3306/shop'
    """

    host: str
    port: int
    database: str
    user: str | None = field(default=None, repr=False)
    password: Secret | None = field(default=None, repr=False)
    parameters: tuple[tuple[str, Any], ...] = field(default=(), repr=False)
    """More for the driver."""
    tls: str = field(default="PREFERRED", repr=False)
    """MySQL's name for what is asked of the connection."""
    authorities: str | None = field(default=None, repr=False)
    """A file with the certificates that are trusted, instead of those of the system."""
    server: str = field(default="MySQL", repr=False)
    """What the address calls the server."""

    @staticmethod
    def parse(url: str, user: str | None = None, password: str | Secret | None = None) -> MySqlAddress:
        """Reads an address; ``user`` and ``password`` override those in it."""
        parts = urlsplit(url.removeprefix("jdbc:"))
        try:
            host, port = unquote(parts.hostname or "localhost"), parts.port or 3306
        except ValueError:
            # Not with what it says of it, which may quote the password.
            raise ProgramError(f"The port in {shown(url)} must be a number.") from None
        if not url.partition(":")[2].removeprefix(parts.scheme + ":").startswith("//") and "//" not in url:
            raise ProgramError(
                f"The address {shown(url)} cannot be read. It should be jdbc:mysql://host:port/database."
            )
        known: dict[str, Any] = {}
        tls: dict[str, str] = {}
        for key, value in parse_qsl(parts.query, keep_blank_values=True):
            if key.lower() in _TLS:
                tls[_TLS[key.lower()]] = value
            else:
                known.update(_parameter(key, value, url))
        user = user or known.pop("user", None) or (unquote(parts.username) if parts.username else None)
        given = known.pop("password", None) or (unquote(parts.password) if parts.password else None)
        password = password or given
        known.pop("user", None)
        database = unquote(parts.path.lstrip("/"))
        hidden = Secret.of(password) if password else None
        server = "MariaDB" if parts.scheme == "mariadb" else "MySQL"
        authorities = tls.get("sslrootcert") or tls.get("serverSslCert")
        mode = _mode(tls, server, url)
        return MySqlAddress(host, port, database, user, hidden, tuple(known.items()), mode, authorities, server)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.database}"

    def arguments(self) -> dict[str, Any]:
        found: dict[str, Any] = {"host": self.host, "port": self.port, "connect_timeout": 10}
        if self.database:
            found["database"] = self.database
        if self.user:
            found["user"] = self.user
        if self.password:
            found["password"] = self.password.reveal()
        return {**found, **dict(self.parameters), **self._security()}

    def _security(self) -> dict[str, Any]:
        """What the driver gets for the mode: PyMySQL takes nothing but a context for a demand, and ``PREFERRED`` is
        what it does by itself."""
        if self.tls == "PREFERRED":
            return {}
        if self.tls == "DISABLED":
            return {"ssl_disabled": True}
        try:
            context = ssl.create_default_context(cafile=self.authorities)
        except OSError as error:
            raise ConnectorError(
                f"The certificates in {self.authorities!r} cannot be read: {error}.", kind=FailureKind.PERMANENT
            ) from None
        # Certificates that MySQL makes by itself lack what strict checks ask for.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.check_hostname = self.tls == "VERIFY_IDENTITY"
        if self.tls == "REQUIRED":
            context.verify_mode = ssl.CERT_NONE
        return {"ssl": context}

    def without_password(self, text: str) -> str:
        return self.password.mask(text) if self.password else text


def _parameter(key: str, value: str, url: str) -> dict[str, Any]:
    if key in ("user", "password"):
        return {key: value}
    if key == "connectTimeout":
        # Java's is in milliseconds.
        return {"connect_timeout": max(1, int(value) // 1000)}
    if key in _WITHOUT_MEANING:
        return {}
    raise ProgramError(f"The parameter {key!r} in {shown(url)} is not known.")


def _mode(given: Mapping[str, str], server: str, url: str) -> str:
    """What is asked of the connection, as the JDBC driver of the server understands it."""
    if "sslMode" in given:
        mode = given["sslMode"].upper().replace("-", "_")
        if mode not in _MODES:
            raise ProgramError(
                f"sslMode={given['sslMode']} in {shown(url)} is not known. It may be {', '.join(sorted(_MODES))}."
            )
        return _MODES[mode]
    if given.get("useSSL") == "false":
        return "DISABLED"
    if given.get("trustServerCertificate") == "true":
        return "REQUIRED"
    if "useSSL" not in given:
        return "VERIFY_CA" if "sslrootcert" in given or "serverSslCert" in given else "PREFERRED"
    if server == "MariaDB":
        return "VERIFY_CA" if given.get("disableSslHostnameVerification") == "true" else "VERIFY_IDENTITY"
    return "VERIFY_CA" if given.get("verifyServerCertificate") == "true" else "REQUIRED"
