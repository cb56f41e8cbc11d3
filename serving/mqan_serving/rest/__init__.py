"""REST: routes, documents and their limits, and the HTTP server below them."""
