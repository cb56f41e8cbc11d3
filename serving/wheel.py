"""A hook of the build: a wheel has the default model beside the package, a checkout has it already."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ModelHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the default bundle where an installed server looks for it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"]["serving/bundles/default"] = "mqan_serving/bundles/default"
