"""Sizes that the programs and their runner agree on."""

SMALL = 5
"""The small run has one fifth of the records of the large one."""
