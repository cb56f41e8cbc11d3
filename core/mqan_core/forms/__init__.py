"""Forms of answers that are read as structures: queries and changes of a dialogue's state."""
