"""The parts of :mod:`firesteel.common.typeinfo`, which is the module to import from."""

__all__: list[str] = []
