"""One look at a server: started from its template, asked what it is and lists, and ended. No call is ever made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from attrs import frozen

from assisted_benchmark.contract.model import Launch, Remote
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import SECOND, Clock, Deadline
from assisted_benchmark.kernel.errors import ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.mcp_router.last_words import last_words, secrets_of
from assisted_benchmark.mcp_router.launch import Resolved
from assisted_benchmark.mcp_router.process import GRACE_NS, Launcher
from assisted_benchmark.mcp_router.remote import Reached, reach, session_with
from assisted_benchmark.wire.client_session import ClientSession, Session
from assisted_benchmark.wire.outcomes import Connected, Limits

_CLOSE_NS: Final = 10 * SECOND
_RELISTINGS: Final = 3


@frozen
class Seen:
    """What a server showed: what was started, what it says it is (labels), its raw tools."""

    resolved: Resolved | Reached
    connected: Connected
    tools: tuple[Json, ...]


def list_settled(session: Session, changed: Callable[[], bool], deadline: Deadline) -> list[Json]:
    """The raw tool list, read again for as long as it has `changed` meanwhile, a few times at most.

    Raises:
        ServerError: as `ClientSession.list_tools`, and incomplete_listing for a list that kept changing.
    """
    tools = session.list_tools(deadline)
    for _ in range(_RELISTINGS):
        session.drain()
        if not changed():
            return tools
        tools = session.list_tools(deadline)
    raise ServerError(Reason.INCOMPLETE_LISTING, "the tool list kept changing while it was read")


def look(
    launch: Launch | Remote, folder: Path, capabilities: Json, launcher: Launcher, clock: Clock, deadline: Deadline
) -> Seen:
    """Start or reach the server, list its tools as a client with these capabilities sees them, and leave it.

    Raises:
        ServerError: it cannot be started as pinned, cannot be understood, or does not list its tools whole.
    """
    if isinstance(launch, Remote):
        return _look_there(launch, capabilities, clock, deadline)
    resolved = launcher.resolve(launch, folder)
    process = launcher.start(resolved)
    limits = Limits()
    session = ClientSession(
        process.stdout, process.stdin, process.stderr, clock, limits=limits, capabilities=capabilities
    )
    try:
        try:
            connected = session.connect(deadline)
            tools = list_settled(session, lambda: session.tools_changed and not session.watch_lost, deadline)
        finally:
            gone = session.closed
            ending = process.stop(session.finish, deadline=Deadline.after(clock, _CLOSE_NS), grace_ns=GRACE_NS)
    except ServerError as error:
        status = ending.status if gone and ending.by in {"exit", "stdin"} else None
        tail = session.stderr_tail
        secrets = secrets_of(launch.env, resolved.env)
        said = last_words(status, tail, secrets, cut=len(tail) >= limits.stderr_tail)
        raise ServerError(error.reason, error.detail + said) from error
    finally:
        session.close()
    changed = resolved.changed()
    if changed:
        raise ServerError(Reason.ARTIFACT_DRIFT, f"`{changed[0]}` changed while the server ran")
    return Seen(resolved, connected, tuple(tools))


def _look_there(remote: Remote, capabilities: Json, clock: Clock, deadline: Deadline) -> Seen:
    reached = reach(remote)
    session = session_with(reached, clock, Limits(), capabilities)
    try:
        connected = session.connect(deadline)
        tools = list_settled(session, lambda: session.tools_changed and not session.watch_lost, deadline)
    finally:
        session.finish(Deadline.after(clock, _CLOSE_NS))
        session.close()
    return Seen(reached, connected, tuple(tools))
