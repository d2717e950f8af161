"""A library that brings operators of its own, as somebody else would write it: with public names of Firesteel only.

``rulebook.operators`` registers the operators. Nothing here imports it, so a worker knows nothing of them but what a
job brings.
"""

from rulebook.specs import Apart, Deduplicate, Join, Largest, Progress, Rules, Scale, Tally

__all__ = ["Apart", "Deduplicate", "Join", "Largest", "Progress", "Rules", "Scale", "Tally"]
