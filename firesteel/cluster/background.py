"""The threads of a supervisor, and what all of them have to know: whether jobs are suspended, whether all is over."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from firesteel.cluster.registry import RegistryUnreachableError, StaleEpochError

__all__ = ["Background"]

logger = logging.getLogger("firesteel.cluster")


class Background:
    """Does what may take long (asking a job, ending a session, starting a driver) while others go on.

    >>> background = Background()
    >>> background.logged(print, "done")
    done
    >>> background.close()
    """

    def __init__(self) -> None:
        self.stopping = False
        """Whether jobs are being suspended: no driver is started any more."""
        self.over = threading.Event()
        self._pool = ThreadPoolExecutor(8, thread_name_prefix="firesteel-work")

    def do(self, action: Callable[..., object], *arguments: Any) -> None:
        """By another thread; a failure is logged."""
        self._pool.submit(self.logged, action, *arguments)

    def logged(self, action: Callable[..., object], *arguments: Any) -> None:
        """By this thread; a failure is logged."""
        try:
            action(*arguments)
        except StaleEpochError:
            logger.error("another job manager has taken over: this one does nothing any more")
        except RegistryUnreachableError as error:
            logger.error("%s", error)
        except Exception:
            logger.exception("the supervisor failed in %s", getattr(action, "__name__", action))

    def close(self) -> None:
        """Waits for what is being done; what was not begun is left."""
        self._pool.shutdown(wait=True, cancel_futures=True)
