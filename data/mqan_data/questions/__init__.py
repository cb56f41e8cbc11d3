"""Questions about rows, drawn anew each time: one module a shape of row."""
