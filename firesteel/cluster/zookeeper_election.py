"""The election by ZooKeeper: the first of the ephemeral nodes that candidates make. ZooKeeper removes the node of a
session that it has not heard from, so one that stands still loses it."""

from __future__ import annotations

import contextlib
import importlib
import logging
import threading
from typing import Any

from firesteel.errors import SetupError

__all__ = ["ZookeeperElection"]

logger = logging.getLogger("firesteel.cluster")


class ZookeeperElection:
    """One candidate."""

    def __init__(self, hosts: str, path: str, name: str, seconds: float) -> None:
        """``hosts``: ``host:port,host:port``. ``seconds``: how long a session lives that says nothing."""
        try:
            client = importlib.import_module("kazoo.client")
            self._errors = importlib.import_module("kazoo.exceptions")
            self._timeouts: tuple[type[Exception], ...] = (
                importlib.import_module("kazoo.handlers.threading").KazooTimeoutError,
                # Somebody else leads: nothing is wrong with the session.
                self._errors.LockTimeout,
            )
        except ImportError as error:
            raise SetupError(
                f"An election by ZooKeeper needs the package kazoo, which cannot be imported here ({error}): "
                "pip install 'firesteel[ha]'."
            ) from error
        self._hosts, self._path, self._name, self._seconds = hosts, path, name, seconds
        self._make = client.KazooClient
        self._client: Any = None
        self._lock: Any = None
        self._elected = threading.Event()

    def stand(self, seconds: float) -> bool:
        try:
            if self._client is None:
                self._client = self._connected(max(1.0, seconds))
            self._lock = self._client.Lock(self._path, self._name)
            taken = self._client.connected and bool(self._lock.acquire(timeout=max(0.1, seconds)))
        except self._timeouts:
            return False
        except (self._errors.KazooException, OSError) as error:
            logger.warning("ZooKeeper at %s: %s: %s", self._hosts, type(error).__name__, error)
            self._forget()
            return False
        if taken:
            self._elected.set()
            # The session may have been lost between the two.
            if not self._client.connected:
                self._elected.clear()
        return self._elected.is_set()

    def _connected(self, seconds: float) -> Any:
        client = self._make(hosts=self._hosts, timeout=self._seconds, logger=logging.getLogger("kazoo"))
        client.add_listener(self._connection_changed)
        try:
            client.start(timeout=seconds)
        except BaseException:
            client.stop()
            client.close()
            raise
        return client

    def holds(self) -> bool:
        return self._elected.is_set()

    def resign(self) -> None:
        self._elected.clear()
        if self._client is not None and self._client.connected and self._lock is not None:
            with contextlib.suppress(Exception):
                self._lock.release()
                return
        # Whether the node is still there is not known, so the session it belongs to is given up with it.
        self._forget()

    def close(self) -> None:
        self._forget()

    def _forget(self) -> None:
        client, self._client, self._lock = self._client, None, None
        if client is not None:
            # It waits for an answer of the server, which nobody here waits for.
            threading.Thread(target=_stop, args=(client,), name="firesteel-zookeeper-end", daemon=True).start()

    def _connection_changed(self, state: str) -> None:
        # Suspended is enough: whether the session still lives is not known until there is a connection again.
        if state != "CONNECTED":
            self._elected.clear()


def _stop(client: Any) -> None:
    with contextlib.suppress(Exception):
        client.stop()
        client.close()
