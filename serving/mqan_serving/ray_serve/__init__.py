"""The application on Ray Serve, and what keeps Ray's own ports and output in bounds."""
