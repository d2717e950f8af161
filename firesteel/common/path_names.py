"""Names that people choose (the uid of an operator, the name of a state) as names of files and folders."""

from __future__ import annotations

import hashlib
import re

__all__ = ["path_name"]

_PLAIN = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9_-])?")
"""No leading dot or underscore, which hide a file from Hadoop and Spark; no trailing dot, which Windows drops."""
_HASHED = re.compile(r".*-[0-9a-f]{32}")
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
"""What Windows takes for a device, whatever comes behind the dot."""
_LONGEST_READABLE = 60


def path_name(text: str) -> str:
    """A portable name of a file or folder for any text; two different texts never have the same one.

    A plain text (lower-case letters, digits, ``.``, ``_``, ``-``, at most 64 characters) is its own name:

    >>> path_name("user_totals")
    'user_totals'

    From any other, what is readable is kept, with a hash of the whole behind it. So case alone tells no two names apart
    (some file systems would not either), and no name leads out of its folder:

    >>> path_name("user totals")
    'user_totals-a3918097a5f15850607e42337b2175c2'
    >>> path_name("../../etc/passwd")
    'etc_passwd-3754d6cb3a38e1185e5b382d5f3ef3f1'

    The name is never empty, ``.`` or ``..``, has at most 93 characters and does not begin with a dot or an underscore.
    """
    if _PLAIN.fullmatch(text) and not _HASHED.fullmatch(text) and not _DEVICES.fullmatch(text):
        return text
    readable = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:_LONGEST_READABLE] or "name"
    # Half of a SHA-256: nobody finds two texts with the same one. A lone surrogate is text, too.
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{readable}-{digest}"
