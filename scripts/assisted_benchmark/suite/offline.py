"""The socket guard: with `--offline`, this process connects to loopback or the run fails.

An audit hook sees every connect and look-up of the interpreter, whichever library makes it. It does not
see inside server processes: run the suite in a network namespace of its own for that (CI does).
"""

from __future__ import annotations

import ipaddress
import sys
from typing import Any

from assisted_benchmark.kernel.errors import HarnessError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import shown

# Which argument of an event is the address or the host name.
_ADDRESS_OF = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1, "socket.getaddrinfo": 0}
_LOOK_UPS = frozenset({"socket.getaddrinfo"})


class SocketGuard:
    """What was blocked. A hook cannot be taken away again, so the guard is for the process's life."""

    def __init__(self) -> None:
        self.blocked: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event not in _ADDRESS_OF:
            return
        address = args[_ADDRESS_OF[event]]
        if event in _LOOK_UPS and address is not None:
            address = (address if isinstance(address, str) else str(address, "ascii", "replace"),)
        if not allowed(address):
            self.blocked.append(shown(repr(address)))
            raise HarnessError(Reason.NETWORK_BLOCKED, f"a connection to {shown(repr(address))} was blocked: offline")


def allowed(address: object) -> bool:
    """Loopback addresses, local (unix) sockets and connected sockets pass; host names and all else do not."""
    if address is None or isinstance(address, str | bytes):
        return True
    if isinstance(address, tuple) and address and isinstance(address[0], str):
        host = address[0]
        try:
            return host == "localhost" or ipaddress.ip_address(host.partition("%")[0]).is_loopback
        except ValueError:
            return False
    return False
