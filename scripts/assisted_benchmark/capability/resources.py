"""The addresses of what can be read as a resource: an exact instance's metadata, and artifacts. Nothing else has one.

`SCHEME://instance/ID` and `SCHEME://artifact/ID/ARTIFACT`, each part percent-encoded. Resources are read only and
cannot be subscribed to. An address is no authority: the broker reads an instance's metadata for the session, and an
artifact as its access list allows (`artifacts.Artifacts.whole`).
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias
from urllib.parse import quote, unquote_to_bytes

from assisted_benchmark.kernel.canonical import Json

_INSTANCE: Final = "instance"
_ARTIFACT: Final = "artifact"


class InstanceAddress(NamedTuple):
    """The metadata of one exact instance."""

    instance_id: str


class ArtifactAddress(NamedTuple):
    """An artifact that an operation on one exact instance left."""

    instance_id: str
    artifact_id: str


Address: TypeAlias = InstanceAddress | ArtifactAddress


def written(scheme: str, address: Address) -> str:
    """The one spelling of an address."""
    kind = _INSTANCE if isinstance(address, InstanceAddress) else _ARTIFACT
    return f"{scheme}://{kind}/" + "/".join(quote(part, safe="") for part in address)


def read_address(scheme: str, uri: str, id_length: int) -> Address | None:
    """What a URI names, if it is an address of this scheme in its one spelling."""
    start, _, rest = uri.partition("://")
    kind, *encoded = rest.split("/")
    parts = [unquote_to_bytes(part) for part in encoded]
    if start != scheme or not all(part.isascii() and 1 <= len(part) <= id_length for part in parts):
        return None
    texts = [part.decode("ascii") for part in parts]
    address: Address | None = None
    if kind == _INSTANCE and len(texts) == 1:
        address = InstanceAddress(*texts)
    elif kind == _ARTIFACT and len(texts) == 2:
        address = ArtifactAddress(*texts)
    return address if address is not None and written(scheme, address) == uri else None


def templates(scheme: str) -> list[Json]:
    """What `resources/templates/list` answers with."""
    return [
        {
            "uriTemplate": f"{scheme}://{_INSTANCE}/{{instance_id}}",
            "name": "instance",
            "description": "What the broker knows of one exact live instance. Read only; it cannot be subscribed to.",
            "mimeType": "application/json",
        },
        {
            "uriTemplate": f"{scheme}://{_ARTIFACT}/{{instance_id}}/{{artifact_id}}",
            "name": "artifact",
            "description": "An artifact that the session's own operation left, as the broker's access list allows.",
        },
    ]
