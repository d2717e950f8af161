"""Sources and sinks of batches of rows."""
