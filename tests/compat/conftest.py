"""Makes ``tools/`` importable: the tests here share its code for normalising and comparing."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
