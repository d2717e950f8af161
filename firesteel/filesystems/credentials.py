"""Whether Arrow finds credentials for Google's and Azure's stores, before anything is opened there.

Without them Arrow's client of Google's store asks for a token for many minutes, and that of Azure's ends the process:
its exception leaves a function that must not throw. Both answer a question about a file with an error.
"""

from __future__ import annotations

import functools
import os
from urllib.parse import urlsplit

from pyarrow import fs

from firesteel.common.secret import without_url_secrets
from firesteel.errors import ConfigurationError, FailureKind

__all__ = ["CREDENTIALS", "check_credentials"]

_GOOGLE = (
    "Set GOOGLE_APPLICATION_CREDENTIALS to the JSON file of a service account, or run 'gcloud auth application-default "
    "login', for the driver and all workers; a public bucket is gs://anonymous@bucket/path"
)
_AZURE = (
    "Set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or run 'az login', for the driver and all workers, "
    "or give their machines an identity"
)
CREDENTIALS = {"gs": _GOOGLE, "gcs": _GOOGLE, "abfs": _AZURE, "abfss": _AZURE}
"""By scheme what to do without credentials."""

_VARIABLES = ("GOOGLE_APPLICATION_CREDENTIALS", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE")
_MISSING = ("OAuth2 access token", "AuthenticationException")
"""What the clients' errors have in them then."""
_SECONDS = 2
"""After so long Google's client tries no more, where it is only asked."""


def check_credentials(path: str) -> None:
    """Raises a ConfigurationError where there are none for a URI of :data:`CREDENTIALS`. Other failures are for those
    who use the store."""
    parts = urlsplit(path)
    _check(parts.scheme.lower(), parts.netloc)


@functools.lru_cache(maxsize=64)
def _check(scheme: str, place: str) -> None:
    # Once for each bucket in a process. What is raised is not kept.
    limit = f"?retry_limit_seconds={_SECONDS}" if scheme in ("gs", "gcs") else ""
    try:
        system, inner = fs.FileSystem.from_uri(f"{scheme}://{place}/credentials{limit}")
        system.get_file_info(inner)
    except Exception as error:
        if any(part in str(error) for part in _MISSING):
            # Where somebody has set some, the service that gives tokens for them may be out of reach for a while.
            known = any(name in os.environ for name in _VARIABLES)
            raise ConfigurationError(
                f"Cannot open {without_url_secrets(f'{scheme}://{place}')}: there are no credentials, or they are not "
                f"accepted. {CREDENTIALS[scheme]}.",
                kind=FailureKind.PASSING if known else FailureKind.PERMANENT,
            ) from error
