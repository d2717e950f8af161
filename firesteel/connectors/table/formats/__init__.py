"""Formats of tables: from bytes to batches of columns, and back."""
