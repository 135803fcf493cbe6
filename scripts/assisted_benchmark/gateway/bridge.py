"""The server that a client's configuration names where the real one is already at work: joins its stdio to a socket.

Run by its path (`python -I -S bridge.py`), on the standard library alone, so that it starts at once. Where the socket
is and the secret that opens it come by the environment. The other side answers one byte before anything else; if it
does not, another client has the session.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

SOCKET = "ASSISTED_BENCHMARK_SOCKET"
SECRET = "ASSISTED_BENCHMARK_SECRET"  # noqa: S105 - the variable's name
WELCOME = b"+"

_CHUNK = 1 << 16


def carry(path: str, secret: str, read_fd: int, write_fd: int) -> bool:
    """Join the descriptors to the socket until its other side ends; whether it let us in at all."""
    with socket.socket(socket.AF_UNIX) as line:
        try:
            line.connect(path)
            line.sendall(secret.encode() + b"\n")
            welcome = line.recv(1)
        except OSError:
            return False
        if welcome != WELCOME:
            return False
        threading.Thread(target=_to_socket, args=(read_fd, line), daemon=True).start()
        try:
            while chunk := line.recv(_CHUNK):
                view = memoryview(chunk)
                while view:
                    view = view[os.write(write_fd, view) :]
        except OSError:
            pass  # one of the two is gone, which ends us too
        return True


def _to_socket(read_fd: int, line: socket.socket) -> None:
    try:
        while chunk := os.read(read_fd, _CHUNK):
            line.sendall(chunk)
        line.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # nobody reads any more


if __name__ == "__main__":
    entered = carry(os.environ[SOCKET], os.environ[SECRET], 0, 1)
    if not entered:
        sys.stderr.write("the session is another client's, or over\n")
        sys.stderr.flush()
    os._exit(0 if entered else 1)  # a thread may still wait for input that never comes
