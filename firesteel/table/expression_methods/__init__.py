"""The methods of expressions of the Table API by what they are about: numbers, text, times, collections, JSON."""

__all__: list[str] = []
