"""Brings the page's libraries from npm into ``firesteel/cluster/web/vendor``: ``python tools/vendor_web.py``.

Browsers load modules by path, so imports by package name become paths; uPlot's small build is no module, so an export
is added to it. Nothing else is changed. VENDORED.md lists what is there.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "firesteel" / "cluster" / "web" / "vendor"

PACKAGES = {
    "preact": "11.2.0",
    "@preact/signals": "2.11.4",
    "@preact/signals-core": "1.14.5",
    "htm": "3.1.1",
    "@dagrejs/dagre": "3.1.1",
    "uplot": "1.6.32",
}

FILES = {
    "preact.mjs": "preact/dist/preact.mjs",
    "hooks.mjs": "preact/hooks/dist/hooks.mjs",
    "signals.mjs": "@preact/signals/dist/signals.mjs",
    "signals-core.mjs": "@preact/signals-core/dist/signals-core.mjs",
    "htm.mjs": "htm/dist/htm.mjs",
    "dagre.mjs": "@dagrejs/dagre/dist/dagre.esm.js",
    "uplot.mjs": "uplot/dist/uPlot.iife.min.js",
    "uplot.css": "uplot/dist/uPlot.min.css",
}

PATHS = {
    "preact": "./preact.mjs",
    "preact/hooks": "./hooks.mjs",
    "@preact/signals-core": "./signals-core.mjs",
}


def vendored(text: str, name: str) -> str:
    """A file as it is shipped.

    >>> vendored('import{h}from"preact";', "hooks.mjs")
    'import{h}from"./preact.mjs";\\n'
    """
    for package, path in PATHS.items():
        text = text.replace(f'from"{package}"', f'from"{path}"')
    text = re.sub(r"\n?//# sourceMappingURL=.*", "", text).rstrip() + "\n"
    return text + "export default uPlot;\n" if name == "uplot.mjs" else text


def main() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
        subprocess.run(["npm", "install", "--silent", "--ignore-scripts", *wanted], cwd=folder, check=True)
        modules = Path(folder) / "node_modules"
        for name, path in FILES.items():
            (TARGET / name).write_text(vendored((modules / path).read_text("utf-8"), name), "utf-8")
        licences = [f"{name} {version}\n\n{_licence(modules / name)}\n" for name, version in PACKAGES.items()]
        (TARGET / "LICENSES.txt").write_text(("-" * 80 + "\n").join(licences), "utf-8")


def _licence(package: Path) -> str:
    return next(package.glob("LICENSE*")).read_text("utf-8")


if __name__ == "__main__":
    main()
