"""Whether a master can be there at all: its name, and for a standalone one its address.

Spark itself answers a wrong name with a page of Java, and tries an address for more than a minute before it says no.
"""

from __future__ import annotations

import difflib
import os
import re
import socket

from firesteel.errors import ConfigurationError, SetupError

__all__ = ["AUTO", "check_master", "check_name", "is_local"]

AUTO = "auto"
"""The master of the Spark application that the program is part of, or this machine."""

CONNECT_SECONDS = 3.0
_PREFIX = "spark://"
_PLACE = re.compile(r"(?P<host>\[[^\]]+\]|[^:/\[\]]+):(?P<port>\d{1,5})")


def is_local(master: str) -> bool:
    """Whether a master's tasks run on this machine, with the driver's files.

    >>> is_local("local[2]"), is_local("spark://host:7077"), is_local("local-cluster[2,1,1024]")
    (True, False, False)
    """
    return master == "local" or master.startswith("local[")


_NAME = re.compile(r"auto|memory|local|local\[(\d+|\*)(, *\d+)?\]|local-cluster\[.*\]|yarn|(spark|k8s)://.+")
_EXAMPLES = {
    "memory": "memory",
    "local": "local",
    "local[4]": "local[N]",
    "yarn": "yarn",
    "spark://host:7077": "spark://host:port",
    "k8s://https://host:443": "k8s://https://host:port",
}


def check_name(master: str) -> None:
    """Raises where no master has such a name, or where what the name needs is not set up.

    >>> check_name("memroy")
    Traceback (most recent call last):
    firesteel.errors.ConfigurationError: There is no master 'memroy'. Did you mean 'memory'? Known are: memory (one \
process, without Spark), local, local[N], yarn, spark://host:port, k8s://https://host:port.
    """
    if not _NAME.fullmatch(master):
        close = difflib.get_close_matches(master.strip().lower(), _EXAMPLES, n=1, cutoff=0.6)
        if "://" in master and not close:
            # Spark may know more cluster managers than we do.
            return
        meant = f" Did you mean {_EXAMPLES[close[0]]!r}?" if close else ""
        known = ", ".join(["memory (one process, without Spark)", *list(_EXAMPLES.values())[1:]])
        raise ConfigurationError(f"There is no master {master!r}.{meant} Known are: {known}.")
    if master == "yarn" and not (os.environ.get("HADOOP_CONF_DIR") or os.environ.get("YARN_CONF_DIR")):
        raise SetupError(
            "The master 'yarn' needs the configuration of a Hadoop cluster: set HADOOP_CONF_DIR (or YARN_CONF_DIR) to "
            "the folder with its core-site.xml and yarn-site.xml. Without a cluster use 'local'."
        )


def check_master(master: str) -> None:
    """Raises where a ``spark://`` address makes no sense or nobody answers there. Other masters are Spark's business.

    >>> check_master("local[2]")
    """
    if not master.startswith(_PREFIX):
        return
    places = [_PLACE.fullmatch(place) for place in master.removeprefix(_PREFIX).split(",")]
    if not all(place and 0 < int(place["port"]) < 65536 for place in places):
        raise ConfigurationError(
            f"{master!r} is not an address of a Spark master. Write spark://host:port (several masters: "
            "spark://host1:port1,host2:port2); the port is 7077 unless configured otherwise."
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
