"""A server of raw bytes on loopback: what it got is kept to the byte, what it says is up to the test."""

import socket
import struct
import threading

PATIENCE = 10.0  # seconds until a test gives up; nothing waits that long unless it fails


def answer(status=201, body=b"{}", *headers, media=b"application/json"):
    lines = [b"HTTP/1.1 %d Said" % status, b"Content-Type: " + media, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def whole_request(connection):
    """One request, head and body, as it came; less, if the other side closes before."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(1 << 16)
        if not piece:
            return data
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    while len(body) < length:
        piece = connection.recv(1 << 16)
        if not piece:
            break
        body += piece
    return head + b"\r\n\r\n" + body


def reset(connection):
    """Close at once, so that the other side's next write fails."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class RawServer:
    """Serves one connection after the other. `says` is bytes, or a function of the connection once a request is in.

    `at_once` gets the connection before anything is read of it, in place of all that.
    """

    def __init__(self, says=b"", *, at_once=None, host="127.0.0.1", tls=None):
        self.requests = []
        self.accepted = threading.Semaphore(0)
        self.over = threading.Semaphore(0)
        self._says = says
        self._at_once = at_once
        self._tls = tls
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listening = socket.create_server((host, 0), family=family)
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.accepted.release()
            try:
                with connection:
                    connection.settimeout(PATIENCE)
                    self._one(connection)
            except OSError:
                pass
            self.over.release()

    def _one(self, connection):
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_side=True)
        with connection:
            if self._at_once is not None:
                self._at_once(connection)
                return
            self.requests.append(whole_request(connection))
            if isinstance(self._says, bytes):
                connection.sendall(self._says)
            else:
                self._says(connection)
