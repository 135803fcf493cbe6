"""A server that others run, at one URL: what of it is known on this machine, and a session with it.

What runs there is out of reach: pinned are the place, its certificate if the contract says so, and what it lists. So
its list is looked at anew before each call, and a report repeats that the code behind it is not pinned.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from attrs import field, frozen

from assisted_benchmark.contract.model import Remote
from assisted_benchmark.kernel.canonical import Json, canonical_bytes
from assisted_benchmark.kernel.clock import Clock
from assisted_benchmark.kernel.digest import Digest, digest_of
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.origin import parse_url
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.wire.client_session import Session
from assisted_benchmark.wire.outcomes import Limits

if TYPE_CHECKING:
    from assisted_benchmark.wire.http_channel import Endpoint

REMOTE: Final = "artifacts: remote"

_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,8190}[\x21-\x7e])?")


@frozen(kw_only=True, slots=False)
class Reached:
    """A place as it is for this machine. The headers' values are in its requests, and nowhere else."""

    remote: Remote
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @cached_property
    def digest(self) -> Digest:
        """The launch half of a server's identity; the values of headers are no part of it."""
        return digest_of("remote@1", canonical_bytes(self.remote.value()))


def reach(remote: Remote, environment: Mapping[str, str] = os.environ) -> Reached:
    """Fill in what this machine's environment holds. Nobody is asked for anything.

    Raises:
        ServerError: launch_failed for a variable that is not set, or whose value no header can have.
    """
    headers = []
    for name, variable in remote.headers:
        value = environment.get(variable)
        if value is None or _VALUE.fullmatch(value) is None:
            fault = "is not set" if value is None else "holds what no header can have"
            raise ServerError(Reason.LAUNCH_FAILED, f"the variable `{variable}` for the header `{name}` {fault}")
        headers.append((name, value))
    return Reached(remote=remote, headers=tuple(headers))


def session_with(reached: Reached, clock: Clock, limits: Limits, capabilities: Json) -> Session:
    """A session with the server there; nothing is sent yet.

    Raises:
        ServerError: launch_failed without the extra `http`.
    """
    try:
        from assisted_benchmark.wire.http_session import HttpSession
    except ModuleNotFoundError as error:
        detail = "servers over HTTP need the extra `http`; install `assisted-benchmark[http]`"
        raise ServerError(Reason.LAUNCH_FAILED, detail) from error
    return HttpSession(_endpoint(reached), clock, limits=limits, capabilities=capabilities)


def _endpoint(reached: Reached) -> Endpoint:
    from assisted_benchmark.wire.http_channel import Endpoint
    from assisted_benchmark.wire.http_connecting import trusted_by_machine, trusted_by_pin

    origin, target = parse_url(reached.remote.url)
    pin = reached.remote.tls_sha256
    tls = None
    if origin.scheme == "https":
        tls = trusted_by_machine() if pin is None else trusted_by_pin()
    return Endpoint(origin, target, tls, pin, reached.headers)
