"""Proof by killing: dispatchers are SIGKILLed at random points, and no group may be sent twice.

Dispatchers race over the same groups; all are killed at once after a random while, what they left is
recovered (and the recovery is killed too, now and then), and the next ones go on. The server outlives them,
and counts what arrived, not what was meant. The moment of a kill comes from the seed; where it hits depends
on the machine.
"""

from __future__ import annotations

import os
import select
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, Protocol

from attrs import frozen

from assisted_benchmark.kernel.chance import Chance
from assisted_benchmark.kernel.digest import digest_of
from assisted_benchmark.kernel.errors import LedgerError
from assisted_benchmark.kernel.reasons import Reason
from assisted_benchmark.suite.dispatch_designs import Design

_GROUPS: Final = 100
_CYCLES_A_STORE: Final = 50
_LONGEST_US: Final = 500
_PATIENCE_S: Final = 0.02


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


class Arena(Protocol):
    """One store, what is dispatched over it by processes that are killed, and a server that outlives them."""

    @property
    def dispatchers(self) -> int:
        """How many processes race."""

    @property
    def told(self) -> int:
        """After how many dispatches, of all of them together, a kill comes at the latest."""

    def recover(self, cycle: int) -> None:
        """Take up what the last cycles left, and make what this one dispatches."""

    def race(self, cycle: int, tell: Callable[[], None]) -> None:
        """Dispatch the last cycle's once more, then this one's; before each, tell."""

    def listen(self) -> None:
        """Hear what the server tells, which may not be able to go on before."""

    def count(self, cycles: int, killed: int) -> Tally:
        """What arrived at the server, and what the store says of it."""

    def close(self) -> None:
        """Let go of the server."""


def kill(arena: Callable[[Path], Arena], kills: int, chance: Chance) -> Tally:
    """Kill dispatchers until `kills` were killed; a fresh store every so often keeps them fast."""
    tally = Tally(kills=0, sends=0, groups=0, doubles=0, unresolved=0, unsound=0)
    while tally.kills < kills:
        with tempfile.TemporaryDirectory(prefix="kills-") as folder, closing(arena(Path(folder))) as made:
            tally += _one_store(made, kills - tally.kills, chance)
    return tally


def _one_store(arena: Arena, kills: int, chance: Chance) -> Tally:
    killed = cycle = 0
    while killed < kills and cycle < _CYCLES_A_STORE:
        cycle += 1
        killed += _cycle(arena, cycle, chance)
    finish(lambda: arena.recover(cycle + 1))
    return arena.count(cycle, killed)


def _cycle(arena: Arena, cycle: int, chance: Chance) -> int:
    """Recover, then let dispatchers race until they are killed; how many processes were killed."""
    killed = 0
    if chance.token(1)[0] < 32:
        recovering = _fork(lambda: arena.recover(cycle))
        time.sleep(_pause(chance))
        killed += _kill(recovering)
    finish(lambda: arena.recover(cycle))
    ready, started = os.pipe()

    def tell() -> None:
        with suppress(BrokenPipeError):  # nobody counts any more: the kill is on its way
            os.write(started, b".")

    racers = [_fork(lambda: arena.race(cycle, tell)) for _ in range(arena.dispatchers)]
    os.close(started)
    # A while is told in dispatches, not in time: on a busy machine a dispatcher would be done before its kill.
    left = int.from_bytes(chance.token(4), "big") % arena.told + 1
    while left > 0:
        arena.listen()
        if select.select([ready], [], [], _PATIENCE_S)[0]:
            told = len(os.read(ready, left))
            left = left - told if told else 0
    os.close(ready)
    time.sleep(_pause(chance))
    return killed + sum([_kill(racer) for racer in racers])


def _pause(chance: Chance) -> float:
    return int.from_bytes(chance.token(4), "big") % _LONGEST_US / 1e6


def finish(work: Callable[[], None]) -> None:
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


class Groups:
    """Groups of a bare ledger, dispatched by one of the designs; the server is a file."""

    dispatchers: Final = 2
    told: Final = 3 * _GROUPS

    def __init__(self, design: Callable[[Path], Design], folder: Path) -> None:
        self._design = design
        self._folder = folder
        design(folder).close()

    def recover(self, cycle: int) -> None:
        store = self._design(self._folder)
        for run in range(max(0, cycle - 2), cycle + 1):
            store.open_run(f"run-{run}", _groups(run))
            store.recover(f"run-{run}")

    def race(self, cycle: int, tell: Callable[[], None]) -> None:
        store = self._design(self._folder)
        server = FileServer(self._folder)
        for run in (cycle - 1, cycle):
            for group in _groups(run):
                tell()
                store.dispatch(f"run-{run}", group, lambda name: server.take(name.hex()), lambda _: None)

    def count(self, cycles: int, killed: int) -> Tally:
        arrived = FileServer(self._folder).arrived()
        store = self._design(self._folder)
        groups = [group for run in range(cycles + 1) for group in _groups(run)]
        tally = Tally(
            kills=killed,
            sends=arrived.total(),
            groups=len(groups),
            doubles=doubled(arrived),
            unresolved=store.unresolved(groups),
            unsound=store.unsound(),
        )
        store.close()
        return tally

    def listen(self) -> None:
        """A file needs nobody."""

    def close(self) -> None:
        """The file goes with its folder."""


class FileServer:
    """A server that every send appends one line to, whoever dies right after."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / "server", os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._path = folder / "server"

    def take(self, name: str) -> None:
        """A call arrives."""
        os.write(self._file, name.encode() + b"\n")

    def arrived(self) -> Counter[str]:
        """How often each call arrived. The server ends here."""
        os.close(self._file)
        return Counter(self._path.read_text("ascii").split())


def doubled(arrived: Counter[str]) -> int:
    """How many calls arrived more than once."""
    return sum(count > 1 for count in arrived.values())


def _groups(run: int) -> list[bytes]:
    return [bytes.fromhex(digest_of("kills@1", b"%d" % run, b"%d" % place)[7:]) for place in range(_GROUPS)]
