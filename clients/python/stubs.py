"""Put the stubs of the contract, the package ``mqan``, into what is built from this folder."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StubsHook(BuildHookInterface):  # type: ignore[type-arg, misc, unused-ignore]
    """Takes the stubs from the repository, or from this folder where a source distribution has been unpacked."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them; an editable installation gets a copy."""
        folder = Path(self.root)
        places = (folder / "mqan", folder.parent.parent / "protos" / "mqan")
        stubs = next((place for place in places if (place / "v1" / "answer_pb2.py").is_file()), None)
        if stubs is None:
            raise FileNotFoundError(f"no stubs of the contract in {' or '.join(map(str, places))}")
        if not (self.target_name == "sdist" and stubs == places[0]):
            key = "force_include_editable" if version == "editable" else "force_include"
            build_data[key][str(stubs)] = "mqan"
