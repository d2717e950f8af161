"""Batch mode: plans on Spark SQL."""

__all__: list[str] = []
