"""A server written by hand, on the standard library alone, that misbehaves as it is told.

    hand_server.py FOLDER [MODE]

Every start and every call is noted in FOLDER, so that they are counted where they arrive.
"""

import json
import os
import signal
import sys
from pathlib import Path

FOLDER = Path(sys.argv[1])
MODE = sys.argv[2] if len(sys.argv) > 2 else ""
TOOL = {
    "name": "do",
    "description": "Does as it is told.",
    "inputSchema": {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]},
    "x-unknown": {"kept": True},
}


def note(name, text):
    with (FOLDER / name).open("a") as file:
        file.write(text + "\n")


def noted(name):
    path = FOLDER / name
    return path.read_text().splitlines() if path.exists() else []


def say(value):
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def reply(request, result):
    say({"jsonrpc": "2.0", "id": request["id"], "result": result})


def text(value):
    return {"content": [{"type": "text", "text": json.dumps(value)}]}


def hang():
    while True:
        signal.pause()


def flood(fd):
    for _ in range(512):
        os.write(fd, b"nobody asked for this " * 47 + b"\n")


def hold(name):
    """Hold the pipe FOLDER/name open: its reader hears when the last one who does has ended."""
    os.set_inheritable(os.open(FOLDER / name, os.O_WRONLY), True)


def leave_a_stray():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            hang()
        os._exit(0)


def tools():
    listed = len(noted("lists"))
    note("lists", "list")
    tool = dict(TOOL)
    changed = noted("changed") or (MODE == "other-on-restart" and len(noted("starts")) > 1)
    if changed or (MODE == "flip-flop" and listed % 2):
        tool["description"] = "Does something else."
    if MODE == "never-settles":
        say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    return [tool, tool] if MODE == "twice" else [tool]


def call(request):
    what = request["params"]["arguments"]["what"]
    note("calls", what)
    if (FOLDER / "acted").exists():
        (FOLDER / "acted").write_text(what)
    if what == "hang":
        hang()
    elif what == "die":
        os._exit(3)
    elif what == "fall-silent":
        sys.stderr.write("I heard a secret\n")
        say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        reply(request, text("once"))
        sys.stdin.readline()
        sys.exit(4)
    elif what == "kill-keeper":
        os.kill(os.getppid(), signal.SIGKILL)
        hang()
    elif what == "env":
        reply(request, text(dict(os.environ)))
    elif what == "place":
        fds = sorted(map(int, os.listdir("/dev/fd")))
        reply(
            request,
            text({"fds": fds, "cwd": os.getcwd(), "files": os.listdir("."), "home": os.listdir(os.environ["HOME"])}),
        )
    elif what == "program":
        reply(
            request,
            text(
                {
                    "argv": sys.argv,
                    "executable": sys.executable,
                    "prefix": sys.prefix,
                    "group": os.getpgrp() == os.getpid(),
                }
            ),
        )
    elif what == "change":
        note("changed", "yes")
        say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        reply(request, text("changed"))
    elif what == "flood":
        flood(2)
        reply(request, text("flooded"))
    elif what == "fail":
        reply(request, {**text("no"), "isError": True})
    elif what == "error":
        say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32602, "message": "no"}})
    elif what == "both":
        say({"jsonrpc": "2.0", "id": request["id"], "result": text("a"), "error": {"code": 1, "message": "no"}})
    elif what == "twice":
        line = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": text("a")}) + "\n"
        sys.stdout.write(line + line)
        sys.stdout.flush()
    elif what == "foreign":
        reply({"id": "nobody"}, text("a"))
        reply(request, text("mine"))
    else:
        reply(request, text(what))


def serve():
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        if method == "initialize":
            capabilities = {"tools": {"listChanged": True}}
            info = {"name": "hand", "version": "1"}
            version = request["params"]["protocolVersion"]
            reply(request, {"protocolVersion": version, "capabilities": capabilities, "serverInfo": info})
            if MODE == "exit-after-initialize":
                sys.exit(0)
        elif method == "tools/list":
            reply(request, {"tools": tools()})
        elif method == "tools/call":
            call(request)
        elif "id" in request:
            say({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no such method"}})


note("starts", str(os.getpid()))
if MODE == "exit":
    sys.exit(5)
if MODE == "complain":
    sys.stderr.write("x" * 9000 + f"\nno module\x1b[31m `{os.environ.get('TOKEN')}`\n\n")
    sys.exit(7)
if MODE == "signalled":
    os.kill(os.getpid(), signal.SIGKILL)
if MODE == "grumble":
    sys.stderr.write("waiting for a lock\n")
    sys.stderr.flush()
    hang()
if MODE == "silent":
    hang()
if MODE in {"flood-stderr", "flood-stdout"}:
    flood(2 if MODE == "flood-stderr" else 1)
if MODE in {"ignore-term", "stray-ignore-term"}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if (FOLDER / "life").exists():
    hold("life")
if MODE.startswith("stray"):
    leave_a_stray()
serve()
if MODE in {"ignore-eof", "ignore-term", "stray-ignore-term"}:
    hang()
