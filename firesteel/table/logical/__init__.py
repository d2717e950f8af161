"""Queries as typed trees."""

__all__: list[str] = []
