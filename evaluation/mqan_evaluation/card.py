"""The model card that a bundle gets where none is given."""


def default_card(name: str, version: str) -> str:
    """Return a model card that says nothing yet."""
    return f"# {name} {version}\n\nNothing has been measured yet: `mqan evaluate --bundle DIR`.\n"
