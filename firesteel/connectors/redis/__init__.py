"""Redis: streams that are read by id, and commands that are sent together with a mark."""
