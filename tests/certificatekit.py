"""A server whose certificate nobody trusts: it has signed it itself."""

from __future__ import annotations

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from serverkit import cannot_run

__all__ = ["self_signed", "untrusted_server"]


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    if shutil.which("openssl") is None:
        cannot_run("there is no openssl")
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=firesteel"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(certificate), "-keyout", str(key)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


@pytest.fixture(scope="session")
def untrusted_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server on 127.0.0.1 that begins TLS with everybody, and says nothing more."""
    certificate, key = self_signed(tmp_path_factory.mktemp("untrusted"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as wrapped:
                    wrapped.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    with contextlib.suppress(OSError):
        # Closing alone does not end an accept() that waits.
        listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join(10)
