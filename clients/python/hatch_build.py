"""Puts the scripts of ../../redisstore into the package: there is one copy in the repository."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        packaged = Path(self.root) / "headgate" / "lua"  # in a source distribution
        scripts = packaged if packaged.is_dir() else Path(self.root).parents[1] / "redisstore"
        for script in sorted(scripts.glob("*.lua")):
            build_data["force_include"][str(script)] = "headgate/lua/" + script.name
