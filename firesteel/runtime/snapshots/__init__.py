"""State on its way out of a job and into another one: read from a store, sent to its new subtask, put into a store."""
