"""From the agent's raw bytes to a proposal, or the reason why not."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from assisted_benchmark.contract.model import Effect
from assisted_benchmark.kernel.canonical import Json, canonical_bytes, parse
from assisted_benchmark.kernel.digest import parse_digest
from assisted_benchmark.kernel.errors import InputError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown

_REQUIRED: Final = ("server", "tool", "arguments")
_OPTIONAL: Final = ("grant", "group", "effect")
_EFFECTS: Final = frozenset(effect.value for effect in Effect)


class Proposal(NamedTuple):
    """What the agent asked for: untrusted, but well-formed.

    `grant`, `group` and `effect` are empty where the agent named none.
    """

    server: str
    tool: str
    arguments: dict[str, Json]
    data: bytes
    grant: str = ""
    group: str = ""
    effect: str = ""

    @property
    def call(self) -> tuple[str, str, bytes]:
        """What makes it this call and no other."""
        return (self.server, self.tool, self.data)


def read_proposal(raw: bytes) -> Proposal:
    """The proposal in `raw`: an object with server, tool and arguments, and perhaps grant, group, effect.

    Raises:
        InputError: the reasons of `kernel.canonical.parse`, malformed_call or arguments_not_object.
    """
    try:
        value = parse(raw)
    except InputError as error:
        raise InputError(error.reason, told_of_malformed(error.reason, error.detail)) from error
    if type(value) is not dict:
        raise InputError(Reason.MALFORMED_CALL, "a proposal is an object")
    for key in value:
        if key not in _REQUIRED and key not in _OPTIONAL:
            raise InputError(Reason.MALFORMED_CALL, f"a proposal has no key `{shown(key, 60)}`")
    for key in _REQUIRED:
        if key not in value:
            raise InputError(Reason.MALFORMED_CALL, f"a proposal needs the key `{key}`")
    texts = {key: _text(key, each) for key, each in value.items() if key != "arguments"}
    arguments: Any = value["arguments"]
    if type(arguments) is not dict:
        raise InputError(Reason.ARGUMENTS_NOT_OBJECT, "the arguments are not an object")
    return Proposal(arguments=arguments, data=canonical_bytes(arguments), **texts)


def told_of_malformed(reason: Reason, detail: str) -> str:
    """What may be said of an agent's bytes that are no proposal: a key that stands twice may itself be secret."""
    return "an object has the same key twice" if reason is Reason.DUPLICATE_KEY else detail


def _text(key: str, value: Json) -> str:
    if type(value) is not str:
        raise InputError(Reason.MALFORMED_CALL, f"`{key}` is not text")
    if key == "effect" and value not in _EFFECTS:
        raise InputError(Reason.MALFORMED_CALL, f"`{shown(value, 60)}` is no effect")
    if key == "grant":
        try:
            parse_digest(value)
        except InputError as error:
            raise InputError(Reason.MALFORMED_CALL, "`grant` is no digest") from error
    return value
