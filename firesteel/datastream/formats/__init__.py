"""Formats of files, one module each."""
