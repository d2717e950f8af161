"""TLS for real: a certificate made by openssl, a job manager that listens with it, and the command line."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusterkit import settings_for

from firesteel.cli import main
from firesteel.cluster.client import ClusterClient
from firesteel.cluster.processes import Process, end_session
from firesteel.cluster.starting import RunningCluster, start_in_background
from firesteel.errors import JobManagerError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    files = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run(command, check=True, capture_output=True)
    return files


@pytest.fixture(scope="module")
def running(certificate: tuple[Path, Path], short: Path) -> Iterator[RunningCluster]:
    settings = settings_for(short / "c", port=0, certificate=str(certificate[0]), key=str(certificate[1]))
    found = start_in_background(settings.checked())
    yield found
    end_session(Process.of(found.pid))


def test_commands_over_https(
    running: RunningCluster,
    certificate: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert running.address.startswith("https://127.0.0.1:")
    address = running.address.replace("127.0.0.1", "localhost")
    monkeypatch.setenv("FIRESTEEL_TOKEN_FILE", str(running.folder / "token"))
    # A certificate that nobody vouches for is not believed.
    assert main(["list", "-m", address]) == 4
    assert "CERTIFICATE_VERIFY_FAILED" in capfd.readouterr().err
    monkeypatch.setenv("FIRESTEEL_CA_FILE", str(certificate[0]))
    assert main(["list", "-m", address, "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == []
    # Nor is one of another name.
    assert main(["list", "-m", running.address]) == 4
    assert "CERTIFICATE_VERIFY_FAILED" in capfd.readouterr().err
    with pytest.raises(JobManagerError, match="No job manager answers at http://"):
        ClusterClient(address.replace("https://", "http://"), "x").jobs()


def test_the_cookie_is_for_https_only(running: RunningCluster, certificate: tuple[Path, Path]) -> None:
    context = ssl.create_default_context(cafile=str(certificate[0]))
    port = int(running.address.rpartition(":")[2])
    line = http.client.HTTPSConnection("localhost", port, context=context, timeout=120)
    token = (running.folder / "token").read_text()
    line.request("POST", "/firesteel/v1/login", json.dumps({"token": token}), {"Content-Type": "application/json"})
    answer = line.getresponse()
    answer.read()
    assert answer.status == 200
    assert "Secure" in (answer.getheader("Set-Cookie") or "").split("; ")
    line.close()
