"""What a path means: one answer for checkpoints, savepoints, sources and sinks."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote, urlsplit

from firesteel.common.secret import without_url_secrets
from firesteel.errors import ConfigurationError

__all__ = ["S3_SCHEMES", "cannot_open", "hadoop_uri", "is_remote", "joined", "openable", "resolved", "scheme_of"]

_OF_ARROW = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs")
"""Schemes that Arrow knows. Hadoop may know more, for checkpoints."""

S3_SCHEMES = ("s3", "s3a", "s3n")
"""Names of one and the same: Hadoop's client calls itself s3a, all others s3."""

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
"""Two letters at least: a single one is a drive of Windows. A name may have a colon, too."""


def scheme_of(path: str) -> str | None:
    """The scheme of a URI, None for a plain path.

    >>> scheme_of("s3a://bucket/orders"), scheme_of("/data/orders"), scheme_of("c:/orders"), scheme_of("job:1")
    ('s3a', None, None, None)
    """
    found = _SCHEME.match(path)
    return found[1].lower() if found is not None else None


def resolved(path: str, what: str = "A path") -> str:
    """A plain path or a ``file:`` URI as an absolute path; the URI of another file system without a slash at its end.

    >>> resolved("file:///data/a%20b"), resolved("s3://bucket/orders/")
    ('/data/a b', 's3://bucket/orders')

    ``what`` names the setting or the call in an error.
    """
    scheme = scheme_of(path)
    if scheme is None:
        return os.path.abspath(path)
    parts = urlsplit(path)
    if scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise ConfigurationError(
                f"{what} is {path!r}, a file on the machine {parts.netloc!r}. A file: URI has three slashes, such as "
                f"file:///{parts.netloc}{parts.path}, and is of the machine that uses it."
            )
        return os.path.abspath(unquote(parts.path))
    if not path[len(scheme) :].startswith("://"):
        raise ConfigurationError(
            f"{what} should be a folder, a file: URI, or a URI of a file system such as s3://bucket/folder or "
            f"hdfs://host/folder; got {path!r}."
        )
    if "@" in parts.netloc and scheme in S3_SCHEMES:
        # Not with the path, which would end up in logs, manifests and errors.
        raise ConfigurationError(
            f"{what} contains credentials. Remove them from the path: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or the settings spark.hadoop.fs.s3a.access.key and spark.hadoop.fs.s3a.secret.key."
        )
    return path.rstrip("/")


def openable(path: str, what: str) -> str:
    """As :func:`resolved`, for sources and sinks: their workers open files through Arrow, or a client for HDFS.

    >>> openable("oss://bucket/orders", "The path of a file sink")
    Traceback (most recent call last):
    firesteel.errors.ConfigurationError: Cannot open oss://bucket/orders: The path of a file sink has the scheme \
'oss'. Known are the schemes file, s3, gs, gcs, abfs, abfss, hdfs; hdfs needs pip install 'firesteel[hdfs]', or \
Hadoop's native library and a CLASSPATH. Other file systems can be mounted as a folder.
    """
    found = resolved(path, what)
    scheme = scheme_of(found)
    if scheme is not None and scheme not in (*S3_SCHEMES, *_OF_ARROW):
        raise cannot_open(found, f"{what} has the scheme {scheme!r}")
    return found


def cannot_open(path: str, reason: str) -> ConfigurationError:
    """The error for a path that neither Arrow nor the client for HDFS opens."""
    return ConfigurationError(
        f"Cannot open {without_url_secrets(path)}: {reason}. Known are the schemes file, {', '.join(_OF_ARROW)}; hdfs "
        "needs pip install 'firesteel[hdfs]', or Hadoop's native library and a CLASSPATH. Other file systems can be "
        "mounted as a folder."
    )


def is_remote(path: str) -> bool:
    """Whether a path is a URI of another file system than this machine's.

    >>> is_remote("hdfs://name/checkpoints"), is_remote("/var/checkpoints"), is_remote("file:///var/checkpoints")
    (True, False, False)
    """
    return scheme_of(path) not in (None, "file")


def joined(folder: str, *names: str) -> str:
    """A path inside a folder, which may be a URI.

    >>> joined("s3://bucket/orders", "2024", "part-0")
    's3://bucket/orders/2024/part-0'
    """
    return "/".join([folder.rstrip("/"), *names])


def hadoop_uri(path: str) -> str:
    """A resolved path as Hadoop's client takes it, which knows S3 as ``s3a``.

    >>> hadoop_uri("s3://bucket/checkpoints"), hadoop_uri("/var/checkpoints")
    ('s3a://bucket/checkpoints', '/var/checkpoints')
    """
    scheme = scheme_of(path)
    return "s3a" + path[len(scheme) :] if scheme in S3_SCHEMES else path
