"""What a window operator is made of: namespaces, contents, contexts, sets of merging windows, functions."""
