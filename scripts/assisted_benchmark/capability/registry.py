"""The frozen registry: every operation that may be asked of a live instance, and what authorises it. Pure.

Tools, command line and harness all come from this one value; it has a digest, and nothing that a caller
sends changes it. What a product is called (its namespace, the prefix of its tools, its resource scheme)
is the registry's own data. Reading the file is `registry_document.py`'s part, the tools are `projection.py`'s.
"""

from __future__ import annotations

import re
from enum import StrEnum, unique
from functools import cached_property
from typing import Final

from attrs import asdict, field, frozen

from assisted_benchmark.kernel.canonical import MIB, Canonical, Json, canonical_bytes
from assisted_benchmark.kernel.digest import Digest, digest_of

REGISTRY: Final = "assisted-benchmark/registry@1"

# The one version of an operation that is projected.
VERSION: Final = 1
VERSION_SUFFIX: Final = f"@{VERSION}"

# What is done with instances, grants and running calls, rather than at a live instance. Every registry has these.
MANAGEMENT: Final = ("instances", "status", "grant_request", "revoke", "cancel")

_OTHER: Final = re.compile(r"[^A-Za-z0-9]")


@unique
class Risk(StrEnum):
    """How much an operation can disclose or change. Annotations follow it, and they are advice only."""

    OBSERVE = "observe"
    CONTROL = "control"
    SENSITIVE = "sensitive"
    RESOURCE = "resource"
    STREAMING_SENSITIVE = "streaming-sensitive"
    HIGH_RISK = "high-risk"
    CRITICAL = "critical"


@unique
class ResultKind(StrEnum):
    """What an operation answers with, besides its durable receipt."""

    RESPONSE = "response"  # the result itself
    RECEIPT = "receipt"  # what was applied, under `receipt_id`
    ARTIFACT = "artifact"  # an artifact that the broker keeps: `artifact_id`, `mime_type`, `sha256`, `byte_count`
    STREAM = "stream"  # the handle of a bounded stream, and what it holds when it is polled
    CHUNK = "chunk"  # a part of an artifact: `artifact_id`, `chunk_base64`, `eof`, `sha256` of the part


# The fields that a result of each kind has to carry, for the broker to hold it to its receipt and artifacts.
RESULT_FIELDS: Final[dict[ResultKind, tuple[str, ...]]] = {
    ResultKind.RESPONSE: (),
    ResultKind.RECEIPT: ("receipt_id",),
    ResultKind.ARTIFACT: ("artifact_id", "mime_type", "sha256", "byte_count"),
    ResultKind.STREAM: ("stream_id",),
    ResultKind.CHUNK: ("artifact_id", "chunk_base64", "eof", "sha256"),
}


@unique
class Authority(StrEnum):
    """Where the authority for an operation can come from."""

    GRANT = "grant"  # a grant of one of its profiles, or of the operation by name
    OPERATION_GRANT = "operation-grant"  # a grant of the operation by name, and no profile's
    ARTIFACT_ACL = "artifact-acl"  # the broker's access list of the artifact that is read; no grant is asked for
    NONE = "none"  # nothing authorises it, so it is not advertised


@unique
class ConsentRule(StrEnum):
    """What is asked of the consent behind a grant of an operation, beyond its being there."""

    INTERACTIVE_ONLY = "interactive-only"  # a standing policy of the user never consents to it
    ONE_SHOT = "one-shot"  # an interactive consent admits one fresh identity, then only its replay


@frozen(kw_only=True)
class Bounds:
    """The most that an envelope may hold; a registry may set less. Texts are UTF-8 without NUL, by the parser."""

    parameters_bytes: int = MIB // 2
    envelope_bytes: int = 2 * MIB
    id_length: int = 128
    artifacts: int = 64
    explanation_length: int = 1024
    progress_events: int = 256
    timeout_ms: int = 300_000
    default_timeout_ms: int = 3_000


@frozen(kw_only=True, slots=False)
class Operation:
    """One operation of the registry, `id` in full such as `dev.pulp.state/read@1`.

    `input` and `output` are closed, bounded JSON Schemas (2020-12) of the input object and of the result, whose
    references stay in their own `$defs`. `idempotency` names the input's property that carries the
    idempotency key; where a call has none, its request id is the identity (`call.OperationCall.key`).
    `publication_bound` says that a grant of it ends with the publication that it was issued for. `max_bytes` are
    (input property, UTF-8 bytes), for texts whose bound is not one of characters.
    """

    id: str
    about: str
    risk: Risk
    result: ResultKind
    authority: Authority
    input: Canonical = field(repr=False)
    output: Canonical = field(repr=False)
    profiles: tuple[str, ...] = ()
    consent: tuple[ConsentRule, ...] = ()
    publication_bound: bool = False
    idempotency: str | None = None
    max_bytes: tuple[tuple[str, int], ...] = ()

    @property
    def version(self) -> int:
        return VERSION

    @property
    def advertised(self) -> bool:
        """Whether anything could authorise it: a grant path, or the broker's access list of artifacts."""
        return self.authority is not Authority.NONE

    @property
    def grantable(self) -> bool:
        """Whether there is a grant path at all."""
        return self.authority in (Authority.GRANT, Authority.OPERATION_GRANT)

    @property
    def automatic(self) -> bool:
        """Whether a call may have its grant requested for it: never for a critical operation, which is asked for."""
        return self.grantable and self.risk is not Risk.CRITICAL

    @property
    def interactive_only(self) -> bool:
        return ConsentRule.INTERACTIVE_ONLY in self.consent

    @property
    def one_shot(self) -> bool:
        return ConsentRule.ONE_SHOT in self.consent

    def value(self) -> Json:
        """The JSON value that the registry's digest covers."""
        return {
            "about": self.about,
            "risk": self.risk.value,
            "result": self.result.value,
            "authority": self.authority.value,
            "input": self.input.value,
            "output": self.output.value,
            "profiles": sorted(self.profiles),
            "consent": sorted(each.value for each in self.consent),
            "publication_bound": self.publication_bound,
            "idempotency": self.idempotency,
            "max_bytes": dict(self.max_bytes),
        }


@frozen(kw_only=True, slots=False)
class Registry:
    """All operations of one product, sorted by id.

    `namespace` begins every operation id, `prefix` every tool name, and `scheme` the addresses of its resources.
    `retired` are tools of earlier days, each with the tool that took its place; `outside` are tools whose target
    is no live instance. Neither is ever projected.
    """

    id: str
    namespace: str
    prefix: str
    scheme: str
    profiles: tuple[str, ...]
    operations: tuple[Operation, ...]
    bounds: Bounds = field(factory=Bounds)
    retired: tuple[tuple[str, str], ...] = ()
    outside: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> Digest:
        """Over every value of the file, defaults included: the order of keys and operations does not count."""
        return digest_of(
            "registry@1",
            canonical_bytes(
                {
                    "schema": REGISTRY,
                    "id": self.id,
                    "namespace": self.namespace,
                    "prefix": self.prefix,
                    "scheme": self.scheme,
                    "profiles": sorted(self.profiles),
                    "operations": {each.id: each.value() for each in self.operations},
                    "bounds": asdict(self.bounds),
                    "retired": dict(self.retired),
                    "outside": sorted(self.outside),
                }
            ),
        )

    @cached_property
    def _by_id(self) -> dict[str, Operation]:
        return {each.id: each for each in self.operations}

    def operation(self, operation_id: str) -> Operation | None:
        """The operation of that exact id, if the registry has it."""
        return self._by_id.get(operation_id)

    def of_profile(self, profile: str) -> frozenset[str]:
        """The ids of the operations that a grant of this profile may cover, before the instance's own are met."""
        return frozenset(each.id for each in self.operations if profile in each.profiles)

    def tool_name(self, operation_id: str) -> str:
        """The tool of an operation: its id without namespace and version, `_` for what is no letter or digit."""
        core = operation_id.removeprefix(self.namespace).removesuffix(VERSION_SUFFIX)
        return self.prefix + _OTHER.sub("_", core).lower()

    def management_tool(self, name: str) -> str:
        """The tool of one of `MANAGEMENT`."""
        return self.prefix + name
