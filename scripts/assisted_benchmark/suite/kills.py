"""Proof by killing: dispatchers are SIGKILLed at random points, and no group may be sent twice.

    python -m assisted_benchmark.suite.kills [--kills 2000] [--seed 0] [--control]

Dispatchers race over the same groups; all are killed at once after a random while, what they left is
recovered (and the recovery is killed too, now and then), and the next ones go on. The server is a file
that every send appends one line to, so it counts what arrived, not what was meant. The moment of a kill
comes from the seed; where it hits depends on the machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from attrs import frozen

from assisted_benchmark.kernel.chance import Chance, SeededChance
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.dispatch_designs import CONTROLS, Design, Ledgered

_GROUPS: Final = 100
_CYCLES_A_STORE: Final = 50
_DISPATCHERS: Final = 2
_LONGEST_US: Final = 500


@frozen(kw_only=True)
class Tally:
    """What came of killing one design. `unsound` counts runs whose receipts do not verify."""

    kills: int
    sends: int
    groups: int
    doubles: int
    unresolved: int
    unsound: int

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            kills=self.kills + other.kills,
            sends=self.sends + other.sends,
            groups=self.groups + other.groups,
            doubles=self.doubles + other.doubles,
            unresolved=self.unresolved + other.unresolved,
            unsound=self.unsound + other.unsound,
        )


def kill(design: Callable[[Path], Design], kills: int, chance: Chance) -> Tally:
    """Kill dispatchers of `design` until `kills` were killed; a fresh store every so often keeps them fast."""
    tally = Tally(kills=0, sends=0, groups=0, doubles=0, unresolved=0, unsound=0)
    while tally.kills < kills:
        with tempfile.TemporaryDirectory(prefix="kills-") as folder:
            tally += _one_store(design, Path(folder), kills - tally.kills, chance)
    return tally


def _one_store(design: Callable[[Path], Design], folder: Path, kills: int, chance: Chance) -> Tally:
    design(folder).close()
    killed = cycle = 0
    while killed < kills and cycle < _CYCLES_A_STORE:
        cycle += 1
        killed += _cycle(design, folder, cycle, chance)
    _finish(lambda: _recover(design, folder, cycle + 1))
    return _count(design, folder, cycle, killed)


def _cycle(design: Callable[[Path], Design], folder: Path, cycle: int, chance: Chance) -> int:
    """Recover, then let dispatchers race until they are killed; how many processes were killed."""
    killed = 0
    if chance.token(1)[0] < 32:
        recovering = _fork(lambda: _recover(design, folder, cycle))
        time.sleep(_pause(chance))
        killed += _kill(recovering)
    _finish(lambda: _recover(design, folder, cycle))
    ready, started = os.pipe()
    racers = [_fork(lambda: _race(design, folder, cycle, started)) for _ in range(_DISPATCHERS)]
    os.close(started)
    # A while is told in dispatches, not in time: on a busy machine a dispatcher would be done before its kill.
    left = int.from_bytes(chance.token(4), "big") % (3 * _GROUPS) + 1
    while left > 0 and (told := len(os.read(ready, left))):
        left -= told
    os.close(ready)
    time.sleep(_pause(chance))
    return killed + sum([_kill(racer) for racer in racers])


def _pause(chance: Chance) -> float:
    return int.from_bytes(chance.token(4), "big") % _LONGEST_US / 1e6


def _finish(work: Callable[[], None]) -> None:
    """Do `work` in a process of its own, unharmed."""
    _outcome(_fork(work))


def _kill(child: int) -> int:
    """1 if the kill came before the child had ended by itself."""
    os.kill(child, signal.SIGKILL)
    return int(_outcome(child) != 0)


def _fork(work: Callable[[], None]) -> int:
    with warnings.catch_warnings():
        # Python warns of a fork beside threads; the child runs `work` alone and shares no lock with them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        # Whatever happens, the child must not return into its parent's stack.
        code = 70
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def _outcome(child: int) -> int:
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in {0, -signal.SIGKILL}:
        raise LedgerError(Reason.COULD_NOT_RUN, f"a dispatcher ended by itself, with exit code {code}")
    return code


def _groups(run: int) -> list[bytes]:
    return [bytes.fromhex(digest_of("kills@1", b"%d" % run, b"%d" % place)[7:]) for place in range(_GROUPS)]


def _recover(design: Callable[[Path], Design], folder: Path, cycle: int) -> None:
    """The runs of the last two cycles, which the killed may have touched, and this one's."""
    store = design(folder)
    for run in range(max(0, cycle - 2), cycle + 1):
        store.open_run(f"run-{run}", _groups(run))
        store.recover(f"run-{run}")


def _race(design: Callable[[Path], Design], folder: Path, cycle: int, started: int) -> None:
    """Dispatch the last cycle's groups once more, then this one's."""
    store = design(folder)
    server = os.open(folder / "server", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def send(group: bytes) -> None:
        os.write(server, group.hex().encode() + b"\n")

    for run in (cycle - 1, cycle):
        for group in _groups(run):
            with suppress(BrokenPipeError):  # nobody counts any more: the kill is on its way
                os.write(started, b".")
            store.dispatch(f"run-{run}", group, send, lambda _: None)


def _count(design: Callable[[Path], Design], folder: Path, cycles: int, killed: int) -> Tally:
    server = folder / "server"
    arrived = Counter(server.read_text("ascii").split() if server.exists() else ())
    store = design(folder)
    groups = [group for run in range(cycles + 1) for group in _groups(run)]
    tally = Tally(
        kills=killed,
        sends=arrived.total(),
        groups=len(groups),
        doubles=sum(count > 1 for count in arrived.values()),
        unresolved=store.unresolved(groups),
        unsound=store.unsound(),
    )
    store.close()
    return tally


def _shown(name: str, tally: Tally, seconds: float) -> str:
    return (
        f"{name:18} kills {tally.kills:6,}  sends {tally.sends:7,}  double dispatches {tally.doubles:5,}"
        f"  unresolved {tally.unresolved:5,}  unsound receipts {tally.unsound}  ({seconds:.1f} s)\n"
    )


def main(arguments: list[str] | None = None) -> int:
    """0 if no group was sent twice (with --control: and every control's double was caught), else 1."""
    parser = argparse.ArgumentParser(prog="scripts/kills", description="prove at-most-once dispatch by killing it")
    parser.add_argument("--kills", type=int, default=2000, help="how many processes to kill (default 2000)")
    parser.add_argument("--seed", default="0", help="where the moments of the kills come from (default 0)")
    parser.add_argument("--control", action="store_true", help="kill three wrong designs too; each must be caught")
    options = parser.parse_args(arguments)
    designs: dict[str, Callable[[Path], Design]] = {"ledger": Ledgered} | (CONTROLS if options.control else {})
    held = True
    for name, design in designs.items():
        began = time.monotonic()
        tally = kill(design, options.kills, SeededChance(f"{options.seed}/{name}"))
        sys.stdout.write(_shown(name, tally, time.monotonic() - began))
        sys.stdout.flush()
        held = held and (tally.doubles > 0) == (name in CONTROLS) and tally.unsound == 0
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
