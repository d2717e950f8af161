"""Whether a standalone master can be there at all. Spark itself tries for more than a minute before it says no."""

from __future__ import annotations

import re
import socket

from firesteel.errors import ConfigurationError, SetupError

__all__ = ["check_master"]

CONNECT_SECONDS = 3.0
_PREFIX = "spark://"
_PLACE = re.compile(r"(?P<host>\[[^\]]+\]|[^:/\[\]]+):(?P<port>\d{1,5})")


def check_master(master: str) -> None:
    """Raises where a ``spark://`` address makes no sense or nobody answers there. Other masters are Spark's business.

    >>> check_master("local[2]")
    """
    if not master.startswith(_PREFIX):
        return
    places = [_PLACE.fullmatch(place) for place in master.removeprefix(_PREFIX).split(",")]
    if not all(place and 0 < int(place["port"]) < 65536 for place in places):
        raise ConfigurationError(
            f"{master!r} is no address of a Spark master. Write spark://host:port (several masters: "
            "spark://host1:port1,host2:port2); the port is 7077 unless the master was told another."
        )
    reasons = []
    for place in filter(None, places):
        host = place["host"].strip("[]")
        try:
            # One that answers is enough: of several masters only one leads.
            with socket.create_connection((host, int(place["port"])), timeout=CONNECT_SECONDS):
                return
        except OSError as error:
            reasons.append(f"{place[0]}: {error.strerror or error}")
    raise SetupError(
        f"Nothing answers at the Spark master {master!r} ({'; '.join(reasons)}). Is it running, and are host and port "
        "those that its log names?"
    )
