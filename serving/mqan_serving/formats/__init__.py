"""Other request formats, as adapters onto the service."""
