"""From plans to streams."""

__all__: list[str] = []
