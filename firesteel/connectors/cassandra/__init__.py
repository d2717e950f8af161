"""Cassandra: rows written with the time of their micro-batch."""
