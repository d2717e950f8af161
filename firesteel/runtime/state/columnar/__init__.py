"""Keyed state as columns: a slot for each key, found by a hash index, and arrays with a place for each slot."""

from firesteel.runtime.state.columnar.slots import SlotColumn, SlotTable

__all__ = ["SlotColumn", "SlotTable"]
