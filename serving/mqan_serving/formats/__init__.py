"""Request formats of others, as adapters onto the service."""
