"""Spark's own sources and writers: DataFrames as sources, and as what sinks hand to a Spark writer."""
