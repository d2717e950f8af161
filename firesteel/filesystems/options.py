"""How to get into an object store, from the same settings that Spark's own client takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from firesteel.common.secret import Secret

__all__ = ["S3_KEYS", "StorageOptions"]

_PREFIX = "spark.hadoop.fs.s3a."
S3_KEYS = (
    "access.key",
    "secret.key",
    "session.token",
    "endpoint",
    "endpoint.region",
    "connection.ssl.enabled",
)
"""What is taken over from the settings of Hadoop's S3 client, ``spark.hadoop.fs.s3a.*``."""


@dataclass(frozen=True)
class StorageOptions:
    """Access to S3. What is not set here Arrow finds as the AWS tools do: in ``AWS_ACCESS_KEY_ID`` and its like,
    ``AWS_ENDPOINT_URL``, ``AWS_REGION``, ``~/.aws``, or the machine's role.

    >>> settings = {"spark.hadoop.fs.s3a.access.key": "me", "spark.hadoop.fs.s3a.secret.key": "hunter2"}
    >>> StorageOptions.of({**settings, "spark.hadoop.fs.s3a.endpoint": "http://127.0.0.1:9000"})
    StorageOptions(access_key=Secret(***), secret_key=Secret(***), endpoint='127.0.0.1:9000', tls=False)
    """

    access_key: Secret | None = None
    secret_key: Secret | None = None
    session_token: Secret | None = None
    endpoint: str | None = None
    """Host and port; None for Amazon's own."""
    region: str | None = None
    tls: bool | None = None

    @staticmethod
    def of(settings: Mapping[str, str]) -> StorageOptions:
        return StorageOptions.from_hadoop(lambda key: settings.get(_PREFIX + key))

    @staticmethod
    def from_hadoop(get: Callable[[str], str | None]) -> StorageOptions:
        """From the settings of Hadoop's S3 client, by their names behind ``fs.s3a.``."""
        access, secret, token, endpoint, region, tls = (get(key) or None for key in S3_KEYS)
        if endpoint is not None and "://" in endpoint:
            scheme, _, endpoint = endpoint.partition("://")
            tls = "false" if scheme == "http" else "true"
        return StorageOptions(
            Secret(access) if access else None,
            Secret(secret) if secret else None,
            Secret(token) if token else None,
            endpoint.rstrip("/") if endpoint else None,
            region,
            # On by default, for Hadoop as for Arrow.
            False if tls is not None and tls.lower() == "false" else None,
        )

    def for_arrow(self) -> dict[str, Any]:
        """What ``pyarrow.fs.S3FileSystem`` takes."""
        secrets = {"access_key": self.access_key, "secret_key": self.secret_key, "session_token": self.session_token}
        found: dict[str, Any] = {name: secret.reveal() for name, secret in secrets.items() if secret is not None}
        if self.endpoint is not None:
            # Buckets are part of the path there, which every server understands.
            found["endpoint_override"] = self.endpoint
        if self.region is not None:
            found["region"] = self.region
        if self.tls is not None:
            found["scheme"] = "https" if self.tls else "http"
        return found

    def __repr__(self) -> str:
        given = {name: value for name, value in vars(self).items() if value is not None}
        return f"StorageOptions({', '.join(f'{name}={value!r}' for name, value in given.items())})"
