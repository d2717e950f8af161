"""The SQL client: statements typed at a prompt or read from a file."""

from firesteel.table.client.session import SqlSession

__all__ = ["SqlSession"]
