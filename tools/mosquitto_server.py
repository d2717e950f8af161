"""A broker of MQTT of one's own: in a temporary folder, on loopback, on a free port, gone when it is no longer needed.

Tests use it. From a shell it runs a command with ``FIRESTEEL_MQTT_URL`` and ``FIRESTEEL_MQTT_PASSWORD`` set, for
the user ``firesteel``::

    .venv/bin/python tools/mosquitto_server.py .venv/bin/python program.py

It keeps what it was given for sessions, so that it survives its own ``kill -9``, but for the last moment.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time

from local_server import LocalServer, free_ports

__all__ = ["PASSWORD", "USER", "MosquittoServer", "why_not"]

USER, PASSWORD = "firesteel", "sup3r-s3cret&word"


def _program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin:/usr/bin")


def why_not() -> str | None:
    """What is missing for a broker, in a line."""
    if _program("mosquitto") is None or _program("mosquitto_passwd") is None:
        return "mosquitto was not found (Debian: apt-get install mosquitto)"
    try:
        import paho.mqtt.client  # noqa: F401
    except ImportError as error:
        return f"paho-mqtt cannot be imported ({error})"
    return None


class MosquittoServer(LocalServer):
    """A broker between ``with`` and its end."""

    name = "mosquitto"

    def __init__(self) -> None:
        super().__init__()
        self.port = 0

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def _set_up(self) -> None:
        self.port = free_ports(1)[0]
        passwords = self.folder / "passwords"
        passwords.write_text(f"{USER}:{PASSWORD}\n")
        # Hashes what is in the file; on the command line everybody could read it.
        subprocess.run([str(_program("mosquitto_passwd")), "-U", str(passwords)], check=True, capture_output=True)
        (self.folder / "mosquitto.conf").write_text(
            f"listener {self.port} 127.0.0.1\nallow_anonymous false\npassword_file {passwords}\n"
            f"persistence true\npersistence_location {self.folder}/\nautosave_on_changes true\nautosave_interval 1\n"
            "user root\nmax_queued_messages 0\n"
        )
        self.start()

    def start(self) -> None:
        """Starts it, or starts it again after ``kill``."""
        command = [str(_program("mosquitto")), "-c", str(self.folder / "mosquitto.conf")]
        self._process = self._starter.submit(self._popen, command, {}).result()
        self._wait_until(self._answers)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def crash(self, seconds_down: float = 0.0) -> None:
        """``kill -9``; some time later it is back."""
        self.kill()
        time.sleep(seconds_down)
        self.start()


def main(command: list[str]) -> int:
    missing = why_not()
    if missing is not None or not command:
        print(missing or __doc__, file=sys.stderr)
        return 1
    with MosquittoServer() as server:
        variables = {"FIRESTEEL_MQTT_URL": server.url, "FIRESTEEL_MQTT_PASSWORD": PASSWORD}
        return subprocess.call(command, env={**os.environ, **variables})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
