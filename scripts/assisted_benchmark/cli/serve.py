"""`serve`: a scenario, the tools of an API's changes, or a registry, to an agent: over standard streams, or HTTP.

Standard output is the wire and nothing else; over HTTP, the client's configuration. Whatever there is to say goes to
standard error.
"""

from __future__ import annotations

import argparse
from typing import Final

from assisted_benchmark.cli.place import root_of
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason

# What each kind needs one of, and what else it has that others have not.
_WHERE: Final = {"scenario": (), "changes": ("origin", "offline_endpoint"), "registry": ("host_socket", "offline_host")}
_MORE: Final = {
    "scenario": ("visibility", "seed", "durability"),
    "changes": ("toolsets", "ledger"),
    "registry": ("toolsets", "ledger", "eligible", "standing"),
}


def command(arguments: argparse.Namespace) -> int:
    """Serve until the client closes its side. Nothing runs any more when this returns."""
    root = root_of(arguments)
    kind = next(each for each in _WHERE if getattr(arguments, each) is not None)
    _require_fitting(arguments, kind)
    # Of the three kinds only the one that is served is loaded.
    if kind == "scenario":
        from assisted_benchmark.cli.serve_scenario import serve_scenario

        return serve_scenario(root, arguments)
    if kind == "changes":
        from assisted_benchmark.cli.serve_changes import serve_changes

        return serve_changes(root, arguments)
    from assisted_benchmark.cli.serve_registry import serve_registry

    return serve_registry(root, arguments)


def _require_fitting(arguments: argparse.Namespace, kind: str) -> None:
    word = "a scenario" if kind == "scenario" else f"--{kind}"
    fitting = {*_WHERE[kind], *_MORE[kind]}
    for each in (*_WHERE.values(), *_MORE.values()):
        for name in each:
            if name not in fitting and getattr(arguments, name) not in (None, False):
                raise MisuseError(Reason.MISUSE, f"{_flag(name)} is nothing that {word} has")
    if arguments.port is not None and not arguments.http:
        raise MisuseError(Reason.MISUSE, "--port is of --http alone")
    where = _WHERE[kind]
    if where and not any(getattr(arguments, name) for name in where):
        raise MisuseError(Reason.MISUSE, f"{word} needs {' or '.join(_flag(name) for name in where)}")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
