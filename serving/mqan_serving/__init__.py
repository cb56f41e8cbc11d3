"""Serve a bundle: one service, reached over REST and gRPC, in one plain process or on Ray Serve."""
