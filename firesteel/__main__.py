"""``python -m firesteel``: the command where its script is not on the PATH."""

import sys

from firesteel.cli import main

sys.exit(main())
