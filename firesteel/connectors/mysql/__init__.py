"""MariaDB and MySQL: rows, and transactions of XA that are prepared in tasks and committed by the driver."""
