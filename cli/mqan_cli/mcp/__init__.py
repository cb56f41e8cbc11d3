"""``mqan mcp``: the service as tools of the Model Context Protocol, made with its official SDK."""
