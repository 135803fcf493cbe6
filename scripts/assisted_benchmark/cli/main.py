"""From arguments to an exit code: the one door where our exceptions become messages."""

from __future__ import annotations

import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Never, TextIO

from assisted_benchmark.cli import exits
from assisted_benchmark.cli.interrupts import INTERRUPTS, hold_interrupts
from assisted_benchmark.cli.parser import PROGRAM, parsed, parser

if TYPE_CHECKING:
    from assisted_benchmark.kernel.errors import HarnessError


# The machine, not the caller, is in the way: a full or failing disk, for example.
_MACHINE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE})
_LONGEST: Final = 10_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code (`cli.exits`)."""
    _open_standard_streams()
    try:
        code = _run(argv)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing is wrong, and nobody is listening.
        _mute(sys.stdout)
        return exits.OK
    except OSError as error:
        _mute(sys.stdout)
        where = f": {error.filename!a}" if error.filename is not None else ""
        code = exits.COULD_NOT_RUN if error.errno in _MACHINE else exits.MISUSE
        return _say(f"the system refused{where} ({error.strerror or error})", "mend that, and call it again", code)
    except UnicodeError as error:
        return _say(f"a name is not UTF-8 text ({error})", "give the file or folder another name", exits.MISUSE)
    return code


def _run(argv: Sequence[str] | None) -> int:
    arguments = parsed(argv)
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
    # CI cancels with SIGTERM: the same orderly end as Ctrl-C, with the report written. While libraries are
    # imported a signal is only noted: an exception in the middle of one's start-up ends in its own confusion.
    early: list[int] = []
    for each in INTERRUPTS:
        signal.signal(each, lambda number, _frame: early.append(number))
    command = importlib.import_module(f"assisted_benchmark.cli.{verb}").command
    from assisted_benchmark.kernel.errors import HarnessError

    try:
        for each in INTERRUPTS:
            signal.signal(each, _interrupt)
        if early:
            raise KeyboardInterrupt
        code: int = command(arguments)
    except HarnessError as error:
        return _explain(error)
    except KeyboardInterrupt:
        return _say("interrupted", "", exits.INTERRUPTED)
    return code


def _interrupt(_signal: int, _frame: object) -> Never:
    # Once is enough: an impatient second one must not cut off the writing of the report.
    hold_interrupts()
    raise KeyboardInterrupt


def _open_standard_streams() -> None:
    """Give a caller's closed stream a place to go, so that no file of ours takes its number."""
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(opened)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open to the end


def _mute(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _explain(error: HarnessError) -> int:
    from assisted_benchmark.kernel.errors import DocumentError, InputError, IntegrityError, LedgerError, ServerError

    code = {IntegrityError: exits.INTEGRITY, LedgerError: exits.INTEGRITY, ServerError: exits.COULD_NOT_RUN}.get(
        type(error), exits.MISUSE if isinstance(error, InputError) else exits.COULD_NOT_RUN
    )
    if isinstance(error, DocumentError):
        for problem in error.problems:
            print(_plain(problem), file=sys.stderr)
        return code
    return _say(_plain(error), "", code)


def _plain(what: object) -> str:
    """For a terminal: what is told may name files, and those may have any name."""
    from assisted_benchmark.kernel.text import shown

    return "\n".join(shown(line, _LONGEST) for line in str(what).splitlines())


def _say(what: str, do: str, code: int) -> int:
    print(f"{PROGRAM}: {what}", file=sys.stderr)
    if do:
        print(f"  {do}", file=sys.stderr)
    return code
