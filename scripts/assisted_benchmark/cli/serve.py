"""`serve`: the tools of an API's changes, or of a registry, to one agent over standard input and output.

Standard output is the wire and nothing else; whatever there is to say goes to standard error.
"""

from __future__ import annotations

import argparse
from typing import Final

from assisted_benchmark.cli.place import root_of
from assisted_benchmark.kernel.errors import MisuseError
from assisted_benchmark.kernel.reasons import Reason

_OF_CHANGES: Final = ("origin", "offline_endpoint")
_OF_REGISTRY: Final = ("host_socket", "offline_host", "eligible", "standing")


def command(arguments: argparse.Namespace) -> int:
    """Serve until the client closes its side. Nothing runs any more when this returns."""
    root = root_of(arguments)
    # Of the two kinds only the one that is served is loaded.
    if arguments.registry is None:
        _without(arguments, "--changes", _OF_REGISTRY)
        from assisted_benchmark.cli.serve_changes import serve_changes

        return serve_changes(root, arguments)
    _without(arguments, "--registry", _OF_CHANGES)
    from assisted_benchmark.cli.serve_registry import serve_registry

    return serve_registry(root, arguments)


def _without(arguments: argparse.Namespace, kind: str, flags: tuple[str, ...]) -> None:
    for flag in flags:
        if getattr(arguments, flag):
            raise MisuseError(Reason.MISUSE, f"--{flag.replace('_', '-')} is nothing that {kind} has")
