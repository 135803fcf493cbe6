"""A server that does exactly the steps it is given: JSON on its command line, standard library only."""

import json
import os
import signal
import sys

last = "null"
steps = json.loads(sys.argv[1])


def put(fd, data):
    while data:
        data = data[os.write(fd, data) :]


for name, *args in steps:
    if name == "read":
        message = json.loads(sys.stdin.buffer.readline() or b"{}")
        last = json.dumps(message.get("id"))
    elif name == "say":
        put(1, args[0].replace("{id}", last).encode() + b"\n")
    elif name == "answer":
        pad = "x" * args[0]
        put(1, f'{{"jsonrpc":"2.0","id":{last},"result":{{"content":[],"pad":"{pad}"}}}}\n'.encode())
    elif name == "grumble":
        put(2, b"x" * args[0] + b" the end\n")
    elif name == "storm":
        put(1, args[1].encode() * args[0])
    elif name == "act":
        with open(args[0], "a", encoding="utf-8") as acts:
            acts.write("acted\n")
    elif name == "for ever":
        while True:
            put(1, args[0].encode())
    elif name == "deaf":
        signal.pause()
    elif name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
