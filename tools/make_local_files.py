"""Compiles the one Java class that Firesteel brings, LocalFiles, into local-files.jar beside its source.

    python tools/make_local_files.py

The result is part of the package: who installs it needs no compiler. The jar's manifest has the digest of the source it
was made from, and a test compares the two.
"""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import zipfile
from pathlib import Path

import pyspark

FOLDER = Path(__file__).parent.parent / "firesteel" / "engine" / "spark" / "jvm"
SOURCE, JAR = FOLDER / "LocalFiles.java", FOLDER / "local-files.jar"
RELEASE = "17"


def make() -> None:
    jars = Path(pyspark.__file__).parent / "jars"
    with tempfile.TemporaryDirectory() as folder:
        command = ["javac", "--release", RELEASE, "-g:none", "-cp", f"{jars}/*", "-d", folder, str(SOURCE)]
        subprocess.run(command, check=True)
        digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()
        files = {"META-INF/MANIFEST.MF": f"Manifest-Version: 1.0\nSource-Digest: {digest}\n".encode()}
        for path in sorted(Path(folder).rglob("*.class")):
            files[path.relative_to(folder).as_posix()] = path.read_bytes()
    with zipfile.ZipFile(JAR, "w", zipfile.ZIP_DEFLATED) as jar:
        for name, content in files.items():
            # A fixed time: the same source gives the same bytes.
            jar.writestr(zipfile.ZipInfo(name), content)


if __name__ == "__main__":
    make()
