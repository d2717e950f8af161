"""A library that brings operators of its own, as somebody else would write it: with public names of Firesteel only.

Specs and operators are in modules of their own; importing the package registers the operators.
"""

from rulebook import operators
from rulebook.specs import Apart, Deduplicate, Join, Progress, Rules, Scale

__all__ = ["Apart", "Deduplicate", "Join", "Progress", "Rules", "Scale", "operators"]
