"""The question that a person sees before a change is sent: every field of the very request, whole. Pure.

Every value stands on one line as its JSON text, so that no value can pose as a line of the
question. That each can be shown so was checked when it was proposed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import orjson

from assisted_benchmark.kernel.canonical import Json, canonical_bytes
from assisted_benchmark.kernel.clock import SECOND, Instant
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.mutation.changes import ChangeContract, ChangeType
from assisted_benchmark.mutation.compiler import Compiled
from assisted_benchmark.mutation.proposal import Proposal

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def question(
    contract: ChangeContract, change: ChangeType, compiled: Compiled, proposal: Proposal, now: Instant, wait_ns: int
) -> str:
    """The whole text."""
    fields = "\n".join(_lines(change, orjson.loads(compiled.body)))
    return f"""\
The change broker `{contract.id}` asks you. An agent proposed this change; only you can let it through.

Change: {change.title} ({change.name})
Target: POST {change.path} at {contract.endpoint}
Price: {price_text(proposal.price.value)}
Proposed: {proposal.age_s(now)} seconds ago; it ends in {proposal.remaining_s(now)} seconds
Request: {compiled.digest}

All fields of the request:
{fields}

Accept with `confirm` set: exactly this request is sent, once.
Accept without it, decline, cancel, or no answer within {wait_ns // SECOND} seconds: nothing is sent.
The agent's token is consumed already: whatever you answer, trying again needs a new proposal.
"""


def shown_digest(text: str) -> Digest:
    """The digest of what was shown, as receipts have it."""
    return digest_of("confirm-question@1", text.encode())


def price_text(price: Json) -> str:
    """A price context in words."""
    if "unpriced" in price:
        return f"not known: {price['unpriced']}"
    parts = [
        f"{price[key]} {price['currency']} {when}"
        for key, when in (("monthly", "every month"), ("non_recurring", "once"))
        if price[key] is not None
    ]
    return f"{' and '.join(parts)} ({price['basis']}; from {price['source']})"


def _lines(change: ChangeType, body: Json) -> list[str]:
    """A line for each value, in the order that the contract gives."""
    lines: list[str] = []
    for key in change.prompt:
        if key in body:
            _add(lines, body[key], f"  {_name(key)}")
    return lines


def _add(lines: list[str], value: Json, path: str) -> None:
    kind = type(value)
    if kind is dict and value:
        for key, each in value.items():
            _add(lines, each, f"{path}.{_name(key)}")
    elif kind is list and value:
        for index, each in enumerate(value, 1):
            _add(lines, each, f"{path}[{index}]")
    else:
        # The body is canonical, and so is what is written of a part of it: only a float has a spelling of its own.
        text = canonical_bytes(value) if kind is float else orjson.dumps(value)
        lines.append(f"{path}: {text.decode()}")


@lru_cache(maxsize=1024)
def _name(key: str) -> str:
    """A key as a part of a path; one that could pose as more than that stands as its JSON text."""
    return key if _PLAIN.fullmatch(key) else canonical_bytes(key).decode()
