"""Where requests go over HTTP, and nowhere else: an origin, and an address below one."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final, NamedTuple

from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason

_NAME: Final = r"(?:[a-z0-9-]{1,63}\.){0,9}[a-z0-9-]{1,63}"
_ORIGIN: Final = re.compile(rf"(https?)://({_NAME}|\[[0-9a-f:.]{{2,45}}\])(?::([1-9][0-9]{{0,4}}))?")
_TARGET: Final = re.compile(r"/[\x21\x22\x24-\x7e]*")


class Origin(NamedTuple):
    """Where requests go, and nowhere else."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Origin:
        """From `https://host[:port]`; `http` only to this machine itself, where nobody listens in.

        Raises:
            MisuseError: it is no origin, or one that must not be spoken to in the clear.
        """
        match = _ORIGIN.fullmatch(text)
        if match is None or int(match[3] or 1) > 65_535:
            # Not shown: who writes more than an origin may have written a password.
            raise MisuseError(Reason.MISUSE, "this is no origin; write `https://host` or `https://host:port`")
        scheme, host = match[1], match[2].strip("[]")
        if scheme == "http" and not _is_loopback(host):
            raise MisuseError(Reason.MISUSE, f"`{host:.80}` is not this machine; only `https` goes there")
        return cls(scheme, host, int(match[3] or (443 if scheme == "https" else 80)))

    @property
    def authority(self) -> str:
        """As the Host header has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.scheme == "https" else 80) else f"{host}:{self.port}"


def parse_url(text: str) -> tuple[Origin, str]:
    """The origin of `https://host[:port]/path`, and the target below it. A fragment or a password is no part of one.

    Raises:
        MisuseError: as `Origin.parse`.
    """
    scheme, mark, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    origin = Origin.parse(f"{scheme}{mark}{authority}")
    if _TARGET.fullmatch("/" + path) is None:
        raise MisuseError(Reason.MISUSE, "what follows the host is no path; write `https://host/path`")
    return origin, "/" + path if slash else "/"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
