"""Tables and SQL, with PyFlink's names."""

__all__: list[str] = []
