"""`drift`: each pinned server started as its contract says, and what it is and lists now compared with the pin."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import frozen

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.place import command_line, root_of
from assisted_benchmark.contract.document import load_contract
from assisted_benchmark.contract.drift import Change, drift
from assisted_benchmark.contract.model import Contract, Remote, Server
from assisted_benchmark.kernel.canonical import Json
from assisted_benchmark.kernel.clock import SECOND, Deadline, SystemClock
from assisted_benchmark.kernel.errors import DocumentError, MisuseError, ServerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.kernel.text import did_you_mean, shown
from assisted_benchmark.mcp_router.launch_drift import LaunchChange, launch_changes
from assisted_benchmark.mcp_router.looking import look
from assisted_benchmark.mcp_router.process import Launcher
from assisted_benchmark.suite.files import Files

_SUFFIX: Final = ".contract.yaml"
_WAIT_NS: Final = 60 * SECOND
# What a server does or lists, which was pinned otherwise; the rest says that it could not be looked at.
_DRIFT: Final = frozenset({Reason.ARTIFACT_DRIFT, Reason.DUPLICATE_TOOL})


@frozen
class Found:
    """What came of one server: changes; or why it could not be looked at, or not to its end."""

    contract: str
    server: str
    changes: tuple[LaunchChange | Change, ...] = ()
    reason: Reason | None = None
    detail: str = ""

    @property
    def code(self) -> int:
        if self.changes or self.reason in _DRIFT:
            return exits.INTEGRITY
        return exits.OK if self.reason is None else exits.COULD_NOT_RUN


def command(arguments: argparse.Namespace) -> int:
    """Exit 0 if every server is as pinned, 4 if one is not, 3 if one could not be looked at."""
    found = []
    with Launcher() as launcher:
        for contract, folder in _contracts(arguments, root_of(arguments)):
            for server in contract.servers:
                found.append(_compared(contract, server, folder, launcher))
                if not arguments.json:
                    _tell(found[-1])
    if arguments.json:
        print(json.dumps([_row(each) for each in found], indent=1))
    drifted = {each.contract for each in found if each.code == exits.INTEGRITY}
    if drifted and not arguments.json:
        again = command_line(arguments, "pin", "ID", "--force", "--", "PROGRAM", "ARG…")
        print(f"look at what changed before you pin it anew: {again}", file=sys.stderr)
    return exits.worst(each.code for each in found)


def _contracts(arguments: argparse.Namespace, root: Path) -> Iterator[tuple[Contract, Path]]:
    """The contracts that were asked for, each with its folder; what is wrong with others does not matter."""
    files = Files(root)
    known = {each.id: (each, path.parent) for path, each in files.all("contract", _SUFFIX, load_contract)}
    if not arguments.contracts:
        if files.problems:
            raise DocumentError(files.problems)
        yield from known.values()
    for asked in arguments.contracts:
        path = Path(asked)
        if path.name.endswith(_SUFFIX):
            yield load_contract(path, root), path.parent
        elif asked in known:
            yield known[asked]
        elif of_it := [each for each in files.problems if each.file.endswith(f"/{asked}{_SUFFIX}")]:
            raise DocumentError(of_it)
        else:
            hint = did_you_mean(asked, known)
            raise MisuseError(Reason.MISUSE, f"no contract has the id `{shown(asked)}`{'; ' + hint if hint else ''}")


def _compared(contract: Contract, server: Server, folder: Path, launcher: Launcher) -> Found:
    name = contract.id, server.id
    try:
        changes = () if isinstance(server.launch, Remote) else launch_changes(server.launch, folder, launcher.artifacts)
        if changes:
            return Found(*name, changes)  # what is not as pinned is not started
        clock = SystemClock()
        deadline = Deadline.after(clock, _WAIT_NS)
        seen = look(server.launch, folder, server.capabilities.value, launcher, clock, deadline)
    except ServerError as error:
        return Found(*name, reason=error.reason, detail=error.detail)
    return Found(*name, drift(server, list(seen.tools)))


def _tell(found: Found) -> None:
    name = f"{found.contract}/{found.server}"
    if found.code == exits.OK:
        print(f"{name}: as pinned")
    if found.reason is not None:
        what = "drift" if found.code == exits.INTEGRITY else "could not be looked at"
        print(f"{name}: {what}: {shown(found.detail, 2000)} ({found.reason.value})")
    for change in found.changes:
        print(f"{name}: {change.line()}")
    if found.changes and isinstance(found.changes[0], LaunchChange):
        print(f"{name}: was not started, so its tools were not compared")


def _row(found: Found) -> Json:
    changes = [
        {
            "tool": None if isinstance(each, LaunchChange) else each.tool,
            "pointer": each.pointer,
            "before": each.before,
            "after": each.after,
        }
        for each in found.changes
    ]
    return {
        "contract": found.contract,
        "server": found.server,
        "outcome": {exits.OK: "as_pinned", exits.INTEGRITY: "drift"}.get(found.code, "could_not_run"),
        "changes": changes,
        "reason": None if found.reason is None else found.reason.value,
        "detail": found.detail,
    }
