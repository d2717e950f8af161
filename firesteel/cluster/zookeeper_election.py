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
            )
        except ImportError as error:
            raise SetupError(
                f"An election by ZooKeeper needs the package kazoo, which cannot be imported here ({error}): "
                "pip install 'firesteel[ha]'."
            ) from error
        self._hosts, self._path, self._name = hosts, path, name
        self._client: Any = client.KazooClient(hosts=hosts, timeout=seconds, logger=logging.getLogger("kazoo"))
        self._client.add_listener(self._connection_changed)
        self._lock: Any = None
        self._elected = threading.Event()

    def stand(self, seconds: float) -> bool:
        try:
            if not self._client.connected:
                self._client.start(timeout=max(1.0, seconds))
            self._lock = self._client.Lock(self._path, self._name)
            taken = bool(self._lock.acquire(timeout=max(0.1, seconds)))
        except self._timeouts:
            return False
        except (self._errors.KazooException, OSError) as error:
            logger.warning("ZooKeeper at %s: %s: %s", self._hosts, type(error).__name__, error)
            return False
        if taken:
            self._elected.set()
            # The session may have been lost between the two.
            if not self._client.connected:
                self._elected.clear()
        return self._elected.is_set()

    def holds(self) -> bool:
        return self._elected.is_set()

    def resign(self) -> None:
        self._elected.clear()
        if self._lock is not None:
            with contextlib.suppress(Exception):
                self._lock.release()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.stop()
            self._client.close()

    def _connection_changed(self, state: str) -> None:
        # Suspended is enough: whether the session still lives is not known until there is a connection again.
        if state != "CONNECTED":
            self._elected.clear()
