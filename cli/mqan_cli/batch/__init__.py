"""``mqan batch``: questions about every row of a table, or every file of a folder."""
