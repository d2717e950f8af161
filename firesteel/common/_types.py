"""Where the modules of :mod:`.type_system` were when format 1 of checkpoints was written, which has these paths in it.

Pickle imports ``firesteel.common._types.basic``, so Python imports this module first and then finds the other in
``sys.modules``. It goes when format 1 is no longer read.
"""

from __future__ import annotations

import sys

from firesteel.common.type_system import base, basic, composite, containers, temporal

__all__: list[str] = []

for _name, _module in (
    ("base", base),
    ("basic", basic),
    ("composite", composite),
    ("containers", containers),
    ("temporal", temporal),
):
    sys.modules[f"{__name__}.{_name}"] = _module
