"""SQLite: rows in a file."""
