"""A connection to the one origin that was named: no proxy, no other address, its certificate looked at first."""

from __future__ import annotations

import hashlib
import hmac
import socket
import ssl
from typing import Final

from assisted_benchmark.kernel.clock import SECOND, Deadline
from assisted_benchmark.kernel.origin import Origin

_MOST_SECONDS: Final = 86_400.0  # more than this no socket waits


class OtherCertificateError(OSError):
    """What answers there is not who was pinned."""


def trusted_by_machine() -> ssl.SSLContext:
    """The machine's own trust, whatever the environment says."""
    import httpx2  # slow to load, and only who goes beyond this machine needs it

    return httpx2.create_ssl_context(trust_env=False)


def trusted_by_pin() -> ssl.SSLContext:
    """For one pinned certificate: that its holder has its key is what TLS proves, and no authority is asked."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # INVARIANT: `connect` compares the whole certificate instead
    return context


def connect(origin: Origin, tls: ssl.SSLContext | None, deadline: Deadline, pin: str | None = None) -> socket.socket:
    """A connection that stands, TLS included; OSError if none comes to stand in time.

    With `pin`, the SHA-256 of the one certificate that is taken: OtherCertificateError for any other.
    """
    # The system's own look-up of a name knows no deadline; an address needs none.
    for family, kind, protocol, _, address in socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM):
        connected = socket.socket(family, kind, protocol)
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # the body does not wait for anything
            connected.settimeout(seconds(deadline))
            connected.connect(address)
            if tls is not None:
                connected.settimeout(seconds(deadline))
                connected = tls.wrap_socket(connected, server_hostname=origin.host)
                _compare(connected, pin)
        except OtherCertificateError:
            connected.close()
            raise
        except OSError:
            connected.close()  # and the next of its addresses is tried
        else:
            return connected
    raise TimeoutError


def seconds(deadline: Deadline) -> float:
    """What is left, for a socket; TimeoutError if nothing is."""
    left = deadline.remaining_ns()
    if not left:
        raise TimeoutError
    return min(left / SECOND, _MOST_SECONDS)


def _compare(connected: ssl.SSLSocket, pin: str | None) -> None:
    if pin is not None:
        shown = connected.getpeercert(binary_form=True) or b""
        if not hmac.compare_digest(hashlib.sha256(shown).hexdigest(), pin):
            raise OtherCertificateError("the certificate is not the pinned one")
