"""From arguments to an exit code: the one door where our exceptions become messages."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Never

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.parser import PROGRAM, parser

if TYPE_CHECKING:
    from assisted_benchmark.kernel.errors import HarnessError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (`cli.exits`)."""
    arguments = parser().parse_args(argv)
    if arguments.version:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"{PROGRAM} {version(PROGRAM)}")
        except PackageNotFoundError:
            print(f"{PROGRAM} (from a checkout)")
        return exits.OK
    if not arguments.verb:
        parser().print_help(sys.stderr)
        return exits.MISUSE
    if not sys.platform.startswith(("linux", "darwin")):
        return _say(f"this platform ({sys.platform}) is not supported", "run it on Linux or macOS", exits.MISUSE)
    return _guarded(arguments.verb, arguments)


def _guarded(verb: str, arguments: object) -> int:
    from assisted_benchmark.kernel.errors import HarnessError

    # CI cancels with SIGTERM: the same orderly end as Ctrl-C, with the report written.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, _interrupt)
    try:
        code: int = importlib.import_module(f"assisted_benchmark.cli.{verb}").command(arguments)
        sys.stdout.flush()
    except HarnessError as error:
        return _explain(error)
    except KeyboardInterrupt:
        return _say("interrupted", "", exits.INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing is wrong, and nobody is listening.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK
    return code


def _interrupt(_signal: int, _frame: object) -> Never:
    # Once is enough: an impatient second one must not cut off the writing of the report.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def _explain(error: HarnessError) -> int:
    from assisted_benchmark.kernel.errors import DocumentError, InputError, IntegrityError, LedgerError, ServerError

    code = {IntegrityError: exits.INTEGRITY, LedgerError: exits.INTEGRITY, ServerError: exits.COULD_NOT_RUN}.get(
        type(error), exits.MISUSE if isinstance(error, InputError) else exits.COULD_NOT_RUN
    )
    if isinstance(error, DocumentError):
        for problem in error.problems:
            print(problem, file=sys.stderr)
        return code
    return _say(str(error), "", code)


def _say(what: str, do: str, code: int) -> int:
    print(f"{PROGRAM}: {what}", file=sys.stderr)
    if do:
        print(f"  {do}", file=sys.stderr)
    return code
