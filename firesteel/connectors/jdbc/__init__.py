"""What databases share: addresses, statements, sessions, writers; each dialect has a package of its own."""
