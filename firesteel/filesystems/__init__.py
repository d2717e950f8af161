"""The one port to file systems: paths, credentials, and files on this machine, through Arrow, or through Hadoop.

A path is a plain path, a ``file:`` URI, or a URI of another file system, and means the same wherever it is given: for a
checkpoint, a savepoint, a source or a sink. ``s3:``, ``s3a:`` and ``s3n:`` are one scheme.

Who is behind the port depends on who needs the files. Sources, sinks and savepoints are read and written in Spark's
Python workers, where Arrow's file systems are at hand (:mod:`.arrow`), and for HDFS a client that needs no Java
(:mod:`.hdfs`). A checkpoint folder is mostly Spark's, so the few files that the driver puts there go the same way as
Spark's own: through Hadoop's client in the JVM (:mod:`firesteel.engine.spark.hadoop`). Files of this machine need none
of them (:mod:`.local`).
"""

from __future__ import annotations

from firesteel.filesystems.local import LOCAL, LocalFileSystem
from firesteel.filesystems.options import StorageOptions
from firesteel.filesystems.paths import hadoop_uri, is_remote, joined, openable, resolved, scheme_of
from firesteel.filesystems.port import FileInfo, FileSystem, Storage

__all__ = [
    "LOCAL",
    "FileInfo",
    "FileSystem",
    "LocalFileSystem",
    "Storage",
    "StorageOptions",
    "file_system_of",
    "hadoop_uri",
    "is_remote",
    "joined",
    "openable",
    "resolved",
]


def file_system_of(path: str, options: StorageOptions | None = None) -> FileSystem:
    """The file system on which a resolved path lies.

    >>> file_system_of("/data/orders") is LOCAL
    True
    """
    if not is_remote(path):
        return LOCAL
    if scheme_of(path) == "hdfs":
        from firesteel.filesystems.hdfs import HdfsFileSystem, has_client

        if has_client():
            return HdfsFileSystem(path)
    # Arrow takes a part of a second to load: those who stay on this machine need not wait for it.
    from firesteel.filesystems.arrow import ArrowFileSystem

    return ArrowFileSystem(path, options or StorageOptions())
