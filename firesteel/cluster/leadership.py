"""The terms of a job manager among several: it stands for election, leads while it is elected, and stands again.

1. **Stand** until elected. Meanwhile requests are passed on to the leader.
2. **Claim** an epoch of the registry. From here on nobody before can write there.
3. **Lead**: adopt what runs, recover the rest, answer requests.
4. **Step down** when the election is lost, when another epoch has begun, or when the registry cannot be reached. What
   this process still wants to write is refused. Drivers run on; the next leader adopts them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from firesteel.cluster.election import Election
from firesteel.cluster.registry import RegistryUnreachableError, StaleEpochError
from firesteel.cluster.rest.app import build
from firesteel.cluster.rest.calls import Cluster

__all__ = ["Leadership", "Switch"]

logger = logging.getLogger("firesteel.cluster")

_LOOK = 0.1
_SECONDS_BETWEEN_CHECKS = 1.0


class Switch:
    """The application of a server that changes it while it runs."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.app(scope, receive, send)


class Leadership:
    """Runs in a thread of its own."""

    def __init__(
        self, election: Election, lead: Callable[[], Cluster], switch: Switch, announce: Callable[[bool], None]
    ) -> None:
        """``lead`` makes the parts of a job manager and claims an epoch for it; ``announce`` is called when a term
        begins and when it ends."""
        self._election, self._lead, self._switch, self._announce = election, lead, switch, announce
        self._standby = switch.app
        self._over = threading.Event()
        self.leave_jobs = True
        """Whether jobs run on when the process ends, for the next leader."""
        self.elected = threading.Event()
        self._thread = threading.Thread(target=self._run, name="firesteel-leadership", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            try:
                if self._election.stand(1.0):
                    self._term()
            except Exception:
                logger.exception("the term of this job manager ended by an error")
                self._over.wait(1.0)

    def _term(self) -> None:
        cluster: Cluster | None = None
        try:
            cluster = self._lead()
            cluster.supervisor.start()
            self._switch.app = build(cluster)
            self._notify(True)
            self.elected.set()
            logger.info("this job manager leads")
            self._until_it_ends(cluster)
        except StaleEpochError:
            logger.error("another job manager has taken over: this one stands by")
        except RegistryUnreachableError as error:
            logger.error("the registry cannot be reached, this job manager stands by: %s", error)
        finally:
            self.elected.clear()
            self._switch.app = self._standby
            self._notify(False)
            try:
                if cluster is not None:
                    self._end(cluster)
            finally:
                self._election.resign()

    def _notify(self, leads: bool) -> None:
        try:
            self._announce(leads)
        except Exception:
            # Others find the leader in the registry, too: no reason to do without one.
            logger.exception("where this job manager is found could not be written down")

    def _until_it_ends(self, cluster: Cluster) -> None:
        checked = time.monotonic()
        while not self._over.wait(_LOOK):
            if not self._election.holds():
                raise StaleEpochError("The election is lost.")
            if time.monotonic() - checked > _SECONDS_BETWEEN_CHECKS:
                cluster.supervisor.registry.check()
                checked = time.monotonic()

    def _end(self, cluster: Cluster) -> None:
        registry = cluster.supervisor.registry
        if self._over.is_set() and self._election.holds():
            try:
                cluster.close(self.leave_jobs)
            except (StaleEpochError, RegistryUnreachableError) as error:
                logger.error("jobs were left as they are: %s", error)
                cluster.close(leave_jobs=True)
            registry.close()
            return
        # Whoever waits for the registry waits no longer.
        registry.close()
        cluster.close(leave_jobs=True)
