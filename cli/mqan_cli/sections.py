"""The sections of ``mqan --help``, and their verbs in the order of use."""

from collections.abc import Mapping
from typing import Any, Final

from mqan_cli.errors import FriendlyGroup

VERBS: Final[Mapping[str, tuple[str, ...]]] = {
    "Serve and ask": ("serve", "ask", "batch", "adapt", "mcp", "settings", "key", "models"),
    "Train": ("data", "embed", "train", "curves"),
    "Bundles": ("export", "verify", "evaluate"),
}
SECTION_OF: Final = {name: section for section, names in VERBS.items() for name in names}
_PLACES: Final = {name: place for place, name in enumerate(SECTION_OF)}


class SectionedGroup(FriendlyGroup):
    """Verbs in the order of their sections; those of no section are the last."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=lambda name: _PLACES.get(name, len(_PLACES)))
